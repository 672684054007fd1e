/* sim_plan.c - see sim_plan.h. */
#include "plan/sim_plan.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "plan/answers.h"
#include "plan/save.h"
#include "plan/sim_burst.h"
#include "util/err.h"

static const char *const tier_names[WEIR_SIM_PLAN_TIERS] = {"nvme", "shared", "object"};
/* To the first byte, as the catalog has it; --latency is that of the data. */
static const double latencies_s[WEIR_SIM_PLAN_TIERS] = {1e-4, 1e-3, 30e-3};
static const double default_over_s = 14 * 86400.0, default_interval_s = 30 * 60.0;

static int find_tier(int *out, const char *option, const char *name, size_t size)
{
    for (int i = 0; i < WEIR_SIM_PLAN_TIERS; i++)
        if (strlen(tier_names[i]) == size && !strncmp(tier_names[i], name, size)) {
            *out = i;
            return 0;
        }
    return weir_fail(EINVAL, "--%s: '%.*s' is none of nvme, shared and object", option, (int)size,
                     name);
}

static void set_tiers(struct weir_sim_setup *out, const struct weir_plan_in *in)
{
    struct weir_sim_tier *nvme = &out->tiers[WEIR_SIM_NVME];
    struct weir_sim_tier *shared = &out->tiers[WEIR_SIM_SHARED];
    struct weir_sim_tier *object = &out->tiers[WEIR_SIM_OBJECT];
    out->tier_count = WEIR_SIM_PLAN_TIERS;
    for (int i = 0; i < WEIR_SIM_PLAN_TIERS; i++) {
        out->tiers[i].name = tier_names[i];
        out->tiers[i].latency_s = latencies_s[i];
        out->tiers[i].is_remote = out->tiers[i].is_safe = i != WEIR_SIM_NVME;
    }
    nvme->read_node = (double)in->nvme_read_rate;
    nvme->write_node = (double)in->nvme_write_rate;
    if (in->cache_bytes) {
        nvme->burst_bytes = (double)in->cache_bytes;
        nvme->burst_write = (double)(in->fast_rate ? in->fast_rate : in->nvme_write_rate);
        nvme->write_node = (double)(in->native_rate ? in->native_rate : in->nvme_write_rate);
    }
    shared->read_all = in->read_rate ? (double)in->read_rate : WEIR_PLAN_SHARED_RATE;
    shared->write_all = (double)in->write_rate;
    object->read_all = object->write_all = (double)in->object_rate;
}

/* ---- what the job does ---- */

static int set_reads(struct weir_sim_setup *out, const struct weir_plan_in *in)
{
    out->prefetch = (double)in->depth;
    out->readers = (double)in->workers;
    out->batch_bytes = (double)in->batch_bytes;
    if (!in->batch_bytes && in->tokens_per_s)
        out->batch_bytes = (double)in->tokens_per_s * in->token_bytes * out->step_s;
    int code = find_tier(&out->data_tier, "data-on", in->data_on, strlen(in->data_on));
    if (code)
        return code;
    if (in->latency_ns)
        out->tiers[out->data_tier].latency_s = weir_plan_seconds(in->latency_ns);
    if (out->batch_bytes > 0 && out->data_tier == WEIR_SIM_SHARED && !in->read_rate)
        return weir_plan_missing("read-rate", "batches are read from the shared storage");
    return 0;
}

static int set_save_tiers(struct weir_sim_setup *out, const struct weir_plan_in *in)
{
    if (!strcmp(in->save_to, "none"))
        return 0;
    for (const char *at = in->save_to; at;) {
        const char *comma = strchr(at, ',');
        size_t size = comma ? (size_t)(comma - at) : strlen(at);
        int tier = 0, code = find_tier(&tier, "save-to", at, size);
        if (code)
            return code;
        for (int i = 0; i < out->save_tier_count; i++)
            if (out->save_tiers[i] == tier)
                return weir_fail(EINVAL, "--save-to: %s is there twice", tier_names[tier]);
        if (tier == WEIR_SIM_SHARED && !in->write_rate)
            return weir_plan_missing("write-rate", "checkpoints go to the shared storage");
        out->save_tiers[out->save_tier_count++] = tier;
        at = comma ? comma + 1 : NULL;
    }
    return 0;
}

