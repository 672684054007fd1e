/* opt.c - see opt.h. */
#include "util/opt.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/err.h"

struct unit {
    const char *name;
    double factor;
};

static const struct unit sizes[] = {
    {"", 1},       {"B", 1},          {"K", 1024.0},     {"M", 1048576.0}, {"G", 1073741824.0},
    {"T", 0x1p40}, {"P", 0x1p50},     {"KiB", 1024.0},   {"MiB", 0x1p20},  {"GiB", 0x1p30},
    {"TiB", 0x1p40}, {"PiB", 0x1p50}, {"kB", 1e3},       {"MB", 1e6},      {"GB", 1e9},
    {"TB", 1e12},  {"PB", 1e15},      {"EB", 1e18},      {NULL, 0},
};
static const struct unit bits[] = {
    {"Kbit", 125}, {"Mbit", 125e3}, {"Gbit", 125e6}, {"Tbit", 125e9}, {NULL, 0},
};
static const struct unit counts[] = {
    {"", 1}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {NULL, 0},
};
static const struct unit durations[] = {
    {"", 1e9},  {"s", 1e9},    {"ms", 1e6},   {"us", 1e3},     {"ns", 1},
    {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9}, {"y", 365 * 86400e9}, {NULL, 0},
};

/* A plain decimal number: no sign, no exponent, no "inf". */
static int parse_decimal(double *out, const char *text, const char **end)
{
    if (!isdigit((unsigned char)*text) && *text != '.')
        return -EINVAL;
    size_t span = strspn(text, "0123456789.");
    char digits[64], *stop;
    if (span >= sizeof digits)
        return -EINVAL;
    memcpy(digits, text, span);
    digits[span] = 0;
    *out = strtod(digits, &stop);
    if (*stop || stop == digits)
        return -EINVAL;
    *end = text + span;
    return 0;
}

static int parse_amount(double *out, const char *text, const struct unit *units, const char *what)
{
    double value;
    const char *end;
    if (parse_decimal(&value, text, &end))
        return weir_fail(EINVAL, "'%s' is not a %s", text, what);
    for (const struct unit *u = units; u->name; u++) {
        if (strcmp(u->name, end) && (strlen(end) != 1 || strcasecmp(u->name, end)))
            continue;
        value *= u->factor;
        if (value >= 0x1p63) /* llround() takes no more */
            return weir_fail(EINVAL, "'%s' is too large a %s", text, what);
        *out = value;
        return 0;
    }
    return weir_fail(EINVAL, "'%s' is not a %s", text, what);
}

static int parse_unit(uint64_t *out, const char *text, const struct unit *units, const char *what)
{
    double value;
    int code = parse_amount(&value, text, units, what);
    if (!code)
        *out = (uint64_t)llround(value);
    return code;
}

int weir_parse_size(uint64_t *out, const char *text)
{
    return parse_unit(out, text, sizes, "size (try 4096, 64K or 1.5G)");
}

int weir_parse_duration(uint64_t *out, const char *text)
{
    return parse_unit(out, text, durations, "duration (try 30s, 5ms or 7d)");
}

int weir_parse_count(uint64_t *out, const char *text)
{
    double value;
    int code = parse_amount(&value, text, counts, "number (try 512, 100K or 70B)");
    if (code)
        return code;
    if (fabs(value - round(value)) > 1e-3) /* 1.1M is whole, though 1.1 is no binary number */
        return weir_fail(EINVAL, "'%s' is not a whole number", text);
    *out = (uint64_t)llround(value);
    return 0;
}

int weir_parse_rate(uint64_t *out, const char *text)
{
    static const char what[] = "rate (try 500MB/s, 15GB/s or 400Gbit/s)";
    char amount[64];
    size_t size = strlen(text);
    if (size > 2 && !strcmp(text + size - 2, "/s"))
        size -= 2;
    if (size >= sizeof amount)
        return weir_fail(EINVAL, "'%s' is not a %s", text, what);
    memcpy(amount, text, size);
    amount[size] = 0;
    return parse_unit(out, amount, strstr(amount, "bit") ? bits : sizes, what);
}

