/* Options as data, sizes and durations as people write them. */
#include <errno.h>
#include <stddef.h>

#include "test.h"
#include "util/opt.h"

static void size_is(const char *text, uint64_t bytes)
{
    uint64_t out = 1;
    OK(weir_parse_size(&out, text));
    CHECK_EQ(out, bytes);
}

static void duration_is(const char *text, uint64_t ns)
{
    uint64_t out = 1;
    OK(weir_parse_duration(&out, text));
    CHECK_EQ(out, ns);
}

static void sizes(void)
{
    size_is("0", 0);
    size_is("100", 100);
    size_is("64K", 65536);
    size_is("64k", 65536);
    size_is("64KiB", 65536);
    size_is("64kB", 64000);
    size_is("1.5G", 1610612736);
    size_is(".5K", 512);
    size_is("2.", 2);
    size_is("0.1K", 102);
    size_is("1T", 1ull << 40);
    size_is("1TB", 1000000000000);
    size_is("1MB", 1000000);
    size_is("7B", 7);
    size_is("4P", 4ull << 50);
    size_is("4095P", 4095ull << 50);
}

static void bad_sizes(void)
{
    static const char *const bad[] = {
        "", " ", "-1", "+1", "1 K", "K", ".", "1.2.3", "1e9", "0x10", "inf", "nan", "1KK", "1Kib",
        "1kib", "64 ", "10000P", "9223372036854775808", "8192P", "1,5G", "١",
        "1111111111111111111111111111111111111111111111111111111111111111",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t out = 77;
        CHECK_EQ(weir_parse_size(&out, bad[i]), -EINVAL);
        CHECK_EQ(out, 77);
        CHECK(strstr(weir_fail_last(), bad[i]) && strstr(weir_fail_last(), "size"));
    }
}

static void durations(void)
{
    uint64_t out = 77;
    duration_is("10", 10000000000);
    duration_is("30s", 30000000000);
    duration_is("5ms", 5000000);
    duration_is("5us", 5000);
    duration_is("5ns", 5);
    duration_is("1m", 60000000000);
    duration_is("1min", 60000000000);
    duration_is("1.5h", 5400000000000);
    duration_is("7d", 604800000000000);
    duration_is("0.25s", 250000000);
    duration_is("2y", 63072000000000000);
    CHECK_EQ(weir_parse_duration(&out, "7w"), -EINVAL);
    CHECK_EQ(weir_parse_duration(&out, "s"), -EINVAL);
    CHECK_EQ(weir_parse_duration(&out, "200000d"), -EINVAL);
    CHECK_EQ(out, 77);
}

static void counts_and_rates(void)
{
    static const struct {
        const char *text;
        uint64_t count, rate; /* 77: refused */
    } cases[] = {
        {"512", 512, 512},      {"100K", 100000, 102400}, {"1.5k", 1500, 1536},
        {"70B", 70000000000, 70}, {"2T", 2000000000000, 2ull << 40}, {"1.1M", 1100000, 1153434},
        {"1.5", 77, 2},         {"15GB/s", 77, 15000000000}, {"400Gbit/s", 77, 50000000000},
        {"100Mbit", 77, 12500000}, {"/s", 77, 77}, {"-1", 77, 77}, {"", 77, 77}, {"nan", 77, 77},
        {"1e30", 77, 77},       {"99999P", 77, 77}, {"10/s", 77, 10}, {"1bit", 77, 77},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t count = 77, rate = 77;
        CHECK_EQ(weir_parse_count(&count, cases[i].text), cases[i].count == 77 ? -EINVAL : 0);
        CHECK_EQ(weir_parse_rate(&rate, cases[i].text), cases[i].rate == 77 ? -EINVAL : 0);
        CHECK_EQ(count, cases[i].count);
        CHECK_EQ(rate, cases[i].rate);
    }
}

static void formats(void)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"}, {213, "213 B"}, {1023, "1023 B"}, {1024, "1.0 KiB"}, {1536, "1.5 KiB"},
        {102400, "100 KiB"}, {1048575, "1.0 MiB"}, {1048576, "1.0 MiB"},
        {1610612736, "1.5 GiB"}, {1ull << 40, "1.0 TiB"}, {1ull << 50, "1.0 PiB"},
        {UINT64_MAX, "16384 PiB"},
    };
    char out[32];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK(!strcmp(weir_format_size(out, sizeof out, cases[i].bytes), cases[i].text));
}

