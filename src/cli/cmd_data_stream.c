/* cmd_data_stream.c - weir data stream: reads a dataset as a trainer would, and tells how fast that
 * was and what it waited for.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/loading.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "util/err.h"

static struct {
    struct loading_opts how;
    uint64_t batch, epochs, threads, prefetch, seconds_ns;
    const char *weights;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"batch", 'b', WEIR_OPT_NUMBER, AT(batch), "256", "N", "samples in a batch", 1, 1 << 24},
    {"epochs", 'e', WEIR_OPT_NUMBER, AT(epochs), "1", "N", "how often all of it is read", 1, 1e6},
    {"seconds", 0, WEIR_OPT_DURATION, AT(seconds_ns), NULL, "TIME",
     "end after so long (default: at the end of the epochs)", 0.001, 1e6},
    {"threads", 0, WEIR_OPT_NUMBER, AT(threads), "0", "N",
     "that read and decode; 0: 8 where storage is waited for, else 4 at most", 0, 256},
    {"prefetch", 0, WEIR_OPT_NUMBER, AT(prefetch), "8", "N", "batches that may be ready", 1, 4096},
    LOADING_OPTIONS(AT(how)),
    {"weights", 0, WEIR_OPT_TEXT, AT(weights), NULL, "A,B",
     "of several datasets, such as 3,1 (default: all alike)", 0, 0},
    {0},
};

static struct loading loading; /* too large for a stack */
static struct loading_result result;

enum { HEX_BYTES = 33, READ_SIZE_SHIFT = 9 };

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static double rate(uint64_t count)
{
    return result.time_ns ? (double)count / seconds(result.time_ns) : 0;
}

/* As Python's state has it: a number, its highest digit first. */
static const char *digest_hex(char out[HEX_BYTES], const weir_tally *tally)
{
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", tally->digest[15 - i]);
    return out;
}

/* ---- for people ---- */

static void show_datasets(void)
{
    char size[32], share[32] = "";
    for (uint32_t i = 0; i < loading.count; i++) {
        const weir_data_info *info = weir_data_info_get(loading.data[i]);
        if (loading.count > 1)
            snprintf(share, sizeof share, ", %.4g %% of the samples", 100 * loading.shares[i]);
        char *url = cli_printable(info->url);
        format_field("dataset", "%s: %s, %" PRIu64 " sample%s in %" PRIu64 " shard%s, %s%s",
                     url ? url : "?", info->format, info->samples, info->samples == 1 ? "" : "s",
                     info->shards, info->shards == 1 ? "" : "s",
                     weir_format_size(size, sizeof size, info->file_bytes), share);
        free(url);
    }
}

static void show_order(void)
{
    char rank[64] = "", window[64];
    const weir_loader_part *part = &result.parts[0];
    if (opts.how.dp_size > 1)
        snprintf(rank, sizeof rank, ", rank %" PRIu64 " of %" PRIu64, opts.how.dp_rank,
                 opts.how.dp_size);
    if (opts.how.no_shuffle) {
        format_field("order", "as in the shards%s", rank);
        return;
    }
    if (part->window == UINT64_MAX)
        snprintf(window, sizeof window, "a full shuffle");
    else
        snprintf(window, sizeof window, "%" PRIu32 " lanes, windows of %" PRIu64 " samples",
                 part->lanes, part->window);
    format_field("order", "seed %" PRIu64 ", %s%s", opts.how.seed, window, rank);
}

static void show_line(const char *what, uint64_t ns)
{
    char span[FORMAT_TIME_BYTES];
    double share = result.time_ns ? (double)ns / (double)result.time_ns : 0;
    printf("  %-12s  %9s  %5.1f %%%s", what, format_span(span, ns), 100 * share,
           2 * FORMAT_BAR_COLUMNS * share >= 1 ? "  " : "");
    format_bar(share, 1);
    putchar('\n');
}

/* Of all time, and of that since the first batch: a short run mostly waits for that one. */
static double stalled_share(void)
{
    uint64_t stalled = loading_stall_ns(result.stats.stall_ns);
    return result.time_ns ? (double)stalled / (double)result.time_ns : 0;
}

