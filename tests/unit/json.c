/* JSON is read token by token: what is right gives the tokens it should, what is wrong is refused.
 */
#include <errno.h>
#include <stdint.h>

#include "test.h"
#include "util/json.h"

/* Tokens as letters, texts behind them. */
static const char *tokens(const char *text, int *code)
{
    static char out[512];
    struct weir_json json;
    size_t used = 0;
    weir_json_begin(&json, text, strlen(text));
    while ((*code = weir_json_next(&json)) == 1) {
        static const char letters[] = "{[.ksn+-0";
        out[used++] = letters[json.token];
        if (json.token == WEIR_JSON_KEY || json.token == WEIR_JSON_STRING)
            used += weir_json_text(&json, out + used);
        else if (json.token == WEIR_JSON_NUMBER) {
            memcpy(out + used, json.text, json.size);
            used += json.size;
        }
        out[used++] = ' ';
        CHECK(used < sizeof out - 128);
    }
    out[used] = 0;
    return out;
}

static void right(void)
{
    static const struct {
        const char *text, *tokens;
    } cases[] = {
        {"1", "n1 "},
        {" -0.5e+10 ", "n-0.5e+10 "},
        {"\"\"", "s "},
        {"[]", "[ . "},
        {"{}", "{ . "},
        {"[1, [2], {}]", "[ n1 [ n2 . { . . "},
        {"{\"a\":true , \"b\" :null,\"c\":[false]}", "{ ka + kb 0 kc [ - . . "},
        {"\"a\\n\\\"\\\\\\/\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", "sa\n\"\\/Aé€😀 "},
        {"\"\\ud800x\\udc00\"", "s\xef\xbf\xbdx\xef\xbf\xbd "},
        {"\r\n\t{\"\":\"é\"}\n", "{ k sé . "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code;
        const char *got = tokens(cases[i].text, &code);
        if (code || strcmp(got, cases[i].tokens))
            fprintf(stderr, "%s: %s\n", cases[i].text, got);
        CHECK(!code && !strcmp(got, cases[i].tokens));
    }
}

static void wrong(void)
{
    static const char *const cases[] = {
        "",
        " ",
        "{",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "[1 2]",
        "1 2",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "1e+",
        "+1",
        "0x10",
        "NaN",
        "tru",
        "nulll",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "]",
        "}",
        "[}",
        "{]",
        "\"a\" \"b\"",
        "// x",
        "\xef\xbb\xbf{}",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code;
        tokens(cases[i], &code);
        if (code != -EINVAL)
            fprintf(stderr, "'%s' was taken\n", cases[i]);
        CHECK_EQ(code, -EINVAL);
    }
}

/* Strings are read eight bytes at a time: what is special is seen at every place. */
static void places(void)
{
    static const struct {
        const char *text, *means; /* NULL: refused */
    } special[] = {{"\\\"", "\""}, {"\\\\", "\\"}, {"\xc3\xa9", "\xc3\xa9"},
                   {" ", " "},     {"!", "!"},     {"#", "#"},
                   {"[", "["},     {"]", "]"},     {"\x7f", "\x7f"},
                   {"\x1f", NULL}, {"\n", NULL},   {"\xa2", NULL},
                   {"\xdc", NULL}, {"\"", NULL},   {"\\", NULL}};
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        for (int before = 0; before < 20; before++)
            for (int after = 1; after < 20; after += 3) {
                char text[128], expected[128];
                int code;
                snprintf(text, sizeof text, "\"%.*s%s%.*s\"", before, "aaaaaaaaaaaaaaaaaaaaaaa",
                         special[i].text, after, "zzzzzzzzzzzzzzzzzzzzzzz");
                const char *got = tokens(text, &code);
                CHECK_EQ(code, special[i].means ? 0 : -EINVAL);
                if (code)
                    continue;
                snprintf(expected, sizeof expected, "s%.*s%s%.*s ", before,
                         "aaaaaaaaaaaaaaaaaaaaaaa", special[i].means, after,
                         "zzzzzzzzzzzzzzzzzzzzzzz");
                CHECK(!strcmp(got, expected));
            }
}

static void depth(void)
{
    char text[2 * WEIR_JSON_DEPTH_MAX + 3] = "";
    int code;
    memset(text, '[', WEIR_JSON_DEPTH_MAX);
    memset(text + WEIR_JSON_DEPTH_MAX, ']', WEIR_JSON_DEPTH_MAX);
    tokens(text, &code);
    OK(code);
    memset(text, '[', WEIR_JSON_DEPTH_MAX + 1);
    memset(text + WEIR_JSON_DEPTH_MAX + 1, ']', WEIR_JSON_DEPTH_MAX + 1);
    tokens(text, &code);
    CHECK_EQ(code, -EINVAL);
}

static void skipping(void)
{
    static const char text[] = "{\"a\":{\"x\":[1,{\"y\":2}]},\"b\":3,\"c\":\"s\"}";
    struct weir_json json;
    uint64_t value;
    weir_json_begin(&json, text, strlen(text));
    CHECK_EQ(weir_json_next(&json), 1);
    CHECK_EQ(weir_json_next(&json), 1);
    CHECK_EQ(weir_json_skip(&json), 1); /* "a" and its value */
    CHECK_EQ(json.depth, 1);
    CHECK_EQ(weir_json_next(&json), 1);
    CHECK(json.token == WEIR_JSON_KEY && *json.text == 'b');
    CHECK_EQ(weir_json_next(&json), 1);
    CHECK(weir_json_uint(&json, &value) && value == 3);
    CHECK_EQ(weir_json_next(&json), 1);
    CHECK_EQ(weir_json_skip(&json), 1);
    CHECK_EQ(weir_json_next(&json), 1);
    CHECK_EQ(json.token, WEIR_JSON_END);
    CHECK_EQ(weir_json_next(&json), 0);
}

static void numbers(void)
{
    static const char text[] = "[18446744073709551615, 18446744073709551616, -1, 1.0, 1e3, 7]";
    struct weir_json json;
    uint64_t value = 0;
    weir_json_begin(&json, text, strlen(text));
    CHECK_EQ(weir_json_next(&json), 1);
    CHECK_EQ(weir_json_next(&json), 1);
    CHECK(weir_json_uint(&json, &value) && value == UINT64_MAX);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(weir_json_next(&json), 1);
        CHECK(!weir_json_uint(&json, &value));
    }
    CHECK_EQ(weir_json_next(&json), 1);
    CHECK(weir_json_uint(&json, &value) && value == 7);
}

static void writing(void)
{
    struct weir_json_out out = {0};
    weir_json_puts(&out, "{");
    weir_json_put_string(&out, "a\"\\\n\x01é", 7);
    weir_json_puts(&out, ":");
    weir_json_put_uint(&out, UINT64_MAX);
    weir_json_puts(&out, "}");
    static const char want[] = "{\"a\\\"\\\\\\u000a\\u0001é\":18446744073709551615}";
    CHECK(!out.failed && out.size == strlen(want) && !memcmp(out.text, want, out.size));
    free(out.text);
}

int main(void)
{
    RUN(right);
    RUN(wrong);
    RUN(places);
    RUN(depth);
    RUN(skipping);
    RUN(numbers);
    RUN(writing);
    return TEST_RESULT;
}
