/* cmd_bench.c - weir bench: what a directory, a bucket or a pool really gives. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/target.h"
#include "util/err.h"
#include "util/sys.h"

static struct {
    uint64_t seconds_ns, limit_ns, size, long_bytes, parallel;
    const char *blocks, *depths, *threads, *only, *html, *save;
    bool clean;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"seconds", 0, WEIR_OPT_DURATION, AT(seconds_ns), "1", "TIME", "for each step", 0.01, 3600},
    {"limit", 0, WEIR_OPT_DURATION, AT(limit_ns), "5m", "TIME",
     "for all of it: what was not measured by then is not", 1, 86400},
    {"size", 0, WEIR_OPT_SIZE, AT(size), "1G", "SIZE",
     "of the data that are read, and of a checkpoint; never more than an eighth of what is free",
     4 << 20, 0},
    {"long-write", 0, WEIR_OPT_SIZE, AT(long_bytes), "4G", "SIZE",
     "written at a stretch, to find where the rate falls; never more than an eighth of what is "
     "free; 0: none",
     0, 0},
    {"blocks", 0, WEIR_OPT_TEXT, AT(blocks), "4K,16K,64K,256K,1M,4M", "SIZE,SIZE",
     "block sizes to try", 0, 0},
    {"depths", 0, WEIR_OPT_TEXT, AT(depths), "1,2,4,8,16,32,64", "N,M",
     "numbers of requests under way to try", 0, 0},
    {"threads", 0, WEIR_OPT_TEXT, AT(threads), NULL, "N,M",
     "numbers of readers to try (default: 1, 2, 4, up to twice the processors and 16)", 0, 0},
    {"parallel", 0, WEIR_OPT_NUMBER, AT(parallel), "4", "N",
     "writers of a checkpoint, readers of shards, askers of lookups", 1, 64},
    {"only", 0, WEIR_OPT_TEXT, AT(only), NULL, "PART,PART",
     "measure only some of: basic (or of that: read, write, randread, randwrite), blocks, depths, "
     "threads, checkpoint, long, shards, lookup",
     0, 0},
    {"html", 0, WEIR_OPT_TEXT, AT(html), NULL, "FILE", "also write a page with plots", 0, 0},
    {"save", 0, WEIR_OPT_TEXT, AT(save), NULL, "FILE",
     "also save a profile, for weir plan and for the URL option profile=FILE", 0, 0},
    {"clean", 0, WEIR_OPT_FLAG, AT(clean), "no", NULL,
     "measure nothing, remove what runs left that were killed", 0, 0},
    {0},
};

enum {
    SHARE = 8, /* of the free space: the data, and as much again for what is written anew */
    SIZE_MIN = 4 << 20,
    PREPARE_SHARE = 4, /* of the time: more is not spent on making the data */
    ENGINE_DEPTH = 256,
    POOL_BYTES = 64 << 20,
    SETTLE_NS_MAX = 1000000000,
};

static struct bench bench; /* too large for a stack */

/* ---- what to measure ---- */

static int read_options(struct cli *cli)
{
    bench.url = cli->operands[0];
    bench.seconds_ns = opts.seconds_ns;
    bench.limit_ns = opts.limit_ns;
    bench.parallel = opts.parallel;
    int code = bench_parts_read(cli, &bench, opts.only);
    if (!code)
        code = tries_read(cli, &bench.blocks, "blocks", opts.blocks, weir_parse_size,
                          BENCH_SMALL_BYTES, 64 << 20);
    for (uint32_t i = 0; i < bench.blocks.count && !code; i++)
        if (bench.blocks.at[i] % BENCH_SMALL_BYTES)
            code = cli_usage(cli, "--blocks: %" PRIu64 " is not a multiple of 4096",
                             bench.blocks.at[i]);
    if (!code)
        code = tries_read(cli, &bench.depths, "depths", opts.depths, weir_parse_count, 1,
                          WEIR_JOB_DEPTH_MAX);
    if (!code && opts.threads)
        code = tries_read(cli, &bench.threads, "threads", opts.threads, weir_parse_count, 1, 64);
    else if (!code)
        tries_choose_threads(&bench.threads);
    return code;
}

