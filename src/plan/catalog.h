/* catalog.h - what devices, links, tiers and file systems give and cost, as published: one table
 * that the planner computes with, `weir plan catalog` shows and docs/plan.md quotes. A measured
 * profile (weir bench --save) is better than any of it.
 */
#ifndef WEIR_PLAN_CATALOG_H
#define WEIR_PLAN_CATALOG_H

#include <stddef.h>

struct weir_plan_device {
    const char *name, *about;
    double read_bytes_per_s, write_bytes_per_s, read_iops, write_iops;
    double usd_per_tb, tbw_bytes; /* tbw 0: none is stated */
};
extern const struct weir_plan_device weir_plan_devices[];
extern const size_t weir_plan_device_count;

/* Four lanes. */
struct weir_plan_link {
    const char *name, *about;
    double bytes_per_s;
};
extern const struct weir_plan_link weir_plan_links[];
extern const size_t weir_plan_link_count;

struct weir_plan_price {
    const char *name, *about;
    double usd_per_gb_month;
};
extern const struct weir_plan_price weir_plan_prices[];
extern const size_t weir_plan_price_count;

/* The hierarchy, nearest first. Sizes and rates are of one GPU, one node, or the whole site. */
struct weir_plan_tier {
    const char *name, *of;
    double bytes, bytes_per_s, latency_s_min, latency_s_max;
};
extern const struct weir_plan_tier weir_plan_tiers[];
extern const size_t weir_plan_tier_count;

/* Shared file systems: rates of whole installations. */
struct weir_plan_shared {
    const char *name;
    double bytes_per_s_min, bytes_per_s_max;
};
extern const struct weir_plan_shared weir_plan_shares[];
extern const size_t weir_plan_share_count;

/* What an experiment tracker takes in, and how long a lookup of features may take. */
struct weir_plan_note {
    const char *what;
    double value; /* bytes, or seconds */
    const char *of;
};
extern const struct weir_plan_note weir_plan_volumes[], weir_plan_budgets[];
extern const size_t weir_plan_volume_count, weir_plan_budget_count;

/* By name; NULL and a text with the nearest name if there is none. */
const struct weir_plan_device *weir_plan_device_find(const char *name);
const struct weir_plan_link *weir_plan_link_find(const char *name);

#endif
