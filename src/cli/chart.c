/* chart.c - see chart.h. All coordinates are of one chart: a sheet moves each to its place. */
#include "cli/chart.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cli/chart_scale.h"
#include "cli/format.h"
#include "cli/markup.h"

enum {
    WIDTH = 720,
    HEIGHT = 280,
    LEFT = 92, /* room for the values of the y axis */
    RIGHT = 24,
    TOP = 34,
    BOTTOM = 30,
    AXIS_TITLE = 20,
    LETTER = 7, /* about the width of one */
    LEGEND_LETTERS_MAX = 30,
    LABEL_LETTERS_MAX = 24,
    COLORS = 7,
    DOTS_MAX = 80, /* more of them would hide the line */
    SHEET_HEAD = 52,
};

/* Colours that the colour-blind tell apart, for paper and for dark screens. */
static const char style[] =
    "<style>.wc{font:13px system-ui,sans-serif}.wc text{fill:#222}.wc .soft{fill:#666}"
    ".wc .grid{stroke:#ddd;fill:none}.wc .axis{stroke:#888;fill:none}.wc .back{fill:#fff}"
    ".wc .bold{font-weight:600}.wc .head{font-size:16px}"
    ".c0{color:#0072b2}.c1{color:#d55e00}.c2{color:#009e73}.c3{color:#cc79a7}.c4{color:#8a6d00}"
    ".c5{color:#56b4e9}.c6{color:#666}"
    "@media screen and (prefers-color-scheme:dark){.wc text{fill:#e4e4e4}.wc .soft{fill:#a0a0a0}"
    ".wc .grid{stroke:#3a3d42}.wc .axis{stroke:#777}.wc .back{fill:#191b1f}"
    ".c0{color:#56a8e0}.c1{color:#f08a3c}.c2{color:#2dc59a}.c3{color:#e39ac6}.c4{color:#e0c341}"
    ".c5{color:#9ad4f5}.c6{color:#aaa}}</style>\n";

/* A chart on its way to paper. */
struct drawing {
    FILE *out;
    const struct chart *chart;
    double left, right, top, bottom; /* of the area with the data */
    bool is_turned;                  /* the labels of the x axis do not fit beside each other */
    struct chart_scale x, y;
};

/* ---- layout ---- */

static double x_value(const struct chart_series *series, size_t i)
{
    return series->x ? series->x[i] : (double)i;
}

static bool has_labels(const struct chart *chart)
{
    return chart->x.label_count > 0;
}

static int legend_letters(const struct chart *chart)
{
    int most = 0;
    for (size_t i = 0; i < chart->series_count; i++) {
        const char *name = chart->series[i].name;
        int letters = name ? format_width(name) : 0;
        most = letters > most ? letters : most;
    }
    return most < LEGEND_LETTERS_MAX ? most : LEGEND_LETTERS_MAX;
}

static int label_letters(const struct chart *chart)
{
    int most = 0;
    for (size_t i = 0; i < chart->x.label_count; i++) {
        int letters = format_width(chart->x.labels[i]);
        most = letters > most ? letters : most;
    }
    return most < LABEL_LETTERS_MAX ? most : LABEL_LETTERS_MAX;
}

static bool is_stacked(const struct chart *chart)
{
    return chart->kind == CHART_STACKED || chart->kind == CHART_AREAS;
}

/* The ends of the data. Of what is stacked, the sums. */
static void find_ends(const struct chart *chart, double x[2], double y[2])
{
    x[0] = y[0] = INFINITY;
    x[1] = y[1] = -INFINITY;
    for (size_t s = 0; s < chart->series_count; s++)
        for (size_t i = 0; i < chart->series[s].count; i++) {
            double px = x_value(&chart->series[s], i), py = chart->series[s].y[i];
            if (!isfinite(px) || !isfinite(py) || (chart->x.is_log && px <= 0) ||
                (chart->y.is_log && py <= 0))
                continue;
            for (size_t under = 0; is_stacked(chart) && under < s; under++)
                if (i < chart->series[under].count && isfinite(chart->series[under].y[i]))
                    py += chart->series[under].y[i];
            x[0] = px < x[0] ? px : x[0];
            x[1] = px > x[1] ? px : x[1];
            y[0] = py < y[0] ? py : y[0];
            y[1] = py > y[1] ? py : y[1];
        }
}

