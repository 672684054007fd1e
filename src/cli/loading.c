/* loading.c - see loading.h. */
#include "cli/loading.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cli/progress.h"
#include "cli/stop.h"
#include "util/err.h"
#include "util/sys.h"

enum {
    LOOK_NS = 50000000, /* how often a wait looks whether it should stop */
    INBLOCK_BYTES = 512,
    WARM_PERCENT = 10, /* so little from storage, or from memory, is none */
};
#define WEIGHT_ONE ((double)((uint64_t)1 << 40)) /* as in Python: the same mixture */
#define NS_PER_S   1000000000ull

/* ---- options ---- */

static int read_weights(struct loading *loading, const char *text)
{
    double sum = 0;
    uint32_t given = 0;
    for (const char *at = text; at && *at; given++) {
        char *end;
        double weight = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !(weight > 0) || weight > 1e12)
            return cli_usage(loading->cli,
                             "--weights: '%s' is not a list of numbers above 0, "
                             "such as 3,1",
                             text);
        if (given < loading->count)
            loading->shares[given] = weight;
        sum += weight;
        at = *end ? end + 1 : end;
    }
    if (text && given != loading->count)
        return cli_usage(loading->cli, "--weights: %" PRIu32 " of them for %" PRIu32 " dataset%s",
                         given, loading->count, loading->count == 1 ? "" : "s");
    for (uint32_t i = 0; i < loading->count; i++) {
        loading->shares[i] = text ? loading->shares[i] / sum : 1.0 / loading->count;
        loading->weights[i] = (uint64_t)(loading->shares[i] * WEIGHT_ONE + 0.5);
    }
    return 0;
}

static int read_window(struct loading *loading, const char *text)
{
    char *end;
    if (!text)
        return 0;
    if (!strcmp(text, "full")) {
        loading->how.window = UINT64_MAX;
        return 0;
    }
    errno = 0;
    loading->how.window = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || !loading->how.window)
        return cli_usage(loading->cli, "--window: '%s' is neither a number of samples nor 'full'",
                         text);
    return 0;
}

static int read_buffered(struct loading *loading, const char *text)
{
    if (!text)
        return 0;
    if (strcmp(text, "yes") && strcmp(text, "no"))
        return cli_usage(loading->cli, "--buffered: '%s' is neither yes nor no", text);
    loading->how.flags |= strcmp(text, "no") ? WEIR_LOADER_BUFFERED : WEIR_LOADER_DIRECT;
    return 0;
}

static int read_fields(struct loading *loading, const char *text)
{
    char *rest = NULL;
    if (!text)
        return 0;
    loading->fields_text = strdup(text);
    if (!loading->fields_text)
        return weir_fail_memory();
    for (char *name = strtok_r(loading->fields_text, ",", &rest); name;
         name = strtok_r(NULL, ",", &rest)) {
        if (loading->how.fields_count == LOADING_FIELDS_MAX)
            return cli_usage(loading->cli, "--fields: at most %d", LOADING_FIELDS_MAX);
        loading->fields[loading->how.fields_count++] = name;
    }
    if (!loading->how.fields_count)
        return cli_usage(loading->cli, "--fields: '%s' names none", text);
    loading->how.fields = loading->fields;
    return 0;
}

static int read_options(struct loading *loading, const struct loading_opts *opts,
                        const char *weights)
{
    weir_loader_options *how = &loading->how;
    weir_loader_options_init(how);
    how->flags = opts->no_shuffle ? 0 : WEIR_LOADER_SHUFFLE;
    how->seed = opts->seed;
    how->lanes = (uint32_t)opts->lanes;
    how->memory_bytes_max = opts->memory;
    how->rank = (uint32_t)opts->dp_rank;
    how->ranks = (uint32_t)opts->dp_size;
    if (opts->dp_rank >= opts->dp_size)
        return cli_usage(loading->cli, "--dp-rank %" PRIu64 ": ranks are 0 to %" PRIu64,
                         opts->dp_rank, opts->dp_size - 1);
    if (loading->count > LOADING_PARTS_MAX)
        return cli_usage(loading->cli, "%" PRIu32 " datasets: at most %d are mixed", loading->count,
                         LOADING_PARTS_MAX);
    int code = read_weights(loading, weights);
    if (!code)
        code = read_window(loading, opts->window);
    if (!code)
        code = read_buffered(loading, opts->buffered);
    return code ? code : read_fields(loading, opts->fields);
}

int loading_open(struct loading *loading, struct cli *cli, const struct loading_opts *opts,
                 const char *weights)
{
    *loading = (struct loading){.cli = cli, .count = (uint32_t)cli->operand_count};
    int code = read_options(loading, opts, weights);
    for (uint32_t i = 0; i < loading->count && !code; i++) {
        code = dataset_open(cli, &loading->data[i], cli->operands[i], &opts->data, 0);
        if (code)
            break;
        const weir_data_info *info = weir_data_info_get(loading->data[i]);
        loading->samples += info->samples;
        loading->sample_bytes += info->sample_bytes;
    }
    if (code)
        loading_close(loading);
    return code;
}

void loading_close(struct loading *loading)
{
    for (uint32_t i = 0; i < LOADING_PARTS_MAX; i++)
        weir_data_close(loading->data[i]);
    free(loading->fields_text);
}

/* ---- a run ---- */

static uint64_t now_ns(void)
{
    return weir_sys->now_ns(WEIR_CLOCK_MONO);
}

/* What this process had read from devices and the network, not from the page cache. */
static uint64_t storage_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_inblock * INBLOCK_BYTES;
}

