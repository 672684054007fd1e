/* Which names are keys, why others are not, and the engine's own names made from keys. */
#include <errno.h>

#include "data.h"
#include "test.h"
#include "util/key.h"
#include "weir.h"

#define NONCE "0123456789abcdef0123456789abcdef"

/* The check refuses with this code, and the text says this. */
static void refused(const char *key, int code, const char *says)
{
    weir_fail(EIO, "stale");
    CHECK_EQ(weir_key_check(key), -code);
    if (!strstr(weir_fail_last(), says))
        fprintf(stderr, "the text should say: %s\n", says);
    CHECK(strstr(weir_fail_last(), says));
    CHECK(strstr(weir_fail_last(), "cannot be a key"));
}

static char *parts_of(size_t part, size_t total)
{
    static char key[4096];
    for (size_t i = 0; i < total; i++)
        key[i] = i % (part + 1) == part ? '/' : 'k';
    key[total] = 0;
    return key;
}

static void good_keys(void)
{
    static const char *const good[] = {
        "a", "a/b", "a/b/c.safetensors", ".hidden", "a/.weir", ".weirdo", ".weir2/x", "...", "a..b",
        "..a", "a/...", "~a", "a~b", "a~b~c", "~/a", "with space", "ü", "日本/語", "🌊", "a\\b", "a:b",
        "%41", "\xc2\xa0", "-", "x~0123456789abcdef0123456789abcde",
        "x~0123456789abcdef0123456789abcdeg", "x~0123456789ABCDEF0123456789ABCDEF",
        "x0123456789abcdef0123456789abcdef",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        bool engine = !strcmp(good[i], "~/a"); /* a part that is just "~" ends in it */
        CHECK_EQ(weir_key_check(good[i]), engine ? -EINVAL : 0);
    }
}

static void parts(void)
{
    refused("", EINVAL, "empty part");
    refused("/", EINVAL, "empty part");
    refused("/a", EINVAL, "empty part");
    refused("a/", EINVAL, "empty part");
    refused("a//b", EINVAL, "empty part");
    refused(".", EINVAL, "'.' or '..'");
    refused("..", EINVAL, "'.' or '..'");
    refused("a/./b", EINVAL, "'.' or '..'");
    refused("a/../b", EINVAL, "'.' or '..'");
    refused("../b", EINVAL, "'.' or '..'");
    refused("a/..", EINVAL, "'.' or '..'");
}

static void engine_names(void)
{
    refused(".weir", EINVAL, "'.weir'");
    refused(".weir/seal/a", EINVAL, "'.weir'");
    refused("a~", EINVAL, "engine's own");
    refused("a~/b", EINVAL, "engine's own");
    refused("~", EINVAL, "engine's own");
    refused("a/b~" NONCE, EINVAL, "engine's own");
    refused("a~" NONCE "/b", EINVAL, "engine's own");
    refused("~" NONCE, EINVAL, "engine's own");
}

static void lengths(void)
{
    char part[300];
    memset(part, 'p', sizeof part);
    part[WEIR_PART_BYTES_MAX] = 0;
    OK(weir_key_check(part));
    part[WEIR_PART_BYTES_MAX] = 'p';
    part[WEIR_PART_BYTES_MAX + 1] = 0;
    refused(part, ENAMETOOLONG, "220 bytes");
    CHECK_EQ(strlen(parts_of(200, WEIR_KEY_BYTES_MAX)), 1024);
    OK(weir_key_check(parts_of(200, WEIR_KEY_BYTES_MAX)));
    refused(parts_of(200, WEIR_KEY_BYTES_MAX + 1), ENAMETOOLONG, "1024 bytes");
    refused(parts_of(200, 4000), ENAMETOOLONG, "1024 bytes");
    CHECK(strlen(weir_fail_last()) < 200); /* a long key is quoted in part */
}

