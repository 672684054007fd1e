/* ask_checkpoint.c - how large a checkpoint is, how fast it must be written, and what it costs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "plan/answers.h"
#include "plan/read.h"
#include "plan/save.h"
#include "util/err.h"

#define RATE(value) weir_plan_say(WEIR_PLAN_BYTES_PER_S, value)
#define TIME(value) weir_plan_say(WEIR_PLAN_S, value)

int weir_plan_save_of(struct weir_plan_save *out, const struct weir_plan_in *in)
{
    *out = (struct weir_plan_save){.bytes = (double)in->save_bytes};
    if (in->save_bytes)
        return 0;
    if (!in->parameters)
        return weir_plan_missing("parameters", "or --checkpoint, its size");
    const struct weir_plan_state *state = weir_plan_state_find(in->state);
    if (!state)
        return -EINVAL;
    bool is_told = in->weight_bytes > 0 || in->optimizer_bytes > 0;
    double weights = in->weight_bytes > 0 ? in->weight_bytes : state->weight_bytes;
    double optimizer = is_told ? in->optimizer_bytes : state->optimizer_bytes;
    out->state = is_told ? NULL : state->about;
    out->weight_bytes = (double)in->parameters * weights;
    out->optimizer_bytes = (double)in->parameters * optimizer;
    out->bytes = weir_plan_save_bytes((double)in->parameters, weights, optimizer);
    return 0;
}

static void tell_size(struct weir_plan_answer *a, const struct weir_plan_in *in,
                      const struct weir_plan_save *save)
{
    weir_plan_figure(a, "checkpoint_bytes", "a checkpoint", WEIR_PLAN_BYTES, save->bytes);
    if (!save->weight_bytes)
        return;
    weir_plan_figure(a, "weight_bytes", "of which weights", WEIR_PLAN_BYTES, save->weight_bytes);
    weir_plan_figure(a, "optimizer_bytes", "of which optimizer", WEIR_PLAN_BYTES,
                     save->optimizer_bytes);
    double each = save->bytes / (double)in->parameters;
    weir_plan_assume(a, "%s bytes a parameter%s%s", weir_plan_say(WEIR_PLAN_NUMBER, each),
                     save->state ? ": " : "", save->state ? save->state : "");
    if (in->parameters == 175000000000)
        weir_plan_publish(a, (struct weir_plan_published){
                                 "FP16 weights of 175B parameters", WEIR_PLAN_BYTES, 700e9, 350e9,
                                 "two bytes each; 700 GB are FP32 weights"});
}

double weir_plan_write_rate(const struct weir_plan_in *in, const char **name, double *next)
{
    double have = (double)in->write_rate;
    double network = weir_plan_nodes(in) * (double)in->network_rate;
    bool is_network = network > 0 && network < have;
    *name = is_network ? "the nodes' network" : "the shared storage";
    *next = is_network ? have : network;
    return is_network ? network : have;
}

struct stalls {
    double rate, write_s, sync_s, snapshot_s, async_s, interval_s;
};

static void tell_stalls(struct weir_plan_answer *a, const struct weir_plan_in *in,
                        const struct stalls *s)
{
    double gpus = (double)in->gpus, usd = in->usd_per_gpu_hour;
    weir_plan_figure(a, "write_s", "to write it", WEIR_PLAN_S, s->write_s);
    weir_plan_figure(a, "sync_stall_s", "stall, if it is waited for", WEIR_PLAN_S, s->sync_s);
    if (s->interval_s > 0) {
        double share = weir_plan_stall_share(s->sync_s, s->interval_s);
        weir_plan_figure(a, "sync_stall_share", "of all time", WEIR_PLAN_SHARE, share);
        if (gpus > 0)
            weir_plan_figure(a, "sync_stall_usd_per_month", "which costs", WEIR_PLAN_USD_PER_MONTH,
                             weir_plan_idle_usd_per_month(gpus, usd, share));
    }
    if (gpus == 0 || s->interval_s == 0)
        return;
    double share = weir_plan_stall_share(s->async_s, s->interval_s);
    weir_plan_figure(a, "snapshot_s", "to copy it to DRAM", WEIR_PLAN_S, s->snapshot_s);
    weir_plan_figure(a, "async_stall_s", "stall, in the background", WEIR_PLAN_S, s->async_s);
    weir_plan_figure(a, "async_stall_share", "of all time", WEIR_PLAN_SHARE, share);
    weir_plan_figure(a, "async_stall_usd_per_month", "which costs", WEIR_PLAN_USD_PER_MONTH,
                     weir_plan_idle_usd_per_month(gpus, usd, share));
    weir_plan_assume(a,
                     "every GPU copies its part to DRAM at %s; in the background, a stall is "
                     "that copy, and what the write takes longer than the interval",
                     RATE((double)in->snapshot_rate));
    weir_plan_assume(a,
                     "the interval is the computing between two saves; a GPU costs $%.2f an "
                     "hour, a month has 730 h",
                     usd);
}

static void tell_limit(struct weir_plan_answer *a, const struct weir_plan_in *in,
                       const struct stalls *s, double bytes)
{
    const char *name;
    double next, rate = weir_plan_write_rate(in, &name, &next);
    if (s->interval_s > 0 && s->write_s > s->interval_s)
        weir_plan_bottleneck(a, "%s, %s: a checkpoint takes %s and the next begins after %s", name,
                             RATE(rate), TIME(s->write_s), TIME(s->interval_s));
    else if (in->gpus && s->interval_s > 0)
        weir_plan_bottleneck(a,
                             "in the background, the copy to DRAM (%s); waited for, %s (%s at "
                             "%s)",
                             TIME(s->snapshot_s), name, TIME(s->write_s), RATE(rate));
    else
        weir_plan_bottleneck(a, "%s, %s", name, RATE(rate));
    double twice = next > 0 ? fmin(2 * rate, next) : 2 * rate; /* up to the other limit */
    weir_plan_change(a, "twice the %s: waited for, %s instead of %s",
                     in->write_rate == rate ? "write rate" : "network rate", TIME(bytes / twice),
                     TIME(s->sync_s));
    if (next > 0)
        weir_plan_change(a, "the next limit is %s, %s: then a save takes %s",
                         in->write_rate == rate ? "the nodes' network" : "the shared storage",
                         RATE(next), TIME(bytes / next));
    if (s->interval_s > 0)
        weir_plan_change(a, "below %s of write rate, saves take longer than the interval",
                         RATE(bytes / s->interval_s));
}