/* Never more than a share of what is free. */
static int choose_sizes(struct cli *cli, const struct weir_place *place)
{
    char free_text[24], size_text[24];
    uint64_t most = place->free_bytes / SHARE / SIZE_MIN * SIZE_MIN;
    weir_format_size(free_text, sizeof free_text, place->free_bytes);
    if (most < SIZE_MIN)
        return weir_fail(ENOSPC, "'%s' has %s free: at least 32 MiB are needed to measure it",
                         bench.url, free_text);
    bench.size = opts.size < most ? opts.size : most;
    bench.long_bytes = opts.long_bytes < most ? opts.long_bytes : most;
    if (bench.size < opts.size || bench.long_bytes < opts.long_bytes)
        cli_note(cli, "%s are free there: at most %s are used at once, an eighth of it", free_text,
                 weir_format_size(size_text, sizeof size_text, most));
    return 0;
}

/* ---- measuring ---- */

/* A device is busy for a while with what was written before: that is no part of what comes next.
 * Writes over data follow each other at once, as they would in use. */
static void settle(const struct weir_job *next, uint64_t wrote_ns)
{
    uint64_t pause_ns = wrote_ns / 2 < SETTLE_NS_MAX ? wrote_ns / 2 : SETTLE_NS_MAX;
    if (!next->is_write || next->is_fresh)
        weir_sys->sleep_ns(pause_ns);
}

static int run_step(struct weir_place *place, struct bench_step *step, uint64_t left_ns)
{
    if (step->job.time_ns > left_ns)
        step->job.time_ns = left_ns;
    int code = weir_place_run(place, &step->job, &step->result);
    if (code == -EINTR && stop_asked())
        return stop_fail();
    if (code == -EINVAL || code == -ENOTSUP) { /* a step that cannot be, here */
        step->why = strdup(weir_fail_last());
        return step->why ? 0 : weir_fail_memory();
    }
    step->is_done = !code && step->result.requests;
    bench.written_bytes += step->job.is_write ? step->result.bytes : 0;
    return code;
}

static int run_steps(struct cli *cli, struct weir_place *place, uint64_t begin_ns)
{
    uint64_t wrote_ns = weir_sys->now_ns(WEIR_CLOCK_MONO) - begin_ns;
    int code = 0;
    progress_start(cli, "measuring", 0, bench.count, false);
    for (uint32_t i = 0; i < bench.count && !code; i++) {
        uint64_t now_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
        if (now_ns - begin_ns >= bench.limit_ns) {
            bench.is_cut = true;
            bench.count = i;
            break;
        }
        settle(&bench.steps[i].job, wrote_ns);
        code = run_step(place, &bench.steps[i], bench.limit_ns - (now_ns - begin_ns));
        wrote_ns = bench.steps[i].job.is_write ? bench.steps[i].result.time_ns : 0;
        if (code)
            break;
        progress_pause();
        bench_show_step(cli, &bench, &bench.steps[i]);
        if (cli_flush() == -EPIPE) { /* a reader of a pipe wants to see it, too, or is gone */
            stop_for_closed_pipe();
            code = stop_fail();
        }
        progress_resume();
        progress_item();
    }
    progress_end();
    return code;
}

static void know_place(const struct weir_place *place)
{
    bench.kind = place->kind;
    bench.engine = place->is_remote   ? "requests of the tier"
                   : place->has_rings ? "io_uring"
                                      : "threads, without io_uring";
    bench.is_remote = place->is_remote;
    bench.is_memory = place->is_memory;
    bench.has_direct = place->has_direct;
    bench.free_bytes = place->free_bytes;
}

