/* plan_sim.c - the simulator says what the formulas say, where those hold: stalls of saves, queues
 * at a shared tier, the best interval, lost work, spare nodes; and the same for a seed everywhere.
 */
#include "plan/sim.h"

#include <errno.h>
#include <math.h>

#include "plan/device.h"
#include "plan/sim_cluster.h"
#include "plan/sim_net.h"
#include "plan/sim_plan.h"
#include "test.h"

#define HOUR 3600.0
#define DAY  (24 * HOUR)
#define GB   1e9
/* The results of everything(): see test_same_everywhere. */
#define EXPECTED "5000817.995250497 47283.777983045293 8.0860383037262451e+17 273 94 118793"

static struct weir_sim_result result; /* too large for a stack */

static bool is_near(double value, double expected, double relative)
{
    bool near = fabs(value - expected) <= relative * fabs(expected) + 1e-12;
    if (!near)
        fprintf(stderr, "%.12g, not %.12g within %g\n", value, expected, relative);
    return near;
}
#define NEAR(value, expected, relative) CHECK(is_near(value, expected, relative))

static double share_of(enum weir_sim_cause first, enum weir_sim_cause end)
{
    return weir_sim_time_of(&result.sum, first, end) / result.time_s;
}

static double goodput(void)
{
    return (result.sum.time_s[WEIR_SIM_COMPUTE] - result.sum.lost_s) / result.time_s;
}

static double save_share(void)
{
    return share_of(WEIR_SIM_SAVE_FIRST, WEIR_SIM_RESTART_FIRST);
}

static double restart_share(void)
{
    return share_of(WEIR_SIM_RESTART_FIRST, WEIR_SIM_CAUSES);
}

/* 64 nodes of 8 ranks with a drive each (4 GB/s) and a file system of 100 GB/s; 640 GB saved. */
static struct weir_sim_setup cluster(void)
{
    struct weir_sim_setup setup;
    weir_sim_setup_init(&setup);
    setup.nodes = 64;
    setup.ranks = 8;
    setup.time_s = 10 * DAY;
    setup.tiers[0] =
        (struct weir_sim_tier){.name = "local", .read_node = 7 * GB, .write_node = 4 * GB};
    setup.tiers[1] = (struct weir_sim_tier){.name = "shared",
                                            .read_all = 200 * GB,
                                            .write_all = 100 * GB,
                                            .is_remote = true,
                                            .is_safe = true};
    setup.tier_count = 2;
    setup.save_tiers[0] = 1;
    setup.save_tier_count = 1;
    setup.save_bytes = 640 * GB;
    setup.interval_s = 100;
    return setup;
}

static void everything_adds_up(void)
{
    struct weir_sim_sum bins = {0};
    double all_s = weir_sim_time_of(&result.sum, 0, WEIR_SIM_CAUSES);
    NEAR(all_s, result.time_s, 1e-9);
    for (int i = 0; i < result.bin_count; i++) {
        bins.lost_s += result.bins[i].lost_s;
        for (int cause = 0; cause < WEIR_SIM_CAUSES; cause++)
            bins.time_s[cause] += result.bins[i].time_s[cause];
        for (int tier = 0; tier < WEIR_SIM_TIERS_MAX; tier++)
            bins.written_bytes[tier] += result.bins[i].written_bytes[tier];
    }
    for (int cause = 0; cause < WEIR_SIM_CAUSES; cause++)
        NEAR(bins.time_s[cause], result.sum.time_s[cause], 1e-6);
    NEAR(bins.lost_s, result.sum.lost_s, 1e-6);
    NEAR(bins.written_bytes[1], result.sum.written_bytes[1], 1e-6);
}

/* ---- saves ---- */

