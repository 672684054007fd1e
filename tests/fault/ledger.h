/* ledger.h - what the parts of the ledger's kill test share: memory that all its processes see.
 *
 *   ledger.c        the rounds: starts the processes, kills, stops and wakes them
 *   ledger_roles.c  what these processes do: save, retire, read, collect
 *   ledger_check.c  what a fresh process must find after a round, and at the end
 *   ledger_calls.c  whether what they were told can be
 */
#ifndef WEIR_FAULT_LEDGER_H
#define WEIR_FAULT_LEDGER_H

#include "content.h"
#include "ledger_calls.h"
#include "place.h"
#include "store/view.h"

enum {
    RANKS = 8,
    ROLE_RETIRER = RANKS,
    ROLE_READER,
    ROLE_GC,
    ROLES,
    GRACE_S = 1, /* the shortest: gc, writers and sleepers meet within a round */
};
#define LEDGER_NAME "ckpt/run"

/* The note of each part: whose it is. */
struct mark {
    uint64_t incarnation, attempt, number, part;
};

struct tally {
    unsigned long verified, saves_collected, zombies_refused, waits, timeouts;
    atomic_ulong views, objects_read, collections;
};

struct ledger_test {
    uint64_t seed;
    unsigned round;
    char root[PLACE_ROOM];
    atomic_uint incarnation; /* the newest, counted from 1 */
    atomic_uint ready;       /* processes that have opened the store */
    atomic_int complained;   /* one saw what it must never see: */
    char complaint[4096];
    /* Of each rank of the current incarnation: the last save it began; it does that one again. */
    atomic_ulong began[RANKS];
    struct tally tally;
    struct calls calls;
    struct steps steps;
};

struct start {
    struct ledger_test *t;
    unsigned role, incarnation;
};
/* What a process does until it is killed; 0 when it was told that its incarnation is over. */
int role_main(const struct start *start);

/* A save is a function of its incarnation and number, so that all ranks agree. */
struct weir_save save_of(unsigned incarnation, uint64_t attempt, uint64_t number);
struct content content_of(const struct mark *mark);
/* Checks one part and all bytes of its object. NULL view: without one. 0, the engine's -errno, or
 * -EILSEQ, printed, for a part that is not just this save's. */
int part_check(weir_store *store, struct weir_view *view, const char *prefix,
               const struct weir_part *part, const struct mark *want);

/* Both run in a fresh process: after a round, with all others stopped; at the end, with none. */
int check_round(void *test);
int check_end(void *test);

#endif
