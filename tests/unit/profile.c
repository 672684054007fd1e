/* A profile reads back as it was written; what is none, or is damaged, is refused by name. */
#include <errno.h>

#include "test.h"
#include "tier/tier.h"
#include "tmpdir.h"
#include "util/profile.h"

static void round_trip(void)
{
    struct weir_profile in = {.url = "/data/a \"b\"",
                              .kind = "ext4",
                              .read_bytes_per_s = 2.9e9,
                              .read_latency_s_p99 = 0.00125,
                              .random_read_iops = 123456.5,
                              .cliff_at_bytes = 1099511627776.0,
                              .best_block_bytes = 1048576,
                              .best_depth = 8};
    struct weir_profile out;
    struct weir_json_out text = {0};
    weir_profile_write(&text, &in);
    CHECK(!text.failed);
    memset(&out, 0xff, sizeof out);
    OK(weir_profile_parse(&out, text.text, text.size));
    CHECK(!memcmp(&in, &out, sizeof in));
    /* Any part of it is none. */
    for (size_t size = 0; size + 2 < text.size; size++)
        CHECK_EQ(weir_profile_parse(&out, text.text, size), -EINVAL);
    free(text.text);
}

static void refused(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "JSON"},
        {"[]", "not a profile"},
        {"{}", "weir_profile"},
        {"{\"weir_profile\": 2}", "version 2"},
        {"{\"weir_profile\": \"1\"}", "weir_profile"},
        {"{\"weir_profile\": 1, \"weir_profile\": 1}", "twice"},
        {"{\"weir_profile\": 1, \"best_depth\": -1}", "best_depth"},
        {"{\"weir_profile\": 1, \"best_depth\": 2.5}", "best_depth"},
        {"{\"weir_profile\": 1, \"best_depth\": 100000}", "best_depth"},
        {"{\"weir_profile\": 1, \"read_bytes_per_s\": \"fast\"}", "read_bytes_per_s"},
        {"{\"weir_profile\": 1, \"read_bytes_per_s\": 1e999}", "read_bytes_per_s"},
        {"{\"weir_profile\": 1, \"read_bytes_per_s\": {\"weir_profile\": 1}}", "read_bytes_per_s"},
        {"{\"weir_profile\": 1, \"url\": 5}", "url"},
        {"{\"weir_profile\": 1, \"url\": \"a\", \"url\": \"b\"}", "twice"},
    };
    struct weir_profile out;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ(weir_profile_parse(&out, cases[i].text, strlen(cases[i].text)), -EINVAL);
        if (!strstr(weir_fail_last(), cases[i].says))
            fprintf(stderr, "%s\n", cases[i].text);
        CHECK(i == 0 || strstr(weir_fail_last(), cases[i].says));
    }
}

static void unknown_names(void)
{
    static const char text[] = "{\"later\": [1, {\"best_depth\": 3}], \"weir_profile\": 1,"
                               " \"best_depth\": 4, \"more\": null}";
    struct weir_profile out;
    OK(weir_profile_parse(&out, text, sizeof text - 1));
    CHECK_EQ(out.best_depth, 4);
}

static void of_a_file(void)
{
    struct weir_profile out;
    CHECK_EQ(weir_profile_load(&out, "/nowhere/profile"), -ENOENT);
    CHECK(strstr(weir_fail_last(), "/nowhere/profile"));
    CHECK_EQ(weir_profile_load(&out, "/dev/null"), -EINVAL);
    CHECK(strstr(weir_fail_last(), "'/dev/null'"));
    CHECK_EQ(weir_profile_load(&out, "/dev/zero"), -EFBIG);
}

/* The depth of a file tier: what is asked for, else what was measured. */
static unsigned depth_of(const char *options, int expected)
{
    struct weir_io_options how = {.engine = "inline", .depth = 4, .pool_bytes_max = 8 << 20};
    struct weir_io *io;
    struct weir_url url;
    struct weir_tier *tier = NULL;
    char text[2 * PATH_MAX];
    snprintf(text, sizeof text, "file://%s?%s", tmpdir(), options);
    OK(weir_io_open(&io, &how));
    OK(weir_url_parse(&url, text));
    CHECK_EQ(weir_tier_open(&tier, &url, io, true), expected);
    unsigned depth = tier ? tier->depth : 0;
    weir_tier_close(tier);
    weir_url_free(&url);
    weir_io_close(io);
    return depth;
}

static void of_a_tier(void)
{
    char path[PATH_MAX], options[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/profile.json", tmpdir());
    FILE *file = fopen(path, "w");
    CHECK(file && fputs("{\"weir_profile\": 1, \"best_depth\": 5}", file) > 0 && !fclose(file));
    CHECK_EQ(depth_of("", 0), 0);
    CHECK_EQ(depth_of("depth=9", 0), 9);
    snprintf(options, sizeof options, "profile=%s", path);
    CHECK_EQ(depth_of(options, 0), 5);
    snprintf(options, sizeof options, "profile=%s&stats=1", path); /* through filters, too */
    CHECK_EQ(depth_of(options, 0), 5);
    snprintf(options, sizeof options, "depth=9&profile=%s", path);
    CHECK_EQ(depth_of(options, 0), 9);
    file = fopen(path, "w");
    CHECK(file && fputs("{\"weir_profile\": 1, \"best_depth\": 1000}", file) > 0 && !fclose(file));
    snprintf(options, sizeof options, "profile=%s", path);
    CHECK_EQ(depth_of(options, 0), WEIR_FILE_DEPTH_MAX);
    file = fopen(path, "w");
    CHECK(file && fputs("{\"weir_profile\": 1, \"best_de", file) > 0 && !fclose(file));
    depth_of(options, -EINVAL);
    CHECK(strstr(weir_fail_last(), path));
}

int main(void)
{
    RUN(round_trip);
    RUN(refused);
    RUN(unknown_names);
    RUN(of_a_file);
    RUN(of_a_tier);
    return TEST_RESULT;
}
