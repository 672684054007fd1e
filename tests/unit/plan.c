/* The planner's formulas, by the figures that are known: tests/cli/test_plan.py computes them anew
 * in exact numbers. Here: the limits of each formula, and that it moves the right way.
 */
#include <errno.h>
#include <math.h>

#include "plan/answers.h"
#include "plan/catalog.h"
#include "plan/cluster.h"
#include "plan/cost.h"
#include "plan/device.h"
#include "plan/read.h"
#include "plan/save.h"
#include "test.h"

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}
#define NEAR(a, b) CHECK(is_near(a, b))

static void reading(void)
{
    NEAR(weir_plan_read_bytes_per_s(512, 100e3, 2, 1), 102.4e6);
    NEAR(weir_plan_read_bytes_per_s(512, 100e3, 2, 0.5), 51.2e6);
    NEAR(weir_plan_corpus_bytes_per_s(2e12, 1, 30 * 86400.0), 2e12 / 2592000);
    NEAR(weir_plan_read_rule_bytes_per_s(8, 2000e12), 160e9);
    NEAR(weir_plan_servers(200e9, 4e9), 50);
    NEAR(weir_plan_servers(200e9 + 1, 4e9), 51);
    NEAR(weir_plan_servers(1, 4e9), 1);
    CHECK(weir_plan_read_stall_share(1, 2) == 0 && weir_plan_read_stall_share(4, 1) == 0.75);
    NEAR(weir_plan_tokens_per_s(989e12, 0.4, 70e9), 989e12 * 0.4 / 420e9);
}

static void prefetching(void)
{
    NEAR(weir_plan_prefetch_bytes(4, 8, 1e6), 32e6);
    NEAR(weir_plan_prefetch_share(1, 1.5, 1), 0.4); /* one at a time: 1 / (1 + latency/step) */
    NEAR(weir_plan_prefetch_share(2, 1, 1), 0.8);   /* 1 - (1/2) / (1 + 1 + 1/2) */
    for (double d = 1; d < 15; d++)
        CHECK(weir_plan_prefetch_share(d + 1, 3, 1) > weir_plan_prefetch_share(d, 3, 1));
    CHECK(weir_plan_prefetch_depth(0.4, 1.5, 1) == 1);
    CHECK(weir_plan_prefetch_depth(0.401, 1.5, 1) == 2);
    CHECK(isinf(weir_plan_prefetch_depth(0.99, 1e9, 1)));
    CHECK(weir_plan_prefetch_published(4) == 0.75 && weir_plan_prefetch_published(5) == -1);
}

static void saving(void)
{
    NEAR(weir_plan_save_bytes(70e9, 2, 0), 140e9);
    NEAR(weir_plan_save_bytes(175e9, 2, 8), 1.75e12);
    NEAR(weir_plan_save_bytes_per_s(1.4e12, 100), 14e9);
    CHECK(weir_plan_save_async_stall_s(1, 50, 100) == 1);
    CHECK(weir_plan_save_async_stall_s(1, 150, 100) == 51);
    NEAR(weir_plan_stall_share(20, 1780), 20 / 1800.0);
    NEAR(weir_plan_idle_usd_per_month(512, 2, 0.5), 373760);
    CHECK(weir_plan_state_find("mixed") && !weir_plan_state_find("mix"));
    CHECK(strstr(weir_fail_last(), "'mix'"));
}

/* The exact waste is least near Daly's interval, and tends to the first order for rare failures. */
static void intervals(void)
{
    NEAR(weir_plan_interval_young_s(20, 36000), 1200);
    CHECK(weir_plan_interval_daly_s(30, 10) == 10);
    for (double mtbf = 1e3; mtbf < 1e8; mtbf *= 7) {
        double best = weir_plan_interval_daly_s(20, mtbf);
        double least = weir_plan_waste_share(best, 20, mtbf, 60);
        CHECK(least <= weir_plan_waste_share(best * 1.3, 20, mtbf, 60));
        CHECK(least <= weir_plan_waste_share(best / 1.3, 20, mtbf, 60));
    }
    double exact = weir_plan_waste_share(1000, 1, 1e8, 10);
    CHECK(fabs(exact - (1 / 1001.0 + (500 + 10) / 1e8)) < 1e-6);
    CHECK(weir_plan_waste_share(1e9, 1, 1, 1e9) == 1); /* it never ends */
}

