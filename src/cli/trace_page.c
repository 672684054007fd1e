/* trace_page.c - the report as pictures; see trace_report.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/format.h"
#include "cli/page.h"
#include "cli/trace_report.h"

enum {
    CHARTS_MAX = 5,
    CACHE_POINTS = WEIR_REUSE_BINS,
    BIN_TEXT = 32,
    TIME_WIDTH = 1040,
    MARKS_MAX = 12,
    TILES_MAX = 4,
    OPENS_MIN = 100, /* or they are no pressure */
};

/* The charts of a trace, and what they point to. */
struct pictures {
    struct chart charts[CHARTS_MAX];
    const char *captions[CHARTS_MAX];
    size_t count;
    double at_s[WEIR_TIMELINE_BINS], row[WEIR_ROWS][WEIR_TIMELINE_BINS];
    double waiting_s[WEIR_TRACE_KINDS];
    const char *kinds[WEIR_TRACE_KINDS];
    size_t kind_count;
    double requests[2][WEIR_SIZES_BINS];
    char bin_text[WEIR_SIZES_BINS][BIN_TEXT];
    const char *bins[WEIR_SIZES_BINS];
    size_t bin_count;
    double cache_bytes[CACHE_POINTS], cache_share[CACHE_POINTS];
    size_t cache_count;
    struct chart_series flow[2], opens, waiting, sizes[2], cache;
    struct chart_mark marks[MARKS_MAX];
};

static struct chart *add(struct pictures *p, const char *title, const char *caption)
{
    struct chart *chart = &p->charts[p->count];
    p->captions[p->count++] = caption;
    *chart = (struct chart){.title = title};
    return chart;
}

static struct chart_series series(const char *name, const double *x, const double *y, size_t count)
{
    return (struct chart_series){name, x, y, count, CHART_NO_BEST};
}

/* ---- each chart ---- */

static void draw_time(struct pictures *p, const struct weir_trace *t)
{
    unsigned bins = weir_timeline_bins(&t->timeline);
    double bin_s = (double)t->timeline.bin_ns / 1e9;
    for (unsigned i = 0; i < bins; i++) {
        p->at_s[i] = (i + 0.5) * bin_s;
        for (int r = 0; r < WEIR_ROWS; r++)
            p->row[r][i] = (double)t->timeline.row[r][i] / bin_s;
    }
    if (bins < 2 || !t->has_time)
        return;
    struct chart *chart = add(p, "Bytes read and written",
                              t->burst_count ? "Data files only; the lines are large files that "
                                               "were written, as of checkpoints."
                                             : "Data files only.");
    chart->x = (struct chart_axis){.title = "time", .unit = CHART_SECONDS};
    chart->y = (struct chart_axis){.unit = CHART_BYTES_PER_S};
    if (t->data.read_bytes || !t->data.write_bytes)
        p->flow[chart->series_count++] = series("read", p->at_s, p->row[WEIR_ROW_READ_BYTES], bins);
    if (t->data.write_bytes >= WEIR_TRACE_BURST_BYTES)
        p->flow[chart->series_count++] =
            series("written", p->at_s, p->row[WEIR_ROW_WRITE_BYTES], bins);
    chart->series = p->flow;
    chart->width = TIME_WIDTH;
    for (size_t i = 0; i < t->burst_count && i < MARKS_MAX; i++)
        p->marks[i] = (struct chart_mark){
            (double)(t->bursts[i].begin_ns - t->timeline.begin_ns) / 1e9, i ? "" : "save"};
    chart->marks = p->marks;
    chart->mark_count = t->burst_count < MARKS_MAX ? t->burst_count : MARKS_MAX;
    if (t->data.opens < OPENS_MIN)
        return;
    p->opens = series(NULL, p->at_s, p->row[WEIR_ROW_OPENS], bins);
    chart = add(p, "Files opened a second",
                "Small-file pressure: each is a trip to whoever keeps "
                "the names.");
    chart->x = (struct chart_axis){.title = "time", .unit = CHART_SECONDS};
    chart->y = (struct chart_axis){.unit = CHART_NUMBER};
    chart->series = &p->opens;
    chart->series_count = 1;
    chart->width = TIME_WIDTH;
}

