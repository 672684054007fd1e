/* cmd_data_tune.c - weir data tune: tries settings of the loader on a dataset, each for a short
 * time, and tells which was best.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/target.h"
#include "cli/tune.h"
#include "util/err.h"

static struct {
    struct loading_opts how;
    const char *batches, *threads, *prefetches, *plot;
    uint64_t seconds_ns;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"seconds", 0, WEIR_OPT_DURATION, AT(seconds_ns), "1", "TIME", "for each try", 0.01, 3600},
    {"batch", 'b', WEIR_OPT_TEXT, AT(batches), "64,256", "N,M", "samples in a batch", 0, 0},
    {"threads", 0, WEIR_OPT_TEXT, AT(threads), NULL, "N,M",
     "that read and decode (default: 1, 2, 4, up to twice the processors and 16)", 0, 0},
    {"prefetch", 0, WEIR_OPT_TEXT, AT(prefetches), "2,8,32", "N,M", "batches that may be ready", 0,
     0},
    {"plot", 0, WEIR_OPT_TEXT, AT(plot), NULL, "FILE", "also draw it as an SVG; FILE is replaced",
     0, 0},
    LOADING_OPTIONS(AT(how)),
    {0},
};

enum {
    BATCH_MAX = 1 << 24,
    THREADS_MAX = 256,
    PREFETCH_MAX = 4096,
    FIRST_TIMES = 10, /* so many times as long as a try may its first batch take, */
    FIRST_S_MIN = 10, /* but at least so long: a busy machine is no slow storage */
};
/* A setting that is nearly as fast as the fastest and costs less is better. */
static const double good_enough = 0.95;

static struct loading loading; /* too large for a stack */
static struct loading_result result;
static struct tune tune;

/* ---- what to try ---- */

static int read_lists(struct cli *cli)
{
    int code =
        tries_read(cli, &tune.batches, "batch", opts.batches, weir_parse_count, 1, BATCH_MAX);
    if (!code && opts.threads)
        code = tries_read(cli, &tune.threads, "threads", opts.threads, weir_parse_count, 1,
                          THREADS_MAX);
    else if (!code)
        tries_choose_threads(&tune.threads);
    if (!code)
        code = tries_read(cli, &tune.prefetches, "prefetch", opts.prefetches, weir_parse_count, 1,
                          PREFETCH_MAX);
    uint32_t tries = tune.batches.count * tune.threads.count * tune.prefetches.count;
    if (!code && tries > TUNE_TRIES_MAX)
        return cli_usage(cli, "these are %" PRIu32 " tries: at most %d", tries, TUNE_TRIES_MAX);
    return code;
}

/* ---- trying ---- */

/* Up to the last batch, since a small dataset comes in bursts, and the wait for the next one is no
 * part of those that came. From the first one if the consumer works: then there are no bursts, and
 * the question is whether it has to wait later on; one batch takes as long as its work, too. */
static double samples_per_s(uint64_t batch)
{
    bool is_later = opts.how.work_ns && result.stats.batches > 1;
    uint64_t ns = is_later           ? result.last_ns - result.first_ns
                  : opts.how.work_ns ? result.time_ns
                                     : result.last_ns;
    uint64_t samples = is_later ? result.stats.samples - batch : result.stats.samples;
    return ns ? (double)samples / ((double)ns / 1e9) : 0;
}

static void take_result(struct tune_try *out)
{
    const weir_loader_stats *stats = &result.stats;
    double each = stats->samples ? (double)stats->sample_bytes / (double)stats->samples : 0;
    const uint64_t *stall_ns = result.steady_stall_ns;
    int most = 0;
    for (int i = 1; i < WEIR_STALLS; i++)
        most = stall_ns[i] > stall_ns[most] ? i : most;
    out->samples_per_s = samples_per_s(out->batch);
    out->bytes_per_s = out->samples_per_s * each;
    out->stalled =
        result.steady_ns ? (double)loading_stall_ns(stall_ns) / (double)result.steady_ns : 0;
    out->first_ns = result.first_ns;
    out->memory_bytes_peak = stats->memory_bytes_peak;
    out->waits = stall_ns[most] ? loading_stall_name(most) : "nothing";
    out->warmth = loading_warmth(&result);
}

