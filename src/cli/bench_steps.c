/* bench_steps.c - see bench.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/format.h"
#include "util/err.h"

enum { SHAPE_TIMES = 10, LONG_TIMES = 60 }; /* so many times as long as a step they may take */
static const double good_enough = 0.95;

const char *const bench_part_names[BENCH_PARTS] = {"basic",      "blocks", "depths", "threads",
                                                   "checkpoint", "long",   "shards", "lookup"};

/* What the basic part is of, as fio calls it. */
static const char *const basic_names[2][2] = {{"read", "write"}, {"randread", "randwrite"}};

/* ---- what to measure ---- */

/* A name of --only; false if there is no such. */
static bool choose(struct bench *bench, const char *name)
{
    bool is_known = false;
    for (unsigned i = 0; i < BENCH_PARTS; i++)
        if (!strcmp(name, bench_part_names[i]))
            bench->parts[i] = is_known = true;
    for (int is_random = 0; is_random < 2; is_random++)
        for (int is_write = 0; is_write < 2; is_write++)
            if (!strcmp(name, "basic") || !strcmp(name, basic_names[is_random][is_write]))
                bench->parts[BENCH_BASIC] = bench->basics[is_random][is_write] = is_known = true;
    return is_known;
}

int bench_parts_read(struct cli *cli, struct bench *bench, const char *text)
{
    char *copy = text ? strdup(text) : NULL, *rest = copy, *word;
    int code = 0;
    if (!text) {
        memset(bench->parts, true, sizeof bench->parts);
        memset(bench->basics, true, sizeof bench->basics);
        return 0;
    }
    if (!copy)
        return weir_fail_memory();
    while (!code && (word = strsep(&rest, ",")))
        if (!choose(bench, word))
            code = cli_usage(cli,
                             "--only: '%s' is none of basic (read, write, randread, randwrite), "
                             "blocks, depths, threads, checkpoint, long, shards, lookup",
                             word);
    free(copy);
    return code;
}

enum { READ = 0, WRITE = 1, ORDER = 0, CHANCE = 1 };

/* Adds a step, around the page cache if that can be. */
static struct weir_job *add(struct bench *bench, enum bench_part part, bool is_write,
                            bool is_random, uint64_t depth, uint64_t threads)
{
    struct bench_step *step = &bench->steps[bench->count];
    if (!bench->parts[part] || (bench->is_remote && is_write && is_random))
        return &bench->steps[BENCH_STEPS_MAX - 1].job; /* which is never used */
    if (bench->count + 1 < BENCH_STEPS_MAX)
        bench->count++;
    *step = (struct bench_step){.part = part};
    step->job = (struct weir_job){
        .is_write = is_write,
        .is_random = is_random,
        .is_direct = bench->has_direct,
        .is_fresh = is_write && bench->is_remote,
        .block_bytes = is_random ? BENCH_SMALL_BYTES : BENCH_LARGE_BYTES,
        .depth = (uint32_t)depth,
        .threads = (uint32_t)threads,
        .time_ns = bench->seconds_ns,
        .bytes = is_write && bench->is_remote ? bench->size : 0,
    };
    return &step->job;
}

/* Each way once: as a program with a ring would do it, and as one that reads and writes files. */
static void add_basic(struct bench *bench)
{
    for (int is_random = 0; is_random < 2; is_random++)
        for (int is_write = 0; is_write < 2; is_write++) {
            if (!bench->basics[is_random][is_write])
                continue;
            if (bench->has_direct || bench->is_remote)
                add(bench, BENCH_BASIC, is_write, is_random, BENCH_DEPTH, 1);
            if (!bench->is_remote)
                add(bench, BENCH_BASIC, is_write, is_random, 1, 1)->is_direct = false;
        }
}

