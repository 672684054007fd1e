/* bench_page.c - see bench.h: the page of --html. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/format.h"
#include "cli/page.h"

enum { CHART_WIDTH = 980, CHART_HEIGHT = 300, LINES = 4, SLOTS_SHOWN = 60 };

static const char *const line_names[LINES] = {"sequential read", "sequential write", "random read",
                                              "random write"};

/* The steps of a part as lines: bit 0 of a line's number is write, bit 1 is random. */
struct lines {
    double x[LINES][BENCH_STEPS_MAX], y[LINES][BENCH_STEPS_MAX];
    struct chart_series series[LINES];
    size_t count;
};

static double x_of(const struct bench_step *step)
{
    switch (step->part) {
    case BENCH_BLOCKS:
        return (double)step->job.block_bytes;
    case BENCH_DEPTHS:
        return step->job.depth;
    default:
        return step->job.threads;
    }
}

static void gather(struct lines *out, const struct bench *bench, enum bench_part part,
                   bool of_order, bool of_chance, bool is_iops)
{
    out->count = 0;
    for (int line = 0; line < LINES; line++) {
        bool is_write = line & 1, is_random = line & 2;
        struct chart_series *series = &out->series[out->count];
        *series = (struct chart_series){.name = line_names[line],
                                        .x = out->x[out->count],
                                        .y = out->y[out->count],
                                        .best = CHART_NO_BEST};
        if (is_random ? !of_chance : !of_order)
            continue;
        for (uint32_t i = 0; i < bench->count; i++) {
            const struct bench_step *step = &bench->steps[i];
            if (step->part != part || !step->is_done || step->job.is_write != is_write ||
                step->job.is_random != is_random)
                continue;
            out->x[out->count][series->count] = x_of(step);
            out->y[out->count][series->count++] = is_iops ? bench_iops(step) : bench_rate(step);
        }
        out->count += series->count > 0;
    }
}

static void put_sweep(struct page *page, const struct bench *bench, enum bench_part part,
                      const char *x_title, enum chart_unit unit, bool is_iops, const char *caption)
{
    static struct lines lines;
    bool of_all = part == BENCH_BLOCKS;
    gather(&lines, bench, part, of_all || !is_iops, of_all || is_iops, is_iops);
    if (!lines.count)
        return;
    const struct chart chart = {
        .x = {.title = x_title, .unit = unit, .is_log = true},
        .y = {.title = is_iops ? "requests a second" : "bytes a second",
              .unit = is_iops ? CHART_NUMBER : CHART_BYTES_PER_S,
              .is_log = of_all},
        .series = lines.series,
        .series_count = lines.count,
        .width = CHART_WIDTH,
        .height = CHART_HEIGHT,
    };
    page_chart(page, &chart, caption);
}

/* The long write: its rate, over what was written. */
static void put_long(struct page *page, const struct bench *bench)
{
    static double x[SLOTS_SHOWN + 1], y[SLOTS_SHOWN + 1];
    char text[256];
    const struct weir_job_result *r = &bench->long_write->result;
    uint32_t full = r->slots ? r->slots - 1 : 0; /* the last is a part of one */
    uint32_t each = full / SLOTS_SHOWN + 1, count = 0;
    double bytes = 0;
    for (uint32_t i = 0; i + each <= full; i += each) {
        double more = 0;
        for (uint32_t k = 0; k < each; k++)
            more += (double)r->slot_bytes[i + k];
        bytes += more;
        x[count] = bytes;
        y[count++] = more / ((double)(each * r->slot_ns) / 1e9);
    }
    const struct chart_series series = {.x = x, .y = y, .count = count, .best = CHART_NO_BEST};
    const struct chart_mark mark = {.x = (double)bench->cliff.at_bytes, .text = "it fell here"};
    const struct chart chart = {
        .x = {.title = "written so far", .unit = CHART_BYTES},
        .y = {.title = "bytes a second", .unit = CHART_BYTES_PER_S},
        .series = &series,
        .series_count = 1,
        .marks = &mark,
        .mark_count = bench->cliff.fell,
        .width = CHART_WIDTH,
        .height = CHART_HEIGHT,
    };
    page_section(page, "The long write");
    page_note(page, "In the long write, %s.", bench_cliff_text(text, bench));
    page_chart(page, &chart,
               "Consumer drives take the first gigabytes into fast cells; when those are used up, "
               "the rate falls to that of the others. A drive that was idle for a while has them "
               "again.");
}

static void put_tiles(struct page *page, const struct weir_profile *p)
{
    const struct {
        const char *name, *before, *after;
        double rate, number;
    } large[] = {
        {"read", "depth ", ", one thread", p->read_bytes_per_s, p->read_depth},
        {"write", "depth ", ", one thread", p->write_bytes_per_s, p->write_depth},
        {"checkpoint, durable", "", " writers", p->checkpoint_bytes_per_s, p->checkpoint_writers},
        {"shards", "", " readers", p->shards_bytes_per_s, p->shards_readers},
    };
    enum { LARGE = sizeof large / sizeof large[0], NOTE_BYTES = 96 };
    struct page_tile tiles[LARGE + 1];
    char values[LARGE + 1][CHART_VALUE_BYTES], notes[LARGE + 1][NOTE_BYTES];
    char alone[CHART_VALUE_BYTES];
    size_t count = 0;
    for (size_t i = 0; i < LARGE; i++) {
        if (large[i].rate <= 0)
            continue;
        snprintf(notes[i], NOTE_BYTES, "%s%.0f%s", large[i].before, large[i].number,
                 large[i].after);
        tiles[count++] = (struct page_tile){
            large[i].name, chart_value(values[i], CHART_BYTES_PER_S, large[i].rate), notes[i]};
    }
    if (p->lookup_iops > 0) {
        snprintf(notes[LARGE], NOTE_BYTES, "of 4 KiB; one alone takes %s",
                 chart_value(alone, CHART_SECONDS, p->lookup_latency_s_p50));
        chart_value(values[LARGE], CHART_NUMBER, round(p->lookup_iops));
        strcat(values[LARGE], "/s");
        tiles[count++] = (struct page_tile){"lookups", values[LARGE], notes[LARGE]};
    }
    if (count)
        page_tiles(page, tiles, count);
}