/* A checkpoint is written anew: in a directory it needs no data. */
static bool needs_data(const struct weir_place *place)
{
    for (uint32_t i = 0; i < bench.count; i++)
        if (place->is_remote || !bench.steps[i].job.is_fresh)
            return true;
    return false;
}

static int prepare(struct cli *cli, struct weir_place *place)
{
    progress_start(cli, "writing data to read", 0, 0, false);
    int code = weir_place_prepare(place, bench.size, bench.limit_ns / PREPARE_SHARE);
    progress_end();
    bench.data_bytes = bench.written_bytes = place->data_bytes;
    return code == -EINTR && stop_asked() ? stop_fail() : code;
}

static int measure(struct cli *cli, struct weir_place *place)
{
    uint64_t begin_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    int code = choose_sizes(cli, place);
    if (code)
        return code;
    know_place(place);
    code = bench_steps_make(&bench);
    if (!code && needs_data(place))
        code = prepare(cli, place);
    if (code)
        return code;
    bench_show_head(cli, &bench);
    code = run_steps(cli, place, begin_ns);
    bench.took_ns = weir_sys->now_ns(WEIR_CLOCK_MONO) - begin_ns;
    return code;
}

/* ---- telling ---- */

static void name_profile(struct weir_profile *profile)
{
    char *url = cli_printable(bench.url);
    snprintf(profile->url, sizeof profile->url, "%.*s", WEIR_PROFILE_TEXT_BYTES - 1,
             url ? url : "?");
    free(url);
    snprintf(profile->kind, sizeof profile->kind, "%s", bench.kind);
    char now[FORMAT_TIME_BYTES];
    format_time_json(now, weir_sys->now_ns(WEIR_CLOCK_REAL));
    snprintf(profile->time, sizeof profile->time, "%.19sZ", now);
}

static void write_profile(FILE *out, const void *arg)
{
    struct weir_json_out json = {0};
    weir_profile_write(&json, arg);
    fwrite(json.text, 1, json.size, out);
    free(json.text);
}

/* Files to be written at the end; that they can be is known before anything is measured. */
struct outputs {
    struct target html, save;
};

static int open_outputs(struct outputs *out)
{
    int code = opts.html ? target_open(&out->html, opts.html, true) : 0;
    if (!code && opts.save && (code = target_open(&out->save, opts.save, true)) && opts.html)
        target_close(&out->html);
    return code;
}

static void close_outputs(struct outputs *out)
{
    if (opts.html)
        target_close(&out->html);
    if (opts.save)
        target_close(&out->save);
}

static int tell(struct cli *cli, struct outputs *out)
{
    bench_conclude(&bench);
    name_profile(&bench.profile);
    bench_show_end(cli, &bench);
    if (cli->json)
        cli->doc = bench_json(&bench);
    int code = opts.html ? target_draw(&out->html, bench_page, &bench) : 0;
    if (!code && opts.save)
        code = target_draw(&out->save, write_profile, &bench.profile);
    return code;
}

/* ---- running ---- */

static bool has_rings(const struct cli *cli)
{
    const char *engine = cli->io ? cli->io : getenv("WEIR_IO");
    return (!engine || !*engine || !strcmp(engine, "uring")) && !weir_io_uring_fault();
}

static int clean(struct cli *cli, const struct weir_url *url, struct weir_io *io)
{
    uint64_t count = 0;
    int code = io ? weir_place_leftovers_tier(url, io, true, &count)
                  : weir_place_leftovers_dir(url->path, true, &count);
    if (code)
        return code;
    cli_say(cli, "%" PRIu64 " left by runs that were killed: removed", count);
    if (cli->json)
        cli->doc =
            json_pack("{s:o, s:I}", "url", cli_text_json(bench.url), "removed", (json_int_t)count);
    return 0;
}

