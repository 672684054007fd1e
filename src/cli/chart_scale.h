/* chart_scale.h - where the values of a chart's axis lie, and where its ticks are. Pure functions.
 */
#ifndef WEIR_CLI_CHART_SCALE_H
#define WEIR_CLI_CHART_SCALE_H

#include "cli/chart.h"

enum { CHART_TICKS_MAX = 24 };

struct chart_scale {
    double from, to; /* values at the ends; to > from */
    bool is_log;
    double ticks[CHART_TICKS_MAX];
    int tick_count;
};

/* lo and hi are the ends of the data; hi < lo: there are none. is_y: a linear axis has zero. */
void chart_scale_make(struct chart_scale *out, const struct chart_axis *axis, double lo, double hi,
                      bool is_y);
/* Where between 0 (from) and 1 (to); NAN if it cannot be shown. */
double chart_scale_at(const struct chart_scale *scale, double value);

#endif