/* size / bandwidth: 640 GB at 100 GB/s, every 100 s of training. */
static void test_synchronous(void)
{
    struct weir_sim_setup setup = cluster();
    setup.is_sync = true;
    OK(weir_sim_run(&result, &setup));
    NEAR(save_share(), 6.4 / 106.4, 1e-3);
    NEAR(result.sum.time_s[WEIR_SIM_WRITE] / result.levels[0].saves, 6.4, 1e-3);
    NEAR(result.sum.written_bytes[1], 640 * GB * result.levels[0].saves, 1e-3);
    NEAR(goodput(), 100 / 106.4, 1e-3);
    everything_adds_up();
    setup.save_tiers[0] = 0; /* 10 GB of each node at 4 GB/s */
    setup.tiers[0].latency_s = 0.5;
    OK(weir_sim_run(&result, &setup));
    NEAR(save_share(), 3 / 103.0, 1e-3);
    setup.tiers[0].latency_s = 0;
    setup.save_rate = 1 * GB;
    OK(weir_sim_run(&result, &setup));
    NEAR(save_share(), 10 / 110.0, 1e-3);
}

/* snapshot + max(0, write time - interval). With a queue of two, a snapshot is taken while the one
 * before is written: then the interval is from one save's end to the next one's end. */
static void test_asynchronous(void)
{
    struct weir_sim_setup setup = cluster();
    setup.copy_rate = 20 * GB; /* 10 GB of each node: 0.5 s */
    for (setup.queue = 1; setup.queue <= 3; setup.queue++) {
        setup.interval_s = 100; /* write time 6.4 s: only the snapshot stalls */
        OK(weir_sim_run(&result, &setup));
        NEAR(save_share(), 0.5 / 100.5, 1e-3);
        setup.interval_s = 4;
        OK(weir_sim_run(&result, &setup));
        double stall_s = setup.queue == 1 ? 0.5 + (6.4 - 4) : 0.5 + (6.4 - 4.5);
        NEAR(save_share(), stall_s / (4 + stall_s), 1e-3);
        everything_adds_up();
    }
    setup.queue = 2;
    setup.interval_s = 0;
    setup.save_steps = 4; /* steps of 1 s */
    OK(weir_sim_run(&result, &setup));
    NEAR(save_share(), 2.4 / 6.4, 1e-3);
}

/* Memory of half a snapshot: the other half is copied as the first one is written, 5 GB a node at
 * 100/64 GB/s. */
static void test_staging(void)
{
    struct weir_sim_setup setup = cluster();
    setup.copy_rate = 20 * GB;
    setup.stage_bytes = 5 * GB;
    OK(weir_sim_run(&result, &setup));
    NEAR(save_share(), (0.25 + 3.2) / 103.45, 1e-3);
    CHECK(result.sum.time_s[WEIR_SIM_STAGE] > result.sum.time_s[WEIR_SIM_COPY]);
    setup.stage_bytes = 10 * GB; /* one at a time, whatever the queue: written in 6.4 s */
    setup.interval_s = 4;
    OK(weir_sim_run(&result, &setup));
    NEAR(result.time_s / result.saves, 6.4, 0.01);
    setup.copy_rate = 1 * GB; /* slower than it is written */
    setup.stage_bytes = 5 * GB;
    setup.interval_s = 100;
    OK(weir_sim_run(&result, &setup));
    NEAR(save_share(), 10 / 110.0, 1e-3);
}

/* Two tiers: the save is through when the second has it, and both work at once on different ones.
 */
static void test_chain(void)
{
    struct weir_sim_setup setup = cluster();
    setup.save_tiers[0] = 0;
    setup.save_tiers[1] = 1;
    setup.save_tier_count = 2;
    setup.interval_s = 1;
    OK(weir_sim_run(&result, &setup)); /* 2.5 s and 6.4 s: the second is what bounds it */
    NEAR(result.time_s / result.levels[1].saves, 6.4, 0.01);
    NEAR(result.sum.read_bytes[0], result.sum.written_bytes[1], 1e-9);
    setup.queue = 1; /* one after the other */
    OK(weir_sim_run(&result, &setup));
    NEAR(result.time_s / result.levels[1].saves, 2.5 + 6.4, 0.01);
    setup.network = 0.5 * GB; /* 10 GB through it take 20 s */
    setup.queue = 2;
    OK(weir_sim_run(&result, &setup));
    NEAR(result.time_s / result.levels[1].saves, 20, 0.01);
    setup.tiers[0].read_node = 0.25 * GB; /* the copy is read there */
    OK(weir_sim_run(&result, &setup));
    NEAR(result.time_s / result.levels[1].saves, 40, 0.01);
}

