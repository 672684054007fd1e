/* cluster.h - a whole cluster put together: what each tier holds, what flows between them, what is
 * lost in stalls and failures, what it costs, and which limit breaks first. Pure.
 */
#ifndef WEIR_PLAN_CLUSTER_H
#define WEIR_PLAN_CLUSTER_H

#include <stdbool.h>

#include "plan/answers.h"

enum weir_plan_level {
    WEIR_PLAN_HBM,
    WEIR_PLAN_DRAM,
    WEIR_PLAN_NVME,
    WEIR_PLAN_SHARED,
    WEIR_PLAN_OBJECT,
    WEIR_PLAN_LEVELS,
};

/* Sizes are of all its units together; have_bytes infinity: it has no limit. */
struct weir_plan_level_use {
    const char *name, *unit, *holds;
    double units, need_bytes, have_bytes;
    double usd_per_month; /* of what is needed; 0: it comes with the nodes */
};

/* Rates are of all nodes together. */
struct weir_plan_flow {
    const char *name, *key;
    enum weir_plan_level from, to;
    bool is_data; /* else it is of checkpoints */
    double need_bytes_per_s, have_bytes_per_s;
};

/* Something that can run out: as many times today's need as there is. */
struct weir_plan_limit {
    char name[96];
    double headroom;
};

enum { WEIR_PLAN_FLOWS = 7, WEIR_PLAN_LIMITS = WEIR_PLAN_FLOWS + WEIR_PLAN_LEVELS + 1 };

struct weir_plan_cluster {
    double gpus, nodes, save_bytes, interval_s, tokens_per_s, read_bytes_per_s, run_s;
    double snapshot_s, write_s, save_stall_s, restore_s, restart_s, mtbf_s;
    double read_stall_share, save_stall_share, waste_share, lost_share;
    double gpu_usd_per_month, lost_usd_per_month, storage_usd_per_month;
    double wear_bytes_per_day, life_s; /* of one NVMe device */
    struct weir_plan_level_use levels[WEIR_PLAN_LEVELS];
    struct weir_plan_flow flows[WEIR_PLAN_FLOWS];
    struct weir_plan_limit limits[WEIR_PLAN_LIMITS]; /* the nearest first */
    unsigned limit_count;
};

/* 0, or -EINVAL with a text that names what is missing. */
int weir_plan_cluster(struct weir_plan_cluster *out, const struct weir_plan_in *in);
/* Besides half an interval: a restart, the load, and what was trained while the save that would
 * have held it was still on its way to shared storage. */
double weir_plan_lost_a_failure_s(const struct weir_plan_cluster *cluster);
/* The same as figures, assumptions and changes. */
void weir_plan_cluster_answer(struct weir_plan_answer *a, const struct weir_plan_cluster *c,
                              const struct weir_plan_in *in);

#endif
