/* format.c - see format.h. */
#include "cli/format.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/opt.h"

enum { NS_PER_S = 1000000000, NAME_WIDTH = 14, LINE_WIDTH = 80 };

int format_width(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80; /* not in the middle of a character */
    return width;
}

int format_padding(const char *text, int width)
{
    int have = format_width(text);
    return have < width ? width - have : 0;
}

const char *format_time(char out[FORMAT_TIME_BYTES], uint64_t time_ns)
{
    struct tm tm = {0};
    time_t s = (time_t)(time_ns / NS_PER_S);
    localtime_r(&s, &tm);
    strftime(out, FORMAT_TIME_BYTES, "%Y-%m-%d %H:%M:%S", &tm);
    return out;
}

const char *format_time_json(char out[FORMAT_TIME_BYTES], uint64_t time_ns)
{
    struct tm tm = {0};
    time_t s = (time_t)(time_ns / NS_PER_S);
    gmtime_r(&s, &tm);
    size_t used = strftime(out, FORMAT_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + used, FORMAT_TIME_BYTES - used, ".%09uZ", (unsigned)(time_ns % NS_PER_S));
    return out;
}

const char *format_duration(char out[FORMAT_TIME_BYTES], uint64_t s)
{
    static const struct {
        uint64_t s;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    unsigned i = 0;
    while (s % units[i].s)
        i++;
    snprintf(out, FORMAT_TIME_BYTES, "%llu %s", (unsigned long long)(s / units[i].s),
             units[i].name);
    return out;
}

const char *format_span(char out[FORMAT_TIME_BYTES], uint64_t ns)
{
    double s = (double)ns / NS_PER_S;
    if (ns < 1000000)
        snprintf(out, FORMAT_TIME_BYTES, "%.2g ms", s * 1e3);
    else if (s < 0.9995)
        snprintf(out, FORMAT_TIME_BYTES, "%.0f ms", s * 1e3);
    else if (s < 99.95)
        snprintf(out, FORMAT_TIME_BYTES, "%.*f s", s < 9.995 ? 2 : 1, s);
    else
        snprintf(out, FORMAT_TIME_BYTES, "%.0f:%02u min", (double)(ns / NS_PER_S / 60),
                 (unsigned)(ns / NS_PER_S % 60));
    return out;
}

const char *format_kind(weir_kind kind)
{
    return kind == WEIR_KIND_SEALED ? "sealed" : "foreign";
}

int format_bar(double value, double most)
{
    int cells = most > 0 ? (int)(value / most * FORMAT_BAR_COLUMNS + 0.5) : 0;
    cells = cells < 0 ? 0 : cells > FORMAT_BAR_COLUMNS ? FORMAT_BAR_COLUMNS : cells;
    printf("%.*s", cells, "########################################");
    return FORMAT_BAR_COLUMNS - cells;
}

void format_bin(uint64_t from_bytes, uint64_t count, uint64_t most)
{
    char from[32];
    printf("  from %9s  ", weir_format_size(from, sizeof from, from_bytes));
    int left = format_bar((double)count, (double)most);
    printf("%*s  %" PRIu64 "\n", left, "", count);
}

void format_field(const char *name, const char *fmt, ...)
{
    va_list args;
    printf("%s%*s", name, format_padding(name, NAME_WIDTH), "");
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
}

void format_wrap(const char *text, int at, int indent)
{
    int column = at;
    while (*text) {
        if (*text == '\n') {
            printf("\n");
            column = 0;
            text++;
            continue;
        }
        size_t size = strcspn(text, " \n");
        char word[256];
        snprintf(word, sizeof word, "%.*s", (int)size, text);
        int width = format_width(word);
        if (column > indent && column + 1 + width > LINE_WIDTH) {
            printf("\n");
            column = 0;
        }
        if (column < indent)
            column += printf("%*s", indent - column, "");
        else if (column > indent)
            column += printf(" ");
        printf("%s", word);
        column += width;
        text += size;
        text += strspn(text, " ");
    }
    printf("\n");
}
