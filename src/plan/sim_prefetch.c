/* sim_prefetch.c - see sim_prefetch.h. */
#include "plan/sim_prefetch.h"

#include "plan/sim_cluster.h"

/* Batches a second that the level gains; what is only rounding is nothing. */
static double gain(const struct sim_prefetch *prefetch, double rate, double steps)
{
    double read = rate / prefetch->node_bytes, more = read - steps;
    double noise = 1e-9 * (read + steps);
    return more > noise || more < -noise ? more : 0;
}

double weir_sim_prefetch_limit(const struct sim_prefetch *prefetch, bool is_training)
{
    double used = is_training ? prefetch->node_bytes / prefetch->step_s : 0;
    if (prefetch->depth <= 0)
        return is_training ? prefetch->rate_in_turn : 0;
    if (prefetch->ready >= prefetch->depth && used < prefetch->rate_max)
        return used;
    return prefetch->rate_max;
}

double weir_sim_prefetch_steps(const struct sim_prefetch *prefetch, double rate)
{
    double most = 1 / prefetch->step_s;
    if (prefetch->node_bytes <= 0)
        return most;
    double read = rate / prefetch->node_bytes;
    if (prefetch->depth <= 0)
        return read;
    return prefetch->ready > 0 || read > most ? most : read;
}

double weir_sim_prefetch_turn_s(const struct sim_prefetch *prefetch, double rate, double steps)
{
    if (prefetch->node_bytes <= 0 || prefetch->depth <= 0)
        return SIM_NEVER;
    double more = gain(prefetch, rate, steps);
    if (more > 0 && prefetch->ready < prefetch->depth)
        return (prefetch->depth - prefetch->ready) / more;
    if (more < 0 && prefetch->ready > 0)
        return prefetch->ready / -more;
    return SIM_NEVER;
}

void weir_sim_prefetch_advance(struct sim_prefetch *prefetch, double rate, double steps,
                               double dt_s)
{
    if (prefetch->node_bytes <= 0 || prefetch->depth <= 0)
        return;
    double turn_s = weir_sim_prefetch_turn_s(prefetch, rate, steps);
    double more = gain(prefetch, rate, steps);
    prefetch->ready += more * dt_s;
    if (turn_s <= dt_s * (1 + 1e-12)) /* exactly, or the next event is this one again */
        prefetch->ready = more > 0 ? prefetch->depth : 0;
}
