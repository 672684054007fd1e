/* JSON lines: every line that is not blank is a sample, whatever ends it; members become fields of
 * the right kind without a loss; what is wrong is told with its line; what is written reads again.
 */
#include <errno.h>

#include "data/jsonl.h"
#include "made.h"
#include "samples.h"

static const struct weir_format *jsonl = &weir_format_jsonl;

#define ARE(text, expected) SAMPLES_ARE(jsonl, text, strlen(text), expected)
#define FAIL(text, why)     SAMPLES_FAIL(jsonl, text, strlen(text), EBADMSG, why)

static void lines(void)
{
    ARE("", "");
    ARE("\n\r\n \t\n", "");
    ARE("{\"a\":1}\n{\"a\":2}\n", "a=<i8[]:1; a=<i8[]:2");
    ARE("{\"a\":1}\r\n\r\n  \n{\"a\":2}", "a=<i8[]:1; a=<i8[]:2");
    ARE("\xef\xbb\xbf{\"a\":1}\n", "a=<i8[]:1");
    ARE("{\"a\":1}\r", "a=<i8[]:1");
    ARE("[1]\r\n\"x\"\n 3 \n", "json=j:[1]; json=j:\"x\"; json=j: 3 ");
    ARE("{}\n", "");
}

static void kinds(void)
{
    ARE("{\"s\":\"t\\u00e9\\n\", \"u\\\"\":\"\xc3\xa9\", \"i\":-5, \"f\":1.5, \"e\":1e3, "
        "\"t\":true, "
        "\"n\":null}",
        "s=t:t\xc3\xa9\n u\"=t:\xc3\xa9 i=<i8[]:-5 f=<f8[]:1.5 e=<f8[]:1000 t=|b1[]:1 n=0");
    ARE("{\"o\": {\"x\" : [1]} , \"a\":[ ], \"b\":[1,\"x\"], \"c\":[[1],2], \"d\":[1,2], \"e\":[ 1 "
        ", "
        "2.5 ]}",
        "o=j:{\"x\" : [1]} a=j:[ ] b=j:[1,\"x\"] c=j:[[1],2] d=<i8[2]:1,2 e=<f8[2]:1,2.5");
    /* What would lose digits stays as it is written. */
    ARE("{\"a\":9223372036854775807,\"b\":9223372036854775808,\"c\":[9223372036854775808],"
        "\"d\":[9007199254740993,0.5]}",
        "a=<i8[]:9223372036854775807 b=j:9223372036854775808 c=j:[9223372036854775808] "
        "d=j:[9007199254740993,0.5]");
    ARE("{\"a\":0.1000000000000000000000000000000000000000000000000000000000000000000000001}",
        "a=<f8[]:0.1");
    ARE("{\"a\":false,\"\":[false]}", "a=|b1[]:0 =j:[false]");
}

static void wrong(void)
{
    FAIL("{\"a\":1}\n{\"a\":\n", "it ends too early");
    FAIL("{\"a\":1} x", "there is more after it");
    FAIL("{\"a\":1,\"a\":2}", "two members are named 'a'");
    FAIL("{\"a\":1,\"\\u0061\":2}", "two members are named 'a'");
    FAIL("{\"a\":NaN}", "not JSON");
    FAIL("[1", "not JSON");
    FAIL("{\"a\":\"\xff\"}", "UTF-8");
    FAIL("{\"a\":[1}", "not JSON");
    FAIL("{\"a\"", "not JSON");

    static char many[32 * (WEIR_FIELDS_MAX + 2)] = "{";
    size_t used = 1;
    for (unsigned i = 0; i <= WEIR_FIELDS_MAX; i++) {
        char member[64]; /* gcc knows the size of this one under every sanitizer */
        int size = snprintf(member, sizeof member, "%s\"m%u\":%u", i ? "," : "", i, i);
        memcpy(many + used, member, (size_t)size);
        used += (size_t)size;
    }
    many[used] = '}';
    FAIL(many, "more than 1024 members");
}

struct noted {
    uint64_t count, off, size;
};

static int note(void *arg, uint64_t off, uint64_t size)
{
    struct noted *noted = arg;
    *noted = (struct noted){noted->count + 1, off, size};
    return 0;
}

static int scan(struct noted *noted, const char *text, size_t size)
{
    struct weir_flow *flow;
    *noted = (struct noted){0};
    OK(weir_flow_open_bytes(&flow, text, size, "", UINT64_MAX));
    int code = jsonl->scan(flow, NULL, NULL, note, noted);
    weir_flow_close(flow);
    return code;
}

