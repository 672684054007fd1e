/* Quantiles of durations that are kept in bins. */
#include <math.h>
#include <stdint.h>

#include "test.h"
#include "util/hist.h"

static void quantiles(void)
{
    static struct weir_hist hist, other;
    CHECK_EQ(weir_hist_quantile(&hist, 0.5), 0);
    for (uint64_t ns = 1; ns <= 100000; ns++)
        weir_hist_add(ns % 2 ? &hist : &other, ns * 1000);
    weir_hist_merge(&hist, &other);
    CHECK_EQ(hist.count, 100000);
    CHECK_EQ(hist.total_ns, 100000ull * 100001 / 2 * 1000);
    for (int percent = 1; percent <= 100; percent++) {
        double is = (double)weir_hist_quantile(&hist, percent / 100.0), should = percent * 1e6;
        CHECK(fabs(is - should) <= 0.032 * should);
    }
    CHECK_EQ(hist.max_ns, 100000000);
    weir_hist_add(&hist, UINT64_MAX); /* has a bin, too */
    weir_hist_add(&hist, 0);
    CHECK(weir_hist_quantile(&hist, 1) > 1ull << 62);
}

int main(void)
{
    RUN(quantiles);
    return TEST_RESULT;
}
