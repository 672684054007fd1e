/* chart_scale.c - see chart_scale.h. */
#include "cli/chart_scale.h"

#include <math.h>

enum { INTERVALS = 5, LOG_TICKS = 8 };

/* A step of about span / INTERVALS that people count in. */
static double step_of(enum chart_unit unit, double span)
{
    static const double tens[] = {1, 2, 5, 10}, sixty[] = {1, 2, 5, 10, 15, 30, 60};
    double want = span / INTERVALS, base = 1;
    if (unit == CHART_BYTES || unit == CHART_BYTES_PER_S)
        return exp2(ceil(log2(want)));
    if (unit == CHART_SECONDS && want > 1 && want <= 3600) {
        base = want > 60 ? 60 : 1;
        for (size_t i = 0; i < sizeof sixty / sizeof sixty[0]; i++)
            if (base * sixty[i] >= want)
                return base * sixty[i];
    }
    if (unit == CHART_SECONDS && want > 3600) /* hours, quarters of days, days */
        return want <= 7200 ? 7200 : want <= 21600 ? 21600 : 86400 * ceil(want / 86400);
    base = pow(10, floor(log10(want)));
    for (size_t i = 0; i < sizeof tens / sizeof tens[0]; i++)
        if (base * tens[i] >= want * (1 - 1e-9))
            return base * tens[i];
    return base * 10;
}

static void make_linear(struct chart_scale *out, enum chart_unit unit, double lo, double hi,
                        bool is_y)
{
    if (hi <= lo)
        hi = lo + (lo ? fabs(lo) : 1);
    double step = step_of(unit, hi - lo);
    double first = floor(lo / step + 1e-9), last = ceil(hi / step - 1e-9);
    out->from = is_y ? first * step : lo;
    out->to = is_y ? last * step : hi;
    for (double i = first; i <= last && out->tick_count < CHART_TICKS_MAX; i++)
        if (i * step >= out->from - step * 1e-9 && i * step <= out->to + step * 1e-9)
            out->ticks[out->tick_count++] = i * step;
}

/* Times that people count in, every n-th of those that are on the axis. */
static void tick_times(struct chart_scale *out)
{
    static const double times[] = {1,     2,     5,      10,     20,     30,      60,      120,
                                   300,   600,   1200,   1800,   3600,   7200,    14400,   28800,
                                   43200, 86400, 172800, 345600, 864000, 1728000, 3456000, 8640000};
    size_t count = sizeof times / sizeof times[0], first = 0, last = 0;
    for (size_t i = 0; i < count; i++) {
        first += times[i] < out->from * (1 - 1e-9);
        last += times[i] <= out->to * (1 + 1e-9);
    }
    size_t stride = (last - first + LOG_TICKS - 1) / LOG_TICKS;
    out->tick_count = 0;
    for (size_t i = first; i < last; i += stride)
        out->ticks[out->tick_count++] = times[i];
}

static void make_log(struct chart_scale *out, enum chart_unit unit, double lo, double hi, bool is_y)
{
    bool is_binary = unit == CHART_BYTES || unit == CHART_BYTES_PER_S || hi / lo < 1000;
    double base = is_binary ? 2 : 10;
    double first = floor(log(lo) / log(base) + 1e-9), last = ceil(log(hi) / log(base) - 1e-9);
    if (last <= first)
        last = first + 1;
    out->from = is_y || hi <= lo ? pow(base, first) : lo;
    out->to = is_y || hi <= lo ? pow(base, last) : hi;
    double stride = ceil((last - first) / LOG_TICKS);
    for (double i = first; i <= last && out->tick_count < CHART_TICKS_MAX; i += stride) {
        double value = pow(base, i);
        if (value >= out->from * (1 - 1e-9) && value <= out->to * (1 + 1e-9))
            out->ticks[out->tick_count++] = value;
    }
    if (unit == CHART_SECONDS && out->from >= 1 && out->to >= 10 * out->from && out->to <= 1e7)
        tick_times(out);
}

void chart_scale_make(struct chart_scale *out, const struct chart_axis *axis, double lo, double hi,
                      bool is_y)
{
    *out = (struct chart_scale){.is_log = axis->is_log};
    if (axis->min || axis->max) {
        lo = hi < lo || axis->min < lo ? axis->min : lo;
        hi = hi < lo || axis->max > hi ? axis->max : hi;
    }
    if (hi < lo) {
        lo = axis->is_log ? 1 : 0;
        hi = axis->is_log ? 10 : 1;
    }
    if (axis->is_log) {
        make_log(out, axis->unit, lo > 0 ? lo : hi > 0 ? hi / 1000 : 1, hi > 0 ? hi : 10, is_y);
        return;
    }
    if (is_y && lo > 0)
        lo = 0;
    if (is_y && hi < 0)
        hi = 0;
    make_linear(out, axis->unit, lo, hi, is_y);
}

double chart_scale_at(const struct chart_scale *scale, double value)
{
    if (!isfinite(value) || (scale->is_log && value <= 0))
        return NAN;
    if (scale->is_log)
        return log(value / scale->from) / log(scale->to / scale->from);
    return (value - scale->from) / (scale->to - scale->from);
}
