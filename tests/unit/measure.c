/* What measuring computes: where a rate fell. And jobs on a small scale: what they move, and what
 * is left of them.
 */
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdint.h>

#include "measure/cliff.h"
#include "measure/measure.h"
#include "test.h"
#include "tier/tier.h"
#include "tmpdir.h"

/* A rate for each slot, with noise that is a function of the slot. */
static struct weir_cliff cliff_of(unsigned slots, unsigned falls_at, uint64_t before,
                                  uint64_t after)
{
    static uint64_t bytes[2000];
    struct weir_cliff cliff;
    for (unsigned i = 0; i < slots; i++) {
        uint64_t rate = i < falls_at ? before : after;
        bytes[i] = rate / 10 * (85 + i * 7919 % 31) / 100;
    }
    weir_cliff_find(&cliff, bytes, slots, 100000000);
    return cliff;
}

static void cliffs(void)
{
    struct weir_cliff cliff = cliff_of(400, 150, 3000000000, 500000000);
    CHECK(cliff.fell && cliff.is_known);
    CHECK(fabs((double)cliff.at_bytes - 150 * 3e8) < 0.05 * 150 * 3e8);
    CHECK(fabs(cliff.before_bytes_per_s - 3e9) < 0.05 * 3e9);
    CHECK(fabs(cliff.after_bytes_per_s - 5e8) < 0.05 * 5e8);
    /* It may come early or late. */
    CHECK(cliff_of(400, 40, 3000000000, 500000000).fell);
    CHECK(cliff_of(400, 360, 3000000000, 500000000).fell);
    for (unsigned slots = 41; slots < 130; slots++) /* the last slots are looked at, too */
        CHECK(cliff_of(slots, slots * 3 / 4, 3000000000, 500000000).fell);
    /* No cliff: level, rising, a little slower, too short to tell. */
    CHECK(!cliff_of(400, 400, 3000000000, 0).fell);
    CHECK(!cliff_of(400, 200, 500000000, 3000000000).fell);
    CHECK(!cliff_of(400, 200, 3000000000, 2500000000).fell);
    CHECK(!cliff_of(8, 4, 3000000000, 500000000).is_known);
    CHECK(!cliff_of(0, 0, 1, 1).is_known);
}

/* One long pause, and a drive that stutters, are no cliff. */
static void no_cliffs(void)
{
    static uint64_t bytes[400];
    struct weir_cliff cliff;
    for (unsigned i = 0; i < 400; i++)
        bytes[i] = i >= 200 && i < 230 ? 0 : 300000000;
    weir_cliff_find(&cliff, bytes, 400, 100000000);
    CHECK(cliff.is_known && !cliff.fell);
    for (unsigned i = 0; i < 400; i++)
        bytes[i] = i / 40 % 2 ? 100000000 : 300000000;
    weir_cliff_find(&cliff, bytes, 400, 100000000);
    CHECK(cliff.is_known && !cliff.fell);
}

static bool never(void)
{
    return false;
}