static void put_table(struct page *page, const struct bench *bench)
{
    static const char *const names[] = {"part",  "what",  ">block", ">depth", ">threads",
                                        ">rate", ">IOPS", ">p50",   ">p99",   ">cache"};
    page_section(page, "Every step");
    page_table_begin(page, names, sizeof names / sizeof names[0]);
    for (uint32_t i = 0; i < bench->count; i++) {
        const struct bench_step *step = &bench->steps[i];
        char what[64], block[24], depth[16], threads[16], rate[32], iops[CHART_VALUE_BYTES],
            cache[32], p50[CHART_VALUE_BYTES], p99[CHART_VALUE_BYTES];
        snprintf(depth, sizeof depth, "%" PRIu32, step->job.depth);
        snprintf(threads, sizeof threads, "%" PRIu32, step->job.threads);
        chart_value(p50, CHART_SECONDS, (double)step->result.latency_ns_p50 / 1e9);
        chart_value(p99, CHART_SECONDS, (double)step->result.latency_ns_p99 / 1e9);
        chart_value(iops, CHART_NUMBER, round(bench_iops(step)));
        const char *cells[] = {bench_part_names[step->part],
                               bench_what(what, bench, step),
                               weir_format_size(block, sizeof block, step->job.block_bytes),
                               depth,
                               threads,
                               bench_rate_text(rate, bench_rate(step)),
                               iops,
                               p50,
                               p99,
                               bench_cache(cache, bench, step)};
        if (!step->is_done) {
            cells[5] = "not measured";
            cells[6] = cells[7] = cells[8] = cells[9] = NULL;
        }
        page_table_row(page, cells);
    }
    page_table_end(page);
}

static void put_sweeps(struct page *page, const struct bench *bench)
{
    if (bench->parts[BENCH_BLOCKS]) {
        page_section(page, "Block sizes");
        put_sweep(page, bench, BENCH_BLOCKS, "block", CHART_BYTES, false,
                  "One thread, 16 requests under way. Small blocks cost a request each: the larger "
                  "ones show what the device moves.");
    }
    if (bench->parts[BENCH_DEPTHS]) {
        page_section(page, "Depth");
        put_sweep(page, bench, BENCH_DEPTHS, "requests under way", CHART_NUMBER, false,
                  "Blocks of 1 MiB, one thread.");
        put_sweep(page, bench, BENCH_DEPTHS, "requests under way", CHART_NUMBER, true,
                  "Blocks of 4 KiB, one thread.");
    }
    if (bench->parts[BENCH_THREADS]) {
        page_section(page, "Threads");
        put_sweep(page, bench, BENCH_THREADS, "threads", CHART_NUMBER, false,
                  bench->is_remote ? "Blocks of 1 MiB; readers ask for one at a time."
                                   : "Blocks of 1 MiB, each thread reads one at a time.");
        put_sweep(page, bench, BENCH_THREADS, "threads", CHART_NUMBER, true,
                  "Blocks of 4 KiB, each thread reads one at a time.");
    }
}

static void put_how(struct page *page, const struct bench *bench)
{
    char size[24], took[FORMAT_TIME_BYTES];
    page_section(page, "How it was measured");
    page_text(page,
              "Data of %s were written first; %s; the whole run took %s. Each step reads or writes "
              "for a time, and its rate counts until the last byte was there; that of a write "
              "includes the sync.",
              weir_format_size(size, sizeof size, bench->data_bytes), bench->engine,
              format_span(took, bench->took_ns));
    if (bench->is_memory)
        page_note(page, "This place is memory: no device had a part in it.");
    else if (bench->is_remote)
        page_text(page, "What a server or a gateway caches cannot be seen from here.");
    else if (!bench->has_direct)
        page_note(page, "Direct I/O is refused here: all goes through the page cache, which was "
                        "dropped before each read.");
    else
        page_text(page, "'around' went around the page cache of this machine, 'dropped' was "
                        "forgotten by it before the step began, 'synced' counts until the bytes "
                        "were on the device. What a host under a virtual machine, or the device "
                        "itself, caches cannot be seen from here.");
    if (bench->is_cut)
        page_note(page, "Time was up before all steps were measured.");
}

void bench_page(FILE *out, const void *arg)
{
    const struct bench *bench = arg;
    struct page page;
    char title[600], lead[1200], size[24];
    const struct weir_profile *p = &bench->profile;
    snprintf(title, sizeof title, "What %s gives", p->url);
    int used =
        snprintf(lead, sizeof lead, "%s, measured on %.10s by weir bench.", p->kind, p->time);
    if (p->best_depth > 0 && p->best_block_bytes > 0)
        snprintf(lead + used, sizeof lead - (size_t)used,
                 " Blocks of %s with %.0f requests under way reach 95 %% of the best rate.",
                 weir_format_size(size, sizeof size, (uint64_t)p->best_block_bytes), p->best_depth);
    page_begin(&page, out, title, lead);
    put_tiles(&page, &bench->profile);
    put_sweeps(&page, bench);
    if (bench->long_write)
        put_long(&page, bench);
    put_table(&page, bench);
    put_how(&page, bench);
    page_end(&page);
}