static int bench_at(struct cli *cli, const struct weir_url *url, struct weir_io *io)
{
    const struct weir_place_options how = {.has_rings = has_rings(cli), .is_stopped = stop_asked};
    struct weir_place *place = NULL;
    struct outputs out;
    uint64_t left = 0;
    int code = open_outputs(&out);
    if (code)
        return code;
    if (!io && weir_place_leftovers_dir(url->path, false, &left) == 0 && left)
        cli_note(cli, "%" PRIu64 " left there by runs that were killed: --clean removes them",
                 left);
    code = io ? weir_place_open_tier(&place, url, io, &how)
              : weir_place_open_dir(&place, url->path, &how);
    if (!code)
        code = measure(cli, place);
    char *why = code ? strdup(weir_error_text()) : NULL;
    if (weir_place_close(place))
        cli_note(cli, "what was written could not all be removed: %s: --clean tries again",
                 weir_error_text());
    code = code ? weir_fail_text(code, why ? why : "") : tell(cli, &out);
    free(why);
    close_outputs(&out);
    for (uint32_t i = 0; i < bench.count; i++)
        free(bench.steps[i].why);
    return code;
}

static int run(struct cli *cli)
{
    struct weir_url url;
    struct weir_io *io = NULL;
    int code = read_options(cli);
    if (!code)
        code = weir_url_parse(&url, bench.url);
    if (code)
        return code;
    stop_politely();
    const struct weir_io_options how = {cli->io, ENGINE_DEPTH, POOL_BYTES};
    if (strcmp(url.scheme, "file"))
        code = weir_io_open(&io, &how);
    if (!code)
        code = opts.clean ? clean(cli, &url, io) : bench_at(cli, &url, io);
    weir_io_close(io);
    weir_url_free(&url);
    return code;
}

const struct command cmd_bench = {
    .name = "bench",
    .operands = "DIR|URL",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Measure what a directory, a bucket or a pool gives for AI work",
    .about =
        "It reads and writes, in order and at random, around the page cache and through it, with "
        "several block sizes, depths and threads; and in the three shapes that matter: a "
        "checkpoint (large durable writes by several writers, and a long one that tells where the "
        "drive's fast cells are used up), shards (large reads by several readers), and lookups "
        "(random reads of 4 KiB). Each step is shown when it was measured: its rate, requests a "
        "second, how long half and 99 % of them took, and whether a cache had a part in it: "
        "'around' is direct I/O, 'dropped' was forgotten by the page cache before it began, "
        "'synced' is the time until the bytes were on the device, 'memory' never leaves it.\n\n"
        "Nothing is overwritten: it works on files of its own in a directory of its own, which go "
        "at the end, also after Ctrl-C. It uses at most a quarter of the free space, and ends "
        "after --limit at the latest. A bucket or pool is measured by what its tier gives: blobs "
        "below a prefix of its own, which are removed.\n\n"
        "--save writes a profile: weir plan computes with it, and a store opened as "
        "file:///data?profile=FILE keeps as many requests under way as it says.",
    .example = "weir bench /mnt/nvme\n"
               "weir bench /mnt/nvme --seconds 0.2 --only checkpoint,shards,lookup\n"
               "weir bench /mnt/nvme --long-write 200G --limit 20m --only long\n"
               "weir bench s3://bucket/prefix --size 256M --html bucket.html\n"
               "weir bench /mnt/nvme --save nvme.json --html nvme.html",
    .json =
        "url, kind, engine, memory, direct, data_bytes, written_bytes, seconds, cut (time was up), "
        "steps: an "
        "array of part, op, order, direct, fresh, block_bytes, depth, threads, and bytes, "
        "requests, seconds, bytes_per_s, iops, latency_s_p50, latency_s_p99, latency_s_max, "
        "cache, cached_share, or error; long_write: bytes, seconds, known, fell, at_bytes, "
        "before_bytes_per_s, after_bytes_per_s, slot_s, slot_bytes, or null; profile: see "
        "docs/bench.md. With --clean: url, removed",
    .options = options,
    .fields = &opts,
    .run = run,
};
