/* set.h - group commits: N parts from N processes become visible together, or not at all, without
 * a coordinator and without a barrier.
 *
 *            root 3.0                 Each process publishes its part (a leaf), looks its sibling
 *           /        \                up once, and if that is there publishes their parent:
 *        2.0          2.1             the two lists of parts, joined. Who publishes a parent goes
 *       /   \        /   \            on up; who finds no sibling, or is too late, is done. So N
 *     1.0   1.1    1.2   1.3          parts cost about 4 N requests, and whoever completes the root
 *     / \   / \    / \   / \          commits it to the ledger.
 *    0   1 2   3  4   5 6   7
 *
 * All nodes (node.h) are put-if-absent and a parent is a function of its children, so it does not
 * matter who writes one, or how often. A process that dies between two steps leaves the set stuck;
 * any other finishes it. Nodes are at .weir/set/<ledger>/<save>~/<level>.<index>.
 *
 * A handle belongs to one thread at a time.
 */
#ifndef WEIR_STORE_SET_H
#define WEIR_STORE_SET_H

#include "store/ledger.h"
#include "store/node.h"

struct weir_set;

/* Of save->parts parts; borrows ledger. */
int weir_set_open(struct weir_set **out, struct weir_ledger *ledger, const struct weir_save *save);
void weir_set_close(struct weir_set *set);

/* The label (ledger.h) that it gets with the commit, if a save begun later has not got it, and
 * there is room for one more. Borrowed. */
void weir_set_label(struct weir_set *set, const char *label);
/* Looks at a set that is complete, before it is committed; what it answers but 0 keeps it from
 * that, and is what all who put, finish or wait for it are told. entry: the save and its root. */
typedef int (*weir_set_fn)(void *arg, struct weir_ledger *ledger,
                           const struct weir_ledger_entry *entry, const struct weir_node *root);
void weir_set_check(struct weir_set *set, weir_set_fn check, void *arg);

/* Publishes one part, after what it refers to is sealed at home (put with WEIR_PUT_OF_SAVE, so that
 * gc deletes it with the save), and merges upwards; *committed tells whether the whole is committed
 * thereby. The same part again is fine if it is the same, else -EEXIST; -EINVAL if another process
 * counts the parts differently; -ESTALE if the attempt is over. WEIR_EUNKNOWN: do it again. */
int weir_set_put(struct weir_set *set, uint32_t part, const struct weir_ref *refs, uint32_t count,
                 const void *note, size_t note_size, bool *committed);
/* Finishes what others left undone. 0: the set is committed; -EAGAIN: a part is missing, which the
 * text names; -ESTALE: the attempt is over, it never will be. About 2 log2(N) requests when parts
 * are missing. */
int weir_set_finish(struct weir_set *set);
/* Waits until it is committed, at most timeout_ns, and finishes it if it does not get on: then
 * *committed is true. -ETIMEDOUT names the missing parts, or the first few of them, as of at most a
 * second ago. Who waits in slices, with one handle, asks the store no more than who waits once. */
int weir_set_wait(struct weir_set *set, uint64_t timeout_ns, bool *committed);

/* The root of a committed save, owning its bytes; checked against the digest in the ledger. */
int weir_set_root(struct weir_ledger *ledger, const struct weir_ledger_entry *entry,
                  struct weir_node *node, uint8_t **bytes);

#endif
