/* kill.h - what the parts of the kill test share: one piece of memory that all its processes see.
 *
 *   kill.c        the rounds: starts the processes, kills them at some moment
 *   kill_roles.c  what these processes do: write, remove, read, collect
 *   kill_check.c  what a fresh process must find afterwards
 */
#ifndef WEIR_FAULT_KILL_H
#define WEIR_FAULT_KILL_H

#include <stdatomic.h>

#include "content.h"
#include "history.h"
#include "place.h"

enum {
    WRITERS = 4,
    ROLE_REMOVER = WRITERS,
    ROLE_READER,
    ROLE_GC,
    ROLES,
    ROLE_GIVEN = HISTORY_PROCS - 1, /* what was there before the round */
    WORLD_OBJECTS = 24,
    GRACE_S = 1, /* the shortest: writers and gc meet within a round */
    BIG_BYTES = 24 << 20,
};
_Static_assert(ROLES <= ROLE_GIVEN, "every process has its own page of the history");

struct thing {
    char key[KEY_ROOM];
    struct content what;
};

/* A store, and what must be in it between two rounds. */
struct world {
    char root[PLACE_ROOM];
    unsigned count;
    struct thing objects[WORLD_OBJECTS];
};

struct tally {
    unsigned long listed, doubt_there, doubt_gone, collected, temporaries, voids, links;
};

struct kill_test {
    uint64_t seed;
    unsigned round;
    bool big; /* writer 0 begins with a large object */
    struct world worlds[2];
    struct world *world;   /* of this round */
    atomic_uint ready;     /* processes that have opened the store */
    atomic_int complained; /* one saw what it must never see: */
    char complaint[4096];
    struct tally tally;
    struct history history;
};

/* What process number `role` does until it is killed. */
int role_main(struct kill_test *t, unsigned role);
/* Runs in a fresh process after the round; exits with 0 only if everything is as it must be. */
int check_main(void *test);

#endif
