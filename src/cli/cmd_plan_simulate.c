/* cmd_plan_simulate.c - weir plan simulate: what a job would do, event by event. See
 * src/plan/sim.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/plan.h"
#include "cli/progress.h"
#include "cli/simulate.h"
#include "cli/stop.h"
#include "cli/target.h"
#include "plan/sim_keys.h"
#include "util/err.h"

static const struct weir_opt options[] = {
    PLAN_GPUS,
    PLAN_GPUS_PER_NODE,
    PLAN_SIM_STEP,
    PLAN_SIM_OVER,
    PLAN_SIM_STEPS,
    PLAN_BATCH_BYTES,
    PLAN_TOKENS_PER_S,
    PLAN_TOKEN_BYTES,
    PLAN_SIM_DATA_ON,
    PLAN_SIM_DEPTH,
    PLAN_SIM_WORKERS,
    PLAN_SIM_LATENCY,
    PLAN_PARAMETERS,
    PLAN_SAVE,
    PLAN_STATE,
    PLAN_WEIGHT_BYTES,
    PLAN_OPTIMIZER_BYTES,
    PLAN_SIM_INTERVAL,
    PLAN_SIM_INTERVALS,
    PLAN_SIM_EVERY,
    PLAN_SIM_SAVE_TO,
    PLAN_SIM_SYNC,
    PLAN_SNAPSHOT,
    PLAN_SIM_STAGING,
    PLAN_SIM_QUEUE,
    PLAN_SIM_SAVE_RATE,
    PLAN_NODE_MTBF,
    PLAN_MTBF,
    PLAN_SIM_NO_FAILURES,
    PLAN_SIM_LOSS_SHARE,
    PLAN_SIM_DETECT,
    PLAN_SIM_RESTART,
    PLAN_SIM_SPARES,
    PLAN_SIM_NODE_REPAIR,
    PLAN_NETWORK,
    PLAN_NVME_READ,
    PLAN_NVME_WRITE,
    PLAN_CACHE,
    PLAN_FAST,
    PLAN_NATIVE,
    PLAN_READ_RATE,
    PLAN_WRITE_RATE,
    PLAN_OBJECT_RATE,
    PLAN_SIM_SEED,
    PLAN_SIM_RUNS,
    PLAN_SIM_EVENTS_MAX,
    {"html", 0, WEIR_OPT_TEXT, WEIR_PLAN_AT(html), NULL, "FILE",
     "also a page with charts; FILE is replaced", 0, 0},
    {"svg", 0, WEIR_OPT_TEXT, WEIR_PLAN_AT(svg), NULL, "FILE", "only the charts; FILE is replaced",
     0, 0},
    PLAN_FROM,
    {0},
};

static struct simulate sim = {.in = &plan_in};
static double intervals[WEIR_SIM_INTERVALS_MAX]; /* sim.count of them */

static bool is_stopped(void *arg)
{
    (void)arg;
    return stop_asked();
}

static int too_many_events(void)
{
    char text[WEIR_TEXT_MAX];
    snprintf(text, sizeof text, "%s", weir_error_text());
    return weir_fail(E2BIG, "%.500s; or allow more events (--events-max)", text);
}

static int simulate_interval(struct simulate_case *one, double interval_s)
{
    struct weir_sim_setup setup = sim.setup;
    static struct weir_sim_result result; /* too large for a stack */
    if (interval_s > 0)
        setup.interval_s = interval_s;
    one->interval_s = setup.save_tier_count ? setup.interval_s : 0;
    for (int run = 0; run < sim.runs; run++) {
        setup.seed = sim.setup.seed + (uint64_t)run;
        int code = weir_sim_run(&result, &setup);
        if (code == -EINTR)
            return stop_fail();
        if (code == -E2BIG)
            return too_many_events();
        if (code)
            return code;
        /* 0 would be no bound of its own. */
        setup.events_max = result.events < setup.events_max ? setup.events_max - result.events : 1;
        sim.setup.events_max = setup.events_max;
        simulate_add(one, &result, run);
        progress_item();
    }
    simulate_end(one, sim.runs);
    return 0;
}

static int simulate_all(struct cli *cli)
{
    int code = 0;
    bool is_one = !sim.count;
    sim.count = is_one ? 1 : sim.count;
    sim.cases = calloc((size_t)sim.count, sizeof *sim.cases);
    if (!sim.cases)
        return weir_fail_memory();
    progress_start(cli, "simulating", 0, (size_t)(sim.count * sim.runs), false);
    for (int i = 0; i < sim.count && !code; i++) {
        code = simulate_interval(&sim.cases[i], is_one ? 0 : intervals[i]);
        if (sim.cases[i].part[SIMULATE_GOOD] > sim.cases[sim.best].part[SIMULATE_GOOD])
            sim.best = i;
    }
    progress_end();
    return code;
}

