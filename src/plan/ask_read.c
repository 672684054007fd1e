/* ask_read.c - how fast a job must read, from where it could, and how deep it prefetches. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "plan/answers.h"
#include "plan/read.h"
#include "plan/save.h"
#include "util/err.h"

#define RATE(value) weir_plan_say(WEIR_PLAN_BYTES_PER_S, value)

static const double day_s = 86400;
static const double busy_enough = 0.99; /* of a GPU's time: less is a bottleneck */

double weir_plan_nodes(const struct weir_plan_in *in)
{
    return ceil((double)in->gpus / (double)in->gpus_per_node);
}

/* What one GPU consumes each second, in units of so many bytes. */
struct demand {
    double units_per_s, unit_bytes;
    const char *unit;
};

static int find_demand(struct demand *out, const struct weir_plan_in *in)
{
    int told =
        !!in->tokens_per_s + (in->samples_per_s > 0) + (in->batches_per_s > 0) + !!in->over_ns;
    if (!told)
        return weir_plan_missing("tokens-per-s", "or --samples-per-s, --batches-per-s, or --corpus "
                                                 "with --over: something must say how fast");
    if (told > 1)
        return weir_fail(EINVAL, "how fast is told more than once: give one of --tokens-per-s, "
                                 "--samples-per-s, --batches-per-s and --over");
    if (in->over_ns)
        return in->corpus_bytes ? 0 : weir_plan_missing("corpus", "what is read in that time");
    if (!in->gpus)
        return weir_plan_missing("gpus", NULL);
    if (in->samples_per_s > 0 && !in->sample_bytes)
        return weir_plan_missing("sample-bytes", NULL);
    if (in->batches_per_s > 0 && !in->batch_bytes)
        return weir_plan_missing("batch-bytes", NULL);
    if (in->tokens_per_s)
        *out = (struct demand){(double)in->tokens_per_s, in->token_bytes, "tokens"};
    else if (in->samples_per_s > 0)
        *out = (struct demand){in->samples_per_s, (double)in->sample_bytes, "samples"};
    else
        *out = (struct demand){in->batches_per_s, (double)in->batch_bytes, "batches"};
    return 0;
}

static void tell_demand(struct weir_plan_answer *a, const struct weir_plan_in *in,
                        const struct demand *demand, double need)
{
    double gpus = (double)in->gpus, nodes = weir_plan_nodes(in);
    weir_plan_figure(a, "read_bytes_per_s", "the whole job reads", WEIR_PLAN_BYTES_PER_S, need);
    if (gpus > 0) {
        weir_plan_figure(a, "gpu_bytes_per_s", "each GPU", WEIR_PLAN_BYTES_PER_S, need / gpus);
        weir_plan_figure(a, "node_bytes_per_s", "each node", WEIR_PLAN_BYTES_PER_S, need / nodes);
    }
    weir_plan_figure(a, "day_bytes", "in a day", WEIR_PLAN_BYTES, need * day_s);
    if (in->over_ns)
        weir_plan_assume(a, "%s are read %s within %s, evenly; by all together, each byte once",
                         weir_plan_say(WEIR_PLAN_BYTES, (double)in->corpus_bytes),
                         in->epochs == 1 ? "once" : "several times",
                         weir_plan_say(WEIR_PLAN_S, weir_plan_seconds(in->over_ns)));
    else
        weir_plan_assume(a, "%s GPUs x %s %s/s x %s x %s of the time computing",
                         weir_plan_say(WEIR_PLAN_COUNT, gpus),
                         weir_plan_say(WEIR_PLAN_NUMBER, demand->units_per_s), demand->unit,
                         weir_plan_say(WEIR_PLAN_BYTES, demand->unit_bytes),
                         weir_plan_say(WEIR_PLAN_SHARE, in->efficiency));
}

/* ---- where it could come from ---- */

/* The share of its time a GPU waits for batches that were asked for too late: what rate there is
 * does not change it. 0 if it is not known. */
static double late_share(const struct weir_plan_in *in)
{
    if (!in->latency_ns || !in->step_ns)
        return 0;
    return 1 - weir_plan_prefetch_share((double)in->depth, weir_plan_seconds(in->latency_ns),
                                        weir_plan_seconds(in->step_ns));
}

static void tell_late(struct weir_plan_answer *a, const struct weir_plan_in *in)
{
    double latency_s = weir_plan_seconds(in->latency_ns), step_s = weir_plan_seconds(in->step_ns);
    weir_plan_bottleneck(a,
                         "the latency: a batch takes %s to come, steps take %s, and %s under way "
                         "or ready are too few",
                         weir_plan_say(WEIR_PLAN_S, latency_s), weir_plan_say(WEIR_PLAN_S, step_s),
                         weir_plan_say(WEIR_PLAN_COUNT, (double)in->depth));
    weir_plan_change(
        a, "a prefetch depth of %s keeps the GPU busy for 99 %% of the time",
        weir_plan_say(WEIR_PLAN_COUNT, weir_plan_prefetch_depth(busy_enough, latency_s, step_s)));
}

