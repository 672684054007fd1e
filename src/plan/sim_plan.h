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
/* The intervals to compare: those of --intervals; for "auto", some around the best by Young's
 * formula. *count is 0 if none were told. */
int weir_sim_plan_intervals(double out[WEIR_SIM_INTERVALS_MAX], int *count,
                            const struct weir_plan_in *in, const struct weir_sim_setup *setup);
/* How long one save holds training up, if the one before is done: what Young's formula calls the
 * cost. */
double weir_sim_save_cost_s(const struct weir_sim_setup *setup);

#endif