static void draw_page(FILE *out, const void *arg)
{
    simulate_page(out, arg);
}

static void draw_svg(FILE *out, const void *arg)
{
    simulate_svg(out, arg);
}

/* Files are opened before anything is simulated: what is wrong with them is told at once. */
static int simulate_to(struct cli *cli, struct target *html, struct target *svg)
{
    int code = simulate_all(cli);
    if (code)
        return code;
    if (cli->json)
        cli->doc = simulate_json(&sim);
    else if (!cli->quiet)
        simulate_show(&sim);
    if (html)
        code = target_draw(html, draw_page, &sim);
    if (svg && !code)
        code = target_draw(svg, draw_svg, &sim);
    return code;
}

/* A profile is of a node's NVMe: its latency is not that of data elsewhere. To the first byte it is
 * that of one lookup at a time; that of large reads holds what waits for others. */
static int make_setup(struct cli *cli)
{
    int code = plan_read(cli);
    if (code)
        return code;
    const struct weir_profile *profile = plan_profile();
    bool is_told = plan_was_told(cli, "latency");
    if (profile && !is_told)
        plan_in.latency_ns = 0;
    code = weir_sim_plan(&sim.setup, &plan_in);
    if (!code)
        code = weir_sim_plan_intervals(intervals, &sim.count, &plan_in, &sim.setup);
    if (code == -EINVAL)
        return cli_usage(cli, "%s", weir_error_text());
    if (!code && profile && profile->lookup_latency_s_p50 > 0 &&
        !(is_told && sim.setup.data_tier == WEIR_SIM_NVME))
        sim.setup.tiers[WEIR_SIM_NVME].latency_s = profile->lookup_latency_s_p50;
    return code;
}

static int run(struct cli *cli)
{
    struct target html, svg;
    int code = make_setup(cli);
    if (code)
        return code;
    sim.runs = (int)plan_in.runs;
    sim.setup.events_max = plan_in.events_max; /* of what is left, in all */
    sim.setup.is_stopped = is_stopped;
    stop_politely();
    code = plan_in.html ? target_open(&html, plan_in.html, true) : 0;
    if (code)
        return code;
    code = plan_in.svg ? target_open(&svg, plan_in.svg, true) : 0;
    if (!code) {
        code = simulate_to(cli, plan_in.html ? &html : NULL, plan_in.svg ? &svg : NULL);
        if (plan_in.svg)
            target_close(&svg);
    }
    if (plan_in.html)
        target_close(&html);
    free(sim.cases);
    sim.cases = NULL;
    return code;
}

const struct command cmd_plan_simulate = {
    .name = "plan simulate",
    .operands = "",
    .summary = "Simulate a training job: what its storage and its failures cost",
    .about =
        "Ranks that compute, read batches and save checkpoints, on nodes that fail and are "
        "repaired, over the NVMe of the nodes, a shared file system and an object store, each with "
        "its bandwidth. Told is what share of the time was training, work that failures undid, "
        "waiting for batches, for saves and for restarts; bytes by tier; all of it over time.\n\n"
        "A step computes for --step, with one batch for each GPU. A save is copied to memory and "
        "written in the background to the first tier of --save-to, and from there to the next; "
        "beyond --queue saves under way, training waits. A failure that takes a node takes what "
        "is only on its NVMe with it. With several --intervals, each is simulated; with --runs, "
        "from several seeds. The same seed gives the same answer on every machine.",
    .example = "weir plan simulate --gpus 512 --step 5s --checkpoint 1TB --write-rate 50GB/s\n"
               "weir plan simulate --gpus 4096 --step 2s --batch-bytes 4MB \\\n"
               "    --read-rate 200GB/s --parameters 70B --write-rate 100GB/s \\\n"
               "    --intervals auto --runs 20 --html sim.html",
    .json = "gpus, nodes, seed, runs, formula_interval_s (null: no failures, or saves that cost "
            "nothing); of the best interval: interval_s, goodput, lost_share, read_share, "
            "checkpoint_share, restart_share (these add up to 1), goodput_min, goodput_max and "
            "goodput_sd of all runs, shares (by cause), simulated_s, steps, saves, failures, "
            "nodes_lost, restarts_from_nothing, cliff_s, levels (tier, complete, restarts), tiers "
            "(name, read_bytes, written_bytes), events; assumptions: an array of texts; intervals: "
            "the same of each, if there "
            "are several; bin_s and over_time: the first run, in bins of that time",
    .options = options,
    .fields = &plan_in,
    .run = run,
};
