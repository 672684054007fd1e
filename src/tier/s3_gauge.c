/* s3_gauge.c - see s3_gauge.h. */
#include "tier/s3_gauge.h"

enum {
    START = 4,            /* the best for a server nearby, whose large answers it serves best one
                             after the other; a far one soon has more */
    MIN = 2,              /* a large transfer must not hold up a record */
    REQUEST_BYTES = 65536 /* what a request without a body counts */
};
#define INTERVAL_NS  250000000ull
#define HOLD_NS      5000000000ull /* before it tries to grow again */
#define SLOW_HOLD_NS 1000000000ull /* answers of 503 come in crowds: one crowd halves it once */
#define GAIN         1.05          /* less is noise */
#define FADE         0.98          /* of the best rate, each interval: the world changes */

void weir_s3_gauge_init(struct weir_s3_gauge *gauge, unsigned max, uint64_t now_ns)
{
    *gauge = (struct weir_s3_gauge){.max = max, .since_ns = now_ns};
    gauge->limit = START < max ? START : max;
    gauge->best_limit = gauge->limit;
}

static void restart(struct weir_s3_gauge *gauge, uint64_t now_ns)
{
    gauge->since_ns = now_ns;
    gauge->bytes = gauge->requests = 0;
    gauge->is_flowing = gauge->was_full;
    gauge->was_full = false;
}

void weir_s3_gauge_begin(struct weir_s3_gauge *gauge, uint64_t now_ns)
{
    if (now_ns - gauge->answered_ns < INTERVAL_NS)
        return; /* a moment between two answers */
    gauge->was_full = false;
    restart(gauge, now_ns);
}

void weir_s3_gauge_full(struct weir_s3_gauge *gauge)
{
    gauge->was_full = true;
}

static void grow(struct weir_s3_gauge *gauge)
{
    unsigned more = gauge->limit / 2 ? gauge->limit / 2 : 1;
    gauge->limit = gauge->limit + more < gauge->max ? gauge->limit + more : gauge->max;
}

static void judge(struct weir_s3_gauge *gauge, double rate, uint64_t now_ns)
{
    if (rate > gauge->best_rate * GAIN) {
        gauge->best_rate = rate;
        gauge->best_limit = gauge->limit;
        grow(gauge);
    } else if (gauge->limit > gauge->best_limit) {
        gauge->limit = gauge->best_limit; /* it did not help */
        gauge->hold_until_ns = now_ns + HOLD_NS;
    } else {
        gauge->best_rate *= FADE;
        gauge->best_limit = gauge->limit;
        if (now_ns >= gauge->hold_until_ns && gauge->limit < gauge->max) {
            gauge->best_rate = rate;
            grow(gauge);
        }
    }
}

void weir_s3_gauge_answer(struct weir_s3_gauge *gauge, uint64_t bytes, uint64_t now_ns)
{
    gauge->answered_ns = now_ns;
    gauge->bytes += bytes + REQUEST_BYTES;
    gauge->requests++;
    uint64_t took_ns = now_ns - gauge->since_ns;
    if (took_ns < INTERVAL_NS || gauge->requests < gauge->limit)
        return;
    if (gauge->was_full && gauge->is_flowing)
        judge(gauge, (double)gauge->bytes / (double)took_ns, now_ns);
    restart(gauge, now_ns);
}

void weir_s3_gauge_slow_down(struct weir_s3_gauge *gauge, uint64_t now_ns)
{
    if (now_ns < gauge->slow_until_ns)
        return;
    gauge->limit = gauge->limit / 2 > MIN ? gauge->limit / 2 : MIN;
    if (gauge->limit > gauge->max)
        gauge->limit = gauge->max;
    gauge->best_limit = gauge->limit;
    gauge->best_rate = 0;
    gauge->slow_until_ns = gauge->hold_until_ns = now_ns + SLOW_HOLD_NS;
}
