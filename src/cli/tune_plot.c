/* tune_plot.c - see tune.h. */
#include <inttypes.h>
#include <math.h>

#include "cli/chart.h"
#include "cli/format.h"
#include "cli/tune.h"

static double most_of(const struct tune *tune)
{
    double most = 0;
    for (uint32_t i = 0; i < tune->count; i++)
        if (tune->tries[i].samples_per_s > most)
            most = tune->tries[i].samples_per_s;
    return most;
}

void tune_plot_text(const struct tune *tune)
{
    double most = most_of(tune);
    printf("samples/s\n");
    for (uint32_t i = 0; i < tune->count; i++) {
        const struct tune_try *one = &tune->tries[i];
        if (one->error)
            continue;
        printf("  batch %4" PRIu64 ", threads %2" PRIu64 ", prefetch %2" PRIu64 "  ", one->batch,
               one->threads, one->prefetch);
        int left = format_bar(one->samples_per_s, most);
        printf("%*s  %.0f%s\n", left, "", one->samples_per_s,
               (int)i == tune->best ? "  <- best" : "");
    }
}

/* ---- SVG ---- */

/* The tries with one batch size and prefetch: a line over threads. Returns its place in y. */
static struct chart_series line_of(const struct tune *tune, uint32_t batch, uint32_t line,
                                   const char *name, double *y)
{
    struct chart_series series = {.name = name, .y = y, .best = CHART_NO_BEST};
    for (uint32_t t = 0; t < tune->threads.count; t++) {
        uint32_t i = (batch * tune->threads.count + t) * tune->prefetches.count + line;
        bool is_known = i < tune->count && !tune->tries[i].error;
        y[t] = is_known ? tune->tries[i].samples_per_s : NAN;
        if (is_known && (int)i == tune->best)
            series.best = (int)t;
        series.count++;
    }
    return series;
}

void tune_plot_svg(FILE *out, const struct tune *tune, const char *title)
{
    enum { LINES_MAX = TRIES_MAX * TRIES_MAX, NAME_BYTES = 32 };
    static struct chart charts[TRIES_MAX]; /* too much for a stack */
    static struct chart_series lines[LINES_MAX];
    static double rates[LINES_MAX][TRIES_MAX];
    static char titles[TRIES_MAX][NAME_BYTES], names[TRIES_MAX][NAME_BYTES],
        labels[TRIES_MAX][NAME_BYTES];
    const char *label[TRIES_MAX];
    for (uint32_t i = 0; i < tune->threads.count; i++) {
        snprintf(labels[i], NAME_BYTES, "%" PRIu64, tune->threads.at[i]);
        label[i] = labels[i];
    }
    for (uint32_t i = 0; i < tune->prefetches.count; i++)
        snprintf(names[i], NAME_BYTES, "prefetch %" PRIu64, tune->prefetches.at[i]);
    for (uint32_t b = 0; b < tune->batches.count; b++) {
        struct chart_series *own = &lines[b * tune->prefetches.count];
        snprintf(titles[b], NAME_BYTES, "batches of %" PRIu64, tune->batches.at[b]);
        for (uint32_t i = 0; i < tune->prefetches.count; i++)
            own[i] = line_of(tune, b, i, names[i], rates[own + i - lines]);
        charts[b] = (struct chart){
            .title = titles[b],
            .x = {.title = "threads", .labels = label, .label_count = tune->threads.count},
            .y = {.title = "samples/s", .max = most_of(tune)},
            .series = own,
            .series_count = tune->prefetches.count,
        };
    }
    chart_sheet(out, title, "the largest dot is the best", charts, tune->batches.count);
}