static void lay_out(struct drawing *d)
{
    const struct chart *chart = d->chart;
    int width = chart->width ? chart->width : WIDTH,
        height = chart->height ? chart->height : HEIGHT;
    int letters = legend_letters(chart), label = label_letters(chart);
    d->left = LEFT;
    d->right = width - RIGHT - (letters ? LETTER * letters + 34 : 0);
    d->top = TOP;
    d->bottom = height - BOTTOM - (chart->x.title ? AXIS_TITLE : 0);
    double each = (d->right - d->left) / (has_labels(chart) ? (double)chart->x.label_count : 1);
    d->is_turned = has_labels(chart) && LETTER * (label + 1) > each;
    if (d->is_turned)
        d->bottom -= LETTER * label * 0.6;
    double x[2], y[2];
    find_ends(chart, x, y);
    chart_scale_make(&d->y, &chart->y, y[0], y[1], true);
    chart_scale_make(&d->x, &chart->x, x[0], x[1], false);
    if (has_labels(chart)) {
        d->x.from = -0.5;
        d->x.to = (double)chart->x.label_count - 0.5;
        d->x.is_log = false;
        d->x.tick_count = 0;
    }
}

static double x_of(const struct drawing *d, double value)
{
    return d->left + (d->right - d->left) * chart_scale_at(&d->x, value);
}

static double y_of(const struct drawing *d, double value)
{
    return d->bottom - (d->bottom - d->top) * chart_scale_at(&d->y, value);
}

/* ---- axes ---- */

static void put_text(const struct drawing *d, double x, double y, const char *attributes,
                     const char *text, int letters_max)
{
    fprintf(d->out, "<text x='%.1f' y='%.1f' %s>", x, y, attributes);
    markup_text_cut(d->out, text, letters_max);
    fputs("</text>\n", d->out);
}

static void put_labels(const struct drawing *d)
{
    for (size_t i = 0; i < d->chart->x.label_count; i++) {
        double x = x_of(d, (double)i), y = d->bottom + 18;
        char turned[96] = "text-anchor='middle'";
        if (d->is_turned)
            snprintf(turned, sizeof turned, "text-anchor='end' transform='rotate(-38 %.1f %.1f)'",
                     x + 4, y - 4);
        put_text(d, d->is_turned ? x + 4 : x, d->is_turned ? y - 4 : y, turned,
                 d->chart->x.labels[i], LABEL_LETTERS_MAX);
    }
}

static void put_axes(const struct drawing *d)
{
    const struct chart *chart = d->chart;
    char text[CHART_VALUE_BYTES];
    for (int i = 0; i < d->y.tick_count; i++) {
        double y = y_of(d, d->y.ticks[i]);
        fprintf(d->out, "<path class='grid' d='M%.1f %.1fH%.1f'/>\n", d->left, y, d->right);
        put_text(d, d->left - 8, y + 4, "text-anchor='end'",
                 chart_value(text, chart->y.unit, d->y.ticks[i]), CHART_VALUE_BYTES);
    }
    for (int i = 0; i < d->x.tick_count; i++) {
        double x = x_of(d, d->x.ticks[i]);
        fprintf(d->out, "<path class='axis' d='M%.1f %.1fv5'/>\n", x, d->bottom);
        put_text(d, x, d->bottom + 18, "text-anchor='middle'",
                 chart_value(text, chart->x.unit, d->x.ticks[i]), CHART_VALUE_BYTES);
    }
    put_labels(d);
    fprintf(d->out, "<path class='axis' d='M%.1f %.1fH%.1f'/>\n", d->left, d->bottom, d->right);
    if (chart->title)
        put_text(d, d->left, d->top - 16, "class='bold'", chart->title, 100);
    if (chart->y.title) /* after the title, if there is one */
        put_text(d,
                 d->left + (chart->title ? 14.0 + LETTER * 1.15 * format_width(chart->title) : 0.0),
                 d->top - 16, "class='soft'", chart->y.title, 60);
    if (chart->x.title)
        put_text(d, (d->left + d->right) / 2,
                 (chart->height ? chart->height : HEIGHT) - BOTTOM + 20.0,
                 "text-anchor='middle' class='soft'", chart->x.title, 80);
}