struct fields {
    bool flag;
    uint64_t number, size, duration;
    double ratio;
    const char *text, *none;
};

#define AT(field) offsetof(struct fields, field)
static const struct weir_opt table[] = {
    {"flag", 'f', WEIR_OPT_FLAG, AT(flag), "1", NULL, "a flag", 0, 0},
    {"number", 'n', WEIR_OPT_NUMBER, AT(number), "5", "N", "a number", 1, 10},
    {"size", 0, WEIR_OPT_SIZE, AT(size), "64K", "SIZE", "a size", 4096, 0},
    {"duration", 0, WEIR_OPT_DURATION, AT(duration), "30s", "TIME", "a time", 0, 60},
    {"ratio", 0, WEIR_OPT_RATIO, AT(ratio), "0.5", "P", "a share", 0, 1},
    {"text", 0, WEIR_OPT_TEXT, AT(text), "some", "TEXT", "a text", 0, 0},
    {"none", 0, WEIR_OPT_TEXT, AT(none), NULL, "TEXT", "a text without a default", 0, 0},
    {0},
};

static void defaults(void)
{
    struct fields f = {.none = "kept"};
    weir_opt_defaults(table, &f);
    CHECK(f.flag && f.number == 5 && f.size == 65536 && f.duration == 30000000000);
    CHECK(f.ratio == 0.5 && !strcmp(f.text, "some") && !strcmp(f.none, "kept"));
    CHECK(weir_opt_find(table, "size") == &table[2]);
    CHECK(!weir_opt_find(table, "siz") && !weir_opt_find(table, ""));
}

static int set(struct fields *f, const char *name, const char *value)
{
    return weir_opt_set(weir_opt_find(table, name), f, value);
}

static void setting(void)
{
    struct fields f = {0};
    OK(set(&f, "flag", ""));
    CHECK(f.flag);
    OK(set(&f, "flag", "no"));
    CHECK(!f.flag);
    OK(set(&f, "flag", "yes"));
    CHECK(f.flag);
    OK(set(&f, "flag", "0"));
    CHECK(!f.flag);
    OK(set(&f, "number", "1"));
    OK(set(&f, "number", "10"));
    CHECK_EQ(f.number, 10);
    OK(set(&f, "size", "1M"));
    CHECK_EQ(f.size, 1 << 20);
    OK(set(&f, "duration", "1m"));
    CHECK_EQ(f.duration, 60000000000);
    OK(set(&f, "ratio", "1"));
    CHECK(f.ratio == 1);
    OK(set(&f, "text", "anything at all"));
    CHECK(!strcmp(f.text, "anything at all"));
}

/* A refused value changes nothing, and the text names the option and the value. */
static void bad_values(void)
{
    static const char *const bad[][2] = {
        {"flag", "maybe"}, {"flag", "true"}, {"number", "0"}, {"number", "11"}, {"number", "-1"},
        {"number", "1.5"}, {"number", ""}, {"number", "5x"}, {"number", " 5"},
        {"number", "99999999999999999999999"}, {"size", "4095"}, {"size", "big"},
        {"duration", "61s"}, {"duration", "soon"}, {"ratio", "1.1"}, {"ratio", "-0.1"},
        {"ratio", "half"}, {"ratio", "0.5x"},
    };
    struct fields f, before;
    memset(&f, 0, sizeof f);
    weir_opt_defaults(table, &f);
    memcpy(&before, &f, sizeof f);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(set(&f, bad[i][0], bad[i][1]), -EINVAL);
        CHECK(strstr(weir_fail_last(), bad[i][0]) && strstr(weir_fail_last(), bad[i][1]));
        CHECK(!memcmp(&f, &before, sizeof f));
    }
}

int main(void)
{
    RUN(sizes);
    RUN(bad_sizes);
    RUN(durations);
    RUN(counts_and_rates);
    RUN(formats);
    RUN(defaults);
    RUN(setting);
    RUN(bad_values);
    return TEST_RESULT;
}