static void draw_waiting(struct pictures *p, const struct weir_trace *t)
{
    static const char *const names[] = {"open, close", "stat, list", "read",
                                        "write",       "sync",       "map"};
    for (int i = 0; i < WEIR_TRACE_KINDS; i++)
        if (t->times[i].count) {
            p->kinds[p->kind_count] = names[i];
            p->waiting_s[p->kind_count++] =
                (double)weir_trace_net_ns(t, (enum weir_trace_kind)i) / 1e9;
        }
    if (!p->kind_count || !t->has_took)
        return;
    p->waiting = series(NULL, NULL, p->waiting_s, p->kind_count);
    struct chart *chart = add(p, "Waiting in calls, by kind",
                              "All threads together, without what watching a call takes.");
    chart->kind = CHART_BARS;
    chart->x = (struct chart_axis){.labels = p->kinds, .label_count = p->kind_count};
    chart->y = (struct chart_axis){.unit = CHART_SECONDS};
    chart->series = &p->waiting;
    chart->series_count = 1;
}

static void draw_requests(struct pictures *p, const struct weir_trace *t)
{
    unsigned first = WEIR_SIZES_BINS, last = 0;
    for (unsigned i = 0; i < WEIR_SIZES_BINS; i++)
        if (t->read_sizes.count[i] || t->write_sizes.count[i]) {
            first = i < first ? i : first;
            last = i;
        }
    if (first > last)
        return;
    for (unsigned i = first; i <= last; i++) {
        size_t at = p->bin_count++;
        chart_value(p->bin_text[at], CHART_BYTES, (double)weir_sizes_from(i));
        p->bins[at] = p->bin_text[at];
        p->requests[0][at] = (double)t->read_sizes.count[i];
        p->requests[1][at] = (double)t->write_sizes.count[i];
    }
    struct chart *chart = add(p, "Requests, by size",
                              "Each bar has those from its size up to the "
                              "next one's.");
    chart->kind = CHART_BARS;
    chart->x = (struct chart_axis){.title = "from", .labels = p->bins, .label_count = p->bin_count};
    chart->y = (struct chart_axis){.unit = CHART_NUMBER};
    if (t->data.reads)
        p->sizes[chart->series_count++] = series("reads", NULL, p->requests[0], p->bin_count);
    if (t->data.writes)
        p->sizes[chart->series_count++] = series("writes", NULL, p->requests[1], p->bin_count);
    chart->series = p->sizes;
}

static void draw_cache(struct pictures *p, const struct weir_trace *t)
{
    for (unsigned i = 20; i < WEIR_REUSE_BINS - 1 && t->pages.again_bytes > 0; i++) {
        double share = weir_pages_hits(&t->pages, (uint64_t)1 << i) / t->pages.again_bytes;
        p->cache_bytes[p->cache_count] = (double)((uint64_t)1 << i);
        p->cache_share[p->cache_count++] = share;
        if (share >= 1)
            break;
    }
    if (p->cache_count < 2)
        return;
    p->cache = series(NULL, p->cache_bytes, p->cache_share, p->cache_count);
    struct chart *chart = add(p, "Re-reads that a cache answers",
                              "By the size of a cache that keeps what was read last.");
    chart->x = (struct chart_axis){.title = "cache", .unit = CHART_BYTES, .is_log = true};
    chart->y = (struct chart_axis){.unit = CHART_SHARE, .max = 1};
    chart->series = &p->cache;
    chart->series_count = 1;
}

static struct pictures *draw(const struct weir_trace *t)
{
    struct pictures *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    draw_time(p, t);
    draw_waiting(p, t);
    draw_requests(p, t);
    draw_cache(p, t);
    return p;
}

void trace_report_svg(FILE *out, const struct trace_report *report)
{
    struct pictures *p = draw(report->trace);
    if (p)
        chart_sheet(out, report->source, NULL, p->charts, p->count);
    free(p);
}

/* ---- the page ---- */