/* A signal ends it early. */
static void work_for(uint64_t ns)
{
    struct timespec time = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    if (ns && !stop_asked())
        nanosleep(&time, NULL);
}

struct running {
    struct loading *loading;
    weir_loader *loader;
    const struct loading_bounds *bounds;
    struct loading_result *out;
    weir_loader_stats first; /* when the first batch was there */
    uint64_t start_ns, first_at_ns;
};

static bool is_over(const struct running *run, uint64_t now)
{
    const struct loading_bounds *bounds = run->bounds;
    if (bounds->time_ns && now - run->start_ns >= bounds->time_ns)
        return true;
    return bounds->steady_ns && run->first_at_ns && now - run->first_at_ns >= bounds->steady_ns;
}

/* The next batch: 1; 0 at the end or a bound. */
static int next(struct running *run, weir_batch **batch)
{
    if (is_over(run, now_ns()))
        return 0;
    int code = weir_loader_next(run->loader, batch, 0);
    if (code == -ETIMEDOUT)
        run->out->waited++;
    while (code == -ETIMEDOUT && !stop_asked()) {
        if (is_over(run, now_ns()))
            return 0;
        progress_bytes(0);
        code = weir_loader_next(run->loader, batch, LOOK_NS);
    }
    return stop_asked() && code == -ETIMEDOUT ? stop_fail() : code;
}

static bool is_missing(const weir_column *column, uint64_t samples)
{
    uint64_t i = 0;
    while (column->values && i < samples && column->values[i].kind == WEIR_FIELD_NONE)
        i++;
    return column->values && i && i == samples;
}

/* Of fields that were asked for, one that is in no sample of the first batch may be misspelt. */
static void note_missing(struct loading *loading, const weir_batch *batch)
{
    const weir_batch_info *info = weir_batch_get(batch);
    for (size_t c = 0; loading->how.fields_count && c < info->columns_count; c++)
        if (is_missing(&info->columns[c], info->samples))
            cli_note(loading->cli,
                     "no sample of the first batch has a field '%s' (weir data stats tells which "
                     "there are)",
                     info->columns[c].name);
}

static int take_all(struct running *run)
{
    struct loading_result *out = run->out;
    uint64_t bytes = 0;
    weir_batch *batch;
    for (;;) {
        int code = next(run, &batch);
        if (code <= 0)
            return code;
        uint64_t got_ns = now_ns();
        weir_loader_stats_get(run->loader, &out->stats);
        if (!run->first_at_ns) {
            run->first = out->stats;
            run->first_at_ns = got_ns;
            if (!run->loading->is_noted)
                note_missing(run->loading, batch);
            run->loading->is_noted = true;
        }
        out->last_ns = got_ns - run->start_ns;
        progress_bytes(out->stats.sample_bytes - bytes);
        bytes = out->stats.sample_bytes;
        work_for(run->bounds->work_ns);
        weir_batch_release(batch);
        out->own_ns += now_ns() - got_ns;
        if (stop_asked())
            return stop_fail();
    }
}

static void finish(struct running *run, uint32_t parts)
{
    struct loading_result *out = run->out;
    weir_loader_state state;
    uint64_t now = now_ns();
    weir_loader_stats_get(run->loader, &out->stats);
    weir_loader_state_get(run->loader, &state);
    for (uint32_t i = 0; i < parts; i++)
        weir_loader_part_get(run->loader, i, &out->parts[i]);
    out->position = state.position;
    out->time_ns = now - run->start_ns;
    if (!run->first_at_ns)
        return;
    out->first_ns = run->first_at_ns - run->start_ns;
    out->steady_ns = now - run->first_at_ns;
    for (int i = 0; i < WEIR_STALLS; i++)
        out->steady_stall_ns[i] = out->stats.stall_ns[i] - run->first.stall_ns[i];
}

int loading_run(struct loading *loading, const weir_loader_options *how,
                const struct loading_bounds *bounds, struct loading_result *out)
{
    *out = (struct loading_result){0};
    struct running run = {.loading = loading, .bounds = bounds, .out = out, .start_ns = now_ns()};
    uint64_t before = storage_bytes();
    int code = loading->count == 1 ? weir_loader_open(&run.loader, loading->data[0], how)
                                   : weir_loader_open_mix(&run.loader, loading->data,
                                                          loading->weights, loading->count, how);
    if (code)
        return code;
    code = take_all(&run);
    char *text = code ? strdup(weir_error_text()) : NULL; /* closing must not change it */
    finish(&run, loading->count);
    weir_loader_close(run.loader);
    out->storage_bytes = storage_bytes() - before;
    if (text)
        weir_fail_text(code, text);
    free(text);
    return code;
}

/* ---- what it means ---- */

uint64_t loading_stall_ns(const uint64_t stall_ns[WEIR_STALLS])
{
    uint64_t sum = 0;
    for (int i = 0; i < WEIR_STALLS; i++)
        sum += stall_ns[i];
    return sum;
}

const char *loading_stall_name(int stall)
{
    static const char *const names[] = {"reading", "decoding", "the queue"};
    return names[stall];
}

const char *loading_warmth(const struct loading_result *result)
{
    uint64_t all = result->stats.read_bytes + result->stats.mapped_bytes;
    if (!all)
        return "";
    double percent = 100.0 * (double)result->storage_bytes / (double)all;
    return percent < WARM_PERCENT ? "warm" : percent > 100 - WARM_PERCENT ? "cold" : "partly warm";
}