/* Saves are waited for, on drives of 1 GB/s that take 4 GB four times as fast. */
static struct weir_sim_setup cached_cluster(void)
{
    struct weir_sim_setup setup = cluster();
    setup.is_sync = true;
    setup.save_tiers[0] = 0;
    setup.tiers[0].burst_bytes = 4 * GB;
    setup.tiers[0].burst_write = 4 * GB;
    setup.tiers[0].write_node = 1 * GB;
    return setup;
}

/* 4 GB at 4 GB/s, the other 6 GB at 1: 7 s; it empties in 4 of the 100 s. After 2 s it has not. */
static void test_cliff(void)
{
    struct weir_sim_setup setup = cached_cluster();
    OK(weir_sim_run(&result, &setup));
    NEAR(save_share(), 7 / 107.0, 1e-3);
    NEAR(result.cliff_s / result.saves, 6, 1e-3);
    setup.interval_s = 2; /* room for 2 GB */
    OK(weir_sim_run(&result, &setup));
    NEAR(save_share(), (0.5 + 8) / 10.5, 1e-3);
    setup.save_bytes = 64 * 2 * GB;
    OK(weir_sim_run(&result, &setup));
    NEAR(save_share(), 0.5 / 2.5, 1e-3);
    CHECK(result.cliff_s <= 0);
}

/* Under a limit it empties meanwhile, as `weir plan cliff` has it: 10 GB do not fall off a cache of
 * 4 below 1 x 10 / (10 - 4) GB/s. */
static void test_cliff_under_a_limit(void)
{
    struct weir_plan_cliff cliff = {4 * GB, 4 * GB, 1 * GB};
    double limit = weir_plan_cliff_limit_bytes_per_s(&cliff, 10 * GB);
    struct weir_sim_setup setup = cached_cluster();
    setup.save_rate = limit * 0.999;
    OK(weir_sim_run(&result, &setup));
    NEAR(save_share(), 6.006 / 106.006, 1e-3);
    CHECK(result.cliff_s <= 0);
    NEAR(weir_sim_save_cost_s(&setup), 6.006, 1e-3);
    setup.save_rate = 2 * GB; /* full after 4 s and 8 GB */
    OK(weir_sim_run(&result, &setup));
    NEAR(save_share(), 6 / 106.0, 1e-3);
    NEAR(result.cliff_s / result.saves, 2, 1e-3);
    NEAR(weir_sim_save_cost_s(&setup), 6, 1e-3);
    setup.save_rate = 0.5 * GB; /* less than it empties: it never fills */
    setup.interval_s = 1;
    OK(weir_sim_run(&result, &setup));
    NEAR(save_share(), 20 / 21.0, 1e-3);
    CHECK(result.cliff_s <= 0);
    setup.save_rate = 0;
    NEAR(weir_sim_save_cost_s(&setup), 7, 1e-3);
}

/* ---- reading ---- */

static struct weir_sim_setup reader(void)
{
    struct weir_sim_setup setup = cluster();
    setup.save_tier_count = 0;
    setup.data_tier = 1;
    setup.batch_bytes = 100e6; /* of 512 ranks: 51.2 GB a step */
    return setup;
}

/* n ranks on a shared tier: n x bytes / bandwidth. */
static void test_shared_reads(void)
{
    struct weir_sim_setup setup = reader();
    setup.tiers[1].read_all = 25.6 * GB; /* 2 s a step that computes for 1 */
    OK(weir_sim_run(&result, &setup));
    NEAR(share_of(WEIR_SIM_READ, WEIR_SIM_QUEUE), 0.5, 1e-3);
    NEAR(result.steps, 10 * DAY / 2, 1e-3);
    NEAR(result.sum.read_bytes[1], 51.2 * GB * result.steps, 1e-3);
    everything_adds_up();
    setup.tiers[1].read_all = 102.4 * GB; /* 0.5 s: behind the compute */
    OK(weir_sim_run(&result, &setup));
    NEAR(result.steps, 10 * DAY, 1e-3);
    setup.prefetch = 0; /* before it */
    OK(weir_sim_run(&result, &setup));
    NEAR(result.steps, 10 * DAY / 1.5, 1e-3);
    setup.tiers[1].latency_s = 0.5;
    OK(weir_sim_run(&result, &setup));
    NEAR(result.steps, 10 * DAY / 2, 1e-3);
}

