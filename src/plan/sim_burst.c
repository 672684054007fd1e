/* sim_burst.c - see sim_burst.h. */
#include "plan/sim_burst.h"

#include "plan/sim_cluster.h"

/* What rounding may make of a rate: a full cache must not seem to empty because of it. */
static const double crumbs = 1e-9;

double weir_sim_burst_rate(const struct sim_burst *burst)
{
    return burst->used_bytes < burst->room_bytes ? burst->fast : burst->native;
}

double weir_sim_burst_fill_rate(double fast, double native, double written)
{
    double left = written - native;
    if (written >= fast * (1 - crumbs))
        return written;
    return left > native * crumbs || left < -native * crumbs ? left : 0;
}

static double fill_rate(const struct sim_burst *burst, double written)
{
    bool is_full = burst->used_bytes >= burst->room_bytes; /* then the native rate is the most */
    return weir_sim_burst_fill_rate(is_full ? SIM_NEVER : burst->fast, burst->native, written);
}

double weir_sim_burst_turn_s(const struct sim_burst *burst, double written)
{
    double rate = fill_rate(burst, written);
    if (rate > 0 && burst->used_bytes < burst->room_bytes)
        return (burst->room_bytes - burst->used_bytes) / rate;
    if (rate < 0 && burst->used_bytes > 0)
        return burst->used_bytes / -rate;
    return SIM_NEVER;
}

void weir_sim_burst_advance(struct sim_burst *burst, double written, double dt_s)
{
    double turn_s = weir_sim_burst_turn_s(burst, written), rate = fill_rate(burst, written);
    if (turn_s >= SIM_NEVER)
        return;
    burst->used_bytes += rate * dt_s;
    if (turn_s <= dt_s * (1 + 1e-12)) /* exactly, or the next event is this one again */
        burst->used_bytes = rate > 0 ? burst->room_bytes : 0;
}