static void put_tiles(struct page *page, const struct trace_report *report)
{
    const struct weir_trace *t = report->trace;
    double run_s = (double)weir_timeline_span_ns(&t->timeline) / 1e9, wait_s = 0;
    char run[FORMAT_TIME_BYTES], wait[FORMAT_TIME_BYTES], read[32], opens[32], each[32];
    char busy[FORMAT_TIME_BYTES];
    char note[5][64];
    for (int i = 0; i < WEIR_TRACE_KINDS; i++)
        wait_s += (double)weir_trace_net_ns(t, (enum weir_trace_kind)i) / 1e9;
    format_span(run, weir_timeline_span_ns(&t->timeline));
    format_span(wait, (uint64_t)(wait_s * 1e9));
    weir_format_size(read, sizeof read, t->data.read_bytes);
    snprintf(opens, sizeof opens, "%.0f/s", run_s > 0 ? (double)t->data.opens / run_s : 0);
    weir_format_size(each, sizeof each, t->data.opens ? t->data.read_bytes / t->data.opens : 0);
    format_span(busy, (uint64_t)(weir_trace_burst_s(t) * 1e9));
    snprintf(note[0], sizeof note[0], "%" PRIu64 " processes, %" PRIu64 " threads",
             t->tasks.total - t->tasks.threads, t->tasks.threads);
    snprintf(note[1], sizeof note[1], "all threads together; %" PRIu64 " read", t->readers);
    snprintf(note[2], sizeof note[2], "%.0f %% of it read before",
             t->pages.read_bytes > 0 ? 100 * t->pages.again_bytes / t->pages.read_bytes : 0);
    snprintf(note[3], sizeof note[3], "%" PRIu64 " opens, %s read by each", t->data.opens, each);
    snprintf(note[4], sizeof note[4], "%" PRIu64 " large files written", t->bursts_total);
    struct page_tile tiles[TILES_MAX] = {{"run", run, note[0]},
                                         {"waiting in calls", wait, note[1]}};
    size_t count = 2;
    if (t->bursts_total)
        tiles[count++] = (struct page_tile){"saving", busy, note[4]};
    if (t->data.reads && count < TILES_MAX)
        tiles[count++] = (struct page_tile){"files opened", opens, note[3]};
    if (t->data.reads && count < TILES_MAX)
        tiles[count++] = (struct page_tile){"read", read, note[2]};
    page_tiles(page, tiles, count);
}

static void put_advice(struct page *page, const struct trace_report *report)
{
    const char *const columns[] = {"", "what to do", "why", ">gain"};
    page_section(page, "Advice");
    page_table_begin(page, columns, 4);
    for (size_t i = 0; i < report->advices.count; i++) {
        const struct weir_advice *a = &report->advices.item[i];
        char gain[64] = "", why[2 * WEIR_ADVICE_TEXT_MAX + 32];
        if (a->now_s > 0)
            snprintf(gain, sizeof gain, "%.2f\u00a0s\u00a0→\u00a0%.2f\u00a0s", a->now_s, a->then_s);
        snprintf(why, sizeof why, "%s.%s%s%s", a->why, a->model[0] ? " Model: " : "", a->model,
                 a->model[0] ? "." : "");
        const char *const cells[] = {a->weight == WEIR_ADVICE_DANGER ? "danger"
                                     : a->weight == WEIR_ADVICE_DO   ? "do"
                                                                     : "note",
                                     a->what, why, gain};
        page_table_row(page, cells);
    }
    page_table_end(page);
    for (size_t i = 0; i < report->advices.count; i++)
        if (report->advices.item[i].command)
            page_note(page, "%s", report->advices.item[i].command);
}

static void put_places(struct page *page, const struct weir_trace *t)
{
    const char *const columns[] = {"directory", ">read",  ">written",
                                   ">files",    ">opens", ">waiting"};
    const struct weir_trace_dir *top[TRACE_TOP];
    size_t count = trace_top_dirs(t, top);
    if (!count)
        return;
    page_section(page, "By directory");
    page_table_begin(page, columns, 6);
    for (size_t i = 0; i < count; i++) {
        const struct weir_trace_sum *sum = &top[i]->own;
        char read[32], written[32], files[32], opens[32], waiting[FORMAT_TIME_BYTES];
        weir_format_size(read, sizeof read, sum->read_bytes);
        weir_format_size(written, sizeof written, sum->write_bytes);
        snprintf(files, sizeof files, "%" PRIu64, sum->files);
        snprintf(opens, sizeof opens, "%" PRIu64, sum->opens);
        const char *const cells[] = {top[i]->path, read,  written,
                                     files,        opens, format_span(waiting, sum->ns)};
        page_table_row(page, cells);
    }
    page_table_end(page);
}

