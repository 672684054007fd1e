/* sim_cluster.h - the nodes of a simulated job: when one fails, which are spare, and when those
 * that are being repaired come back. Times between failures and times of repair are exponential,
 * from a seed. Only nodes at work fail; a job that waits for a node does not.
 */
#ifndef WEIR_PLAN_SIM_CLUSTER_H
#define WEIR_PLAN_SIM_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>

#include "util/rng.h"

struct sim_cluster {
    struct weir_rng failures, losses, repairs; /* one more of these does not change those */
    double nodes, mtbf_s, loss_share, repair_s;
    double spares;     /* now */
    bool is_short;     /* the job waits for a node */
    double fails_at_s; /* the next one; SIM_NEVER: none */
    double *back_at_s; /* a heap, the earliest first */
    size_t back_count, back_room;
};

#define SIM_NEVER 1e300

int weir_sim_cluster_open(struct sim_cluster *cluster, uint64_t seed, double nodes, double spares);
void weir_sim_cluster_close(struct sim_cluster *cluster);
/* The job is at work: draws when the next node fails. */
void weir_sim_cluster_work(struct sim_cluster *cluster, double now_s);
/* The one that was due has failed; is it lost? Then a spare takes its place, or the job is short of
 * one. Draws the next. */
bool weir_sim_cluster_fail(struct sim_cluster *cluster, double now_s);
/* When the next one comes back: SIM_NEVER if none is away. */
double weir_sim_cluster_back_s(const struct sim_cluster *cluster);
/* It is back: to the job if that is short of one, else a spare. */
void weir_sim_cluster_return(struct sim_cluster *cluster, double now_s);

/* -ln(u) of a u in (0, 1], made of + - * / alone: every machine rounds those alike. */
double weir_sim_minus_ln(double u);
double weir_sim_exponential(struct weir_rng *rng, double mean);

#endif
