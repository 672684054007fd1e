/* save.h - checkpoints: how large, how fast, how long the trainer waits, how often they are worth
 * it. Pure functions.
 */
#ifndef WEIR_PLAN_SAVE_H
#define WEIR_PLAN_SAVE_H

#include <stddef.h>

/* What a checkpoint holds of each parameter. */
struct weir_plan_state {
    const char *name, *about;
    double weight_bytes, optimizer_bytes;
};
extern const struct weir_plan_state weir_plan_states[];
extern const size_t weir_plan_state_count;
/* By name; NULL and a text if there is none. */
const struct weir_plan_state *weir_plan_state_find(const char *name);

double weir_plan_save_bytes(double parameters, double weight_bytes, double optimizer_bytes);
/* What storage must take on average. */
double weir_plan_save_bytes_per_s(double save_bytes, double interval_s);
double weir_plan_save_sync_stall_s(double save_bytes, double bytes_per_s);
/* The snapshot, and what the write takes longer than the interval. */
double weir_plan_save_async_stall_s(double snapshot_s, double write_s, double interval_s);
/* Of the time with stalls, when interval_s of computing lie between two saves. */
double weir_plan_stall_share(double stall_s, double interval_s);
/* A month is 730 hours. */
double weir_plan_idle_usd_per_month(double gpus, double usd_per_gpu_hour, double idle_share);

/* ---- how often ---- */

/* Of a job that fails when one of so many nodes does. */
double weir_plan_job_mtbf_s(double node_mtbf_s, double nodes);
/* Young: sqrt(2 C M). Daly: its next terms, less C; M if C >= 2 M. */
double weir_plan_interval_young_s(double cost_s, double mtbf_s);
double weir_plan_interval_daly_s(double cost_s, double mtbf_s);
/* The share of the time that is no training, for failures at a constant rate, which also hit saves
 * and restarts. For rare ones it is saves + (half an interval + a restart) / mtbf. */
double weir_plan_waste_share(double interval_s, double cost_s, double mtbf_s, double restart_s);

#endif