/* How blobs are written is the tier's own matter: there, only reads are tried. */
static void add_sweeps(struct bench *bench)
{
    int ops = bench->is_remote ? 1 : 2;
    for (int is_random = 0; is_random < 2; is_random++)
        for (int is_write = 0; is_write < ops; is_write++)
            for (uint32_t i = 0; i < bench->blocks.count; i++)
                add(bench, BENCH_BLOCKS, is_write, is_random, BENCH_DEPTH, 1)->block_bytes =
                    bench->blocks.at[i];
    for (int is_random = 0; is_random < 2; is_random++)
        for (int is_write = 0; is_write < ops; is_write++)
            for (uint32_t i = 0; i < bench->depths.count; i++)
                add(bench, BENCH_DEPTHS, is_write, is_random, bench->depths.at[i], 1);
    for (uint32_t i = 0; i < bench->threads.count; i++)
        add(bench, BENCH_THREADS, READ, ORDER, 1, bench->threads.at[i]);
    for (uint32_t i = 0; i < bench->threads.count; i++)
        add(bench, BENCH_THREADS, READ, CHANCE, 1, bench->threads.at[i]);
    for (uint32_t i = 0; i < bench->threads.count && bench->is_remote; i++)
        add(bench, BENCH_THREADS, WRITE, ORDER, BENCH_DEPTH, bench->threads.at[i]);
}

static void add_shapes(struct bench *bench)
{
    struct weir_job *job = add(bench, BENCH_CHECKPOINT, WRITE, ORDER, BENCH_DEPTH, bench->parallel);
    job->is_fresh = true;
    job->bytes = bench->size;
    job->time_ns *= SHAPE_TIMES;
    add(bench, BENCH_SHARDS, READ, ORDER, BENCH_DEPTH, bench->parallel);
    add(bench, BENCH_LOOKUP, READ, CHANCE, 1, 1);
    add(bench, BENCH_LOOKUP, READ, CHANCE, BENCH_DEPTH, bench->parallel);
    if (!bench->long_bytes)
        return;
    job = add(bench, BENCH_LONG, WRITE, ORDER, BENCH_DEPTH, bench->parallel);
    job->is_fresh = job->keeps_slots = true;
    job->bytes = bench->long_bytes;
    job->time_ns *= LONG_TIMES;
}

int bench_steps_make(struct bench *bench)
{
    bench->count = 0;
    add_basic(bench);
    add_sweeps(bench);
    add_shapes(bench);
    if (bench->count + 1 == BENCH_STEPS_MAX)
        return weir_fail(EINVAL,
                         "that is more than %d steps: shorten --blocks, --depths, --threads",
                         BENCH_STEPS_MAX - 2);
    if (!bench->count)
        return weir_fail(EINVAL, "nothing is left to measure: --only names what this has not");
    return 0;
}

/* ---- what came of it ---- */

double bench_rate(const struct bench_step *step)
{
    return step->is_done ? (double)step->result.bytes / ((double)step->result.time_ns / 1e9) : 0;
}

double bench_iops(const struct bench_step *step)
{
    return step->is_done ? (double)step->result.requests / ((double)step->result.time_ns / 1e9) : 0;
}

const struct bench_step *bench_find(const struct bench *bench, enum bench_part part, bool is_write,
                                    bool is_random)
{
    for (uint32_t i = 0; i < bench->count; i++) {
        const struct bench_step *step = &bench->steps[i];
        if (step->part == part && step->is_done && step->job.is_write == is_write &&
            step->job.is_random == is_random)
            return step;
    }
    return NULL;
}

/* Of one thread's steps, the one with the highest rate; small ones only, if they are by chance. */
static const struct bench_step *best_of(const struct bench *bench, bool is_write, bool is_random)
{
    const struct bench_step *best = NULL;
    for (uint32_t i = 0; i < bench->count; i++) {
        const struct bench_step *step = &bench->steps[i];
        bool is_one = step->part <= BENCH_DEPTHS && step->job.is_write == is_write &&
                      step->job.is_random == is_random &&
                      step->job.is_direct == bench->has_direct &&
                      (!is_random || step->job.block_bytes == BENCH_SMALL_BYTES);
        if (is_one && step->is_done && (!best || bench_rate(step) > bench_rate(best)))
            best = step;
    }
    return best;
}

static uint64_t value_of(const struct bench_step *step)
{
    return step->part == BENCH_BLOCKS ? step->job.block_bytes : step->job.depth;
}