static int set_saves(struct weir_sim_setup *out, const struct weir_plan_in *in)
{
    struct weir_plan_save save;
    int code = set_save_tiers(out, in);
    if (code || !out->save_tier_count)
        return code;
    code = weir_plan_save_of(&save, in);
    if (code)
        return code;
    if (in->save_every && (in->interval_ns || in->intervals))
        return weir_fail(EINVAL, "--every and --%s are both there: say one",
                         in->intervals ? "intervals" : "interval");
    out->save_bytes = save.bytes;
    out->save_steps = (double)in->save_every;
    if (!in->save_every)
        out->interval_s = in->interval_ns ? weir_plan_seconds(in->interval_ns) : default_interval_s;
    out->is_sync = in->sync;
    out->queue = (int)in->queue;
    out->copy_rate = (double)in->snapshot_rate * out->ranks;
    out->stage_bytes = (double)in->staging_bytes * out->ranks;
    out->save_rate = (double)in->save_rate;
    return 0;
}

static int set_failures(struct weir_sim_setup *out, const struct weir_plan_in *in)
{
    double mtbf_s;
    if (in->no_failures)
        return 0;
    int code = weir_plan_mtbf_of(&mtbf_s, in);
    if (code)
        return code;
    out->mtbf_s = mtbf_s * out->nodes;
    out->loss_share = in->loss_share;
    out->detect_s = weir_plan_seconds(in->detect_ns);
    out->launch_s = weir_plan_seconds(in->restart_ns);
    out->spares = (double)in->spares;
    out->repair_s = weir_plan_seconds(in->node_repair_ns);
    return 0;
}

int weir_sim_plan(struct weir_sim_setup *out, const struct weir_plan_in *in)
{
    if (!in->gpus)
        return weir_plan_missing("gpus", NULL);
    weir_sim_setup_init(out);
    out->seed = in->seed;
    out->nodes = weir_plan_nodes(in);
    out->ranks = (double)in->gpus / out->nodes;
    out->network = (double)in->network_rate;
    out->step_s = weir_plan_seconds(in->step_ns);
    out->steps = (double)in->steps;
    out->time_s = in->over_ns ? weir_plan_seconds(in->over_ns) : in->steps ? 0 : default_over_s;
    set_tiers(out, in);
    int code = set_reads(out, in);
    if (!code)
        code = set_saves(out, in);
    if (!code)
        code = set_failures(out, in);
    return code ? code : weir_sim_setup_check(out);
}

/* Batches are never read at a rate nobody told: see set_reads(). */
bool weir_sim_plan_assumes_rate(const struct weir_sim_setup *setup, const struct weir_plan_in *in)
{
    for (int i = 0; i < setup->save_tier_count && !in->read_rate; i++)
        if (setup->save_tiers[i] == WEIR_SIM_SHARED)
            return setup->mtbf_s > 0 || i + 1 < setup->save_tier_count;
    return false;
}

/* ---- intervals ---- */

/* To get so much to a node's cache for writes, which is empty, at no more than a limit (0: none).
 */
static double burst_s(const struct weir_sim_tier *tier, double bytes, double limit)
{
    double rate = limit > 0 ? fmin(tier->burst_write, limit) : tier->burst_write;
    double fill = weir_sim_burst_fill_rate(tier->burst_write, tier->write_node, rate);
    double fast_bytes = fill > 0 ? fmin(bytes, rate * (tier->burst_bytes / fill)) : bytes;
    return fast_bytes / rate + (bytes - fast_bytes) / fmin(rate, tier->write_node);
}

