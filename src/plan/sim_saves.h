/* sim_saves.h - the saves under way of a simulated job: each is written to the first tier of a
 * chain, and from there to the next; each tier takes one at a time, in order. It is under way until
 * the last has it, and so many may be: beyond that the caller waits, as Weir's checkpointer does. A
 * failure of the job ends all that are under way; what is complete on a tier stays as long as that.
 */
#ifndef WEIR_PLAN_SIM_SAVES_H
#define WEIR_PLAN_SIM_SAVES_H

#include <stdbool.h>

#include "plan/sim.h"

struct sim_save {
    double steps;      /* what it holds */
    int level;         /* of the chain, that it is being written to */
    double left_bytes; /* of a node, at this level */
    double wait_s;     /* before the first byte, at this level */
};

struct sim_saves {
    int levels, queue;
    double node_bytes, latency_s[WEIR_SIM_TIERS_MAX];
    struct sim_save under_way[WEIR_SIM_QUEUE_MAX]; /* oldest first */
    int count;
    double held[WEIR_SIM_TIERS_MAX]; /* steps of the newest that is complete there; < 0: none */
    double done[WEIR_SIM_TIERS_MAX]; /* how many became complete there */
};

void weir_sim_saves_open(struct sim_saves *saves, const struct weir_sim_setup *setup);
bool weir_sim_saves_is_full(const struct sim_saves *saves);
void weir_sim_saves_begin(struct sim_saves *saves, double steps);
/* The one that this level is writing, or NULL. */
struct sim_save *weir_sim_saves_at(struct sim_saves *saves, int level);
/* This level has all of it. */
void weir_sim_saves_done(struct sim_saves *saves, int level);
/* A node's bytes that are only in memory. */
double weir_sim_saves_staged(const struct sim_saves *saves);
/* The job died. */
void weir_sim_saves_drop(struct sim_saves *saves);
/* What this level had is gone. */
void weir_sim_saves_lose(struct sim_saves *saves, int level);
/* The level with the newest; of several the first. -1: none has any. */
int weir_sim_saves_newest(const struct sim_saves *saves);

#endif
