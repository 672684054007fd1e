/* LitData: items are taken apart by the tree and the serializers of an index.json; what that cannot
 * be, and items that do not fit, are refused. (That this is how LitData writes, tests/interop shows
 * with that library.)
 */
#include "data/field.h"
#include "data/litdata_index.h"
#include "data/survey.h"
#include "stores.h"
#include "util/bytes.h"

#define LEAF "{\\\"type\\\": null, \\\"context\\\": null, \\\"children_spec\\\": []}"

static const char index_text[] =
    "{\"chunks\": [{\"chunk_bytes\": 1, \"chunk_size\": 2, \"dim\": null, \"filename\": "
    "\"chunk-0-0.bin\"}], \"config\": {\"compression\": null, \"encryption\": null, "
    "\"item_loader\": \"PyTreeLoader\", \"data_format\": [\"int\", \"str\", \"tensor\", "
    "\"no_header_numpy:5\"], \"data_spec\": \"[1, {\\\"type\\\": \\\"builtins.dict\\\", "
    "\\\"context\\\": \\\"[\\\\\\\"a\\\\\\\", \\\\\\\"b.c\\\\\\\"]\\\", \\\"children_spec\\\": "
    "[" LEAF ", {\\\"type\\\": \\\"builtins.list\\\", \\\"context\\\": \\\"null\\\", "
    "\\\"children_spec\\\": [" LEAF ", " LEAF ", {\\\"type\\\": \\\"builtins.tuple\\\", "
    "\\\"context\\\": \\\"null\\\", \\\"children_spec\\\": [" LEAF "]}]}]}]\"}}";

/* int 7, "hé", a big-endian header of float32[1][2], two uint16 */
static const uint8_t item[] = {
    8, 0, 0,    0,    3, 0, 0, 0,    24,  0,    0,    0, 4, 0, 0, 0, /* sizes */
    7, 0, 0,    0,    0, 0, 0, 0,    'h', 0xc3, 0xa9,                /* int, str */
    0, 0, 0,    0,    0, 0, 0, 2,    0,   0,    0,    1, 0, 0, 0, 2,
    0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 1,   0,    2,    0,
};

static struct weir_arena *arena;
static struct weir_litdata data;

static void *schema_of(const char *text)
{
    void *schema;
    OK(weir_format_litdata.schema_open(&schema, text, strlen(text)));
    return schema;
}

static int fields_of(const char *json, const uint8_t *bytes, size_t size, struct weir_field *fields,
                     uint32_t *count)
{
    struct weir_arena *scratch = NULL;
    void *schema = schema_of(json);
    struct weir_sample sample = {.data = bytes, .size = size, .file = "x"};
    int code = weir_format_litdata.fields(schema, &sample, &scratch, fields, count);
    weir_arena_free(scratch);
    weir_format_litdata.schema_close(schema);
    return code;
}

static void leaves_have_names(void)
{
    static const char *const names[] = {"a", "b.c.0", "b.c.1", "b.c.2.0"};
    OK(weir_litdata_index_read(&data, &arena, index_text, strlen(index_text)));
    CHECK_EQ(data.count, 4);
    for (size_t i = 0; i < 4; i++)
        CHECK(!strcmp(data.fields[i].name, names[i]));
    CHECK(!data.tokens && data.chunk_count == 1 && data.chunks[0].samples == 2);
}

static void items_are_taken_apart(void)
{
    struct weir_json_out out = {0};
    struct weir_field f[4];
    struct weir_arena *scratch = NULL;
    uint32_t count = 4;
    weir_litdata_schema_write(&data, &out);
    weir_json_put(&out, "", 1);
    void *schema = schema_of(out.text);
    struct weir_sample sample = {.data = item, .size = sizeof item, .file = "x"};
    OK(weir_format_litdata.fields(schema, &sample, &scratch, f, &count));
    CHECK_EQ(count, 4);
    CHECK(!strcmp(f[0].dtype, "<i8") && !f[0].ndim && weir_load_le(f[0].data, 8) == 7);
    CHECK(f[1].kind == WEIR_FIELD_TEXT && f[1].size == 3);
    CHECK(!strcmp(f[2].dtype, "<f4") && f[2].ndim == 2 && f[2].shape[0] == 1 &&
          f[2].shape[1] == 2 && f[2].size == 8);
    CHECK(!strcmp(f[3].dtype, "<u2") && f[3].ndim == 1 && f[3].shape[0] == 2);
    for (size_t size = 0; size < sizeof item; size++) { /* every cut */
        uint8_t *cut = malloc(size + 1);
        CHECK(cut);
        memcpy(cut, item, size);
        sample.data = cut;
        sample.size = size;
        count = 4;
        CHECK_EQ(weir_format_litdata.fields(schema, &sample, &scratch, f, &count), -EBADMSG);
        free(cut);
    }
    weir_arena_free(scratch);
    weir_format_litdata.schema_close(schema);
    free(out.text);
}

