/* answer.c - see answer.h. */
#include "plan/answer.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plan/file.h"
#include "util/err.h"

static const double year_s = 365 * 86400.0;

void weir_plan_figure(struct weir_plan_answer *a, const char *key, const char *name,
                      enum weir_plan_unit unit, double value)
{
    assert(a->figure_count < WEIR_PLAN_FIGURES_MAX && !isnan(value));
    a->figures[a->figure_count++] = (struct weir_plan_figure){key, name, unit, value};
}

static void add_line(struct weir_plan_lines *lines, const char *fmt, va_list args)
{
    assert(lines->count < WEIR_PLAN_LINES_MAX);
    vsnprintf(lines->at[lines->count++], WEIR_PLAN_LINE_MAX, fmt, args);
}

void weir_plan_assume(struct weir_plan_answer *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_line(&a->assumptions, fmt, args);
    va_end(args);
}

void weir_plan_change(struct weir_plan_answer *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_line(&a->changes, fmt, args);
    va_end(args);
}

void weir_plan_bottleneck(struct weir_plan_answer *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(a->bottleneck, sizeof a->bottleneck, fmt, args);
    va_end(args);
}

void weir_plan_publish(struct weir_plan_answer *a, struct weir_plan_published one)
{
    assert(a->published_count < WEIR_PLAN_LINES_MAX);
    a->published[a->published_count++] = one;
}

int weir_plan_missing(const char *option, const char *why)
{
    for (const struct weir_plan_key *key = weir_plan_keys; key->section; key++) {
        char name[WEIR_PLAN_VALUE_MAX];
        if (!strcmp(key->opt.name, option))
            return weir_fail(EINVAL, "--%s is missing%s%s (in a plan file: %s.%s)", option,
                             why ? ": " : "", why ? why : "", key->section,
                             weir_plan_key_name(name, key));
    }
    assert(!"a key that is in no table");
    return -EINVAL;
}

/* ---- figures as text ---- */

/* Four digits, without zeros at the end that say nothing. */
static void put_digits(char *out, size_t size, double value)
{
    int decimals = value == 0 ? 0 : 3 - (int)floor(log10(fabs(value)));
    decimals = decimals < 0 ? 0 : decimals > 6 ? 6 : decimals;
    snprintf(out, size, "%.*f", decimals, value);
    if (!strchr(out, '.'))
        return;
    size_t end = strlen(out);
    while (out[end - 1] == '0')
        end--;
    out[out[end - 1] == '.' ? end - 1 : end] = 0;
}

/* With k, M, G in front of the unit, so that there are at most four digits before the point. */
static void put_scaled(char *out, const char *unit)
{
    snprintf(out + strlen(out), WEIR_PLAN_TEXT_MAX - strlen(out), "%s", unit);
}

static void put_metric(char *out, double value, const char *const names[7])
{
    unsigned i = 0;
    while (i < 6 && value >= 999.95)
        value /= 1000, i++;
    put_digits(out, WEIR_PLAN_TEXT_MAX, value);
    put_scaled(out, names[i]);
}

