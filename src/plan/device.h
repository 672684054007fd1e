/* device.h - striped devices, the write cliff, endurance, durability. Pure functions. */
#ifndef WEIR_PLAN_DEVICE_H
#define WEIR_PLAN_DEVICE_H

/* RAID-0: n devices, each behind a link of its own. */
double weir_plan_stripe_bytes_per_s(double devices, double device_bytes_per_s,
                                    double link_bytes_per_s);
/* The chance that at least one of n fails, which loses all. */
double weir_plan_any_fails(double devices, double chance);

/* ---- the write cliff: a fast cache (SLC) in front of what is native (TLC, QLC) ---- */

struct weir_plan_cliff {
    double cache_bytes, fast_bytes_per_s, native_bytes_per_s;
};
/* How long a write takes that finds so much of the cache free. */
double weir_plan_cliff_s(const struct weir_plan_cliff *c, double free_bytes, double write_bytes);
/* What is free at the next save, if the cache empties at its native rate while nothing is written,
 * in the long run: saves begin every interval_s. */
double weir_plan_cliff_free_bytes(const struct weir_plan_cliff *c, double write_bytes,
                                  double interval_s);
/* The highest rate at which a write of that size never falls off, if the cache also empties while
 * it is written: fast if it fits, never less than native. */
double weir_plan_cliff_limit_bytes_per_s(const struct weir_plan_cliff *c, double write_bytes);
/* Bursts that fill the cache, and pauses that empty it. */
double weir_plan_cliff_burst_bytes_per_s(const struct weir_plan_cliff *c);

/* ---- endurance ---- */

/* What the flash takes: of so many bytes every interval_s, for over_s. */
double weir_plan_wear_bytes(double save_bytes, double amplification, double interval_s,
                            double over_s);
/* Until the stated bytes written are reached, by that rate. */
double weir_plan_life_s(double tbw_bytes, double wear_bytes_per_s);

/* ---- durability ---- */

/* The textbook's: r copies, none repaired within the year. */
double weir_plan_loss_textbook(double chance, double copies);
/* More than parity of data + parity fail within the year, none repaired. */
double weir_plan_loss_unrepaired(double chance, unsigned data, unsigned parity);
/* Mean time to data loss of a Markov chain: devices fail at a constant rate, each failed one is
 * repaired in repair_s on average, side by side; lost are data when parity + 1 have failed.
 * r copies are data 1, parity r - 1. */
double weir_plan_mttdl_s(double chance, unsigned data, unsigned parity, double repair_s);
/* The chance of a loss within a year, in any of so many groups. */
double weir_plan_loss_a_year(double mttdl_s, double groups);
/* Failures a year from the chance of one within a year: -ln(1 - p). */
double weir_plan_failures_a_year(double chance);

#endif
