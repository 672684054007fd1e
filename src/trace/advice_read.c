/* advice_read.c - what to do about reading: pack, cache, direct or buffered, prefetch; see
 * advice.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/advice.h"
#include "util/opt.h"
#include "util/sys.h"

enum {
    MIB = 1 << 20,
    REQUEST_BYTES = MIB, /* what a reader of shards asks for at once */
    SHARD_BYTES = 64 * MIB,
    SHARD_BYTES_MIN = 8 * MIB,
    SHARD_BYTES_MAX = 512 * MIB,
    SHARDS_A_READER = 4, /* so that readers end at about the same time, and order can be mixed */
    SMALL_REQUEST = 1 << 16,
    REQUESTS_MIN = 1000, /* fewer are nothing */
};
static const double rate_assumed = 1 << 30; /* bytes/s, where nothing is known */
static const double worth_s = 0.05;         /* less is not spoken of, */
static const double worth = 0.02;           /* nor a smaller share of the run */

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

/* Without what watching the calls has cost. */
static uint64_t net_ns(const struct weir_trace *trace, uint64_t ns, uint64_t calls)
{
    uint64_t floor = weir_trace_floor_ns(trace) * calls;
    return ns > floor ? ns - floor : 0;
}

static bool is_worth_it(const struct weir_trace *trace, double saved_s)
{
    return saved_s > worth_s && saved_s > worth * seconds(weir_timeline_span_ns(&trace->timeline));
}

/* ---- packing ---- */

/* 'quoted' for a shell; the caller frees it. */
static char *shell_quoted(const char *text, const char *more)
{
    size_t size = strlen(text) + strlen(more), used = 0;
    char *out = weir_alloc(4 * size + 3);
    if (!out)
        return NULL;
    out[used++] = '\'';
    for (size_t i = 0; i < size; i++) {
        char c = i < strlen(text) ? text[i] : more[i - strlen(text)];
        if (c == '\'')
            used += (size_t)sprintf(out + used, "'\\''");
        else
            out[used++] = c;
    }
    out[used++] = '\'';
    out[used] = 0;
    return out;
}

static char *pack_command(const char *dir, uint64_t shard_bytes)
{
    char *from = shell_quoted(dir, ""), *to = shell_quoted(dir, "-packed");
    size_t size = from && to ? strlen(from) + strlen(to) + 80 : 0;
    char *out = size ? weir_alloc(size) : NULL;
    if (out)
        snprintf(out, size, "weir data pack %s %s --format mds --shard-size %" PRIu64 "M", from, to,
                 shard_bytes / MIB);
    free(from);
    free(to);
    return out;
}

/* A shard is so large that opening one is a hundredth of reading it, and 64 MiB at least, where
 * most storage runs at its rate; but so small that every reader has some. */
static uint64_t shard_bytes(const struct weir_trace *trace, const struct weir_trace_sum *sum,
                            double rate)
{
    double open_s =
        sum->opens ? seconds(net_ns(trace, sum->open_ns, sum->opens)) / (double)sum->opens : 0;
    double wanted = 100 * open_s * rate;
    uint64_t readers = trace->readers ? trace->readers : 1, size = SHARD_BYTES;
    while (size < SHARD_BYTES_MAX && (double)size < wanted)
        size *= 2;
    while (size > SHARD_BYTES_MIN && sum->size_bytes / size < SHARDS_A_READER * readers)
        size /= 2;
    return size;
}

