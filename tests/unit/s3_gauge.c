/* The number of requests under way follows the rate: it grows while that pays, not beyond, and is
 * halved once for a crowd of refusals. */
#include "test.h"
#include "tier/s3_gauge.h"

#define MS 1000000ull

/* A server whose rate grows up to `best` requests at once; runs for so long. */
static uint64_t serve(struct weir_s3_gauge *gauge, unsigned best, uint64_t now_ns, uint64_t ms)
{
    for (uint64_t end = now_ns + ms * MS; now_ns < end; now_ns += 10 * MS) {
        unsigned busy = gauge->limit < best ? gauge->limit : best;
        weir_s3_gauge_full(gauge);
        for (unsigned i = 0; i < busy; i++)
            weir_s3_gauge_answer(gauge, 1 << 20, now_ns);
    }
    return now_ns;
}

static void grows_while_it_pays(void)
{
    struct weir_s3_gauge gauge;
    weir_s3_gauge_init(&gauge, 256, 0);
    unsigned first = gauge.limit;
    uint64_t now = serve(&gauge, 256, 0, 10000);
    CHECK_EQ(gauge.limit, 256);
    weir_s3_gauge_init(&gauge, 256, now);
    serve(&gauge, 40, now, 60000);
    CHECK(gauge.limit > first && gauge.limit <= 80);
}

static void a_far_server_soon_has_many(void)
{
    struct weir_s3_gauge gauge;
    weir_s3_gauge_init(&gauge, 256, 0);
    serve(&gauge, 256, 0, 1500);
    CHECK(gauge.limit >= 16);
}

static void stays_without_need(void)
{
    struct weir_s3_gauge gauge;
    weir_s3_gauge_init(&gauge, 256, 0);
    unsigned first = gauge.limit;
    for (uint64_t now = 0; now < 10000 * MS; now += MS) /* never full */
        weir_s3_gauge_answer(&gauge, 1 << 20, now);
    CHECK_EQ(gauge.limit, first);
}

static void refusals_halve_it(void)
{
    struct weir_s3_gauge gauge;
    weir_s3_gauge_init(&gauge, 64, 0);
    unsigned first = gauge.limit;
    for (int i = 0; i < 100; i++)
        weir_s3_gauge_slow_down(&gauge, 5 * MS + (uint64_t)i * MS);
    CHECK_EQ(gauge.limit, first / 2);
    for (uint64_t s = 2; s < 60; s += 2)
        weir_s3_gauge_slow_down(&gauge, s * 1000 * MS);
    CHECK(gauge.limit >= 1 && gauge.limit <= 2);
    weir_s3_gauge_init(&gauge, 1, 0); /* one is all there may be */
    weir_s3_gauge_slow_down(&gauge, MS);
    CHECK_EQ(gauge.limit, 1);
}

static void comes_back(void)
{
    struct weir_s3_gauge gauge;
    weir_s3_gauge_init(&gauge, 64, 0);
    weir_s3_gauge_slow_down(&gauge, MS);
    unsigned low = gauge.limit;
    serve(&gauge, 64, 2000 * MS, 10000);
    CHECK(gauge.limit > low);
}

/* Answers that come late at the beginning, and a pause, say nothing about the limit. */
static void judges_what_flows(void)
{
    struct weir_s3_gauge gauge;
    weir_s3_gauge_init(&gauge, 64, 0);
    unsigned first = gauge.limit;
    weir_s3_gauge_begin(&gauge, 1000 * MS);
    serve(&gauge, 64, 1240 * MS, 30); /* the first interval: nothing came for most of it */
    CHECK_EQ(gauge.limit, first);
    uint64_t now = serve(&gauge, first, 1270 * MS, 20000); /* more than these do not help */
    unsigned best = gauge.best_limit;
    for (int i = 0; i < 20; i++) {
        now += 60000 * MS;
        weir_s3_gauge_begin(&gauge, now);
        now = serve(&gauge, first, now, 300);
    }
    CHECK(gauge.best_limit == best && gauge.limit <= 2 * best);
}

int main(void)
{
    RUN(judges_what_flows);
    RUN(grows_while_it_pays);
    RUN(a_far_server_soon_has_many);
    RUN(stays_without_need);
    RUN(refusals_halve_it);
    RUN(comes_back);
    return TEST_RESULT;
}
