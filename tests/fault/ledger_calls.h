/* ledger_calls.h - what several processes called on one ledger and were told, what its log says of
 * it, and whether the two can be.
 *
 * The log is the order of everything that happened: each of its records is one step of the ledger
 * as a state machine (log_follow checks that it is a legal one). A call that was answered took
 * place at one position of the log, between its beginning and its end: what it did, or saw, tells
 * from which record to which that can have been. Calls that did not overlap took place in their
 * order. If such positions can be found for all calls, the ledger was linearizable (calls_check).
 *
 * Every process notes in shared memory that it begins a call, and then its answer; that survives
 * its death. A call without an answer may have happened, at any time after it began.
 */
#ifndef WEIR_FAULT_LEDGER_CALLS_H
#define WEIR_FAULT_LEDGER_CALLS_H

#include <stdatomic.h>

#include "store/ledger.h"

enum {
    CALLS_MAX = 1 << 17,
    CALL_RETIRED_MAX = 12,
    RECORDS_MAX = 1 << 15,
    SAVES_MAX = 1 << 14,
};

enum call_kind { CALL_JOIN = 1, CALL_PUT, CALL_WAIT, CALL_RETIRE, CALL_READ, CALL_VIEW };

/* A save; {0, 0}: none. */
struct which {
    uint64_t attempt, number;
};

struct call {
    enum call_kind kind;
    unsigned proc, incarnation; /* of a JOIN: which token */
    atomic_int done;            /* the answer is in: */
    int code;
    bool committed;    /* by a PUT */
    uint64_t attempt;  /* of a JOIN that was answered 0; under which to RETIRE, or 0 */
    uint64_t head;     /* of a READ */
    struct which save; /* of a PUT, a WAIT, and of a VIEW that found one */
    unsigned retired_count;
    struct which retired[CALL_RETIRED_MAX]; /* what RETIRE is to retire */
    uint64_t start_ns, end_ns;
};

struct calls {
    atomic_uint count;
    struct call calls[CALLS_MAX];
};

/* NULL when there is no room left: the process stops then. */
struct call *call_begin(struct calls *calls, enum call_kind kind, unsigned proc);
void call_end(struct call *call, int code);

/* ---- the log ---- */

enum step_kind { STEP_JOIN = 1, STEP_COMMIT, STEP_RETIRE, STEP_FORGET, STEP_GIVE_UP };

/* What a record did. */
struct step {
    enum step_kind kind;
    unsigned incarnation; /* whose token the ledger then had */
    uint64_t attempt, floor;
    struct which newest; /* live one */
};

/* A save that was committed, and by which records it was what; 0: it was not. */
struct saved {
    struct which save;
    char name[WEIR_SAVE_NAME_BYTES_MAX + 1];
    uint32_t parts;
    uint8_t root[WEIR_SHA256_BYTES];
    uint64_t committed, retired, forgotten;
};

struct steps {
    uint64_t head;
    struct step steps[RECORDS_MAX]; /* by number, from 1 */
    unsigned saves;
    struct saved saved[SAVES_MAX]; /* in the order of their commits */
};

/* The token of an incarnation, counted from 1, and the reverse. */
void token_make(uint8_t token[WEIR_TOKEN_BYTES], unsigned incarnation);
unsigned token_incarnation(const uint8_t token[WEIR_TOKEN_BYTES]);

/* Takes the next record down. NULL, or why it cannot follow from the one before. */
const char *log_follow(struct steps *steps, const struct weir_ledger_state *before,
                       const struct weir_ledger_state *after);
const struct saved *saved_find(const struct steps *steps, struct which save);

/* Can every call have been answered so? Prints which not, and why. */
bool calls_check(const struct calls *calls, const struct steps *steps);
void calls_print(const struct calls *calls, const struct steps *steps, struct which save);

#endif