const char *weir_format_size(char *out, size_t size, uint64_t bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    unsigned i = 0;
    while (value >= 1023.95 && i < 5)
        value /= 1024, i++;
    snprintf(out, size, i && value < 99.95 ? "%.1f %s" : "%.0f %s", value, names[i]);
    return out;
}

static int range_check(const struct weir_opt *opt, const char *value, double number)
{
    if (number < opt->min || (opt->max != 0 && number > opt->max))
        return weir_fail(EINVAL, "%s: '%s' is out of range (%.15g to %.15g)", opt->name, value,
                         opt->min, opt->max != 0 ? opt->max : HUGE_VAL);
    return 0;
}

static int set_flag(const struct weir_opt *opt, bool *field, const char *value)
{
    if (!strcmp(value, "") || !strcmp(value, "1") || !strcmp(value, "yes"))
        *field = true;
    else if (!strcmp(value, "0") || !strcmp(value, "no"))
        *field = false;
    else
        return weir_fail(EINVAL, "%s: '%s' is neither 1 nor 0", opt->name, value);
    return 0;
}

static int set_number(const struct weir_opt *opt, uint64_t *field, const char *value)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (!isdigit((unsigned char)*value) || *end || errno)
        return weir_fail(EINVAL, "%s: '%s' is not a number", opt->name, value);
    int code = range_check(opt, value, (double)number);
    if (!code)
        *field = number;
    return code;
}

static int set_unit(const struct weir_opt *opt, uint64_t *field, const char *value)
{
    bool is_time = opt->type == WEIR_OPT_DURATION;
    uint64_t number = 0;
    int code = opt->type == WEIR_OPT_SIZE    ? weir_parse_size(&number, value)
               : opt->type == WEIR_OPT_COUNT ? weir_parse_count(&number, value)
               : opt->type == WEIR_OPT_RATE  ? weir_parse_rate(&number, value)
                                             : weir_parse_duration(&number, value);
    if (code)
        return weir_fail_in(code, "%s", opt->name);
    code = range_check(opt, value, is_time ? (double)number / 1e9 : (double)number);
    if (!code)
        *field = number;
    return code;
}

static int set_ratio(const struct weir_opt *opt, double *field, const char *value)
{
    double number;
    const char *end;
    if (parse_decimal(&number, value, &end) || *end)
        return weir_fail(EINVAL, "%s: '%s' is not a number", opt->name, value);
    int code = range_check(opt, value, number);
    if (!code)
        *field = number;
    return code;
}

static int add_text(const struct weir_opt *opt, struct weir_texts *field, const char *value)
{
    if (field->count == WEIR_TEXTS_MAX)
        return weir_fail(E2BIG, "%s: given more than %d times", opt->name, WEIR_TEXTS_MAX);
    field->text[field->count++] = value;
    return 0;
}

int weir_opt_set(const struct weir_opt *opt, void *fields, const char *value)
{
    void *field = (char *)fields + opt->at;
    switch (opt->type) {
    case WEIR_OPT_FLAG:
        return set_flag(opt, field, value);
    case WEIR_OPT_NUMBER:
        return set_number(opt, field, value);
    case WEIR_OPT_SIZE:
    case WEIR_OPT_DURATION:
    case WEIR_OPT_COUNT:
    case WEIR_OPT_RATE:
        return set_unit(opt, field, value);
    case WEIR_OPT_RATIO:
        return set_ratio(opt, field, value);
    case WEIR_OPT_TEXT:
        *(const char **)field = value;
        return 0;
    case WEIR_OPT_TEXTS:
        return add_text(opt, field, value);
    }
    assert(!"an option type without a setter");
    return -EINVAL;
}

void weir_opt_defaults(const struct weir_opt *table, void *fields)
{
    for (const struct weir_opt *opt = table; opt->name; opt++)
        if (opt->def) {
            int code = weir_opt_set(opt, fields, opt->def);
            assert(code == 0);
            (void)code;
        }
}

const struct weir_opt *weir_opt_find(const struct weir_opt *table, const char *name)
{
    for (const struct weir_opt *opt = table; opt->name; opt++)
        if (!strcmp(opt->name, name))
            return opt;
    return NULL;
}
