/* sim_burst.c - see sim_burst.h. */
#include "plan/sim_burst.h"

#include "plan/sim_cluster.h"

double weir_sim_burst_rate(const struct sim_burst *burst)
{
    return burst->used_bytes < burst->room_bytes ? burst->fast : burst->native;
}

double weir_sim_burst_turn_s(const struct sim_burst *burst, double written)
{
    if (written > 0 && burst->used_bytes < burst->room_bytes)
        return (burst->room_bytes - burst->used_bytes) / written;
    if (written <= 0 && burst->used_bytes > 0)
        return burst->used_bytes / burst->native;
    return SIM_NEVER;
}

void weir_sim_burst_advance(struct sim_burst *burst, double written, double dt_s)
{
    double turn_s = weir_sim_burst_turn_s(burst, written);
    if (turn_s >= SIM_NEVER)
        return;
    burst->used_bytes += (written > 0 ? written : -burst->native) * dt_s;
    if (turn_s <= dt_s * (1 + 1e-12)) /* exactly, or the next event is this one again */
        burst->used_bytes = written > 0 ? burst->room_bytes : 0;
}