static unsigned entries(const char *path)
{
    unsigned count = 0;
    DIR *dir = opendir(path);
    CHECK(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

/* Every kind of job that a place has. */
static void run_jobs(struct weir_place *place)
{
    static struct weir_job_result result;
    unsigned ran = 0;
    for (unsigned kind = 0; kind < 64; kind++) {
        struct weir_job job = {.is_write = kind & 1,
                               .is_random = kind & 2,
                               .is_direct = kind & 4 && place->has_direct,
                               .is_fresh = kind & 8,
                               .keeps_slots = kind & 8,
                               .block_bytes = 65536,
                               .depth = kind & 16 ? 4 : 1,
                               .threads = kind & 32 ? 3 : 1,
                               .time_ns = 20000000,
                               .bytes = 3 << 20};
        if (job.is_fresh && (!job.is_write || job.is_random))
            continue;
        int code = weir_place_run(place, &job, &result);
        if (place->is_remote && job.is_write && !job.is_fresh) {
            CHECK_EQ(code, -ENOTSUP);
            continue;
        }
        OK(code);
        ran++;
        CHECK(result.requests && result.bytes == result.requests * job.block_bytes);
        CHECK(result.bytes <= 3 << 20 && result.time_ns);
        CHECK(result.latency_ns_p50 <= result.latency_ns_p99);
        CHECK(result.latency_ns_p99 <= result.latency_ns_max);
        uint64_t in_slots = 0;
        for (uint32_t i = 0; i < result.slots; i++)
            in_slots += result.slot_bytes[i];
        CHECK_EQ(in_slots, job.keeps_slots ? result.bytes : 0);
    }
    CHECK(ran >= 12);
}

static void wrong_jobs(struct weir_place *place)
{
    static struct weir_job_result result;
    const struct weir_job good = {
        .block_bytes = 4096, .depth = 1, .threads = 1, .time_ns = 1000000};
    struct weir_job job = good;
    OK(weir_place_run(place, &job, &result));
    job.depth = 0;
    CHECK_EQ(weir_place_run(place, &job, &result), -EINVAL);
    job = good;
    job.threads = WEIR_JOB_THREADS_MAX + 1;
    CHECK_EQ(weir_place_run(place, &job, &result), -EINVAL);
    job = good;
    job.block_bytes = 1000;
    CHECK_EQ(weir_place_run(place, &job, &result), -EINVAL);
    job = good;
    job.block_bytes = 1 << 30;
    CHECK_EQ(weir_place_run(place, &job, &result), -EINVAL);
}

/* The first word of every page of the only file in the only directory there is. */
static void look_at_pages(const char *path, uint64_t *words, unsigned pages)
{
    glob_t found;
    char pattern[300];
    snprintf(pattern, sizeof pattern, "%s/.weir-bench-*/data", path);
    CHECK_EQ(glob(pattern, 0, NULL, &found), 0);
    FILE *file = fopen(found.gl_pathv[0], "r");
    CHECK(file);
    for (unsigned i = 0; i < pages; i++) {
        CHECK_EQ(fseek(file, 4096L * i, SEEK_SET), 0);
        CHECK_EQ(fread(&words[i], 8, 1, file), 1);
    }
    fclose(file);
    globfree(&found);
}

/* Through the page cache every block has its turn once, whoever asks for it. */
static void each_block_once(struct weir_place *place, const char *path)
{
    enum { PAGES = 1024 };
    static uint64_t before[PAGES], after[PAGES];
    static struct weir_job_result result;
    if (place->is_memory)
        return;
    for (unsigned kind = 0; kind < 16; kind++) {
        const struct weir_job job = {.is_write = kind & 1,
                                     .is_random = kind & 2,
                                     .block_bytes = 4096,
                                     .depth = kind & 4 ? 4 : 1,
                                     .threads = kind & 8 ? 4 : 1,
                                     .time_ns = 60000000000};
        look_at_pages(path, before, PAGES);
        OK(weir_place_run(place, &job, &result));
        look_at_pages(path, after, PAGES);
        CHECK_EQ(result.requests, PAGES); /* and all of them were written, so none was twice */
        for (unsigned i = 0; i < PAGES; i++)
            CHECK_EQ(before[i] != after[i], job.is_write);
    }
}

static void in_a_directory(void)
{
    const char *path = tmpdir();
    for (int has_rings = 0; has_rings < 2; has_rings++) {
        const struct weir_place_options how = {.has_rings = has_rings && !weir_io_uring_fault(),
                                               .is_stopped = never};
        struct weir_place *place;
        OK(weir_place_open_dir(&place, path, &how));
        CHECK_EQ(entries(path), 1);
        OK(weir_place_prepare(place, 4 << 20, 60000000000));
        CHECK_EQ(place->data_bytes, 4 << 20);
        run_jobs(place);
        each_block_once(place, path);
        wrong_jobs(place);
        uint64_t left;
        OK(weir_place_leftovers_dir(path, true, &left));
        CHECK_EQ(left, 0); /* it is at work */
        weir_place_close(place);
        CHECK_EQ(entries(path), 0);
    }
}

static void on_a_tier(void)
{
    const struct weir_place_options how = {.is_stopped = never};
    const struct weir_io_options io_how = {.depth = 16, .pool_bytes_max = 16 << 20};
    struct weir_io *io;
    struct weir_url url;
    struct weir_place *place;
    OK(weir_io_open(&io, &io_how));
    OK(weir_url_parse(&url, "mem:?size=64M"));
    OK(weir_place_open_tier(&place, &url, io, &how));
    OK(weir_place_prepare(place, 8 << 20, 60000000000));
    CHECK_EQ(place->data_bytes, 8 << 20);
    run_jobs(place);
    wrong_jobs(place);
    weir_place_close(place);
    weir_url_free(&url);
    weir_io_close(io);
}

int main(void)
{
    RUN(cliffs);
    RUN(no_cliffs);
    RUN(in_a_directory);
    RUN(on_a_tier);
    return TEST_RESULT;
}