static void advise_pack(struct weir_advices *out, const struct weir_trace *trace,
                        const struct weir_trace_dir *dir, double rate)
{
    const struct weir_trace_sum *sum = &dir->all;
    uint64_t read_ns = net_ns(trace, sum->read_ns, sum->reads + sum->reads_empty);
    double now_s = seconds(net_ns(trace, sum->ns, sum->calls));
    double read_s = rate > 0 ? (double)sum->read_bytes / rate : seconds(read_ns);
    uint64_t size = shard_bytes(trace, sum, rate);
    uint64_t shards = (sum->size_bytes + size - 1) / size;
    double open_s = seconds(net_ns(trace, sum->open_ns, 2 * sum->opens)) /
                    (double)(sum->opens ? sum->opens : 1) * (double)shards;
    read_s = read_s < seconds(read_ns) || !read_ns ? read_s : seconds(read_ns);
    double then_s = read_s + open_s < now_s ? read_s + open_s : now_s;
    char mean[32], total[32], each[32];
    struct weir_advice *advice = weir_advice_add(out, "pack", WEIR_ADVICE_DO);
    if (!advice)
        return;
    advice->command = pack_command(dir->path, size);
    advice->bytes = size;
    advice->now_s = now_s;
    advice->then_s = then_s;
    snprintf(advice->what, sizeof advice->what,
             "pack %" PRIu64 " files below %.200s (%s) into %" PRIu64 " shard%s of %s, and read "
             "those with weir.Dataset",
             sum->files, dir->path, weir_format_size(total, sizeof total, sum->size_bytes), shards,
             shards == 1 ? "" : "s", weir_format_size(each, sizeof each, size));
    snprintf(
        advice->why, sizeof advice->why,
        "%" PRIu64 " opens move %s each, and %" PRIu64 " of %" PRIu64 " calls only find, open "
        "and close. 64 MiB is where storage runs at its rate; less only so that each of %" PRIu64
        " readers has %d shards",
        sum->opens,
        weir_format_size(mean, sizeof mean, sum->opens ? sum->read_bytes / sum->opens : 0),
        sum->finds, sum->calls, trace->readers, SHARDS_A_READER);
    snprintf(advice->model, sizeof advice->model,
             "waiting in calls, of all readers together: now as measured; then one open and close "
             "a shard, and the bytes %s",
             rate > 0 ? "at the rate of large reads" : "no faster than now (an upper bound)");
}

/* ---- shards that are there, read in small or scattered requests ---- */

static void advise_requests(struct weir_advices *out, const struct weir_trace *trace,
                            const struct weir_trace_dir *dir, double rate)
{
    const struct weir_trace_sum *sum = &dir->all;
    uint64_t mean = sum->reads ? sum->read_bytes / sum->reads : 0;
    double now_s = seconds(net_ns(trace, sum->read_ns, sum->reads + sum->reads_empty));
    double then_s = (double)sum->read_bytes / (rate > 0 ? rate : rate_assumed);
    bool is_scattered = 2 * sum->jumps > sum->reads;
    char size[32];
    if (!mean || mean >= SMALL_REQUEST || sum->reads < REQUESTS_MIN || then_s >= now_s)
        return;
    struct weir_advice *advice = weir_advice_add(
        out, "requests", is_worth_it(trace, now_s - then_s) ? WEIR_ADVICE_DO : WEIR_ADVICE_NOTE);
    if (!advice)
        return;
    advice->now_s = now_s;
    advice->then_s = then_s;
    advice->bytes = REQUEST_BYTES;
    snprintf(advice->what, sizeof advice->what,
             is_scattered ? "read %.200s in blocks of 1 MiB and mix the samples in memory (a "
                            "window), not one by one from everywhere"
                          : "read %.200s in requests of 1 MiB: open(path, 'rb', buffering=1 << 20) "
                            "in Python",
             dir->path);
    snprintf(advice->why, sizeof advice->why,
             "%" PRIu64 " reads move %s each, and %.0f %% of them begin somewhere else than the "
             "one before ended",
             sum->reads, weir_format_size(size, sizeof size, mean),
             100.0 * (double)sum->jumps / (double)sum->reads);
    snprintf(advice->model, sizeof advice->model, "%s",
             rate > 0 ? "the same bytes at the rate of large reads"
                      : "the same bytes at 1 GiB/s, since no large reads show a rate: --rate "
                        "tells one");
}

