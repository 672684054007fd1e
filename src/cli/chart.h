/* chart.h - the one writer of charts, as SVG: lines with points, or bars, over axes that are linear
 * or logarithmic, with ticks at round values of their unit. A chart is data; what it points to is
 * borrowed. Values that are not finite, or not positive on a logarithmic axis, are left out. Texts
 * may be any bytes. Colours follow the reader's light or dark setting; a point tells its values
 * when the pointer rests on it.
 */
#ifndef WEIR_CLI_CHART_H
#define WEIR_CLI_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum chart_unit {
    CHART_NUMBER,      /* "1500", "20 k" */
    CHART_BYTES,       /* "64 KiB" */
    CHART_BYTES_PER_S, /* "1.5 GiB/s" */
    CHART_SECONDS,     /* "20 ms", "4 h" */
    CHART_SHARE,       /* of one: "35 %" */
    CHART_DOLLARS,     /* "$1.4 M" */
};

enum chart_kind {
    CHART_LINES,
    CHART_BARS,    /* beside each other, for each label of the x axis */
    CHART_STACKED, /* on top of each other */
    CHART_AREAS,   /* the same over an axis of values: all series have the same x */
};

struct chart_axis {
    const char *title; /* may be NULL */
    enum chart_unit unit;
    bool is_log;
    double min, max; /* what it has to show at least, besides the data; both 0: nothing more. A
                        linear y axis begins at zero, or below */
    const char *const *labels; /* x only: values are 0, 1, 2, …, which have these names */
    size_t label_count;
};

struct chart_series {
    const char *name; /* in the legend, which is there if any series has a name */
    const double *x;  /* NULL: 0, 1, 2, … */
    const double *y;
    size_t count;
    int best; /* this point is drawn larger; CHART_NO_BEST: none is */
};
enum { CHART_NO_BEST = -1 };

/* A line across the chart at some x, with a few words. */
struct chart_mark {
    double x;
    const char *text;
};

struct chart {
    enum chart_kind kind;
    const char *title; /* may be NULL */
    struct chart_axis x, y;
    const struct chart_series *series;
    size_t series_count;
    const struct chart_mark *marks;
    size_t mark_count;
    int width, height; /* 0: 720 and 280 */
};

/* One SVG. */
void chart_svg(FILE *out, const struct chart *chart);
/* One SVG with all of them below each other. title and note may be NULL. */
void chart_sheet(FILE *out, const char *title, const char *note, const struct chart *charts,
                 size_t count);

/* A value as a chart writes it. */
enum { CHART_VALUE_BYTES = 32 };
const char *chart_value(char out[CHART_VALUE_BYTES], enum chart_unit unit, double value);

#endif