static void utf8(void)
{
    static const char *const bad[] = {
        "\x80", "a\xbf", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x80\x80\xaf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "\xfe", "\xc3", "\xe2\x82", "\xf0\x9f\x8c", "\xc3(",
        "\xe2\x28\xa1", "a/\xf8\x88\x80\x80\x80",
    };
    static const char *const edge[] = {
        "\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused(bad[i], EINVAL, "not UTF-8");
    for (size_t i = 0; i < sizeof edge / sizeof edge[0]; i++)
        OK(weir_key_check(edge[i]));
}

/* C0, DEL and C1; and no text passes one on to a terminal. */
static void control_characters(void)
{
    char key[8];
    for (unsigned c = 1; c < 0xa0; c++) {
        if (c >= 0x20 && c < 0x7f)
            continue;
        if (c < 0x80)
            snprintf(key, sizeof key, "a%cb", (int)c);
        else
            snprintf(key, sizeof key, "a\xc2%cb", (int)c);
        refused(key, EINVAL, "control character");
        for (const char *s = weir_fail_last(); *s; s++)
            CHECK(*s >= 0x20 && *s < 0x7f);
    }
    OK(weir_key_check("a\xc2\xa0" "b"));
}

static void prefixes(void)
{
    OK(weir_prefix_check(""));
    OK(weir_prefix_check("a"));
    OK(weir_prefix_check("a/"));
    OK(weir_prefix_check("a/b/"));
    CHECK_EQ(weir_prefix_check("/"), -EINVAL);
    CHECK_EQ(weir_prefix_check("a//"), -EINVAL);
    CHECK_EQ(weir_prefix_check("../"), -EINVAL);
    CHECK_EQ(weir_prefix_check(".weir/"), -EINVAL);
    CHECK_EQ(weir_prefix_check("a~/"), -EINVAL);
    char *longest = parts_of(200, WEIR_KEY_BYTES_MAX);
    strcat(longest, "/");
    OK(weir_prefix_check(longest));
    strcat(longest, "/");
    CHECK(weir_prefix_check(longest) < 0);
    CHECK_EQ(weir_prefix_check(parts_of(200, 1026)), -ENAMETOOLONG);
    CHECK_EQ(weir_prefix_check(parts_of(200, 3000)), -ENAMETOOLONG);
}

static void round_trip(const char *key)
{
    uint8_t nonce[WEIR_NONCE_BYTES], back_nonce[WEIR_NONCE_BYTES];
    char name[WEIR_NAME_BYTES_MAX], back[WEIR_NAME_BYTES_MAX];
    data_fill(nonce, sizeof nonce, strlen(key), 0);
    weir_key_name(name, WEIR_DIR_SEAL, key);
    CHECK(!strncmp(name, ".weir/seal/", 11) && name[strlen(name) - 1] == '~');
    CHECK(weir_key_of_name(back, name + 11));
    CHECK(!strcmp(back, key));
    weir_key_data_name(name, key, nonce);
    CHECK(!strncmp(name, ".weir/data/", 11));
    CHECK(weir_key_of_data_name(back, back_nonce, name + 11));
    CHECK(!strcmp(back, key) && !memcmp(nonce, back_nonce, sizeof nonce));
    /* Neither is taken for the other. */
    CHECK(!weir_key_of_name(back, name + 11));
    weir_key_name(name, "", key);
    CHECK(!weir_key_of_data_name(back, back_nonce, name));
}

static void names(void)
{
    char back[WEIR_NAME_BYTES_MAX];
    uint8_t nonce[WEIR_NONCE_BYTES];
    round_trip("a");
    round_trip("a/b");
    round_trip("~a~b");
    round_trip("ü/🌊");
    round_trip(parts_of(220, 220));
    round_trip(parts_of(200, WEIR_KEY_BYTES_MAX));
    CHECK(!weir_key_of_name(back, ""));
    CHECK(!weir_key_of_name(back, "~"));
    CHECK(!weir_key_of_name(back, "a"));
    CHECK(!weir_key_of_name(back, "a~~"));
    CHECK(!weir_key_of_name(back, "../a~"));
    CHECK(!weir_key_of_name(back, parts_of(200, 2000)));
    CHECK(!weir_key_of_data_name(back, nonce, "~" NONCE));
    CHECK(!weir_key_of_data_name(back, nonce, "a/~" NONCE));
    CHECK(!weir_key_of_data_name(back, nonce, "a~" NONCE "0"));
    CHECK(!weir_key_of_data_name(back, nonce, "a~" NONCE "~" NONCE));
    CHECK(!weir_key_of_data_name(back, nonce, "a"));
    CHECK(!weir_key_of_data_name(back, nonce, ""));
}

int main(void)
{
    RUN(good_keys);
    RUN(parts);
    RUN(engine_names);
    RUN(lengths);
    RUN(utf8);
    RUN(control_characters);
    RUN(prefixes);
    RUN(names);
    return TEST_RESULT;
}
