/* run.h - what the parts of the checkpoints' kill test share: a training run whose tensors are
 * functions of (life, step, tensor, element), so that whoever loads one can tell of every byte
 * whose it is.
 *
 *   ckpt_kill.c   the rounds: starts the ranks of a life, kills, stops and wakes them
 *   run.c         what a rank does, and what a fresh process must find
 */
#ifndef WEIR_FAULT_RUN_H
#define WEIR_FAULT_RUN_H

#include <stdatomic.h>

#include "content.h"
#include "place.h"

enum {
    RANKS = 4,
    KEEP_LAST = 2,
    ROWS = 512, /* of 8-byte elements: each tensor is 2 MiB and more */
    COLUMNS = 520,
};
#define RUN_NAME "job/a"
#define RUN_LOG  "ckpt/" RUN_NAME

/* Memory that all processes see. */
struct run {
    char root[PLACE_ROOM];
    atomic_uint life;         /* the newest, counted from 1 */
    atomic_ulong told;        /* the newest step that any rank was told is committed */
    atomic_uint ready;        /* ranks of this life that have begun to save */
    atomic_uint commits_told; /* how often that was */
    atomic_uint refused;      /* ranks that learned that their life is over */
    atomic_int complained;
    char complaint[4096];
    uint64_t checks, checked_step; /* the checker's */
};

struct rank {
    struct run *run;
    unsigned rank, life;
    uint64_t saves_max; /* 0: until it is killed */
};

/* Resumes from the newest checkpoint and saves one step after the other. 0 when it was told that
 * its life is over, or has done its saves; 1 after a complaint. */
int rank_main(void *rank);
/* Runs in a fresh process: loads the newest and looks at every byte. */
int run_check(void *run);
/* Runs in a fresh process at the end, when all are dead: after a gc just the live saves are left.
 */
int run_check_end(void *run);

#endif