static void tell_supply(struct weir_plan_answer *a, const struct weir_plan_in *in, double need)
{
    double have = (double)in->read_rate, servers;
    double network = weir_plan_nodes(in) * (double)in->network_rate;
    servers = weir_plan_servers(need, (double)in->server_rate);
    weir_plan_figure(a, "servers", "storage servers for that", WEIR_PLAN_COUNT, servers);
    weir_plan_assume(a, "a storage server (OST) gives %s", RATE((double)in->server_rate));
    if (!have && network == 0) {
        weir_plan_bottleneck(a, "not known: --read-rate says what storage gives");
        return;
    }
    bool is_network = network > 0 && (!have || network < have);
    double least = is_network ? network : have, next = is_network ? have : network;
    const char *name = is_network ? "the nodes' network" : "the shared storage";
    weir_plan_figure(a, "available_bytes_per_s", "available", WEIR_PLAN_BYTES_PER_S, least);
    weir_plan_figure(a, "used_share", "of that is needed", WEIR_PLAN_SHARE, need / least);
    double slow = weir_plan_read_stall_share(need, least), late = late_share(in);
    double stall = fmax(slow, late);
    weir_plan_figure(a, "stall_share", "time spent waiting", WEIR_PLAN_SHARE, stall);
    if (in->gpus)
        weir_plan_figure(
            a, "stall_usd_per_month", "which costs", WEIR_PLAN_USD_PER_MONTH,
            weir_plan_idle_usd_per_month((double)in->gpus, in->usd_per_gpu_hour, stall));
    weir_plan_assume(a,
                     "reading overlaps with computing; a GPU costs $%.2f an hour, a month has "
                     "730 h",
                     in->usd_per_gpu_hour);
    if (late > slow && late > 1 - busy_enough)
        tell_late(a, in);
    else if (need > least)
        weir_plan_bottleneck(a, "%s: it gives %s of the %s that are needed", name, RATE(least),
                             RATE(need));
    else
        weir_plan_bottleneck(a, "computing; the nearest limit is %s, of whose %s this takes %s",
                             name, RATE(least), weir_plan_say(WEIR_PLAN_SHARE, need / least));
    weir_plan_change(a, "%s times this demand is as much as %s gives",
                     weir_plan_say(WEIR_PLAN_NUMBER, least / need), name);
    if (next > 0)
        weir_plan_change(a, "a faster one meets the next limit, %s, at %s",
                         is_network ? "the shared storage" : "the nodes' network", RATE(next));
}

/* ---- prefetching ---- */

static void tell_prefetch(struct weir_plan_answer *a, const struct weir_plan_in *in)
{
    static const double depths[] = {1, 4, 10, 20};
    static const char *const names[] = {"GPU busy, prefetch depth 1", "GPU busy, prefetch depth 4",
                                        "GPU busy, prefetch depth 10",
                                        "GPU busy, prefetch depth 20"};
    if (in->batch_bytes)
        weir_plan_figure(a, "prefetch_bytes", "prefetch memory", WEIR_PLAN_BYTES,
                         weir_plan_prefetch_bytes((double)in->depth, (double)in->workers,
                                                  (double)in->batch_bytes));
    if (!in->latency_ns || !in->step_ns)
        return;
    double latency_s = weir_plan_seconds(in->latency_ns), step_s = weir_plan_seconds(in->step_ns);
    weir_plan_figure(a, "busy_share", "GPU busy at that depth", WEIR_PLAN_SHARE,
                     weir_plan_prefetch_share((double)in->depth, latency_s, step_s));
    weir_plan_figure(a, "depth_for_99_percent", "depth for 99 % busy", WEIR_PLAN_COUNT,
                     weir_plan_prefetch_depth(busy_enough, latency_s, step_s));
    weir_plan_assume(a,
                     "a batch takes %s to come and %s to be trained on; %s are under way or "
                     "ready: busy = 1 - Erlang B(depth, latency / step)",
                     weir_plan_say(WEIR_PLAN_S, latency_s), weir_plan_say(WEIR_PLAN_S, step_s),
                     weir_plan_say(WEIR_PLAN_COUNT, (double)in->depth));
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++)
        weir_plan_publish(a, (struct weir_plan_published){
                                 names[i], WEIR_PLAN_SHARE, weir_plan_prefetch_published(depths[i]),
                                 weir_plan_prefetch_share(depths[i], latency_s, step_s),
                                 "published for no latency or step in particular"});
}

int weir_plan_ask_read(struct weir_plan_answer *a, const struct weir_plan_in *in)
{
    struct demand demand = {0};
    int code = find_demand(&demand, in);
    if (code)
        return code;
    double gpus = (double)in->gpus;
    double need = in->over_ns ? weir_plan_corpus_bytes_per_s((double)in->corpus_bytes, in->epochs,
                                                             weir_plan_seconds(in->over_ns))
                              : weir_plan_read_bytes_per_s(gpus, demand.units_per_s,
                                                           demand.unit_bytes, in->efficiency);
    snprintf(a->question, sizeof a->question, "How fast must this job read?");
    tell_demand(a, in, &demand, need);
    tell_supply(a, in, need);
    tell_prefetch(a, in);
    if (in->over_ns && gpus > 1)
        weir_plan_publish(a, (struct weir_plan_published){
                                 "a corpus over its time, taken for each GPU",
                                 WEIR_PLAN_BYTES_PER_S, need * gpus, need,
                                 "the GPUs share the corpus: this is what all of them need"});
    if (in->tflops > 0 && gpus > 0)
        weir_plan_publish(a, (struct weir_plan_published){
                                 "the rule 1 GB/s for each 100 TFLOP/s", WEIR_PLAN_BYTES_PER_S,
                                 weir_plan_read_rule_bytes_per_s(gpus, in->tflops * 1e12), need,
                                 "a bound for data that are hardly computed on, no answer"});
    return 0;
}
