/* sim_record.h - what a simulated job did, in all and over time, in a bounded number of bins: when
 * time goes beyond the last, two become one.
 */
#ifndef WEIR_PLAN_SIM_RECORD_H
#define WEIR_PLAN_SIM_RECORD_H

#include "plan/sim.h"

/* What happens at a constant rate. */
struct sim_rates {
    double share[WEIR_SIM_CAUSES];                                /* of the time: together 1 */
    double read[WEIR_SIM_TIERS_MAX], written[WEIR_SIM_TIERS_MAX]; /* bytes a second */
};

void weir_sim_record_open(struct weir_sim_result *result, double time_s);
/* From result->time_s on, which moves. */
void weir_sim_record_span(struct weir_sim_result *result, const struct sim_rates *rates,
                          double dt_s);
/* The last that was computed is lost. */
void weir_sim_record_lost(struct weir_sim_result *result, double compute_s);

#endif