/* The smallest block or depth that is nearly as good as the best, in one line of a sweep. */
static uint64_t enough_of(const struct bench *bench, enum bench_part part, bool is_write)
{
    double most = 0;
    uint64_t least = 0;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < bench->count; i++) {
            const struct bench_step *step = &bench->steps[i];
            if (step->part != part || !step->is_done || step->job.is_write != is_write ||
                step->job.is_random)
                continue;
            double rate = bench_rate(step);
            if (!pass)
                most = rate > most ? rate : most;
            else if (rate >= good_enough * most && (!least || value_of(step) < least))
                least = value_of(step);
        }
    return least;
}

/* Enough for reading and for writing. */
static double enough(const struct bench *bench, enum bench_part part)
{
    uint64_t read = enough_of(bench, part, READ), write = enough_of(bench, part, WRITE);
    return (double)(read > write ? read : write);
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static void conclude_large(const struct bench_step *step, double *rate, double *block,
                           double *depth, double *p50, double *p99)
{
    if (!step)
        return;
    *rate = step->job.is_random ? bench_iops(step) : bench_rate(step);
    *block = (double)step->job.block_bytes;
    *depth = step->job.depth;
    *p50 = seconds(step->result.latency_ns_p50);
    *p99 = seconds(step->result.latency_ns_p99);
}

static void conclude_shapes(const struct bench *bench, struct weir_profile *p)
{
    const struct bench_step *save = bench_find(bench, BENCH_CHECKPOINT, WRITE, ORDER);
    const struct bench_step *shards = bench_find(bench, BENCH_SHARDS, READ, ORDER);
    if (save) {
        p->checkpoint_bytes_per_s = bench_rate(save);
        p->checkpoint_writers = save->job.threads;
    }
    if (shards) {
        p->shards_bytes_per_s = bench_rate(shards);
        p->shards_readers = shards->job.threads;
    }
    for (uint32_t i = 0; i < bench->count; i++) {
        const struct bench_step *step = &bench->steps[i];
        if (step->part != BENCH_LOOKUP || !step->is_done)
            continue;
        if (step->job.depth == 1 && step->job.threads == 1) {
            p->lookup_latency_s_p50 = seconds(step->result.latency_ns_p50);
            p->lookup_latency_s_p99 = seconds(step->result.latency_ns_p99);
        }
        p->lookup_iops = bench_iops(step) > p->lookup_iops ? bench_iops(step) : p->lookup_iops;
    }
}

void bench_conclude(struct bench *bench)
{
    struct weir_profile *p = &bench->profile;
    conclude_large(best_of(bench, READ, ORDER), &p->read_bytes_per_s, &p->read_block_bytes,
                   &p->read_depth, &p->read_latency_s_p50, &p->read_latency_s_p99);
    conclude_large(best_of(bench, WRITE, ORDER), &p->write_bytes_per_s, &p->write_block_bytes,
                   &p->write_depth, &p->write_latency_s_p50, &p->write_latency_s_p99);
    conclude_large(best_of(bench, READ, CHANCE), &p->random_read_iops, &p->random_read_block_bytes,
                   &p->random_read_depth, &p->random_read_latency_s_p50,
                   &p->random_read_latency_s_p99);
    conclude_large(best_of(bench, WRITE, CHANCE), &p->random_write_iops,
                   &p->random_write_block_bytes, &p->random_write_depth,
                   &p->random_write_latency_s_p50, &p->random_write_latency_s_p99);
    conclude_shapes(bench, p);
    p->best_block_bytes = enough(bench, BENCH_BLOCKS);
    p->best_depth = enough(bench, BENCH_DEPTHS);
    bench->long_write = bench_find(bench, BENCH_LONG, WRITE, ORDER);
    if (!bench->long_write)
        return;
    const struct weir_job_result *result = &bench->long_write->result;
    weir_cliff_find(&bench->cliff, result->slot_bytes, result->slots ? result->slots - 1 : 0,
                    result->slot_ns); /* the last slot is not full */
    p->long_write_bytes = (double)result->bytes;
    p->long_write_bytes_per_s = bench_rate(bench->long_write);
    if (bench->cliff.fell) {
        p->cliff_at_bytes = (double)bench->cliff.at_bytes;
        p->cliff_before_bytes_per_s = bench->cliff.before_bytes_per_s;
        p->cliff_after_bytes_per_s = bench->cliff.after_bytes_per_s;
    }
}
