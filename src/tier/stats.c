/* stats.c - a filter that counts what passes: requests, errors, bytes and latencies by kind of
 * request. Latencies fall into buckets of one eighth of a power of two of microseconds.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tier/tier.h"
#include "util/err.h"
#include "util/sys.h"

enum { STEPS = 8, BUCKETS = 32 * STEPS };

struct counters {
    atomic_uint_fast64_t count, errors, bytes, max_us;
    atomic_uint_fast64_t bucket[BUCKETS];
};

struct stats_tier {
    struct weir_tier tier;
    struct counters ops[WEIR_OPS];
};

static unsigned bucket_of(uint64_t us)
{
    if (us < STEPS)
        return (unsigned)us;
    unsigned power = 63 - (unsigned)__builtin_clzll(us);
    unsigned index = (power - 2) * STEPS + (unsigned)(us >> (power - 3)) - STEPS;
    return index < BUCKETS ? index : BUCKETS - 1;
}

/* The upper end of a bucket. */
static uint64_t bucket_us(unsigned index)
{
    if (index < STEPS)
        return index;
    unsigned power = index / STEPS + 2;
    return ((uint64_t)(index % STEPS + STEPS + 1) << (power - 3)) - 1;
}

static void stats_done(struct weir_req *req, void *arg)
{
    struct counters *c = &((struct stats_tier *)arg)->ops[req->op];
    uint64_t us = (weir_sys->now_ns(WEIR_CLOCK_MONO) - weir_req_aux(req)) / 1000;
    c->count++;
    if (req->code < 0)
        c->errors++;
    else if (req->op == WEIR_OP_READ || req->op == WEIR_OP_LOAD)
        c->bytes += req->result;
    else if (req->op == WEIR_OP_WRITE || req->op == WEIR_OP_PUT)
        c->bytes += req->len;
    c->bucket[bucket_of(us)]++;
    uint64_t max = c->max_us;
    while (us > max && !atomic_compare_exchange_weak(&c->max_us, &max, us))
        ;
    weir_req_done(req);
}

static void stats_submit(struct weir_tier *tier, struct weir_req *req)
{
    *weir_req_push(req, stats_done, tier) = weir_sys->now_ns(WEIR_CLOCK_MONO);
    weir_tier_submit(tier->below, req);
}

static void stats_close(struct weir_tier *tier)
{
    weir_tier_close(tier->below);
    free(tier);
}

static const struct weir_tier_ops stats_ops = {"stats", stats_submit, stats_close};

int weir_tier_stats_open(struct weir_tier **out, struct weir_tier *below)
{
    struct stats_tier *t = weir_alloc(sizeof *t);
    if (!t) {
        weir_tier_close(below);
        return weir_fail_memory();
    }
    t->tier = (struct weir_tier){&stats_ops,   below,          below->level,
                                 below->depth, below->lookers, below->has_names};
    *out = &t->tier;
    return 0;
}

static uint64_t percentile_us(struct counters *c, uint64_t count, double share)
{
    uint64_t seen = 0, want = (uint64_t)((double)count * share);
    for (unsigned i = 0; i < BUCKETS; i++) {
        seen += c->bucket[i];
        if (seen > want)
            return bucket_us(i) < c->max_us ? bucket_us(i) : c->max_us;
    }
    return c->max_us;
}

int weir_tier_stats_get(struct weir_tier *tier, weir_stat_row *rows, size_t max)
{
    while (tier && tier->ops != &stats_ops)
        tier = tier->below;
    if (!tier)
        return weir_fail(ENOTSUP, "no statistics: open the store with ?stats=1");
    struct stats_tier *t = (struct stats_tier *)tier;
    size_t used = 0;
    for (unsigned op = 0; op < WEIR_OPS && used < max; op++) {
        struct counters *c = &t->ops[op];
        uint64_t count = c->count;
        if (!count)
            continue;
        rows[used++] = (weir_stat_row){
            .op = weir_op_name(op),
            .count = count,
            .errors = c->errors,
            .bytes = c->bytes,
            .latency_us_p50 = percentile_us(c, count, 0.5),
            .latency_us_p99 = percentile_us(c, count, 0.99),
            .latency_us_max = c->max_us,
        };
    }
    return (int)used;
}