/* A shuffled try is of an epoch of its own, so that it does not read what the one before it left in
 * memory; in order, it goes on where that one ended. */
static int try_one(struct tune_try *one, uint64_t number, uint64_t *position)
{
    weir_loader_options how = loading.how;
    uint64_t first_ns = FIRST_TIMES * opts.seconds_ns, least_ns = FIRST_S_MIN * 1000000000ull;
    struct loading_bounds bounds = {.work_ns = opts.how.work_ns,
                                    .time_ns = (first_ns > least_ns ? first_ns : least_ns) +
                                               opts.seconds_ns,
                                    .steady_ns = opts.seconds_ns};
    how.batch_size = one->batch;
    how.threads = (uint32_t)one->threads;
    how.prefetch = (uint32_t)one->prefetch;
    how.position = opts.how.no_shuffle ? *position : number * loading.samples;
    int code = loading_run(&loading, &how, &bounds, &result);
    *position = result.position;
    if (code == -EINVAL && !result.time_ns) { /* it needs more memory than it may have */
        one->error = strdup(weir_error_text());
        return one->error ? 0 : weir_fail_memory();
    }
    if (!code)
        take_result(one);
    return code;
}

static void show_try(const struct cli *cli, const struct tune_try *one)
{
    char rate[32], memory[32], first[FORMAT_TIME_BYTES];
    if (one->error) {
        cli_say(cli, "%8" PRIu64 "  %7" PRIu64 "  %8" PRIu64 "  %s", one->batch, one->threads,
                one->prefetch, one->error);
        return;
    }
    cli_say(cli,
            "%8" PRIu64 "  %7" PRIu64 "  %8" PRIu64 "  %9.0f  %9s/s  %8s  %8s  %-11s  %5.1f %%  %s",
            one->batch, one->threads, one->prefetch, one->samples_per_s,
            weir_format_size(rate, sizeof rate, (uint64_t)one->bytes_per_s),
            weir_format_size(memory, sizeof memory, one->memory_bytes_peak),
            format_span(first, one->first_ns), one->warmth, 100 * one->stalled, one->waits);
}

static int try_all(struct cli *cli)
{
    uint64_t position = 0, threads = tune.threads.count, depths = tune.prefetches.count;
    uint32_t tries = tune.batches.count * (uint32_t)(threads * depths);
    char each[FORMAT_TIME_BYTES];
    const weir_data_info *info = weir_data_info_get(loading.data[0]);
    cli_say(cli, "%s: %s, %" PRIu64 " sample%s; %" PRIu32 " tries of %s each", info->url,
            info->format, info->samples, info->samples == 1 ? "" : "s", tries,
            format_span(each, opts.seconds_ns));
    cli_say(cli,
            "   batch  threads  prefetch  samples/s      bytes/s    memory     first  data       "
            "  stalled  most of it for");
    progress_start(cli, "trying", 0, tries, false);
    int code = 0;
    for (uint32_t i = 0; i < tries && !code; i++) {
        struct tune_try *one = &tune.tries[i];
        one->batch = tune.batches.at[i / depths / threads];
        one->threads = tune.threads.at[i / depths % threads];
        one->prefetch = tune.prefetches.at[i % depths];
        code = try_one(one, i, &position);
        if (code)
            break;
        tune.count++;
        progress_pause();
        show_try(cli, one);
        progress_resume();
        progress_item();
    }
    progress_end();
    return code;
}

static bool costs_less(const struct tune_try *a, const struct tune_try *b)
{
    if (a->threads != b->threads)
        return a->threads < b->threads;
    if (a->batch * a->prefetch != b->batch * b->prefetch)
        return a->batch * a->prefetch < b->batch * b->prefetch;
    return a->samples_per_s > b->samples_per_s;
}

static void find_best(void)
{
    double most = 0;
    tune.best = -1;
    for (uint32_t i = 0; i < tune.count; i++)
        most = tune.tries[i].samples_per_s > most ? tune.tries[i].samples_per_s : most;
    for (uint32_t i = 0; i < tune.count && most > 0; i++)
        if (tune.tries[i].samples_per_s >= good_enough * most &&
            (tune.best < 0 || costs_less(&tune.tries[i], &tune.tries[tune.best])))
            tune.best = (int)i;
}