/* Shards that are opened for every sample. */
static void advise_reopen(struct weir_advices *out, const struct weir_trace *trace,
                          const struct weir_trace_dir *dir)
{
    enum { OPENS_MIN = 256, OPENS_A_FILE = 16 };
    const struct weir_trace_sum *sum = &dir->all;
    double now_s = seconds(net_ns(trace, sum->open_ns, 2 * sum->opens));
    if (sum->opens < OPENS_MIN || !sum->files || sum->opens / sum->files < OPENS_A_FILE)
        return;
    double then_s = now_s / (double)sum->opens * (double)sum->files;
    struct weir_advice *advice = weir_advice_add(
        out, "reopen", is_worth_it(trace, now_s - then_s) ? WEIR_ADVICE_DO : WEIR_ADVICE_NOTE);
    if (!advice)
        return;
    advice->now_s = now_s;
    advice->then_s = then_s;
    snprintf(advice->what, sizeof advice->what,
             "keep the files below %.200s open: %" PRIu64 " of them were opened %" PRIu64 " times",
             dir->path, sum->files, sum->opens);
    snprintf(advice->why, sizeof advice->why,
             "an open is a trip to whoever keeps the names: little on a local disk, much on a "
             "shared file system");
    snprintf(advice->model, sizeof advice->model, "the time in open and close, for one of each");
}

/* ---- cache ---- */

static void advise_cache(struct weir_advices *out, const struct weir_trace *trace,
                         const struct weir_advice_how *how, double rate)
{
    const double enough = 0.95;
    double again = trace->pages.again_bytes, total = trace->pages.read_bytes;
    uint64_t size = weir_pages_cache_for(&trace->pages, enough);
    char text[32], cache[32], memory[32];
    if (!size || again < 0.05 * total || again < MIB)
        return;
    bool fits = how->memory_bytes && size <= how->memory_bytes / 2;
    struct weir_advice *advice =
        weir_advice_add(out, "cache", fits ? WEIR_ADVICE_NOTE : WEIR_ADVICE_DO);
    if (!advice)
        return;
    advice->bytes = size;
    if (rate > 0) {
        advice->now_s = again / rate;
        advice->then_s = (again - weir_pages_hits(&trace->pages, size)) / rate;
        snprintf(advice->model, sizeof advice->model,
                 "the bytes read again, at the rate of large reads; then only those that a cache "
                 "of that size, which keeps what was read last, does not have");
    }
    weir_format_size(cache, sizeof cache, size);
    if (fits)
        snprintf(advice->what, sizeof advice->what,
                 "leave %s of memory to the page cache: no other cache is needed", cache);
    else
        snprintf(advice->what, sizeof advice->what,
                 "a cache of %s, in memory or on local NVMe, holds what is read again", cache);
    snprintf(advice->why, sizeof advice->why,
             "%s of what was read (%.0f %%) had been read before; a cache that keeps what was read "
             "last answers %.0f %% of that from %s on%s%s",
             weir_format_size(text, sizeof text, (uint64_t)again), 100 * again / total,
             100 * weir_pages_hits(&trace->pages, size) / again, cache,
             how->memory_bytes ? "; this machine has " : "",
             how->memory_bytes ? weir_format_size(memory, sizeof memory, how->memory_bytes) : "");
}

/* ---- direct or buffered ---- */