/* Lines that span pieces of the flow, up to the longest, and beyond. */
static void long_lines(void)
{
    struct noted noted;
    size_t size = WEIR_JSONL_LINE_MAX + 8;
    char *text = malloc(size);
    CHECK(text);
    memset(text, ' ', size);
    memcpy(text, "1\n", 2);
    text[2 + WEIR_JSONL_LINE_MAX - 1] = '2';
    text[2 + WEIR_JSONL_LINE_MAX] = '\n';
    OK(scan(&noted, text, 2 + WEIR_JSONL_LINE_MAX + 1));
    CHECK(noted.count == 2 && noted.off == 2 && noted.size == WEIR_JSONL_LINE_MAX);
    text[2 + WEIR_JSONL_LINE_MAX] = '3';
    CHECK_EQ(scan(&noted, text, 2 + WEIR_JSONL_LINE_MAX + 1), -EBADMSG);
    CHECK(strstr(weir_fail_last(), "line 2 is longer than 64 MiB"));
    free(text);
}

static void written_and_read_again(void)
{
    void *writer;
    struct weir_growing out = {0};
    struct weir_writing how = {.codec = ""};
    int16_t shorts[] = {1, -2, 3, -4};
    uint8_t truth = 1;
    uint64_t large = UINT64_MAX;
    double real = 0.1, whole = 3, nan = 0.0 / 0.0;
    struct weir_field fields[] = {
        made_text("t\"", "a\"\n"),
        made("j", WEIR_FIELD_JSON, "{\"x\":\n[1]}"),
        made_array("m", "<i2", shorts, 2, 2, 2),
        made_array("v", "<i2", shorts, 1, 3, 0),
        made_array("none", "<i2", shorts, 1, 0, 0),
        made_array("b", "|b1", &truth, 0, 0, 0),
        made_array("l", "<u8", &large, 0, 0, 0),
        made_array("r", "<f8", &real, 0, 0, 0),
        made_array("w", "<f8", &whole, 0, 0, 0),
        made_none("n"),
    };
    char name[64];
    jsonl->writer->name(name, 12, "");
    CHECK(!strcmp(name, "shard-000012.jsonl"));
    OK(jsonl->writer->open(&writer, &how));
    OK(jsonl->writer->add(writer, 0, "key", fields, 10));
    struct weir_field line = made("json", WEIR_FIELD_JSON, "[1,\r\n2]");
    OK(jsonl->writer->add(writer, 1, NULL, &line, 1));
    line = made("json", WEIR_FIELD_JSON, " {}");
    OK(jsonl->writer->add(writer, 1, NULL, &line, 1));
    line = made_bytes("x", "words"); /* what is text */
    OK(jsonl->writer->add(writer, 1, NULL, &line, 1));
    struct weir_field bad[] = {made_bytes("w", "\xff"), made_array("w", "<f8", &nan, 0, 0, 0),
                               made_text("w\xff", "x"), made_array("w", "<c8", &real, 0, 0, 0)};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(jsonl->writer->add(writer, 2, NULL, &bad[i], 1), -EINVAL);
        CHECK(strstr(weir_fail_last(), "'w"));
    }
    OK(made_whole(jsonl->writer, writer, &out));
    static const char expected[] =
        "{\"t\\\"\":\"a\\\"\\u000a\",\"j\":{\"x\": [1]},\"m\":[[1,-2],[3,-4]],\"v\":[1,-2,3],"
        "\"none\":[],\"b\":true,\"l\":18446744073709551615,\"r\":0.1,\"w\":3.0,\"n\":null}\n"
        "[1,  2]\n{\"json\": {}}\n{\"x\":\"words\"}\n";
    CHECK(out.size == strlen(expected) && !memcmp(out.data, expected, out.size));
    SAMPLES_ARE(jsonl, out.data, out.size,
                "t\"=t:a\"\n j=j:{\"x\": [1]} m=j:[[1,-2],[3,-4]] v=<i8[3]:1,-2,3 none=j:[] "
                "b=|b1[]:1 l=j:18446744073709551615 r=<f8[]:0.1 w=<f8[]:3 n=0; json=j:[1,  2]; "
                "json=j:{}; x=t:words");
    jsonl->writer->close(writer);
    jsonl->writer->close(NULL);
    weir_growing_free(&out);
}

int main(void)
{
    RUN(lines);
    RUN(kinds);
    RUN(wrong);
    RUN(long_lines);
    RUN(written_and_read_again);
    return TEST_RESULT;
}