/* ---- telling ---- */

/* A text as Python and JSON write it. */
static void put_quoted(FILE *out, const char *text)
{
    json_t *string = cli_text_json(text);
    json_dumpf(string, out, JSON_ENCODE_ANY);
    json_decref(string);
}

/* weir.Dataset("/data", batch_size=256, threads=2, prefetch=8); the caller frees it. */
static char *python_line(void)
{
    const struct tune_try *best = &tune.tries[tune.best];
    const struct loading_opts *how = &opts.how;
    char *line = NULL;
    size_t size;
    FILE *out = open_memstream(&line, &size);
    if (!out)
        return NULL;
    fputs("weir.Dataset(", out);
    put_quoted(out, weir_data_info_get(loading.data[0])->url);
    fprintf(out, ", batch_size=%" PRIu64 ", threads=%" PRIu64 ", prefetch=%" PRIu64, best->batch,
            best->threads, best->prefetch);
    if (how->no_shuffle)
        fputs(", shuffle=False", out);
    if (how->seed)
        fprintf(out, ", seed=%" PRIu64, how->seed);
    if (how->lanes)
        fprintf(out, ", lanes=%" PRIu64, how->lanes);
    if (how->window)
        fprintf(out, strcmp(how->window, "full") ? ", window=%s" : ", window=\"%s\"", how->window);
    if (how->buffered)
        fputs(strcmp(how->buffered, "no") ? ", buffered=True" : ", buffered=False", out);
    if (how->dp_size > 1)
        fprintf(out, ", dp_rank=%" PRIu64 ", dp_size=%" PRIu64, how->dp_rank, how->dp_size);
    if (how->memory != (uint64_t)512 << 20)
        fprintf(out, ", memory=%" PRIu64, how->memory);
    for (size_t i = 0; i < loading.how.fields_count; i++) {
        fputs(i ? ", " : ", fields=[", out);
        put_quoted(out, loading.fields[i]);
    }
    fputs(loading.how.fields_count ? "]" : "", out);
    if (how->data.format) {
        fputs(", format=", out);
        put_quoted(out, how->data.format);
    }
    for (size_t i = 0; i < how->data.options.count; i++) {
        const char *text = how->data.options.text[i], *value = strchr(text, '=');
        char *name = strndup(text, (size_t)(value - text));
        fputs(i ? ", " : ", options={", out);
        put_quoted(out, name ? name : "");
        fputs(": ", out);
        put_quoted(out, value + 1);
        free(name);
    }
    fputs(how->data.options.count ? "})" : ")", out);
    return fclose(out) ? NULL : line;
}

/* Tries that found more in memory than others are not to be compared with them. */
static bool is_uneven(void)
{
    for (uint32_t i = 1; i < tune.count; i++)
        if (tune.tries[i].warmth && tune.tries[0].warmth &&
            strcmp(tune.tries[i].warmth, tune.tries[0].warmth))
            return true;
    return false;
}

static json_t *try_json(uint32_t i)
{
    const struct tune_try *one = &tune.tries[i];
    json_t *doc = json_pack("{s:I, s:I, s:I}", "batch_size", (json_int_t)one->batch, "threads",
                            (json_int_t)one->threads, "prefetch", (json_int_t)one->prefetch);
    json_t *more = one->error
                       ? json_pack("{s:o}", "error", cli_text_json(one->error))
                       : json_pack("{s:f, s:f, s:f, s:s, s:f, s:I, s:s, s:b}", "samples_per_s",
                                   one->samples_per_s, "bytes_per_s", one->bytes_per_s,
                                   "stalled_share", one->stalled, "stalled_for", one->waits,
                                   "first_batch_s", (double)one->first_ns / 1e9,
                                   "memory_bytes_peak", (json_int_t)one->memory_bytes_peak,
                                   "warmth", one->warmth, "best", (int)i == tune.best);
    json_object_update(doc, more);
    json_decref(more);
    return doc;
}