static void advise_path(struct weir_advices *out, const struct weir_trace *trace,
                        const struct weir_advice_how *how)
{
    const struct weir_trace_sum *data = &trace->data;
    double again =
        trace->pages.read_bytes > 0 ? trace->pages.again_bytes / trace->pages.read_bytes : 0;
    uint64_t typical = weir_sizes_typical(&trace->read_sizes);
    char size[32], total[32];
    bool uses_direct = 2 * trace->direct_read_bytes > data->read_bytes;
    bool is_large = how->memory_bytes && data->size_bytes > how->memory_bytes / 2;
    bool wants_direct = again < 0.05 && typical >= WEIR_TRACE_LARGE_BYTES && is_large;
    if (!data->read_bytes || data->read_bytes < 16 * MIB)
        return;
    struct weir_advice *advice =
        weir_advice_add(out, wants_direct ? "direct" : "buffered",
                        uses_direct == wants_direct ? WEIR_ADVICE_NOTE : WEIR_ADVICE_DO);
    if (!advice)
        return;
    snprintf(advice->what, sizeof advice->what,
             wants_direct ? "read around the page cache (O_DIRECT)%s"
                          : "read through the page cache, not with O_DIRECT%s",
             uses_direct == wants_direct ? ", as now" : "");
    weir_format_size(size, sizeof size, typical);
    weir_format_size(total, sizeof total, data->size_bytes);
    if (wants_direct)
        snprintf(advice->why, sizeof advice->why,
                 "%s are read once, in requests of about %s: they only push other things out of "
                 "memory, and are copied once more",
                 total, size);
    else
        snprintf(advice->why, sizeof advice->why, "%s",
                 again >= 0.05 ? "what is read again may still be in memory"
                 : typical < WEIR_TRACE_LARGE_BYTES
                     ? "requests are small: the kernel's read-ahead makes large ones of them, and "
                       "O_DIRECT would not"
                     : "the data fits into memory: the next epoch finds it there");
}

/* ---- prefetch ---- */

/* By Little's law: as many samples are under way as arrive in the time that one takes. */
static void advise_prefetch(struct weir_advices *out, const struct weir_trace *trace,
                            const struct weir_advice_how *how, bool small)
{
    double span_s = seconds(trace->read_end_ns - trace->read_begin_ns);
    uint64_t batch = how->batch ? how->batch : 64, floor = weir_trace_floor_ns(trace);
    const struct weir_hist *open = &trace->times[WEIR_TRACE_OPEN];
    const struct weir_hist *read = &trace->times[WEIR_TRACE_READ];
    uint64_t ns = weir_hist_quantile(read, 0.99) + (small ? weir_hist_quantile(open, 0.99) : 0);
    uint64_t items = small ? trace->data.opens : trace->data.reads;
    enum { DEPTH_MAX = 64, ENOUGH = 64 };
    if (items < ENOUGH || span_s <= 0 || !trace->has_took)
        return;
    ns = ns > floor ? ns - floor : 0;
    double rate = (double)items / span_s, flight = rate * seconds(ns);
    double depth = 1 + (double)(uint64_t)((flight + (double)batch - 1) / (double)batch);
    struct weir_advice *advice = weir_advice_add(out, "prefetch", WEIR_ADVICE_NOTE);
    if (!advice)
        return;
    depth = depth < 2 ? 2 : depth > DEPTH_MAX ? DEPTH_MAX : depth;
    advice->depth = (uint64_t)depth;
    snprintf(advice->what, sizeof advice->what,
             "prefetch %.0f batches of %" PRIu64 ": prefetch=%.0f in weir.Dataset", depth, batch,
             depth);
    snprintf(advice->why, sizeof advice->why,
             "%.0f %s/s, of which one in a hundred takes %.1f ms or more: %.1f are under way at "
             "once, and one batch is being used",
             rate, small ? "files" : "requests", seconds(ns) * 1e3, flight);
    snprintf(advice->model, sizeof advice->model,
             "Little's law: arrivals a second x the 99th percentile of their time, in whole "
             "batches, and one more");
}

void weir_advise_reading(struct weir_advices *out, struct weir_trace *trace,
                         const struct weir_advice_how *how)
{
    struct weir_trace_set sets[WEIR_TRACE_SETS_MAX];
    size_t count = weir_trace_sets(trace, sets);
    double rate = weir_advice_rate(trace, how);
    bool small = false;
    for (size_t i = 0; i < count; i++) {
        small |= sets[i].is_small;
        if (sets[i].is_small)
            advise_pack(out, trace, sets[i].dir, rate);
        else {
            advise_requests(out, trace, sets[i].dir, rate);
            advise_reopen(out, trace, sets[i].dir);
        }
    }
    advise_cache(out, trace, how, rate);
    advise_path(out, trace, how);
    advise_prefetch(out, trace, how, small);
}
