/* sim_plan.h - a simulation of what the planner was told. Pure. */
#ifndef WEIR_PLAN_SIM_PLAN_H
#define WEIR_PLAN_SIM_PLAN_H

#include "plan/keys.h"
#include "plan/sim.h"

enum { WEIR_SIM_NVME, WEIR_SIM_SHARED, WEIR_SIM_OBJECT, WEIR_SIM_PLAN_TIERS };
enum { WEIR_SIM_INTERVALS_MAX = 32 };

/* -EINVAL names what is missing or makes no sense. The interval is the told one, if there is one.
 */
int weir_sim_plan(struct weir_sim_setup *out, const struct weir_plan_in *in);
/* Whether checkpoints are read from the shared storage (loaded, or copied to the next tier) at a
 * rate that was not told: WEIR_PLAN_SHARED_RATE. */
bool weir_sim_plan_assumes_rate(const struct weir_sim_setup *setup, const struct weir_plan_in *in);
/* The intervals to compare: those of --intervals; for "auto", some around
 * weir_sim_best_interval_s(). *count is 0 if none were told. */
int weir_sim_plan_intervals(double out[WEIR_SIM_INTERVALS_MAX], int *count,
                            const struct weir_plan_in *in, const struct weir_sim_setup *setup);
/* How long one save holds training up, if the one before is done: what Young's formula calls the
 * cost. */
double weir_sim_save_cost_s(const struct weir_sim_setup *setup);
/* How long the slowest tier takes to get one: saves that come faster wait for each other. */
double weir_sim_save_write_s(const struct weir_sim_setup *setup);
/* Young's interval for that cost, or what the slowest tier takes if that is longer; 0: nothing is
 * saved, fails or costs anything. */
double weir_sim_best_interval_s(const struct weir_sim_setup *setup);

#endif
