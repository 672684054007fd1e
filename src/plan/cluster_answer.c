/* cluster_answer.c - the plan of a cluster in figures and sentences: see cluster.h. */
#include <math.h>
#include <stdio.h>

#include "plan/cluster.h"
#include "plan/read.h"
#include "plan/save.h"

#define RATE(value)  weir_plan_say(WEIR_PLAN_BYTES_PER_S, value)
#define SIZE(value)  weir_plan_say(WEIR_PLAN_BYTES, value)
#define TIME(value)  weir_plan_say(WEIR_PLAN_S, value)
#define SHARE(value) weir_plan_say(WEIR_PLAN_SHARE, value)
#define TIMES(value) weir_plan_say(WEIR_PLAN_NUMBER, value)

static void tell_run(struct weir_plan_answer *a, const struct weir_plan_cluster *c)
{
    weir_plan_figure(a, "nodes", "nodes", WEIR_PLAN_COUNT, c->nodes);
    weir_plan_figure(a, "tokens_per_s_per_gpu", "tokens, each GPU", WEIR_PLAN_PER_S,
                     c->tokens_per_s);
    weir_plan_figure(a, "read_bytes_per_s", "the job reads", WEIR_PLAN_BYTES_PER_S,
                     c->read_bytes_per_s);
    weir_plan_figure(a, "run_s", "training takes, without losses", WEIR_PLAN_S, c->run_s);
    weir_plan_figure(a, "run_with_losses_s", "and with them", WEIR_PLAN_S,
                     c->lost_share < 1 ? c->run_s / (1 - c->lost_share) : INFINITY);
    weir_plan_figure(a, "checkpoint_bytes", "a checkpoint", WEIR_PLAN_BYTES, c->save_bytes);
    weir_plan_figure(a, "interval_s", "saved every", WEIR_PLAN_S, c->interval_s);
    weir_plan_figure(a, "save_stall_s", "which holds training up for", WEIR_PLAN_S,
                     c->save_stall_s);
    weir_plan_figure(a, "write_s", "and is on shared storage after", WEIR_PLAN_S, c->write_s);
    weir_plan_figure(a, "restore_s", "loaded again in", WEIR_PLAN_S, c->restore_s);
    weir_plan_figure(a, "mtbf_s", "the job fails every", WEIR_PLAN_S, c->mtbf_s);
}

static void tell_losses(struct weir_plan_answer *a, const struct weir_plan_cluster *c)
{
    weir_plan_figure(a, "read_stall_share", "time lost waiting for data", WEIR_PLAN_SHARE,
                     c->read_stall_share);
    weir_plan_figure(a, "save_stall_share", "time lost in saves", WEIR_PLAN_SHARE,
                     c->save_stall_share);
    weir_plan_figure(a, "waste_share", "in saves and failures", WEIR_PLAN_SHARE, c->waste_share);
    weir_plan_figure(a, "lost_share", "in all", WEIR_PLAN_SHARE, c->lost_share);
    weir_plan_figure(a, "gpu_usd_per_month", "the GPUs cost", WEIR_PLAN_USD_PER_MONTH,
                     c->gpu_usd_per_month);
    weir_plan_figure(a, "lost_usd_per_month", "of which lost", WEIR_PLAN_USD_PER_MONTH,
                     c->lost_usd_per_month);
    weir_plan_figure(a, "storage_usd_per_month", "storage costs", WEIR_PLAN_USD_PER_MONTH,
                     c->storage_usd_per_month);
    weir_plan_figure(a, "wear_bytes_per_day", "an NVMe device wears, a day", WEIR_PLAN_BYTES,
                     c->wear_bytes_per_day);
    weir_plan_figure(a, "life_s", "and lasts", WEIR_PLAN_S, c->life_s);
    weir_plan_figure(a, "headroom", "until the first limit, times", WEIR_PLAN_NUMBER,
                     c->limits[0].headroom);
}

static void tell_limits(struct weir_plan_answer *a, const struct weir_plan_cluster *c)
{
    const struct weir_plan_limit *first = &c->limits[0];
    if (first->headroom < 1)
        weir_plan_bottleneck(a, "%s: there is %s of what is needed", first->name,
                             SHARE(first->headroom));
    else if (c->interval_s <= c->write_s)
        weir_plan_bottleneck(a,
                             "the way to shared storage: a checkpoint takes %s, so that is the "
                             "interval, and failures undo more than they must",
                             TIME(c->write_s));
    else
        weir_plan_bottleneck(a, "computing; what breaks first is %s, at %s times this", first->name,
                             TIMES(first->headroom));
    for (unsigned i = 1; i < 3 && i < c->limit_count; i++)
        weir_plan_change(a, "then comes %s, at %s times this", c->limits[i].name,
                         TIMES(c->limits[i].headroom));
}