static void put_sets(struct page *page, const struct weir_trace *t)
{
    const char *const columns[] = {"dataset", ">files", ">size", ">opens", ">read", ">waiting"};
    struct weir_trace_set sets[WEIR_TRACE_SETS_MAX];
    size_t count = weir_trace_sets(t, sets);
    if (!count)
        return;
    page_section(page, "Datasets");
    page_table_begin(page, columns, 6);
    for (size_t i = 0; i < count; i++) {
        const struct weir_trace_sum *sum = &sets[i].dir->all;
        char read[32], size[32], files[32], opens[32], waiting[FORMAT_TIME_BYTES];
        snprintf(files, sizeof files, "%" PRIu64, sum->files);
        snprintf(opens, sizeof opens, "%" PRIu64, sum->opens);
        weir_format_size(size, sizeof size, sum->size_bytes);
        weir_format_size(read, sizeof read, sum->read_bytes);
        const char *const cells[] = {
            sets[i].dir->path, files, size, opens, read, format_span(waiting, sum->ns)};
        page_table_row(page, cells);
    }
    page_table_end(page);
}

static void put_bursts(struct page *page, const struct weir_trace *t)
{
    const char *const columns[] = {"file", ">at", ">size", ">took", ">in sync", "how"};
    enum { SHOWN = 24 };
    if (!t->burst_count)
        return;
    page_section(page, "Large writes, as of checkpoints");
    page_table_begin(page, columns, 6);
    for (size_t i = 0; i < t->burst_count && i < SHOWN; i++) {
        const struct weir_trace_burst *b = &t->bursts[i];
        char path[512], at[FORMAT_TIME_BYTES], size[32], took[FORMAT_TIME_BYTES];
        char sync[FORMAT_TIME_BYTES], how[96];
        snprintf(how, sizeof how, "%s%s%s%s", b->is_synced ? "synced" : "not synced",
                 b->is_renamed ? ", renamed" : "", b->is_in_place ? ", over itself" : "",
                 b->is_thread ? ", by a thread" : "");
        const char *const cells[] = {weir_trace_file_path(b->final, path, sizeof path),
                                     format_span(at, b->begin_ns - t->timeline.begin_ns),
                                     weir_format_size(size, sizeof size, b->bytes),
                                     format_span(took, b->end_ns - b->begin_ns),
                                     format_span(sync, b->sync_ns),
                                     how};
        page_table_row(page, cells);
    }
    page_table_end(page);
    if (t->burst_count > SHOWN)
        page_text(page, "And %" PRIu64 " more.", t->bursts_total - SHOWN);
}

static void put_limits(struct page *page, const struct weir_trace *t)
{
    page_section(page, "What this does not show");
    page_text(page,
              "Reads of mapped files (page faults), requests in an io_uring, and what the "
              "kernel read ahead or wrote back are no system calls. %" PRIu64
              " opens of libraries and modules are left out. Watching slowed the program "
              "down: about as much for each of %" PRIu64 " calls.",
              t->program.opens, t->calls);
}

void trace_report_html(FILE *out, const struct trace_report *report)
{
    struct page page;
    struct pictures *p = draw(report->trace);
    if (!p)
        return;
    page_begin(&page, out, "weir trace", report->source);
    put_tiles(&page, report);
    put_advice(&page, report);
    page_section(&page, "What it did");
    for (size_t i = 0; i < p->count; i++)
        page_chart(&page, &p->charts[i], p->captions[i]);
    put_bursts(&page, report->trace);
    put_sets(&page, report->trace);
    put_places(&page, report->trace);
    put_limits(&page, report->trace);
    page_end(&page);
    free(p);
}
