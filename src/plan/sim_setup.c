/* sim_setup.c - what a simulation may be asked: everything finite, and within reason. */
#include <errno.h>
#include <stddef.h>

#include "plan/sim.h"
#include "util/err.h"

/* Beyond any machine, and far from where doubles lose digits. */
#define MUCH 1e24

void weir_sim_setup_init(struct weir_sim_setup *setup)
{
    *setup = (struct weir_sim_setup){
        .seed = 1, .nodes = 1, .ranks = 1, .step_s = 1, .prefetch = 8, .readers = 1, .queue = 2};
}

struct bound {
    const char *name;
    size_t at;
    double min, max;
};
#define AT(field)   offsetof(struct weir_sim_setup, field)
#define TIER(field) offsetof(struct weir_sim_tier, field)

static const struct bound bounds[] = {
    {"nodes", AT(nodes), 1, WEIR_SIM_NODES_MAX},
    {"ranks of a node", AT(ranks), 1, 1024},
    {"time", AT(time_s), 0, 1e10},
    {"steps", AT(steps), 0, 1e15},
    {"a node's network", AT(network), 0, MUCH},
    {"time of a step", AT(step_s), 1e-9, 1e7},
    {"bytes of a batch", AT(batch_bytes), 0, 1e15},
    {"batches ahead", AT(prefetch), 0, 1e6},
    {"readers", AT(readers), 1, 1e6},
    {"bytes of a save", AT(save_bytes), 0, 1e21},
    {"interval", AT(interval_s), 0, 1e10},
    {"steps between saves", AT(save_steps), 0, 1e15},
    {"rate of a snapshot", AT(copy_rate), 0, MUCH},
    {"memory for snapshots", AT(stage_bytes), 0, MUCH},
    {"rate of saves", AT(save_rate), 0, MUCH},
    {"time between failures", AT(mtbf_s), 0, 1e15},
    {"share of lost nodes", AT(loss_share), 0, 1},
    {"time to detect", AT(detect_s), 0, 1e10},
    {"time to launch", AT(launch_s), 0, 1e10},
    {"spare nodes", AT(spares), 0, WEIR_SIM_NODES_MAX},
    {"time to repair", AT(repair_s), 0, 1e10},
};
static const struct bound tier_bounds[] = {
    {"read rate of a node", TIER(read_node), 0, MUCH},
    {"write rate of a node", TIER(write_node), 0, MUCH},
    {"read rate of all nodes", TIER(read_all), 0, MUCH},
    {"write rate of all nodes", TIER(write_all), 0, MUCH},
    {"latency", TIER(latency_s), 0, 1e6},
    {"burst cache", TIER(burst_bytes), 0, MUCH},
    {"burst rate", TIER(burst_write), 0, MUCH},
};

static int check(const struct bound *bound, const void *fields, const char *of, const char *name)
{
    double value = *(const double *)((const char *)fields + bound->at);
    if (value >= bound->min && value <= bound->max) /* no NaN is */
        return 0;
    return weir_fail(EINVAL, "%s%s%s is %g: it must be from %g to %g", bound->name, of, name, value,
                     bound->min, bound->max);
}

static int check_tier(const struct weir_sim_setup *setup, int number)
{
    const struct weir_sim_tier *tier = &setup->tiers[number];
    int code = 0;
    for (size_t i = 0; i < sizeof tier_bounds / sizeof *tier_bounds && !code; i++)
        code = check(&tier_bounds[i], tier, " of tier ", tier->name ? tier->name : "?");
    if (!code && tier->burst_bytes > 0 &&
        (tier->write_node <= 0 || tier->burst_write < tier->write_node))
        return weir_fail(EINVAL,
                         "tier %s has a burst cache: its burst rate (%g) must be at least its "
                         "write rate of a node (%g), and that known",
                         tier->name ? tier->name : "?", tier->burst_write, tier->write_node);
    return code;
}

static int check_saves(const struct weir_sim_setup *setup)
{
    if (setup->save_tier_count < 0 || setup->save_tier_count > WEIR_SIM_TIERS_MAX)
        return weir_fail(EINVAL, "a save goes to at most %d tiers", WEIR_SIM_TIERS_MAX);
    for (int i = 0; i < setup->save_tier_count; i++)
        if (setup->save_tiers[i] < 0 || setup->save_tiers[i] >= setup->tier_count)
            return weir_fail(EINVAL, "a save goes to a tier that there is not");
    if (!setup->save_tier_count)
        return 0;
    if (setup->save_bytes <= 0)
        return weir_fail(EINVAL, "a save has no bytes: say its size, or that nothing is saved");
    if ((setup->interval_s > 0) == (setup->save_steps > 0))
        return weir_fail(EINVAL, "saves come after a time or after a number of steps: say one");
    if (setup->queue < 1 || setup->queue > WEIR_SIM_QUEUE_MAX)
        return weir_fail(EINVAL, "%d saves under way: it must be from 1 to %d", setup->queue,
                         WEIR_SIM_QUEUE_MAX);
    return 0;
}

int weir_sim_setup_check(const struct weir_sim_setup *setup)
{
    int code = 0;
    if (setup->tier_count < 0 || setup->tier_count > WEIR_SIM_TIERS_MAX)
        return weir_fail(EINVAL, "there are at most %d tiers", WEIR_SIM_TIERS_MAX);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds && !code; i++)
        code = check(&bounds[i], setup, "", "");
    for (int i = 0; i < setup->tier_count && !code; i++)
        code = check_tier(setup, i);
    if (code)
        return code;
    if (setup->time_s <= 0 && setup->steps <= 0)
        return weir_fail(EINVAL, "a simulation ends after a time or a number of steps: say one");
    if (setup->batch_bytes > 0 && (setup->data_tier < 0 || setup->data_tier >= setup->tier_count))
        return weir_fail(EINVAL, "batches are read from a tier that there is not");
    if (setup->mtbf_s > 0 && setup->mtbf_s / setup->nodes < 1e-3)
        return weir_fail(EINVAL, "a node would fail every %g s: no job is like that",
                         setup->mtbf_s / setup->nodes);
    return check_saves(setup);
}
