/* The token bucket, under a clock that the test moves: what passes stays within 5 % of the rate, or
 * one request, over any stretch of time.
 */
#include "data.h"
#include "io/bucket.h"
#include "test.h"
#include "util/sys.h"

static uint64_t clock_ns = 5000000000;

static uint64_t test_now(enum weir_clock clock)
{
    CHECK_EQ(clock, WEIR_CLOCK_MONO);
    return clock_ns;
}

/* Takes and "sleeps". */
static void pass(struct weir_bucket *bucket, uint64_t bytes)
{
    clock_ns += weir_bucket_take(bucket, bytes);
}

static void within(uint64_t rate, uint64_t request, unsigned count)
{
    struct weir_bucket bucket;
    weir_bucket_init(&bucket, rate, rate / 20);
    uint64_t start = clock_ns, sent = 0;
    for (unsigned i = 0; i < count; i++) {
        pass(&bucket, request);
        sent += request;
        double seconds = (double)(clock_ns - start) / 1e9;
        double may = (double)rate * seconds + (double)rate / 20 + (double)request;
        CHECK((double)sent <= may * 1.0001);
    }
    /* And it is not slower than the rate either. */
    double seconds = (double)(clock_ns - start) / 1e9, ideal = (double)sent / (double)rate;
    CHECK(seconds <= ideal * 1.0001);
    CHECK(seconds >= (ideal - 0.05) * 0.9999 - (double)request / (double)rate);
    weir_bucket_destroy(&bucket);
}

static void steady_flow(void)
{
    within(100 << 20, 1 << 20, 1000);
    within(100 << 20, 4096, 5000);
    within(1 << 20, 16 << 20, 20); /* a request larger than a second's worth */
    within(1000, 1, 5000);
    within(1, 1, 10);
    within(50ull << 30, 1 << 20, 5000);
}

/* However long the pause, no more than the burst goes at once afterwards. */
static void pauses_save_nothing(void)
{
    struct weir_bucket bucket;
    weir_bucket_init(&bucket, 1000, 50);
    for (int i = 0; i < 10; i++) {
        clock_ns += 3600000000000;
        CHECK_EQ(weir_bucket_take(&bucket, 50), 0);
        uint64_t wait = weir_bucket_take(&bucket, 100);
        CHECK(wait >= 99999000 && wait <= 100001000);
    }
    weir_bucket_destroy(&bucket);
}

/* Those who come later wait longer: the debt is shared. */
static void debts_add_up(void)
{
    struct weir_bucket bucket;
    uint64_t last = 0;
    weir_bucket_init(&bucket, 1000, 0);
    for (unsigned i = 1; i <= 100; i++) {
        uint64_t wait = weir_bucket_take(&bucket, 10);
        CHECK(wait > last);
        CHECK(wait >= i * 9999999ull && wait <= i * 10000001ull);
        last = wait;
    }
    weir_bucket_destroy(&bucket);
}

/* Any mixture of sizes and pauses. */
static void random_flow(void)
{
    struct rng rng = {1};
    for (int round = 0; round < 20; round++) {
        uint64_t rate = 1 + rng_below(&rng, 1 << 30), burst = rate / 20, sent = 0, largest = 0;
        struct weir_bucket bucket;
        weir_bucket_init(&bucket, rate, burst);
        uint64_t start = clock_ns;
        for (int i = 0; i < 500; i++) {
            uint64_t bytes = rng_below(&rng, rate / 4 + 2);
            if (rng_below(&rng, 4) == 0)
                clock_ns += rng_below(&rng, 1000000000);
            pass(&bucket, bytes);
            sent += bytes;
            largest = bytes > largest ? bytes : largest;
            double seconds = (double)(clock_ns - start) / 1e9;
            CHECK((double)sent <= ((double)rate * seconds + (double)(burst + largest)) * 1.001 + 1);
        }
        weir_bucket_destroy(&bucket);
    }
}

int main(void)
{
    struct weir_sys table = weir_sys_real;
    table.now_ns = test_now;
    weir_sys = &table;
    RUN(steady_flow);
    RUN(pauses_save_nothing);
    RUN(debts_add_up);
    RUN(random_flow);
    weir_sys = &weir_sys_real;
    return TEST_RESULT;
}
