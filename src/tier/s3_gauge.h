/* s3_gauge.h - how many requests to have under way. It grows while that makes the rate grow, goes
 * back when it does not, and is halved when the server says that it is too much (503). Pure
 * functions of what they are told: the owner brings the lock and the clock.
 */
#ifndef WEIR_TIER_S3_GAUGE_H
#define WEIR_TIER_S3_GAUGE_H

#include <stdbool.h>
#include <stdint.h>

struct weir_s3_gauge {
    unsigned limit, max;
    /* The interval that is being measured. */
    uint64_t since_ns, bytes, answered_ns;
    unsigned requests;
    bool was_full;   /* the limit was met: only then the rate says something about it */
    bool is_flowing; /* the interval before was full, too: the first answers come late */
    /* What was found. */
    double best_rate;
    unsigned best_limit;
    uint64_t hold_until_ns; /* before it grows */
    uint64_t slow_until_ns; /* before it is halved again */
};

void weir_s3_gauge_init(struct weir_s3_gauge *gauge, unsigned max, uint64_t now_ns);
/* Nothing was under way, and now something is. */
void weir_s3_gauge_begin(struct weir_s3_gauge *gauge, uint64_t now_ns);
/* As many as may be are under way, and more are waiting. */
void weir_s3_gauge_full(struct weir_s3_gauge *gauge);
/* A request was answered and moved so many bytes. */
void weir_s3_gauge_answer(struct weir_s3_gauge *gauge, uint64_t bytes, uint64_t now_ns);
/* The server has too much to do. */
void weir_s3_gauge_slow_down(struct weir_s3_gauge *gauge, uint64_t now_ns);

#endif