static void tell_rates(struct weir_plan_answer *a, const struct weir_plan_in *in, double bytes,
                       double interval_s)
{
    double stall_s = weir_plan_seconds(in->stall_ns);
    if (interval_s > 0) {
        double mean = weir_plan_save_bytes_per_s(bytes, interval_s);
        weir_plan_figure(a, "average_bytes_per_s", "written on average", WEIR_PLAN_BYTES_PER_S,
                         mean);
        weir_plan_figure(a, "average_servers", "storage servers for that", WEIR_PLAN_COUNT,
                         weir_plan_servers(mean, (double)in->server_rate));
        weir_plan_assume(a, "a storage server (OST) takes %s", RATE((double)in->server_rate));
        if (in->parameters == 175000000000 && bytes == 1.75e12 && interval_s == 1800)
            weir_plan_publish(a,
                              (struct weir_plan_published){
                                  "1.75 TB every 30 min needs", WEIR_PLAN_BYTES_PER_S, 100e9, mean,
                                  "100 GB/s keep a save that is waited for under 20 s; the "
                                  "average is this"});
    }
    weir_plan_figure(a, "stall_max_bytes_per_s", "for the longest stall wanted",
                     WEIR_PLAN_BYTES_PER_S, weir_plan_save_bytes_per_s(bytes, stall_s));
    weir_plan_assume(a, "the longest stall wanted is %s, of a save that is waited for",
                     TIME(stall_s));
}

int weir_plan_ask_checkpoint(struct weir_plan_answer *a, const struct weir_plan_in *in)
{
    struct weir_plan_save save;
    struct stalls s = {.interval_s = weir_plan_seconds(in->interval_ns)};
    const char *name;
    double next;
    int code = weir_plan_save_of(&save, in);
    if (code)
        return code;
    snprintf(a->question, sizeof a->question, "What does a checkpoint need?");
    tell_size(a, in, &save);
    tell_rates(a, in, save.bytes, s.interval_s);
    if (!in->write_rate) {
        weir_plan_bottleneck(a, "not known: --write-rate says what storage takes");
        return 0;
    }
    s.rate = weir_plan_write_rate(in, &name, &next);
    s.write_s = s.sync_s = weir_plan_save_sync_stall_s(save.bytes, s.rate);
    if (in->gpus)
        s.snapshot_s = save.bytes / ((double)in->gpus * (double)in->snapshot_rate);
    s.async_s = weir_plan_save_async_stall_s(s.snapshot_s, s.write_s, s.interval_s);
    tell_stalls(a, in, &s);
    tell_limit(a, in, &s, save.bytes);
    return 0;
}
