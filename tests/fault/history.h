/* history.h - what several processes did to the keys of one store, and whether that can be.
 *
 * Every process notes in shared memory that it begins an operation, and then its answer; what it
 * noted stands there although it is killed the next moment. An operation without an answer, or with
 * WEIR_EUNKNOWN, may or may not have happened; one that failed did not; one that succeeded did,
 * at one instant between its beginning and its end. Contents are never written twice, so a content
 * that was removed never comes back. The checks here follow from that and from nothing else.
 */
#ifndef WEIR_FAULT_HISTORY_H
#define WEIR_FAULT_HISTORY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "content.h"

enum { HISTORY_PROCS = 12, HISTORY_OPS = 320, KEY_ROOM = 120 };

enum op_kind { OP_PUT = 1, OP_REMOVE, OP_GET };

struct op {
    enum op_kind kind;
    atomic_int done; /* the answer is in */
    int code;
    bool present;        /* a GET found `what` */
    struct content what; /* of a PUT or a GET that found something */
    uint64_t start_ns, end_ns;
    char key[KEY_ROOM];
};

struct history {
    atomic_uint count[HISTORY_PROCS];
    struct op ops[HISTORY_PROCS][HISTORY_OPS];
};

void history_reset(struct history *h);
/* NULL when the process has no room left: it stops then. */
struct op *history_begin(struct history *h, unsigned proc, enum op_kind kind, const char *key,
                         struct content what);
void history_end(struct op *op, int code);

/* Each of these notes what it does. The answer is the operation's; -EOVERFLOW: no room left. */
int history_put(struct history *h, unsigned proc, weir_store *store, const char *key,
                struct content what, unsigned how);
int history_remove(struct history *h, unsigned proc, weir_store *store, const char *key);
int history_get(struct history *h, unsigned proc, weir_store *store, const char *key);

/* An object that was there before, as an operation of process `proc`. */
void history_given(struct history *h, unsigned proc, const char *key, struct content what);

/* Can key be in this state now that all are done? final NULL: absent. Prints why not. */
bool history_allows(const struct history *h, const char *key, const struct content *final);
/* Can every GET have seen what it saw? Prints which not. */
bool history_reads_allowed(const struct history *h);
/* Calls fn once for each key that an operation was about. */
void history_keys(const struct history *h, void (*fn)(const char *key, void *arg), void *arg);
void history_print(const struct history *h, const char *key);

struct history_totals {
    unsigned puts, puts_ok, puts_open, removes, removes_ok, removes_open, gets;
};
struct history_totals history_count(const struct history *h);

#endif