static void put_time(char *out, double s)
{
    static const struct {
        double below, unit;
        const char *name;
    } units[] = {
        {1e-6, 1e-9, " ns"},
        {1e-3, 1e-6, " us"},
        {1, 1e-3, " ms"},
        {120, 1, " s"},
        {7200, 60, " min"},
        {72 * 3600, 3600, " h"},
        {2 * 365 * 86400.0, 86400, " d"},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (s < units[i].below) {
            put_digits(out, WEIR_PLAN_TEXT_MAX, s / units[i].unit);
            put_scaled(out, s == 0 ? " s" : units[i].name);
            if (s == 0)
                snprintf(out, WEIR_PLAN_TEXT_MAX, "0 s");
            return;
        }
    if (s / year_s >= 1e6)
        snprintf(out, WEIR_PLAN_TEXT_MAX, "%.3g years", s / year_s);
    else {
        put_digits(out, WEIR_PLAN_TEXT_MAX, s / year_s);
        put_scaled(out, " years");
    }
}

/* Whole numbers with commas between thousands. */
static void put_grouped(char *out, double value, const char *before)
{
    char digits[64];
    snprintf(digits, sizeof digits, "%.0f", value);
    size_t used = (size_t)snprintf(out, WEIR_PLAN_TEXT_MAX, "%s", before), size = strlen(digits);
    for (size_t i = 0; i < size && used + 2 < WEIR_PLAN_TEXT_MAX; i++) {
        out[used++] = digits[i];
        if (i + 1 < size && (size - i - 1) % 3 == 0 && digits[i] != '-')
            out[used++] = ',';
    }
    out[used] = 0;
}

static void put_usd(char *out, double value, const char *after)
{
    if (value < 1e12) {
        if (value < 100)
            snprintf(out, WEIR_PLAN_TEXT_MAX, value < 1 && value > 0 ? "$%.3g" : "$%.2f", value);
        else
            put_grouped(out, value, "$");
    } else
        snprintf(out, WEIR_PLAN_TEXT_MAX, "$%.4g", value);
    put_scaled(out, after);
}

static void put_share(char *out, double value)
{
    if (value > 0 && value < 0.0001)
        snprintf(out, WEIR_PLAN_TEXT_MAX, "< 0.01 %%");
    else
        snprintf(out, WEIR_PLAN_TEXT_MAX, "%.2f %%", 100 * value);
}

static void put_count(char *out, double value)
{
    if (value >= 1e15)
        snprintf(out, WEIR_PLAN_TEXT_MAX, "%.4g", value);
    else
        put_grouped(out, value, "");
}

const char *weir_plan_text(char out[WEIR_PLAN_TEXT_MAX], enum weir_plan_unit unit, double value)
{
    static const char *const bytes[] = {" B", " kB", " MB", " GB", " TB", " PB", " EB"};
    static const char *const rates[] = {" B/s",  " kB/s", " MB/s", " GB/s",
                                        " TB/s", " PB/s", " EB/s"};
    static const char *const each[] = {"/s",          "K/s",   "M/s",  " billion/s",
                                       " trillion/s", "e15/s", "e18/s"};
    static const char *const many[] = {"", "K", "M", "B", "T", "e15", "e18"};
    if (isinf(value))
        snprintf(out, WEIR_PLAN_TEXT_MAX, unit == WEIR_PLAN_S ? "never" : "no limit");
    else if (unit == WEIR_PLAN_BYTES)
        put_metric(out, value, bytes);
    else if (unit == WEIR_PLAN_BYTES_PER_S)
        put_metric(out, value, rates);
    else if (unit == WEIR_PLAN_PER_S)
        put_metric(out, value, each);
    else if (unit == WEIR_PLAN_MANY)
        put_metric(out, value, many);
    else if (unit == WEIR_PLAN_S)
        put_time(out, value);
    else if (unit == WEIR_PLAN_USD || unit == WEIR_PLAN_USD_PER_MONTH)
        put_usd(out, value, unit == WEIR_PLAN_USD ? "" : " a month");
    else if (unit == WEIR_PLAN_SHARE)
        put_share(out, value);
    else if (unit == WEIR_PLAN_CHANCE)
        snprintf(out, WEIR_PLAN_TEXT_MAX, "%.3g", value);
    else if (unit == WEIR_PLAN_COUNT)
        put_count(out, value);
    else
        put_digits(out, WEIR_PLAN_TEXT_MAX, value);
    return out;
}

const char *weir_plan_say(enum weir_plan_unit unit, double value)
{
    enum { BUFFERS = 12 };
    static _Thread_local char texts[BUFFERS][WEIR_PLAN_TEXT_MAX];
    static _Thread_local unsigned next;
    return weir_plan_text(texts[next++ % BUFFERS], unit, value);
}