static void put_marks(const struct drawing *d)
{
    for (size_t i = 0; i < d->chart->mark_count; i++) {
        double x = x_of(d, d->chart->marks[i].x);
        if (!isfinite(x) || x < d->left || x > d->right)
            continue;
        bool is_late = x > (d->left + d->right) / 2;
        fprintf(d->out, "<path class='axis' stroke-dasharray='5 4' d='M%.1f %.1fV%.1f'/>\n", x,
                d->top, d->bottom);
        put_text(d, x + (is_late ? -6 : 6), d->top + 12 + 16.0 * (double)i,
                 is_late ? "text-anchor='end'" : "", d->chart->marks[i].text, 60);
    }
}

static void put_legend(const struct drawing *d)
{
    double y = d->top + 4;
    for (size_t i = 0; i < d->chart->series_count; i++) {
        const char *name = d->chart->series[i].name;
        if (!name)
            continue;
        fprintf(d->out, "<circle class='c%zu' fill='currentColor' cx='%.1f' cy='%.1f' r='5'/>",
                i % COLORS, d->right + 18, y);
        put_text(d, d->right + 29, y + 4, "", name, LEGEND_LETTERS_MAX);
        y += 19;
    }
}

/* ---- data ---- */

/* What is told when the pointer rests on it. */
static void put_hint(const struct drawing *d, size_t s, double px, double py)
{
    const struct chart *chart = d->chart;
    char x[CHART_VALUE_BYTES], y[CHART_VALUE_BYTES];
    bool has_label = has_labels(chart) && px >= 0 && px < (double)chart->x.label_count;
    fputs("<title>", d->out);
    if (chart->series[s].name) {
        markup_text_cut(d->out, chart->series[s].name, LEGEND_LETTERS_MAX);
        fputs(", ", d->out);
    }
    markup_text_cut(d->out,
                    has_label ? chart->x.labels[(size_t)px] : chart_value(x, chart->x.unit, px),
                    LABEL_LETTERS_MAX);
    fprintf(d->out, ": %s</title>", chart_value(y, chart->y.unit, py));
}

static void put_line(const struct drawing *d, size_t s)
{
    const struct chart_series *series = &d->chart->series[s];
    bool is_on = false;
    fprintf(d->out, "<g class='c%zu'><path fill='none' stroke='currentColor' stroke-width='2' d='",
            s % COLORS);
    for (size_t i = 0; i < series->count; i++) {
        double x = x_of(d, x_value(series, i)), y = y_of(d, series->y[i]);
        if (isfinite(x) && isfinite(y))
            fprintf(d->out, "%c%.1f %.1f", is_on ? 'L' : 'M', x, y);
        is_on = isfinite(x) && isfinite(y);
    }
    fputs("'/>\n", d->out);
    for (size_t i = 0; i < series->count; i++) {
        double px = x_value(series, i), x = x_of(d, px), y = y_of(d, series->y[i]);
        bool is_best = series->best >= 0 && (size_t)series->best == i;
        if (!isfinite(x) || !isfinite(y) || (series->count > DOTS_MAX && !is_best))
            continue;
        fprintf(d->out, "<circle fill='currentColor' cx='%.1f' cy='%.1f' r='%s'>", x, y,
                is_best ? "7" : "3.5");
        put_hint(d, s, px, series->y[i]);
        fputs("</circle>\n", d->out);
    }
    fputs("</g>\n", d->out);
}

static double height_under(const struct chart *chart, size_t s, size_t i)
{
    double sum = 0;
    for (size_t under = 0; under < s; under++)
        if (i < chart->series[under].count && isfinite(chart->series[under].y[i]))
            sum += chart->series[under].y[i];
    return sum;
}

