/* s3_time.c - see s3_time.h. Calendars are counted here: the C library's depend on the zone and
 * on the language, and take what is not a date. */
#include "tier/s3_time.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/sys.h"

enum { DAY_S = 86400, CLOCK_SLACK_S = 2 };

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t days_before_year(int64_t year) /* since 1970 */
{
    int64_t y = year - 1;
    return (y * 365 + y / 4 - y / 100 + y / 400) - 719162;
}

static int64_t month_days(int64_t year, unsigned month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month] + (month == 1 && is_leap(year));
}

struct date {
    unsigned year, month, day, hour, minute, second; /* month from 0 */
};

static bool date_time(int64_t *out_s, const struct date *d)
{
    if (d->year < 1970 || d->year > 9999 || d->month > 11 || d->day < 1 ||
        d->day > month_days(d->year, d->month) || d->hour > 23 || d->minute > 59 || d->second > 60)
        return false;
    int64_t days = days_before_year(d->year) + d->day - 1;
    for (unsigned month = 0; month < d->month; month++)
        days += month_days(d->year, month);
    *out_s = ((days * 24 + d->hour) * 60 + d->minute) * 60 + d->second;
    return true;
}

/* Reads a pattern: a letter for each digit of a number, everything else as it stands. */
static bool match(struct date *out, const char *text, const char *pattern)
{
    struct date d = {0};
    for (; *pattern; pattern++, text++) {
        static const char letters[] = "Ymdhis";
        const char *which = strchr(letters, *pattern);
        unsigned *const fields[] = {&d.year, &d.month, &d.day, &d.hour, &d.minute, &d.second};
        if (!which && *text != *pattern)
            return false;
        if (!which)
            continue;
        if (*text < '0' || *text > '9')
            return false;
        unsigned *field = fields[which - letters];
        *field = *field * 10 + (unsigned)(*text - '0');
    }
    *out = d;
    return true;
}

bool weir_s3_time_http(int64_t *out_s, const char *text, size_t size)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    static const char days[] = "MonTueWedThuFriSatSun";
    char copy[30], name[4];
    struct date d;
    if (size != 29 || memchr(text, 0, size))
        return false;
    memcpy(copy, text, size);
    copy[size] = 0;
    snprintf(name, sizeof name, "%.3s", copy);
    const char *day = strstr(days, name);
    snprintf(name, sizeof name, "%.3s", copy + 8);
    const char *month = strstr(months, name);
    if (!day || (day - days) % 3 || !month || (month - months) % 3)
        return false;
    copy[8] = copy[9] = copy[10] = '-';
    if (!match(&d, copy + 3, ", dd --- YYYY hh:ii:ss") || memcmp(copy + 25, " GMT", 4))
        return false;
    d.month = (unsigned)(month - months) / 3;
    return date_time(out_s, &d);
}

bool weir_s3_time_iso(int64_t *out_ns, const char *text, size_t size)
{
    char copy[48];
    struct date d;
    int64_t seconds, fraction = 0, unit = 1000000000;
    if (size < 19 || size >= sizeof copy || memchr(text, 0, size))
        return false;
    memcpy(copy, text, size);
    copy[size] = 0;
    if (!match(&d, copy, "YYYY-mm-ddThh:ii:ss") || !d.month--)
        return false;
    const char *at = copy + 19;
    if (*at == '.') {
        const char *digits = ++at;
        for (; *at >= '0' && *at <= '9'; at++, unit /= 10)
            fraction += unit > 1 ? (*at - '0') * (unit / 10) : 0;
        if (at == digits)
            return false;
    }
    /* Everybody writes UTC, in one of these ways; another zone would be read wrong. */
    if (strcmp(at, "Z") && strcmp(at, "+00:00") && strcmp(at, "+0000") && strcmp(at, "UTC"))
        return false;
    if (!date_time(&seconds, &d) || __builtin_mul_overflow(seconds, (int64_t)1000000000, out_ns))
        return false;
    return !__builtin_add_overflow(*out_ns, fraction, out_ns);
}

void weir_s3_time_stamp(char out[17], int64_t time_s)
{
    int64_t day = time_s / DAY_S, second = time_s % DAY_S, year;
    unsigned month = 0;
    assert(time_s >= 0 && day < days_before_year(10000));
    year = 1970 + day / 366; /* this one or a few before the right one */
    while (days_before_year(year + 1) <= day)
        year++;
    day -= days_before_year(year);
    while (day >= month_days(year, month))
        day -= month_days(year, month++);
    char text[64];
    snprintf(text, sizeof text, "%04d%02u%02dT%02d%02d%02dZ", (int)year, month + 1, (int)day + 1,
             (int)(second / 3600), (int)(second / 60 % 60), (int)(second % 60));
    memcpy(out, text, 16);
    out[16] = 0;
}

static int64_t own_time(void)
{
    return (int64_t)(weir_sys->now_ns(WEIR_CLOCK_REAL) / 1000000000);
}

/* Kept within years that can be written, however wrong either clock is. */
int64_t weir_s3_clock_now(const struct weir_s3_clock *clock)
{
    int64_t now = own_time() + atomic_load_explicit(&clock->offset_s, memory_order_relaxed);
    int64_t last = days_before_year(10000) * DAY_S - 1;
    return now < 0 ? 0 : now > last ? last : now;
}

void weir_s3_clock_learn(struct weir_s3_clock *clock, int64_t date_s)
{
    int64_t now = weir_s3_clock_now(clock);
    if (date_s - now > CLOCK_SLACK_S || now - date_s > CLOCK_SLACK_S)
        atomic_store_explicit(&clock->offset_s, date_s - own_time(), memory_order_relaxed);
}

bool weir_s3_etag(char out[WEIR_S3_ETAG_MAX], const char *text, size_t size)
{
    if (size > 2 && !memcmp(text, "W/", 2))
        text += 2, size -= 2;
    if (size >= 2 && text[0] == '"' && text[size - 1] == '"')
        text++, size -= 2;
    if (!size || size >= WEIR_S3_ETAG_MAX)
        return false;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] <= 0x20 || (unsigned char)text[i] >= 0x7f || text[i] == '"')
            return false;
    memcpy(out, text, size);
    out[size] = 0;
    return true;
}

bool weir_s3_number(uint64_t *out, const char *text, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
            return false;
    }
    *out = value;
    return size > 0;
}