static double stalled_later_share(void)
{
    uint64_t stalled = loading_stall_ns(result.steady_stall_ns);
    return result.steady_ns ? (double)stalled / (double)result.steady_ns : 0;
}

static void show_time(void)
{
    printf("where the time went\n");
    for (int i = 0; i < WEIR_STALLS; i++)
        show_line(loading_stall_name(i), result.stats.stall_ns[i]);
    show_line("the consumer", result.own_ns);
    format_field("stalled",
                 "%.1f %% of the time, %.1f %% after the first batch; %" PRIu64 " of %" PRIu64
                 " batches were waited for",
                 100 * stalled_share(), 100 * stalled_later_share(), result.waited,
                 result.stats.batches);
    if (!opts.how.work_ns)
        format_field("", "(this consumer does nothing but wait: --work gives it something to do)");
}

/* Which way what was read came; tiers without files have but one. */
static void show_ways(const weir_loader_stats *stats)
{
    char cached[32], through[32], around[32];
    if (stats->cached_bytes + stats->buffered_bytes + stats->direct_bytes)
        format_field("way", "%s from the page cache, %s through it, %s around it",
                     weir_format_size(cached, sizeof cached, stats->cached_bytes),
                     weir_format_size(through, sizeof through, stats->buffered_bytes),
                     weir_format_size(around, sizeof around, stats->direct_bytes));
}

static void show_reads(void)
{
    const weir_loader_stats *stats = &result.stats;
    char mean[32], all[32], stored[32];
    uint64_t most = 0;
    for (int i = 0; i < WEIR_READ_SIZES; i++)
        most = stats->read_sizes[i] > most ? stats->read_sizes[i] : most;
    if (stats->mapped_bytes)
        format_field("mapped", "%s, of files that are looked at where the kernel has them",
                     weir_format_size(all, sizeof all, stats->mapped_bytes));
    if (!stats->reads)
        return;
    show_ways(stats);
    format_field(
        "reads", "%" PRIu64 " of %s on average, %s in all, %s from storage: %s", stats->reads,
        weir_format_size(mean, sizeof mean, stats->read_bytes / stats->reads),
        weir_format_size(all, sizeof all, stats->read_bytes),
        weir_format_size(stored, sizeof stored, result.storage_bytes), loading_warmth(&result));
    for (int i = 0; i < WEIR_READ_SIZES; i++)
        if (stats->read_sizes[i])
            format_bin(i ? (uint64_t)1 << (i + READ_SIZE_SHIFT) : 0, stats->read_sizes[i], most);
}

static bool is_whole(const weir_loader_part *part, const weir_tally *tally)
{
    return tally->samples == part->samples;
}

static void show_epochs(void)
{
    char hex[HEX_BYTES], name[64];
    for (uint32_t p = 0; p < loading.count; p++) {
        const weir_loader_part *part = &result.parts[p];
        for (uint32_t i = 0; i < part->tallies_count; i++) {
            const weir_tally *tally = &part->tallies[i];
            snprintf(name, sizeof name, "epoch %" PRIu64, tally->epoch);
            format_field(name, "digest %s of %" PRIu64 " of %" PRIu64 " sample%s%s%s",
                         digest_hex(hex, tally), tally->samples, part->samples,
                         part->samples == 1 ? "" : "s", loading.count > 1 ? " of " : "",
                         loading.count > 1 ? weir_data_info_get(loading.data[p])->url : "");
        }
    }
}

static void show(void)
{
    const weir_loader_stats *stats = &result.stats;
    char size[32], each[32], peak[32], most[32], took[FORMAT_TIME_BYTES], first[FORMAT_TIME_BYTES];
    show_datasets();
    show_order();
    format_field("read",
                 "%" PRIu64 " sample%s in %" PRIu64 " batch%s of %" PRIu64
                 ", %s in %s, the first after %s",
                 stats->samples, stats->samples == 1 ? "" : "s", stats->batches,
                 stats->batches == 1 ? "" : "es", opts.batch,
                 weir_format_size(size, sizeof size, stats->sample_bytes),
                 format_span(took, result.time_ns), format_span(first, result.first_ns));
    format_field("rate", "%.0f samples/s, %s/s", rate(stats->samples),
                 weir_format_size(each, sizeof each, (uint64_t)rate(stats->sample_bytes)));
    format_field("memory", "%s at most, of %s; %" PRIu32 " thread%s, %" PRIu32 " batches ahead",
                 weir_format_size(peak, sizeof peak, stats->memory_bytes_peak),
                 weir_format_size(most, sizeof most, opts.how.memory), stats->threads,
                 stats->threads == 1 ? "" : "s", stats->prefetch);
    show_time();
    show_reads();
    show_epochs();
}

