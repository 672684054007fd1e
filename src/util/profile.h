/* profile.h - what a place was measured to give, as a small JSON document: weir bench writes it,
 * plans and tiers read it. All figures are numbers; one that is 0 or not there was not measured.
 * docs/bench.md says what each of them means.
 *
 * A reader ignores names that it does not know, so that later versions can add some; a file that is
 * no profile, or whose figures are none, is refused with a text that names what is wrong.
 */
#ifndef WEIR_UTIL_PROFILE_H
#define WEIR_UTIL_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "util/json.h"

enum {
    WEIR_PROFILE_VERSION = 1,
    WEIR_PROFILE_BYTES_MAX = 1 << 16,
    WEIR_PROFILE_TEXT_BYTES = 512,
    WEIR_PROFILE_DEPTH_MAX = 1024,
};

struct weir_profile {
    char url[WEIR_PROFILE_TEXT_BYTES];  /* what was measured */
    char kind[WEIR_PROFILE_TEXT_BYTES]; /* ext4, xfs, s3, … */
    char time[WEIR_PROFILE_TEXT_BYTES]; /* 2026-11-15T04:11:22Z */
    /* The best of the sweeps: large and in order, small and not in order. */
    double read_bytes_per_s, read_block_bytes, read_depth, read_latency_s_p50, read_latency_s_p99;
    double write_bytes_per_s, write_block_bytes, write_depth, write_latency_s_p50,
        write_latency_s_p99;
    double random_read_iops, random_read_block_bytes, random_read_depth, random_read_latency_s_p50,
        random_read_latency_s_p99;
    double random_write_iops, random_write_block_bytes, random_write_depth,
        random_write_latency_s_p50, random_write_latency_s_p99;
    /* The shapes. */
    double checkpoint_bytes_per_s, checkpoint_writers;
    double shards_bytes_per_s, shards_readers;
    double lookup_iops, lookup_latency_s_p50, lookup_latency_s_p99;
    /* The long write, and where its rate fell; cliff_at_bytes 0: it did not, within its bytes. */
    double long_write_bytes, long_write_bytes_per_s;
    double cliff_at_bytes, cliff_before_bytes_per_s, cliff_after_bytes_per_s;
    /* The smallest ones that reach 95 % of the best rate. */
    double best_block_bytes, best_depth;
};

/* -EINVAL with a text. */
int weir_profile_parse(struct weir_profile *out, const char *text, size_t size);
/* Of a file: its failures name it. */
int weir_profile_load(struct weir_profile *out, const char *path);
void weir_profile_write(struct weir_json_out *out, const struct weir_profile *profile);

#endif