/* To get a whole save to this tier, if nothing else is going on. */
static double write_s(const struct weir_sim_setup *setup, int number)
{
    const struct weir_sim_tier *tier = &setup->tiers[number];
    double node_bytes = setup->save_bytes / setup->nodes;
    double limit = number == setup->save_tiers[0] ? setup->save_rate : 0;
    double time_s = tier->write_node > 0 ? node_bytes / tier->write_node : 0;
    if (tier->burst_bytes > 0)
        time_s = burst_s(tier, node_bytes, limit);
    if (tier->write_all > 0 && setup->save_bytes / tier->write_all > time_s)
        time_s = setup->save_bytes / tier->write_all;
    if (tier->is_remote && setup->network > 0 && node_bytes / setup->network > time_s)
        time_s = node_bytes / setup->network;
    if (limit > 0 && node_bytes / limit > time_s)
        time_s = node_bytes / limit;
    return time_s + tier->latency_s;
}

double weir_sim_save_write_s(const struct weir_sim_setup *setup)
{
    double slowest_s = 0;
    for (int i = 0; i < setup->save_tier_count; i++)
        slowest_s = fmax(slowest_s, write_s(setup, setup->save_tiers[i]));
    return slowest_s;
}

double weir_sim_save_cost_s(const struct weir_sim_setup *setup)
{
    if (setup->is_sync)
        return write_s(setup, setup->save_tiers[0]);
    return setup->copy_rate > 0 ? setup->save_bytes / setup->nodes / setup->copy_rate : 0;
}

double weir_sim_best_interval_s(const struct weir_sim_setup *setup)
{
    if (!setup->save_tier_count || setup->mtbf_s <= 0 || weir_sim_save_cost_s(setup) <= 0)
        return 0;
    return fmax(
        weir_sim_save_write_s(setup),
        weir_plan_interval_young_s(weir_sim_save_cost_s(setup), setup->mtbf_s / setup->nodes));
}

static int auto_intervals(double *out, int *count, const struct weir_sim_setup *setup)
{
    static const double factors[] = {0.125, 0.25, 0.5, 0.7071, 1, 1.4142, 2, 4, 8};
    double best_s = weir_sim_best_interval_s(setup);
    if (best_s <= 0)
        return weir_fail(EINVAL,
                         "--intervals auto needs failures, and saves that take time: name some");
    for (*count = 0; *count < (int)(sizeof factors / sizeof *factors); ++*count)
        out[*count] = best_s * factors[*count];
    return 0;
}

int weir_sim_plan_intervals(double out[WEIR_SIM_INTERVALS_MAX], int *count,
                            const struct weir_plan_in *in, const struct weir_sim_setup *setup)
{
    *count = 0;
    if (!in->intervals)
        return 0;
    if (!setup->save_tier_count)
        return weir_fail(EINVAL, "--intervals: nothing is saved");
    if (!strcmp(in->intervals, "auto"))
        return auto_intervals(out, count, setup);
    for (const char *at = in->intervals; at;) {
        const char *comma = strchr(at, ',');
        size_t size = comma ? (size_t)(comma - at) : strlen(at);
        char text[32];
        uint64_t ns;
        if (*count == WEIR_SIM_INTERVALS_MAX)
            return weir_fail(EINVAL, "--intervals: at most %d are compared",
                             WEIR_SIM_INTERVALS_MAX);
        if (size >= sizeof text)
            return weir_fail(EINVAL, "--intervals: '%.*s' is no time", (int)size, at);
        memcpy(text, at, size);
        text[size] = 0;
        int code = weir_parse_duration(&ns, text);
        if (code)
            return weir_fail_in(code, "--intervals");
        if (!ns)
            return weir_fail(EINVAL, "--intervals: one is 0");
        out[(*count)++] = weir_plan_seconds(ns);
        at = comma ? comma + 1 : NULL;
    }
    return 0;
}