static void put_bars(const struct drawing *d, size_t s)
{
    const struct chart *chart = d->chart;
    const struct chart_series *series = &chart->series[s];
    bool is_pile = is_stacked(chart);
    double slots = d->x.to - d->x.from < 1 ? 1 : d->x.to - d->x.from;
    double room = 0.8 * (d->right - d->left) / slots;
    double width = is_pile ? room : room / (double)chart->series_count;
    fprintf(d->out, "<g class='c%zu' fill='currentColor'>\n", s % COLORS);
    for (size_t i = 0; i < series->count; i++) {
        double px = x_value(series, i), under = is_pile ? height_under(chart, s, i) : 0;
        double x = x_of(d, px) - room / 2 + (is_pile ? 0 : width * (double)s);
        double top = y_of(d, under + series->y[i]);
        double base = under > 0 || !d->y.is_log ? y_of(d, under) : d->bottom;
        if (!isfinite(x) || !isfinite(top) || !isfinite(base))
            continue;
        fprintf(d->out, "<rect x='%.2f' y='%.2f' width='%.2f' height='%.2f'>", x,
                top < base ? top : base, width > 3 ? width - 1 : width, fabs(base - top));
        put_hint(d, s, px, series->y[i]);
        fputs("</rect>\n", d->out);
    }
    fputs("</g>\n", d->out);
}

/* From the left along its top, and back along the top of what is under it. */
static void put_area(const struct drawing *d, size_t s)
{
    const struct chart_series *series = &d->chart->series[s];
    char letter = 'M';
    fprintf(d->out, "<path class='c%zu' fill='currentColor' d='", s % COLORS);
    for (size_t i = 0; i < 2 * series->count; i++) {
        bool is_top = i < series->count;
        size_t at = is_top ? i : 2 * series->count - 1 - i;
        double x = x_of(d, x_value(series, at));
        double y = y_of(d, height_under(d->chart, s, at) + (is_top ? series->y[at] : 0));
        if (!isfinite(x) || !isfinite(y))
            continue;
        fprintf(d->out, "%c%.1f %.1f", letter, x, y);
        letter = 'L';
    }
    fputs("Z'>", d->out);
    if (series->name) {
        fputs("<title>", d->out);
        markup_text_cut(d->out, series->name, LEGEND_LETTERS_MAX);
        fputs("</title>", d->out);
    }
    fputs("</path>\n", d->out);
}

static void put_chart(FILE *out, const struct chart *chart)
{
    struct drawing d = {.out = out, .chart = chart};
    lay_out(&d);
    put_axes(&d);
    for (size_t s = 0; s < chart->series_count; s++)
        (chart->kind == CHART_LINES   ? put_line
         : chart->kind == CHART_AREAS ? put_area
                                      : put_bars)(&d, s);
    put_marks(&d);
    put_legend(&d);
}

void chart_sheet(FILE *out, const char *title, const char *note, const struct chart *charts,
                 size_t count)
{
    int width = 0, height = title || note ? SHEET_HEAD : 0, y = height;
    for (size_t i = 0; i < count; i++) {
        int own = charts[i].width ? charts[i].width : WIDTH;
        width = own > width ? own : width;
        height += charts[i].height ? charts[i].height : HEIGHT;
    }
    fprintf(out,
            "<svg xmlns='http://www.w3.org/2000/svg' class='wc' role='img' width='%d' height='%d' "
            "viewBox='0 0 %d %d'>\n%s<rect class='back' width='100%%' height='100%%'/>\n",
            width, height, width, height, style);
    const struct drawing head = {.out = out};
    if (title)
        put_text(&head, LEFT, 24, "class='head'", title, 80);
    if (note)
        put_text(&head, LEFT, 42, "class='soft'", note, 100);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "<g transform='translate(0 %d)'>\n", y);
        put_chart(out, &charts[i]);
        fputs("</g>\n", out);
        y += charts[i].height ? charts[i].height : HEIGHT;
    }
    fputs("</svg>\n", out);
}

void chart_svg(FILE *out, const struct chart *chart)
{
    chart_sheet(out, NULL, NULL, chart, 1);
}