/* One reader that waits 2 s for each first byte; three of them hide it. */
static void test_latency(void)
{
    struct weir_sim_setup setup = reader();
    setup.tiers[1].latency_s = 2;
    setup.tiers[1].read_node = 1 * GB;
    setup.tiers[1].read_all = 0;
    OK(weir_sim_run(&result, &setup));
    NEAR(result.steps, 10 * DAY / 2.1, 1e-3);
    setup.readers = 2;
    OK(weir_sim_run(&result, &setup));
    NEAR(result.steps, 10 * DAY / 1.05, 1e-3);
    setup.readers = 3;
    OK(weir_sim_run(&result, &setup));
    NEAR(result.steps, 10 * DAY, 1e-3);
    setup.prefetch = 2; /* no more than that are read at once */
    OK(weir_sim_run(&result, &setup));
    NEAR(result.steps, 10 * DAY / 1.05, 1e-3);
}

/* A replication takes half of what the reading needs: batches that are ready bridge it. The drive
 * reads 1.6 GB/s; batches need 0.8; a copy of 10 GB takes 1.2, which is 10 batches less, by 8 s. */
static void test_queue_bridges(void)
{
    struct weir_sim_setup setup = reader();
    setup.data_tier = 0;
    setup.tiers[0].read_node = 1.2 * GB;
    setup.save_tiers[0] = 0;
    setup.save_tiers[1] = 1;
    setup.save_tier_count = 2;
    setup.tiers[0].write_node = 100 * GB;
    setup.tiers[1].write_all = 64 * 0.8 * GB; /* 12.5 s, in which reading gets 0.6 of 0.8 */
    setup.prefetch = 1;
    /* Fair: 0.6 GB/s each. A copy takes 16.67 s, in which 12.5 of 16.67 batches come. */
    OK(weir_sim_run(&result, &setup));
    double stalled = result.sum.time_s[WEIR_SIM_READ] / result.levels[1].saves;
    NEAR(stalled, (10 / 0.6 - (1 / 0.25)) * 0.25, 0.01);
    setup.prefetch = 5; /* more than 4.17 */
    OK(weir_sim_run(&result, &setup));
    CHECK(result.sum.time_s[WEIR_SIM_READ] < 1); /* the first batch */
}

static void test_fair_shares(void)
{
    struct sim_net net = {0};
    int disk = weir_sim_net_pipe(&net, 10, false), wide = weir_sim_net_pipe(&net, 100, true);
    CHECK_EQ(weir_sim_net_pipe(&net, 0, true), -1);
    int few = weir_sim_net_flow(&net, 5), many = weir_sim_net_flow(&net, 20);
    int slow = weir_sim_net_flow(&net, 10), alone = weir_sim_net_flow(&net, 1);
    weir_sim_net_cross(&net, few, disk);
    weir_sim_net_cross(&net, few, wide);
    weir_sim_net_cross(&net, many, wide);
    weir_sim_net_cross(&net, slow, wide);
    weir_sim_net_cross(&net, alone, -1);
    for (int i = 0; i < net.flow_count; i++)
        net.flows[i].is_active = true;
    weir_sim_net_share(&net);
    NEAR(net.flows[few].rate, 100 / 35.0, 1e-12);
    NEAR(net.flows[alone].rate, SIM_RATE_MAX, 1e-12);
    net.flows[slow].limit = 1;
    weir_sim_net_share(&net);
    NEAR(net.flows[slow].rate, 1, 1e-12);
    NEAR(net.flows[few].rate, 90 / 25.0, 1e-12);
    net.flows[many].is_active = false;
    weir_sim_net_share(&net);
    NEAR(net.flows[few].rate, 10, 1e-12); /* its disk, though 18 are there */
    NEAR(net.flows[many].rate, 0, 1e-12);
    NEAR(weir_sim_net_alone(&net, few, 50), 2, 1e-12);
}

