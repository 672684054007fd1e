/* bench.h - what weir bench measures, in steps, and what came of it. */
#ifndef WEIR_CLI_BENCH_H
#define WEIR_CLI_BENCH_H

#include <jansson.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/tries.h"
#include "measure/cliff.h"
#include "measure/measure.h"
#include "util/profile.h"

enum {
    BENCH_STEPS_MAX = 256,
    BENCH_LARGE_BYTES = 1 << 20, /* a block of what is read and written in order, */
    BENCH_SMALL_BYTES = 4096,    /* and of what is not */
    BENCH_DEPTH = 16,            /* where depth is not what is tried */
};

/* Parts of the benchmark; --only names them. */
enum bench_part {
    BENCH_BASIC,
    BENCH_BLOCKS,
    BENCH_DEPTHS,
    BENCH_THREADS,
    BENCH_CHECKPOINT,
    BENCH_LONG,
    BENCH_SHARDS,
    BENCH_LOOKUP,
    BENCH_PARTS
};
extern const char *const bench_part_names[BENCH_PARTS];

struct bench_step {
    enum bench_part part;
    struct weir_job job;
    struct weir_job_result result;
    bool is_done;
    char *why; /* it could not be measured; else NULL */
};

struct bench {
    const char *url;
    bool parts[BENCH_PARTS];
    bool basics[2][2]; /* of the basic part: at random or not, write or read */
    struct tries blocks, depths, threads;
    uint64_t size, long_bytes, seconds_ns, limit_ns, parallel;
    /* Of the place. */
    const char *kind, *engine;
    bool is_remote, is_memory, has_direct;
    uint64_t data_bytes, free_bytes;

    struct bench_step steps[BENCH_STEPS_MAX];
    uint32_t count;
    uint64_t took_ns;
    uint64_t written_bytes; /* by all of it: drives wear */
    bool is_cut;            /* time was up before all was measured */
    struct weir_cliff cliff;
    const struct bench_step *long_write; /* NULL: there was none */
    struct weir_profile profile;
};

/* bench_steps.c */
int bench_parts_read(struct cli *cli, struct bench *bench, const char *text);
/* What is to be measured at this place. -EINVAL if that is too much. */
int bench_steps_make(struct bench *bench);
/* The first step of a part that was measured, and is just that; NULL: none. */
const struct bench_step *bench_find(const struct bench *bench, enum bench_part part, bool is_write,
                                    bool is_random);
double bench_rate(const struct bench_step *step);
double bench_iops(const struct bench_step *step);
/* What came of it: the cliff, and the profile. */
void bench_conclude(struct bench *bench);

/* bench_show.c */
void bench_show_head(const struct cli *cli, const struct bench *bench);
void bench_show_step(const struct cli *cli, const struct bench *bench,
                     const struct bench_step *step);
void bench_show_end(const struct cli *cli, const struct bench *bench);
json_t *bench_json(const struct bench *bench);
/* "read in order, around the cache" */
const char *bench_what(char out[64], const struct bench *bench, const struct bench_step *step);
const char *bench_cache(char out[32], const struct bench *bench, const struct bench_step *step);
/* One sentence about the long write. */
const char *bench_cliff_text(char out[256], const struct bench *bench);
/* "1.5 GiB/s" */
const char *bench_rate_text(char out[32], double bytes_per_s);

/* bench_page.c: an HTML page; arg is the struct bench. */
void bench_page(FILE *out, const void *arg);

#endif
