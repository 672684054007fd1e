/* cost.h - what bytes cost. Pure functions. */
#ifndef WEIR_PLAN_COST_H
#define WEIR_PLAN_COST_H

/* For a month; a GB is 10^9 bytes. */
static inline double weir_plan_storage_usd(double bytes, double usd_per_gb)
{
    return bytes / 1e9 * usd_per_gb;
}

#endif
