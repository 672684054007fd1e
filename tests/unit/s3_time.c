/* Times and entity tags as servers write them; what is none is refused. */
#include "test.h"
#include "tier/s3_time.h"
#include "util/sys.h"

static bool http(const char *text, int64_t *out)
{
    return weir_s3_time_http(out, text, strlen(text));
}

static bool iso(const char *text, int64_t *out)
{
    return weir_s3_time_iso(out, text, strlen(text));
}

static void http_dates(void)
{
    static const char *const bad[] = {
        "",
        "Sun, 06 Nov 1994 08:49:37",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 ovD 1994 08:49:37 GMT",
        "unM, 06 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 2100 00:00:00 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1969 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, -6 Nov 1994 08:49:37 GMT",
    };
    int64_t s = 0;
    CHECK(http("Sun, 06 Nov 1994 08:49:37 GMT", &s));
    CHECK_EQ(s, 784111777);
    CHECK(http("Thu, 01 Jan 1970 00:00:00 GMT", &s));
    CHECK_EQ(s, 0);
    CHECK(http("Thu, 29 Feb 2024 23:59:59 GMT", &s));
    CHECK_EQ(s, 1709251199);
    CHECK(http("Fri, 31 Dec 9999 23:59:59 GMT", &s));
    CHECK_EQ(s, 253402300799);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!http(bad[i], &s));
}

static void iso_dates(void)
{
    static const char *const bad[] = {
        "",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-01-31 12:00:00Z",
        "2026-00-31T12:00:00Z",
        "2026-13-31T12:00:00Z",
        "2026-02-29T12:00:00Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00+01:00",
        "2026-01-31T12:00:00Zx",
        "9999-01-31T12:00:00Z",
        "2026-01-31T12:60:00Z",
    };
    int64_t ns = 0;
    CHECK(iso("1994-11-06T08:49:37Z", &ns));
    CHECK_EQ(ns, 784111777000000000);
    CHECK(iso("1994-11-06T08:49:37.000Z", &ns));
    CHECK_EQ(ns, 784111777000000000);
    CHECK(iso("1994-11-06T08:49:37.123456789123Z", &ns));
    CHECK_EQ(ns, 784111777123456789);
    CHECK(iso("1994-11-06T08:49:37.5+00:00", &ns));
    CHECK_EQ(ns, 784111777500000000);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!iso(bad[i], &ns));
}

/* A stamp of every day for centuries reads back as itself. */
static void stamps(void)
{
    char stamp[17], text[32];
    for (int64_t day = 0; day < 366 * 250; day++) {
        int64_t s = day * 86400 + day % 86400, ns;
        weir_s3_time_stamp(stamp, s);
        snprintf(text, sizeof text, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", stamp, stamp + 4, stamp + 6,
                 stamp + 9, stamp + 11, stamp + 13);
        CHECK(iso(text, &ns));
        CHECK_EQ(ns, s * 1000000000);
    }
    weir_s3_time_stamp(stamp, 253402300799);
    CHECK(!strcmp(stamp, "99991231T235959Z"));
}

static uint64_t own_s = 1000000000;

static uint64_t test_now(enum weir_clock clock)
{
    (void)clock;
    return own_s * 1000000000 + 1;
}

static void clocks(void)
{
    struct weir_sys table = weir_sys_real;
    struct weir_s3_clock clock = {0};
    table.now_ns = test_now;
    weir_sys = &table;
    CHECK_EQ(weir_s3_clock_now(&clock), 1000000000);
    weir_s3_clock_learn(&clock, 1000000002); /* the way of the answer */
    CHECK_EQ(weir_s3_clock_now(&clock), 1000000000);
    weir_s3_clock_learn(&clock, 1000086400);
    CHECK_EQ(weir_s3_clock_now(&clock), 1000086400);
    own_s += 10;
    weir_s3_clock_learn(&clock, 1000086411);
    CHECK_EQ(weir_s3_clock_now(&clock), 1000086410);
    weir_s3_clock_learn(&clock, 0); /* whatever a server says, it can be written */
    CHECK_EQ(weir_s3_clock_now(&clock), 0);
    own_s -= 10;
    CHECK_EQ(weir_s3_clock_now(&clock), 0);
    weir_s3_clock_learn(&clock, 253402300799);
    own_s += 100;
    CHECK_EQ(weir_s3_clock_now(&clock), 253402300799);
    weir_sys = &weir_sys_real;
}

static void etags(void)
{
    static const char *const bad[] = {"", "\"\"", "\"a b\"", "a\"b", "\"a\nb\"", "\"\xc3\xa9\""};
    char out[WEIR_S3_ETAG_MAX], long_one[WEIR_S3_ETAG_MAX + 3];
    CHECK(weir_s3_etag(out, "\"abc-2\"", 7) && !strcmp(out, "abc-2"));
    CHECK(weir_s3_etag(out, "abc", 3) && !strcmp(out, "abc"));
    CHECK(weir_s3_etag(out, "W/\"abc\"", 7) && !strcmp(out, "abc"));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!weir_s3_etag(out, bad[i], strlen(bad[i])));
    memset(long_one, 'x', sizeof long_one);
    CHECK(weir_s3_etag(out, long_one, WEIR_S3_ETAG_MAX - 1));
    CHECK(!weir_s3_etag(out, long_one, WEIR_S3_ETAG_MAX));
}

static void numbers(void)
{
    static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "0x1", "18446744073709551616"};
    uint64_t n = 1;
    CHECK(weir_s3_number(&n, "0", 1) && n == 0);
    CHECK(weir_s3_number(&n, "18446744073709551615", 20) && n == UINT64_MAX);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!weir_s3_number(&n, bad[i], strlen(bad[i])));
}

int main(void)
{
    RUN(http_dates);
    RUN(iso_dates);
    RUN(stamps);
    RUN(clocks);
    RUN(etags);
    RUN(numbers);
    return TEST_RESULT;
}
