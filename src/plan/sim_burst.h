/* sim_burst.h - the part of a drive that takes writes fast until it is full (SLC), and empties at
 * the drive's own rate, but for while it is written to as fast as it goes. Beyond it is the cliff:
 * writes go at the drive's own rate. `weir plan cliff` has the same rule: device.h.
 */
#ifndef WEIR_PLAN_SIM_BURST_H
#define WEIR_PLAN_SIM_BURST_H

struct sim_burst {
    double room_bytes; /* 0: there is none */
    double fast, native;
    double used_bytes;
};

/* What the drive takes now. */
double weir_sim_burst_rate(const struct sim_burst *burst);
/* How fast what it holds grows, while it has room; negative: it empties. */
double weir_sim_burst_fill_rate(double fast, double native, double written);
/* When it is full or empty, if so much is written; SIM_NEVER: not at all. */
double weir_sim_burst_turn_s(const struct sim_burst *burst, double written);
void weir_sim_burst_advance(struct sim_burst *burst, double written, double dt_s);

#endif