/* ---- for scripts ---- */

static json_t *datasets_json(void)
{
    json_t *list = json_array();
    char hex[HEX_BYTES];
    for (uint32_t p = 0; p < loading.count; p++) {
        const weir_data_info *info = weir_data_info_get(loading.data[p]);
        const weir_loader_part *part = &result.parts[p];
        json_t *epochs = json_array();
        for (uint32_t i = 0; i < part->tallies_count; i++)
            json_array_append_new(epochs, json_pack("{s:I, s:I, s:b, s:s}", "epoch",
                                                    (json_int_t)part->tallies[i].epoch, "samples",
                                                    (json_int_t)part->tallies[i].samples,
                                                    "complete", is_whole(part, &part->tallies[i]),
                                                    "digest", digest_hex(hex, &part->tallies[i])));
        json_array_append_new(
            list, json_pack("{s:o, s:s, s:s, s:I, s:f, s:I, s:o, s:o}", "url",
                            cli_text_json(info->url), "format", info->format, "digest",
                            info->digest, "samples", (json_int_t)info->samples, "share",
                            loading.shares[p], "lanes", (json_int_t)part->lanes, "window",
                            part->window == UINT64_MAX ? json_string("full")
                                                       : json_integer((json_int_t)part->window),
                            "epochs", epochs));
    }
    return list;
}

static json_t *read_sizes_json(void)
{
    json_t *list = json_array();
    for (int i = 0; i < WEIR_READ_SIZES; i++)
        if (result.stats.read_sizes[i])
            json_array_append_new(
                list, json_pack("{s:I, s:I}", "from_bytes",
                                (json_int_t)(i ? (uint64_t)1 << (i + READ_SIZE_SHIFT) : 0), "reads",
                                (json_int_t)result.stats.read_sizes[i]));
    return list;
}

static json_t *time_json(void)
{
    const uint64_t *stall_ns = result.stats.stall_ns;
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "total_s",
                     seconds(result.time_ns), "first_batch_s", seconds(result.first_ns),
                     "stall_read_s", seconds(stall_ns[WEIR_STALL_READ]), "stall_decode_s",
                     seconds(stall_ns[WEIR_STALL_DECODE]), "stall_queue_s",
                     seconds(stall_ns[WEIR_STALL_QUEUE]), "consumer_s", seconds(result.own_ns),
                     "stalled_share", stalled_share(), "stalled_later_share", stalled_later_share(),
                     "batches_waited_for", (json_int_t)result.waited);
}

static json_t *result_json(void)
{
    const weir_loader_stats *stats = &result.stats;
    json_t *doc =
        json_pack("{s:o, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "datasets", datasets_json(),
                  "shuffle", !opts.how.no_shuffle, "seed", (json_int_t)opts.how.seed, "dp_rank",
                  (json_int_t)opts.how.dp_rank, "dp_size", (json_int_t)opts.how.dp_size,
                  "batch_size", (json_int_t)opts.batch, "threads", (json_int_t)stats->threads,
                  "prefetch", (json_int_t)stats->prefetch);
    json_t *more = json_pack(
        "{s:I, s:I, s:I, s:f, s:f, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:I, s:I}",
        "batches", (json_int_t)stats->batches, "samples", (json_int_t)stats->samples,
        "sample_bytes", (json_int_t)stats->sample_bytes, "samples_per_s", rate(stats->samples),
        "bytes_per_s", rate(stats->sample_bytes), "time", time_json(), "reads",
        (json_int_t)stats->reads, "read_bytes", (json_int_t)stats->read_bytes, "mapped_bytes",
        (json_int_t)stats->mapped_bytes, "cached_bytes", (json_int_t)stats->cached_bytes,
        "buffered_bytes", (json_int_t)stats->buffered_bytes, "direct_bytes",
        (json_int_t)stats->direct_bytes, "storage_bytes", (json_int_t)result.storage_bytes,
        "warmth", loading_warmth(&result), "read_sizes", read_sizes_json(), "memory_bytes_peak",
        (json_int_t)stats->memory_bytes_peak, "memory_bytes_max", (json_int_t)opts.how.memory);
    json_object_update(doc, more);
    json_decref(more);
    return doc;
}

