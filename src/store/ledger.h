/* ledger.h - a log whose state (state.h) says who may commit and what is committed.
 *
 * A run's incarnation has a token that all its processes share. The first of them to join appends
 * an "open" record; its number is the attempt, and every commit is made under an attempt. Joining
 * again with the same token gives the same attempt; once another token has joined, the old attempt
 * is over for good: its commits, and late processes that carry its token, are refused with -ESTALE.
 *
 * A save is one group commit (set.h): a name ("1000"), the attempt, and the how-manieth save of the
 * attempt it is. All processes of an incarnation save in the same order, so they agree on that
 * number; the same name saved twice is two saves, never a mixture. What a save consists of is
 * stored below the key <ledger>/<name>-<attempt>.<number>/, which no other save ever uses.
 *
 * An entry is a committed save and the SHA-256 of the root of its set, which names all it consists
 * of. Retiring an entry takes it from the live ones: nobody finds it any more; when a grace has
 * passed, gc deletes what it consists of and then forgets it. Forgetting, and giving up saves that
 * were never completed, raises the floor: what is at or below it and no entry cannot be committed
 * any more. So gc may delete it although a writer of it may only be asleep.
 *
 * A label is a second name that people give to a live save. It belongs to one save at a time, and a
 * save that has one is not retired.
 *
 * A handle belongs to one thread at a time.
 */
#ifndef WEIR_STORE_LEDGER_H
#define WEIR_STORE_LEDGER_H

#include "store/state.h"

struct weir_ledger;

int weir_ledger_open(struct weir_ledger **out, weir_store *store, const char *name);
void weir_ledger_close(struct weir_ledger *ledger);
struct weir_log *weir_ledger_log(struct weir_ledger *ledger);
weir_store *weir_ledger_store(struct weir_ledger *ledger);
const char *weir_ledger_name(const struct weir_ledger *ledger);
/* "<ledger>/<save>", a key below which the save's objects are. */
void weir_ledger_prefix(const struct weir_ledger *ledger, const struct weir_save *save,
                        char out[WEIR_KEY_BYTES_MAX + 1]);

/* Calls fn with the name of every log of the store, in no order, until it returns non-zero. Files
 * that cannot be a log's record are passed over. */
int weir_ledger_each(weir_store *store, int (*fn)(void *arg, const char *name), void *arg);

int weir_ledger_read(struct weir_ledger *ledger, struct weir_ledger_state *out);
/* As it was at that record; -ENOENT if there is none. */
int weir_ledger_read_at(struct weir_ledger *ledger, uint64_t number, struct weir_ledger_state *out);
/* Of a damaged log: the newest record that can be read, by listing. It may not be the head: for
 * whoever looks what is left, never for whoever appends or deletes. */
int weir_ledger_read_newest(struct weir_ledger *ledger, struct weir_ledger_state *out);
/* The newest live entry of that name, or NULL; name NULL: the newest of all. */
const struct weir_ledger_entry *weir_ledger_find(const struct weir_ledger_state *state,
                                                 const char *name);
/* The entry of just that save, live or retired, or NULL. */
const struct weir_ledger_entry *weir_ledger_find_save(const struct weir_ledger_state *state,
                                                      const struct weir_save *save);

/* The live entry that has this label, or NULL. */
const struct weir_ledger_entry *weir_ledger_find_label(const struct weir_ledger_state *state,
                                                       const char *label);
bool weir_ledger_is_labelled(const struct weir_ledger_state *state, const struct weir_save *save);

/* Takes part in the incarnation of token. -ESTALE if a newer one has begun. */
int weir_ledger_join(struct weir_ledger *ledger, const uint8_t token[WEIR_TOKEN_BYTES],
                     uint64_t *attempt);
/* Commits, once: the same save again is 0 if its root is the same. -ESTALE when the attempt is over
 * or the save was given up. label: that it has thereby, unless a save begun later has it; or NULL.
 */
int weir_ledger_commit(struct weir_ledger *ledger, const struct weir_save *save,
                       const uint8_t root[WEIR_SHA256_BYTES], const char *label);
/* Gives a live save that label, in one record, whichever had it before: *was (may be NULL) is that,
 * or parts 0. -ESTALE if the save is not live. */
int weir_ledger_label(struct weir_ledger *ledger, const char *label, const struct weir_save *save,
                      struct weir_save *was);
/* Takes a label off; -ENOENT if nothing has it. */
int weir_ledger_unlabel(struct weir_ledger *ledger, const char *label, struct weir_save *was);
/* Retires the live entries without a label for which retire() is true, under the attempt (0: by
 * hand, no fence). *count says how many. */
typedef bool (*weir_ledger_fn)(void *arg, const struct weir_ledger_entry *entry);
int weir_ledger_retire(struct weir_ledger *ledger, uint64_t attempt, weir_ledger_fn retire,
                       void *arg, size_t *count);

/* For gc. Forgets the retired entries for which deleted() is true. */
int weir_ledger_forget(struct weir_ledger *ledger, weir_ledger_fn deleted, void *arg);
/* For gc. No save of attempt up to `floor` that is not an entry now will be one. */
int weir_ledger_give_up(struct weir_ledger *ledger, uint64_t attempt, uint64_t floor);

#endif