/* ---- failures ---- */

static void test_logarithm(void)
{
    struct weir_rng rng = weir_rng_fork(1, 1);
    double sum = 0, squares = 0;
    NEAR(weir_sim_minus_ln(0x1p-53), 53 * log(2), 1e-15);
    CHECK(weir_sim_minus_ln(1) <= 0 && weir_sim_minus_ln(1) >= 0);
    for (int i = 1; i < 1000; i++)
        NEAR(weir_sim_minus_ln(i / 1000.0), -log(i / 1000.0), 1e-14);
    for (int i = 0; i < 1000000; i++) {
        double draw = weir_sim_exponential(&rng, 1);
        sum += draw;
        squares += draw * draw;
    }
    NEAR(sum / 1e6, 1, 0.005); /* five standard errors */
    NEAR(squares / 1e6, 2, 0.0125);
}

/* Synchronous saves to a safe tier every T of training at a cost of C, restarts that take R: a job
 * that fails every M needs M e^(R/M) (e^((T+C)/M) - 1) for each T (Daly). */
static double expected_goodput(double t, double c, double r, double m)
{
    return t / (m * exp(r / m) * (exp((t + c) / m) - 1));
}

static struct weir_sim_setup failing(void)
{
    struct weir_sim_setup setup = cluster();
    setup.is_sync = true;
    setup.save_bytes = 6000 * GB; /* C = 60 s; loaded in 30 s */
    setup.mtbf_s = 64 * 2 * HOUR; /* M = 2 h */
    setup.detect_s = 20;
    setup.launch_s = 70; /* R = 120 s */
    setup.loss_share = 0.3;
    setup.spares = 1000;
    setup.repair_s = 1;
    setup.time_s = 1000 * DAY;
    return setup;
}

static void test_daly(void)
{
    struct weir_sim_setup setup = failing();
    static const double minutes[] = {3, 6, 10, 15.5, 24, 40, 80};
    double best = 0, best_s = 0;
    for (int i = 0; i < 7; i++) {
        setup.interval_s = 60 * minutes[i];
        OK(weir_sim_run(&result, &setup));
        double good = goodput();
        NEAR(good, expected_goodput(setup.interval_s, 60, 120, 7200), 0.004);
        NEAR(result.failures, setup.time_s / 7200, 0.03);
        NEAR(result.losses, 0.3 * result.failures, 0.05);
        NEAR(restart_share(), 120 / 7200.0, 0.04);
        best_s = good > best ? setup.interval_s : best_s;
        best = good > best ? good : best;
        everything_adds_up();
    }
    NEAR(best_s, sqrt(2 * 60 * 7200), 0.01); /* 929.5 s: 15.5 minutes */
}

/* What a failure loses: if it strikes at a random time, half of T + C and nothing of R; of that T
 * of T + C is work. Exactly: the mean of an exponential time modulo the period. */
static void test_lost_work(void)
{
    struct weir_sim_setup setup = failing();
    setup.interval_s = 930;
    OK(weir_sim_run(&result, &setup));
    double lost = result.sum.lost_s / result.failures;
    NEAR(lost, 930 / 2.0, 0.05);
    /* Asynchronous: what is not through yet is lost, too: a write time more. */
    setup.is_sync = false;
    OK(weir_sim_run(&result, &setup));
    NEAR(result.sum.lost_s / result.failures, 930 / 2.0 + 60, 0.05);
    /* No saves: everything, every time. */
    setup.save_tier_count = 0;
    OK(weir_sim_run(&result, &setup));
    NEAR(result.scratch, result.failures, 0.03);
    CHECK(goodput() < 1e-3);
}