static void values_that_are_damaged(void)
{
    static const struct {
        const char *serializer, *bytes;
        size_t size;
        const char *says;
    } bad[] = {
        {"int", "1234567", 7, "has another size"},
        {"bool", "12", 2, "has another size"},
        {"str", "\xff", 1, "is not UTF-8"},
        {"tensor", "\0\0\0\0\0\0\0", 7, "lacks its header"},
        {"tensor", "\0\0\0\0\0\0\0\1", 8, "ends within its shape"},
        {"tensor", "\0\0\0\0\0\0\0\x21", 8, "more than 32 dimensions"},
        {"tensor", "\0\0\0\x63\0\0\0\0", 8, "no dtype that Weir knows"},
        {"tensor", "\0\0\0\x0a\0\0\0\0", 8, "no dtype that Weir knows"},
        {"tensor", "\0\0\0\0\0\0\0\2\xff\xff\xff\xff\xff\xff\xff\xff", 16, "as many numbers"},
        {"numpy", "\x0e\0\0\0\0\0\0\0", 8, "no dtype that Weir knows"},
        {"no_header_numpy:3", "1234567", 7, "as many numbers"},
        {"no_header_numpy", "1234567", 7, "no dtype that Weir knows"},
        {"no_header_tensor:-1", "1234567", 7, "no dtype that Weir knows"},
        {"json", "\2\1\0", 3, "lacks its length"},
        {"json", "\2\1\0\0\0xxx", 8, "as many numbers"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char json[100];
        uint8_t bytes[32];
        struct weir_field field;
        uint32_t count = 1;
        snprintf(json, sizeof json, "{\"fields\": [[\"x\", \"%s\"]]}", bad[i].serializer);
        weir_store_le(bytes, bad[i].size, 4);
        memcpy(bytes + 4, bad[i].bytes, bad[i].size);
        CHECK_EQ(fields_of(json, bytes, 4 + bad[i].size, &field, &count), -EBADMSG);
        if (!strstr(weir_error_text(), bad[i].says))
            fprintf(stderr, "%s: %s\n", bad[i].serializer, weir_error_text());
        CHECK(strstr(weir_error_text(), bad[i].says));
    }
}

static void tokens_are_bare(void)
{
    struct weir_field field;
    uint32_t count = 1;
    OK(fields_of("{\"fields\": [[\"0\", \"no_header_tensor:16\"]], \"tokens\": true}",
                 (const uint8_t *)"\1\0\0\0\2\0\0\0", 8, &field, &count));
    CHECK(!strcmp(field.dtype, "<i4") && field.shape[0] == 2);
}

static void schemas_that_are_none(void)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"fields\": []}",
        "{\"fields\": [[\"a\"]]}",
        "{\"fields\": [[\"a\", 1]]}",
        "{\"fields\": [[\"a\", null]]}",
        "{\"fields\": [[\"a\", \"int\"]], \"x\": 1}",
        "{\"fields\": [[\"a\", \"int\"], [\"b\", \"int\"]], \"tokens\": true}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        void *schema;
        CHECK_EQ(weir_format_litdata.schema_open(&schema, bad[i], strlen(bad[i])), -EINVAL);
    }
}

int main(void)
{
    RUN(leaves_have_names);
    RUN(items_are_taken_apart);
    RUN(values_that_are_damaged);
    RUN(tokens_are_bare);
    RUN(schemas_that_are_none);
    weir_arena_free(arena);
    return TEST_RESULT;
}
