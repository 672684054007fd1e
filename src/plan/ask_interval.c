/* ask_interval.c - how often a checkpoint is worth its stall. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "plan/answers.h"
#include "plan/save.h"
#include "util/err.h"

#define TIME(value)  weir_plan_say(WEIR_PLAN_S, value)
#define SHARE(value) weir_plan_say(WEIR_PLAN_SHARE, value)

static const double month_s = 730 * 3600.0;

int weir_plan_mtbf_of(double *out_s, const struct weir_plan_in *in)
{
    if (!in->mtbf_ns && !in->gpus)
        return weir_plan_missing("mtbf", "or --gpus, whose nodes fail every --node-mtbf");
    *out_s = in->mtbf_ns
                 ? weir_plan_seconds(in->mtbf_ns)
                 : weir_plan_job_mtbf_s(weir_plan_seconds(in->node_mtbf_ns), weir_plan_nodes(in));
    return 0;
}

static int stall_of(double *out_s, struct weir_plan_answer *a, const struct weir_plan_in *in)
{
    struct weir_plan_save save;
    const char *name;
    double next;
    if (in->cost_ns) {
        *out_s = weir_plan_seconds(in->cost_ns);
        return 0;
    }
    if (!in->write_rate)
        return weir_plan_missing("stall", "or --write-rate with --checkpoint or --parameters");
    int code = weir_plan_save_of(&save, in);
    if (code)
        return code;
    double rate = weir_plan_write_rate(in, &name, &next);
    *out_s = weir_plan_save_sync_stall_s(save.bytes, rate);
    weir_plan_assume(a, "a save is waited for: %s; the limit is %s, %s",
                     weir_plan_say(WEIR_PLAN_BYTES, save.bytes), name,
                     weir_plan_say(WEIR_PLAN_BYTES_PER_S, rate));
    return 0;
}

struct odds {
    double stall_s, mtbf_s, restart_s, young_s, daly_s;
};

static double waste_at(const struct odds *o, double interval_s)
{
    return weir_plan_waste_share(interval_s, o->stall_s, o->mtbf_s, o->restart_s);
}

/* The parts are those of rare failures, in proportion: their sum is what is lost in all, which
 * holds for frequent ones, too. */
static void tell_parts(struct weir_plan_answer *a, const struct odds *o)
{
    double saves = weir_plan_stall_share(o->stall_s, o->daly_s), all = waste_at(o, o->daly_s);
    double lost = o->daly_s / 2 / o->mtbf_s, restarts = o->restart_s / o->mtbf_s;
    double scale = all / (saves + lost + restarts);
    saves *= scale;
    lost *= scale;
    restarts *= scale;
    weir_plan_figure(a, "save_share", "lost in saves", WEIR_PLAN_SHARE, saves);
    weir_plan_figure(a, "rework_share", "lost in work done again", WEIR_PLAN_SHARE, lost);
    weir_plan_figure(a, "restart_share", "lost in restarts", WEIR_PLAN_SHARE, restarts);
    weir_plan_figure(a, "waste_share", "lost in all", WEIR_PLAN_SHARE, all);
    const char *most = restarts > lost && restarts > saves ? "restarts"
                       : lost > saves                      ? "work that failures undo"
                                                           : "the saves themselves";
    weir_plan_bottleneck(a, "%s: %s of the time", most, SHARE(fmax(restarts, fmax(lost, saves))));
}

static void tell_changes(struct weir_plan_answer *a, const struct odds *o)
{
    struct odds half = *o, twice = *o;
    half.stall_s /= 2;
    half.daly_s = weir_plan_interval_daly_s(half.stall_s, half.mtbf_s);
    twice.mtbf_s /= 2;
    twice.daly_s = weir_plan_interval_daly_s(twice.stall_s, twice.mtbf_s);
    weir_plan_change(a, "half the stall: every %s, and %s is lost", TIME(half.daly_s),
                     SHARE(waste_at(&half, half.daly_s)));
    weir_plan_change(a, "twice as many nodes: every %s, and %s is lost", TIME(twice.daly_s),
                     SHARE(waste_at(&twice, twice.daly_s)));
    weir_plan_change(a, "half this interval loses %s, twice this interval %s: it is flat here",
                     SHARE(waste_at(o, o->daly_s / 2)), SHARE(waste_at(o, o->daly_s * 2)));
}

int weir_plan_ask_interval(struct weir_plan_answer *a, const struct weir_plan_in *in)
{
    struct odds o = {.restart_s = weir_plan_seconds(in->restart_ns)};
    int code = stall_of(&o.stall_s, a, in);
    if (!code)
        code = weir_plan_mtbf_of(&o.mtbf_s, in);
    if (code)
        return code;
    o.young_s = weir_plan_interval_young_s(o.stall_s, o.mtbf_s);
    o.daly_s = weir_plan_interval_daly_s(o.stall_s, o.mtbf_s);
    snprintf(a->question, sizeof a->question, "How often should it save?");
    weir_plan_figure(a, "young_s", "every (Young)", WEIR_PLAN_S, o.young_s);
    weir_plan_figure(a, "daly_s", "every (Daly)", WEIR_PLAN_S, o.daly_s);
    weir_plan_figure(a, "stall_s", "a save holds up for", WEIR_PLAN_S, o.stall_s);
    weir_plan_figure(a, "mtbf_s", "the job fails every", WEIR_PLAN_S, o.mtbf_s);
    weir_plan_figure(a, "failures_per_month", "failures a month", WEIR_PLAN_NUMBER,
                     month_s / o.mtbf_s);
    weir_plan_figure(a, "lost_s_per_failure", "lost by a failure", WEIR_PLAN_S,
                     o.daly_s / 2 + o.restart_s);
    tell_parts(a, &o);
    if (in->gpus)
        weir_plan_figure(a, "waste_usd_per_month", "which costs", WEIR_PLAN_USD_PER_MONTH,
                         weir_plan_idle_usd_per_month((double)in->gpus, in->usd_per_gpu_hour,
                                                      waste_at(&o, o.daly_s)));
    if (in->interval_ns)
        weir_plan_figure(a, "given_waste_share", "lost with the interval given", WEIR_PLAN_SHARE,
                         waste_at(&o, weir_plan_seconds(in->interval_ns)));
    weir_plan_assume(a, "failures come at a constant rate%s, and can hit saves and restarts, too",
                     in->mtbf_ns ? "" : ", one node's ends the job");
    weir_plan_assume(a, "Young: sqrt(2 x stall x time between failures); a restart takes %s",
                     TIME(o.restart_s));
    if (o.stall_s > o.mtbf_s / 10)
        weir_plan_assume(a, "a stall of more than a tenth of the time between failures: Young's "
                            "formula is far off, Daly's less");
    tell_changes(a, &o);
    return 0;
}