static void devices(void)
{
    NEAR(weir_plan_stripe_bytes_per_s(4, 7e9, 8e9), 28e9);
    NEAR(weir_plan_stripe_bytes_per_s(4, 7e9, 4e9), 16e9);
    NEAR(weir_plan_any_fails(4, 0.04), 1 - pow(0.96, 4));
    NEAR(weir_plan_wear_bytes(140e9, 1.5, 1800, 90 * 86400.0), 907.2e12);
    CHECK(isinf(weir_plan_life_s(700e12, 0)));
    CHECK(weir_plan_device_find("nvme") && !weir_plan_device_find("nvm"));
    CHECK(strstr(weir_fail_last(), "did you mean nvme?"));
    CHECK(weir_plan_link_find("gen5") && !weir_plan_link_find("gen6"));
    NEAR(weir_plan_storage_usd(10e15, 0.023), 230e3);
}

/* The long run, found by playing it. */
static double played_free_bytes(const struct weir_plan_cliff *c, double bytes, double interval_s)
{
    double level = 0, free_bytes = 0;
    for (int i = 0; i < 3000; i++) {
        free_bytes = c->cache_bytes - level;
        double write_s = weir_plan_cliff_s(c, free_bytes, bytes);
        level = fmin(c->cache_bytes, level + bytes);
        level = fmax(0, level - fmax(0, interval_s - write_s) * c->native_bytes_per_s);
    }
    return free_bytes;
}

static void cliff(void)
{
    const struct weir_plan_cliff c = {100e9, 6.5e9, 1.5e9};
    NEAR(weir_plan_cliff_s(&c, c.cache_bytes, 65e9), 10);
    NEAR(weir_plan_cliff_s(&c, c.cache_bytes, 115e9), 100 / 6.5 + 10);
    NEAR(weir_plan_cliff_limit_bytes_per_s(&c, 90e9), 6.5e9);
    NEAR(weir_plan_cliff_limit_bytes_per_s(&c, 200e9), 3e9);
    CHECK(weir_plan_cliff_burst_bytes_per_s(&c) < c.native_bytes_per_s);
    for (double bytes = 20e9; bytes < 400e9; bytes += 33e9)
        for (double interval_s = 10; interval_s < 500; interval_s *= 1.4) {
            double told = weir_plan_cliff_free_bytes(&c, bytes, interval_s);
            double played = played_free_bytes(&c, bytes, interval_s);
            CHECK(fabs(weir_plan_cliff_s(&c, told, bytes) - weir_plan_cliff_s(&c, played, bytes)) <
                  1e-3);
        }
}

static void durability(void)
{
    double year_s = 365 * 86400.0, rate = weir_plan_failures_a_year(0.04);
    NEAR(weir_plan_loss_textbook(0.04, 3), 6.4e-5);
    NEAR(weir_plan_loss_unrepaired(0.04, 1, 2), 6.4e-5);
    NEAR(weir_plan_mttdl_s(0.04, 1, 0, 1), year_s / rate); /* one device, no copy */
    NEAR(weir_plan_loss_a_year(weir_plan_mttdl_s(0.04, 1, 0, 1), 1), 0.04);
    /* Two copies, by the closed form (3 l + m) / (2 l^2). */
    double l = rate / year_s, m = 1 / 86400.0;
    NEAR(weir_plan_mttdl_s(0.04, 1, 1, 86400), (3 * l + m) / (2 * l * l));
    /* Repair that takes for ever is no repair. */
    NEAR(weir_plan_mttdl_s(0.04, 1, 1, 1e30), 1.5 / l);
    for (unsigned parity = 0; parity < 6; parity++)
        CHECK(weir_plan_mttdl_s(0.04, 8, parity + 1, 86400) >
              weir_plan_mttdl_s(0.04, 8, parity, 86400));
}

static void texts(void)
{
    static const struct {
        enum weir_plan_unit unit;
        double value;
        char text[20];
    } cases[] = {
        {WEIR_PLAN_BYTES, 0, "0 B"},
        {WEIR_PLAN_BYTES, 140e9, "140 GB"},
        {WEIR_PLAN_BYTES, 907.2e12, "907.2 TB"},
        {WEIR_PLAN_BYTES, 1e18, "1 EB"},
        {WEIR_PLAN_BYTES, 1e30, "1000000000000 EB"},
        {WEIR_PLAN_BYTES_PER_S, 102.4e6, "102.4 MB/s"},
        {WEIR_PLAN_BYTES_PER_S, 999.96e6, "1 GB/s"},
        {WEIR_PLAN_S, 0, "0 s"},
        {WEIR_PLAN_S, 0.07, "70 ms"},
        {WEIR_PLAN_S, 1e-9, "1 ns"},
        {WEIR_PLAN_S, 17.5, "17.5 s"},
        {WEIR_PLAN_S, 1800, "30 min"},
        {WEIR_PLAN_S, 86400 * 90, "90 d"},
        {WEIR_PLAN_S, INFINITY, "never"},
        {WEIR_PLAN_USD, 1400000, "$1,400,000"},
        {WEIR_PLAN_USD, 0.0293, "$0.0293"},
        {WEIR_PLAN_USD_PER_MONTH, 12.5, "$12.50 a month"},
        {WEIR_PLAN_SHARE, 0.0123, "1.23 %"},
        {WEIR_PLAN_SHARE, 0.00001, "< 0.01 %"},
        {WEIR_PLAN_COUNT, 16384, "16,384"},
        {WEIR_PLAN_MANY, 70e9, "70B"},
        {WEIR_PLAN_CHANCE, 6.4e-5, "6.4e-05"},
    };
    char out[WEIR_PLAN_TEXT_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_plan_text(out, cases[i].unit, cases[i].value);
        weir_fail(EINVAL, "case %zu is %s", i, out); /* shown if it is wrong */
        CHECK(!strcmp(out, cases[i].text));
    }
}