static json_t *tune_json(const char *line)
{
    const weir_data_info *info = weir_data_info_get(loading.data[0]);
    json_t *tries = json_array();
    for (uint32_t i = 0; i < tune.count; i++)
        json_array_append_new(tries, try_json(i));
    return json_pack("{s:o, s:s, s:s, s:I, s:f, s:o, s:o, s:b, s:o}", "url",
                     cli_text_json(info->url), "format", info->format, "digest", info->digest,
                     "samples", (json_int_t)info->samples, "seconds", (double)opts.seconds_ns / 1e9,
                     "tries", tries, "best",
                     tune.best < 0 ? json_null() : try_json((uint32_t)tune.best), "even",
                     !is_uneven(), "python", line ? json_string(line) : json_null());
}

static void tell(struct cli *cli)
{
    find_best();
    char *line = tune.best < 0 ? NULL : python_line();
    if (cli->json)
        cli->doc = tune_json(line);
    if (!cli->json && !cli->quiet && line) {
        tune_plot_text(&tune);
        if (is_uneven())
            printf("Some tries read from storage (cold) and others from memory (warm): run it "
                   "again, or\nfor longer, before you compare them.\n");
        printf("in Python     %s\n", line);
    }
    free(line);
}

static void draw(FILE *out, const void *arg)
{
    char title[512];
    const weir_data_info *info = weir_data_info_get(loading.data[0]);
    char *url = cli_printable(info->url);
    snprintf(title, sizeof title, "%.200s: %s, %" PRIu64 " sample%s", url ? url : "?", info->format,
             info->samples, info->samples == 1 ? "" : "s");
    free(url);
    tune_plot_svg(out, arg, title);
}

/* ---- running ---- */

static int tune_all(struct cli *cli)
{
    struct target target;
    int code = opts.plot ? target_open(&target, opts.plot, true) : 0;
    if (code)
        return code;
    code = try_all(cli);
    if (!code || tune.count)
        tell(cli);
    if (!code && tune.best < 0)
        code = weir_fail(EINVAL, "nothing could be tried: %s",
                         tune.count && tune.tries[0].error ? tune.tries[0].error : "no batch came");
    if (opts.plot) {
        if (!code)
            code = target_draw(&target, draw, &tune);
        target_close(&target);
    }
    for (uint32_t i = 0; i < tune.count; i++)
        free(tune.tries[i].error);
    return code;
}

static int run(struct cli *cli)
{
    int code = read_lists(cli);
    if (!code)
        code = loading_open(&loading, cli, &opts.how, NULL);
    if (code)
        return code;
    stop_politely();
    code = tune_all(cli);
    loading_close(&loading);
    return code;
}

const struct command cmd_data_tune = {
    .name = "data tune",
    .operands = "URL",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Find the settings that read a dataset fastest",
    .about =
        "Every combination of --batch, --threads and --prefetch reads the dataset for some time, "
        "as weir data stream does. Each is shown when it was tried: samples and bytes a second, "
        "the most memory it used, how long its first batch took, how much of the time after that "
        "the consumer was stalled, and for what (see weir data stream). Then all of them are "
        "plotted, and the best is named as a line of Python: of those within 5 % of the fastest, "
        "the one with the fewest threads and samples ahead. Ctrl-C ends it with what there is.\n\n"
        "With --work, the consumer takes as long as a training step: then the best is the cheapest "
        "that keeps up. 'cold' came from storage and 'warm' from memory, which the machine keeps "
        "of files read before; data are read as they are, and each try reads another part of them, "
        "if there is enough.",
    .example = "weir data tune /data/imagenet\n"
               "weir data tune /data/imagenet --batch 256 --work 120ms --seconds 5\n"
               "weir data tune /data/imagenet --threads 1,2,4 --plot tune.svg\n"
               "weir data tune /data/imagenet --json | jq -r .python",
    .json = "url, format, digest, samples, seconds, tries: an array of batch_size, threads, "
            "prefetch, samples_per_s, bytes_per_s, stalled_share, stalled_for, first_batch_s, "
            "memory_bytes_peak, warmth, best, or error; best: one of them, or null; even (all were "
            "equally warm), python",
    .options = options,
    .fields = &opts,
    .run = run,
};
