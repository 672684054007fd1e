/* traffic.c - see traffic.h. */
#include "cli/traffic.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/opt.h"

enum { ROWS_MAX = 32 };

static const char *latency(char *out, size_t size, uint64_t us)
{
    if (us < 10000)
        snprintf(out, size, "%" PRIu64 " us", us);
    else if (us < 10000000)
        snprintf(out, size, "%" PRIu64 " ms", us / 1000);
    else
        snprintf(out, size, "%" PRIu64 " s", us / 1000000);
    return out;
}

void traffic_print(weir_store *store)
{
    weir_stat_row rows[ROWS_MAX];
    int count = weir_store_stats(store, rows, ROWS_MAX);
    if (count < 0)
        return;
    fprintf(stderr, "%-10s %9s %7s %10s %9s %9s %9s\n", "request", "count", "errors", "bytes",
            "p50", "p99", "max");
    for (int i = 0; i < count; i++) {
        char bytes[32], p50[32], p99[32], max[32];
        fprintf(stderr, "%-10s %9" PRIu64 " %7" PRIu64 " %10s %9s %9s %9s\n", rows[i].op,
                rows[i].count, rows[i].errors, weir_format_size(bytes, sizeof bytes, rows[i].bytes),
                latency(p50, sizeof p50, rows[i].latency_us_p50),
                latency(p99, sizeof p99, rows[i].latency_us_p99),
                latency(max, sizeof max, rows[i].latency_us_max));
    }
}
