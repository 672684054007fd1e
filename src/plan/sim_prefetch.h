/* sim_prefetch.h - the batches of a rank between storage and compute: a queue of bounded depth,
 * which readers fill and steps empty. All ranks are alike. The queue is a level, not a list: it
 * rises by what is read and falls by what is used, and only its being empty or full is an event.
 */
#ifndef WEIR_PLAN_SIM_PREFETCH_H
#define WEIR_PLAN_SIM_PREFETCH_H

#include <stdbool.h>

struct sim_prefetch {
    double depth;      /* 0: a batch is read when a step wants it */
    double node_bytes; /* of one batch for each rank of a node; 0: nothing is read */
    double step_s;
    double rate_max;     /* a node's, as latency and readers allow */
    double rate_in_turn; /* a node's, if each batch is waited for */
    double ready;        /* batches of a rank, 0 to depth */
};

/* What the node's flow may carry now; < 0: no limit. */
double weir_sim_prefetch_limit(const struct sim_prefetch *prefetch, bool is_training);
/* Steps a second, if the node's flow has this rate and training goes on. */
double weir_sim_prefetch_steps(const struct sim_prefetch *prefetch, double rate);
/* When the queue is empty or full at these rates; SIM_NEVER: not at all. */
double weir_sim_prefetch_turn_s(const struct sim_prefetch *prefetch, double rate, double steps);
void weir_sim_prefetch_advance(struct sim_prefetch *prefetch, double rate, double steps,
                               double dt_s);

#endif