/* A lost node takes its part of what is only on the nodes; a process that died does not. */
static void test_levels(void)
{
    struct weir_sim_setup setup = failing();
    setup.is_sync = false;
    setup.interval_s = 600;
    setup.save_tiers[0] = 0; /* 93.75 GB a node at 4 GB/s: 23 s */
    setup.save_tiers[1] = 1;
    setup.save_tier_count = 2;
    OK(weir_sim_run(&result, &setup));
    /* A process may die before the nodes have a save again, after one of them was lost: that is
     * 0.3 (600 + 23 + 90) / 7200 of such failures. And 1.6 % strike in the midst of a restart. */
    double died = result.failures - result.losses, late = 0.03 * died;
    NEAR(result.levels[0].restarts, 0.984 * (died - late), 0.03);
    NEAR(result.levels[1].restarts, 0.984 * (result.losses + late), 0.03);
    double lost_s = result.sum.lost_s / result.failures;
    /* Half an interval, less T^2 / 12 M since times are exponential. */
    NEAR(lost_s, 0.984 * (300 - 4.2 + 23.4 + 0.3 * 60), 0.03);
    setup.loss_share = 1;
    OK(weir_sim_run(&result, &setup));
    CHECK(result.levels[0].restarts <= 0);
    setup.save_tier_count = 1; /* never safe */
    OK(weir_sim_run(&result, &setup));
    NEAR(result.scratch, result.failures, 0.03);
    setup.loss_share = 0;
    OK(weir_sim_run(&result, &setup));
    CHECK(result.scratch < 0.1 * result.failures); /* before the first save */
}

/* One node without a spare works for mtbf and is away for repair, on average. */
static void test_repairs(void)
{
    struct weir_sim_setup setup;
    weir_sim_setup_init(&setup);
    setup.mtbf_s = 10 * HOUR;
    setup.repair_s = 2 * HOUR;
    setup.loss_share = 1;
    setup.time_s = 5000 * DAY;
    OK(weir_sim_run(&result, &setup));
    NEAR(restart_share(), 2 / 12.0, 0.03);
    /* One spare: a repairman's queue with two machines, one at work: it waits when both are away.
     * Of the states 0, 1, 2 away, p1 = a p0 and p2 = a/2 p1 with a = 2/10. */
    setup.spares = 1;
    OK(weir_sim_run(&result, &setup));
    double p2 = 0.02 / (1 + 0.2 + 0.02);
    NEAR(restart_share(), p2, 0.1);
    setup.spares = 100;
    OK(weir_sim_run(&result, &setup));
    CHECK(result.sum.time_s[WEIR_SIM_SPARE] <= 0);
}

/* ---- the engine itself ---- */

static struct weir_sim_setup everything(void)
{
    struct weir_sim_setup setup = failing();
    setup.nodes = 1000;
    setup.time_s = 60 * DAY;
    setup.mtbf_s = 1000 * 5 * HOUR;
    setup.spares = 2;
    setup.repair_s = 10 * HOUR;
    setup.is_sync = false;
    setup.copy_rate = 20 * GB;
    setup.stage_bytes = 7 * GB;
    setup.save_tiers[0] = 0;
    setup.save_tiers[1] = 1;
    setup.save_tier_count = 2;
    setup.interval_s = 300;
    setup.data_tier = 1;
    setup.batch_bytes = 20e6;
    setup.tiers[1].latency_s = 0.02;
    setup.tiers[1].read_all = 170 * GB;
    setup.tiers[0].burst_bytes = 5 * GB;
    setup.tiers[0].burst_write = 6 * GB;
    setup.tiers[0].write_node = 2 * GB;
    return setup;
}

/* These digits are what every compiler and machine must get. */
static void test_same_everywhere(void)
{
    struct weir_sim_setup setup = everything();
    char text[256];
    OK(weir_sim_run(&result, &setup));
    everything_adds_up();
    snprintf(text, sizeof text, "%.17g %.17g %.17g %.0f %.0f %llu", result.steps, result.sum.lost_s,
             result.sum.read_bytes[1], result.failures, result.losses,
             (unsigned long long)result.events);
    if (strcmp(text, EXPECTED))
        fprintf(stderr, "it is   %s\nand not %s\n", text, EXPECTED);
    CHECK(!strcmp(text, EXPECTED));
    double lost_s = result.sum.lost_s;
    setup.seed = 2;
    OK(weir_sim_run(&result, &setup));
    CHECK(fabs(result.sum.lost_s - lost_s) > 1);
    everything_adds_up();
}