/* Every figure of every answer is a number, however odd what was told. */
static void set_all(struct weir_plan_in *in, bool least)
{
    for (const struct weir_plan_key *key = weir_plan_keys; key->section; key++) {
        const struct weir_opt *opt = &key->opt;
        void *field = (char *)in + opt->at;
        double edge = least ? opt->min : opt->max;
        if (opt->type == WEIR_OPT_RATIO)
            *(double *)field = edge;
        else if (opt->type == WEIR_OPT_DURATION)
            *(uint64_t *)field = (uint64_t)(edge * 1e9);
        else if (opt->type != WEIR_OPT_TEXT && opt->type != WEIR_OPT_FLAG)
            *(uint64_t *)field = (uint64_t)edge;
    }
    in->state = "mixed";
    in->device = "nvme";
    in->pcie = "gen4";
    in->kind = "images";
    in->access = "random";
}

static void check_answer(const struct weir_plan_answer *a, int code)
{
    CHECK_EQ(code, 0);
    CHECK(a->figure_count && a->bottleneck[0] && a->assumptions.count && a->changes.count);
    for (unsigned i = 0; i < a->figure_count; i++) {
        CHECK(!isnan(a->figures[i].value) && a->figures[i].value >= 0);
        for (unsigned j = 0; j < i; j++)
            CHECK(strcmp(a->figures[i].key, a->figures[j].key));
    }
}

static void extremes(void)
{
    static struct weir_plan_in in;
    static struct weir_plan_cluster cluster;
    typedef int (*ask)(struct weir_plan_answer *, const struct weir_plan_in *);
    static const ask asks[] = {weir_plan_ask_checkpoint, weir_plan_ask_interval,
                               weir_plan_ask_cliff,      weir_plan_ask_endurance,
                               weir_plan_ask_durability, weir_plan_ask_cost,
                               weir_plan_ask_format,     weir_plan_ask_read};
    static struct weir_plan_answer answers[32];
    size_t used = 0;
    for (int least = 0; least < 2; least++) {
        set_all(&in, least);
        in.native_rate = in.fast_rate;
        for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++, used++) {
            if (asks[i] == weir_plan_ask_read)
                in.samples_per_s = in.batches_per_s = 0, in.over_ns = 0;
            int code = asks[i](&answers[used], &in);
            check_answer(&answers[used], code);
        }
        OK(weir_plan_cluster(&cluster, &in));
        weir_plan_cluster_answer(&answers[used], &cluster, &in);
        check_answer(&answers[used++], 0);
        OK(weir_plan_ask_raid(&answers[used], &in, weir_plan_device_find("hdd")));
        check_answer(&answers[used++], 0);
    }
}

static void missing(void)
{
    struct weir_plan_in in = {
        .state = "mixed", .device = "nvme", .pcie = "gen4", .gpus_per_node = 8};
    static struct weir_plan_answer a;
    static struct weir_plan_cluster cluster;
    CHECK_EQ(weir_plan_ask_checkpoint(&a, &in), -EINVAL);
    CHECK(strstr(weir_fail_last(), "--parameters is missing") &&
          strstr(weir_fail_last(), "model.parameters"));
    CHECK_EQ(weir_plan_cluster(&cluster, &in), -EINVAL);
    CHECK(strstr(weir_fail_last(), "--gpus is missing"));
    in.gpus = 1;
    in.tokens_per_s = 1;
    in.samples_per_s = 1;
    CHECK_EQ(weir_plan_ask_read(&a, &in), -EINVAL);
    CHECK(strstr(weir_fail_last(), "more than once"));
}

int main(void)
{
    RUN(reading);
    RUN(prefetching);
    RUN(saving);
    RUN(intervals);
    RUN(devices);
    RUN(cliff);
    RUN(durability);
    RUN(texts);
    RUN(extremes);
    RUN(missing);
    return TEST_RESULT;
}