static void tell_changes(struct weir_plan_answer *a, const struct weir_plan_cluster *c,
                         const struct weir_plan_in *in)
{
    struct weir_plan_in other = *in;
    struct weir_plan_cluster twice;
    other.gpus *= 2;
    if (!weir_plan_cluster(&twice, &other))
        weir_plan_change(a,
                         "twice the GPUs: %s lost instead of %s, saved every %s, and %s breaks "
                         "first, at %s times that",
                         SHARE(twice.lost_share), SHARE(c->lost_share), TIME(twice.interval_s),
                         twice.limits[0].name, TIMES(twice.limits[0].headroom));
    double sync_s = c->save_bytes / c->flows[5].have_bytes_per_s;
    double sync = weir_plan_waste_share(c->interval_s, sync_s, c->mtbf_s,
                                        weir_plan_seconds(in->restart_ns) + c->restore_s);
    weir_plan_change(a,
                     "saves that are waited for, straight to shared storage: a stall of %s "
                     "each, and %s lost in saves and failures instead of %s",
                     TIME(sync_s), SHARE(sync), SHARE(c->waste_share));
    double daly_s = weir_plan_interval_daly_s(c->snapshot_s, c->mtbf_s);
    weir_plan_change(a,
                     "the interval that loses least by the snapshot's stall is %s (Daly), which "
                     "needs %s of write rate",
                     TIME(daly_s), RATE(c->save_bytes / daly_s));
}

static void tell_assumptions(struct weir_plan_answer *a, const struct weir_plan_cluster *c,
                             const struct weir_plan_in *in)
{
    if (in->tokens_per_s)
        weir_plan_assume(a, "each GPU trains on %s tokens of %s", TIMES(c->tokens_per_s),
                         SIZE(in->token_bytes));
    else
        weir_plan_assume(a,
                         "6 operations a parameter and token, %s of %s TFLOP/s a GPU%s; tokens "
                         "of %s",
                         SHARE(in->flops_share), TIMES(in->tflops > 0 ? in->tflops : 989),
                         in->tflops > 0 ? "" : " (none was told)", SIZE(in->token_bytes));
    weir_plan_assume(a, "the interval is %s",
                     in->interval_ns ? "as told" : "Daly's for that stall, or as long as a write");
    if (!in->read_rate || !in->write_rate)
        weir_plan_assume(a, "the shared storage reads and writes 100 GB/s where nothing was told");
    weir_plan_assume(a,
                     "data are staged from the object store to NVMe 10 min ahead, each byte once "
                     "an epoch; saves go on in the background: DRAM, NVMe, shared storage");
    weir_plan_assume(
        a,
        "one node's failure ends the job and takes what is only on that node; a restart "
        "takes %s and the load",
        TIME(weir_plan_seconds(in->restart_ns)));
    weir_plan_assume(a,
                     "GPU memory holds 16 bytes a parameter, whatever is saved: 2 of weights, 12 "
                     "of optimizer, 2 of gradients (mixed precision); activations come on top");
    weir_plan_assume(a, "storage is priced by what is needed (FSx for Lustre, S3 Standard, at the "
                        "end of the run); NVMe comes with the nodes");
}

void weir_plan_cluster_answer(struct weir_plan_answer *a, const struct weir_plan_cluster *c,
                              const struct weir_plan_in *in)
{
    snprintf(a->question, sizeof a->question, "What do %s GPUs, %s parameters and %s of data need?",
             weir_plan_say(WEIR_PLAN_COUNT, c->gpus),
             weir_plan_say(WEIR_PLAN_MANY, (double)in->parameters), SIZE((double)in->corpus_bytes));
    tell_run(a, c);
    tell_losses(a, c);
    tell_limits(a, c);
    tell_changes(a, c, in);
    tell_assumptions(a, c, in);
    weir_plan_publish(
        a, (struct weir_plan_published){
               "the rule 1 GB/s for each 100 TFLOP/s", WEIR_PLAN_BYTES_PER_S,
               weir_plan_read_rule_bytes_per_s(c->gpus, (in->tflops > 0 ? in->tflops : 989) * 1e12),
               c->read_bytes_per_s, "a bound for data that are hardly computed on, no answer"});
}