/* More bins than there are: they are joined. */
static void test_until_done(void)
{
    struct weir_sim_setup setup = failing();
    setup.interval_s = 930;
    setup.time_s = 0;
    setup.steps = 1e6; /* of 1 s */
    OK(weir_sim_run(&result, &setup));
    NEAR(result.steps, 1e6, 1e-9);
    NEAR(result.time_s, 1e6 / expected_goodput(930, 60, 120, 7200), 0.05);
    CHECK(result.bin_count > WEIR_SIM_BINS / 2 && result.bin_count <= WEIR_SIM_BINS);
    everything_adds_up();
}

static bool say_stop(void *arg)
{
    return ++*(int *)arg >= 3;
}

static void test_bounds(void)
{
    struct weir_sim_setup setup = cluster();
    int asked = 0;
    setup.is_stopped = say_stop;
    setup.arg = &asked;
    setup.interval_s = 1;
    CHECK_EQ(weir_sim_run(&result, &setup), -EINTR);
    CHECK_EQ(asked, 3);
    setup.is_stopped = NULL;
    setup.interval_s = 0.001;
    setup.save_bytes = 1;
    setup.time_s = 1e9;
    setup.events_max = 100000;
    CHECK_EQ(weir_sim_run(&result, &setup), -E2BIG);
    CHECK(strstr(weir_fail_last(), "longer interval"));
}

static void refused(struct weir_sim_setup setup, const char *text)
{
    CHECK_EQ(weir_sim_run(&result, &setup), -EINVAL);
    if (!strstr(weir_fail_last(), text))
        fprintf(stderr, "'%s' is not in it\n", text);
    CHECK(strstr(weir_fail_last(), text));
}
#define REFUSED(field, value, text)                                                                \
    do {                                                                                           \
        struct weir_sim_setup setup_ = failing();                                                  \
        setup_.field = value;                                                                      \
        refused(setup_, text);                                                                     \
    } while (0)

static void test_absurd(void)
{
    REFUSED(nodes, 0, "nodes is 0");
    REFUSED(nodes, NAN, "nodes is");
    REFUSED(step_s, INFINITY, "time of a step");
    REFUSED(step_s, 0, "time of a step");
    REFUSED(loss_share, 1.5, "share of lost nodes");
    REFUSED(tiers[1].read_all, -1, "read rate of all nodes of tier shared");
    REFUSED(tiers[0].burst_bytes, 1, "tier local has a burst cache");
    REFUSED(save_bytes, 0, "a save has no bytes");
    REFUSED(save_steps, 10, "say one");
    REFUSED(queue, 0, "0 saves under way");
    REFUSED(queue, 65, "65 saves under way");
    REFUSED(save_tiers[0], 2, "a tier that there is not");
    REFUSED(save_tier_count, 5, "at most 4 tiers");
    REFUSED(tier_count, 5, "at most 4 tiers");
    REFUSED(mtbf_s, 0.01, "a node would fail every");
    REFUSED(time_s, 0, "ends after");
    struct weir_sim_setup setup = reader();
    setup.data_tier = -1;
    refused(setup, "batches are read from");
}

int main(void)
{
    RUN(test_synchronous);
    RUN(test_asynchronous);
    RUN(test_staging);
    RUN(test_chain);
    RUN(test_cliff);
    RUN(test_cliff_under_a_limit);
    RUN(test_shared_reads);
    RUN(test_latency);
    RUN(test_queue_bridges);
    RUN(test_fair_shares);
    RUN(test_logarithm);
    RUN(test_daly);
    RUN(test_lost_work);
    RUN(test_levels);
    RUN(test_repairs);
    RUN(test_same_everywhere);
    RUN(test_until_done);
    RUN(test_bounds);
    RUN(test_absurd);
    return TEST_RESULT;
}