/* ---- running ---- */

static int stream(struct cli *cli)
{
    weir_loader_options how = loading.how;
    struct loading_bounds bounds = {.work_ns = opts.how.work_ns, .time_ns = opts.seconds_ns};
    how.batch_size = opts.batch;
    how.threads = (uint32_t)opts.threads;
    how.prefetch = (uint32_t)opts.prefetch;
    if (__builtin_mul_overflow(opts.epochs, loading.samples, &how.end))
        return weir_fail(EINVAL, "%" PRIu64 " epochs are too many", opts.epochs);
    double bytes = (double)loading.sample_bytes * (double)opts.epochs / (double)opts.how.dp_size;
    progress_start(cli, "streaming", bytes < 1e18 ? (uint64_t)bytes : 0, 0, false);
    int code = loading_run(&loading, &how, &bounds, &result);
    progress_end();
    bool is_of_interest = !code || code == -EINTR || result.stats.batches;
    if (is_of_interest && cli->json)
        cli->doc = result_json();
    else if (is_of_interest && !cli->quiet)
        show();
    return code;
}

static int run(struct cli *cli)
{
    int code = loading_open(&loading, cli, &opts.how, opts.weights);
    if (code)
        return code;
    stop_politely();
    code = stream(cli);
    loading_close(&loading);
    return code;
}

const struct command cmd_data_stream = {
    .name = "data stream",
    .operands = "URL...",
    .operands_min = 1,
    .operands_max = -1,
    .summary = "Read a dataset as a trainer would, and tell how fast that is",
    .about =
        "Batches are read, shuffled and decoded by the threads that also serve Python's "
        "weir.Dataset, in the same order, and dropped. At the end, or at Ctrl-C: samples and bytes "
        "a second; how long the consumer waited, and for what: reading (bytes were under way), "
        "decoding (they were decompressed or taken apart) or the queue (nothing was begun yet: "
        "all threads or all memory were in use); a histogram of the sizes of reads; the most "
        "memory that was used; and a digest of each epoch (of the last 8), which is the same for "
        "any order and number of ranks, whose digests add up.\n\n"
        "The consumer does nothing with a batch: it always waits, and the rate is what storage "
        "and processors can give. With --work it takes as long as a training step does, and "
        "'stalled' says whether they keep up.\n\n"
        "'warm' is what was read from memory, which the machine keeps of files read before; 'cold' "
        "came from storage. Several datasets are mixed by their weights; an epoch is then as many "
        "samples as they have together.",
    .example = "weir data stream /data/imagenet --batch 256\n"
               "weir data stream /data/imagenet --batch 64 --work 120ms --seconds 60\n"
               "weir data stream /data/corpus -O seq_len=2048 --dp-rank 3 --dp-size 64\n"
               "weir data stream /data/web /data/code --weights 3,1 --json | jq .samples_per_s",
    .json =
        "datasets: an array of url, format, digest, samples, share, lanes, window, epochs (an "
        "array of epoch, samples, complete, digest); shuffle, seed, dp_rank, dp_size, "
        "batch_size, threads, prefetch, batches, samples, sample_bytes, samples_per_s, "
        "bytes_per_s; time: total_s, first_batch_s, stall_read_s, stall_decode_s, "
        "stall_queue_s, consumer_s, stalled_share, stalled_later_share (after the first "
        "batch), batches_waited_for; reads, read_bytes, "
        "mapped_bytes (of files that are mapped, and not read), cached_bytes (read from the page "
        "cache), buffered_bytes (through it), direct_bytes (around it), storage_bytes, warmth, "
        "read_sizes (an "
        "array of from_bytes, reads), "
        "memory_bytes_peak, memory_bytes_max",
    .options = options,
    .fields = &opts,
    .run = run,
};
