/* Headers of safetensors files: what is written is read back, and every malformed one is refused
 * with a reason.
 */
#include <errno.h>
#include <stdint.h>

#include "ckpt/safetensors.h"
#include "test.h"
#include "util/bytes.h"

static int parse(struct weir_st *st, const char *json, uint64_t data_bytes)
{
    return weir_st_parse(st, json, strlen(json), 8 + strlen(json) + data_bytes);
}

static void round_trip(void)
{
    static const uint64_t shape[] = {2, 3}, none[] = {0, 7};
    struct weir_st_tensor tensors[] = {
        {.name = "layers.0.weight", .dtype = "BF16", .ndim = 2, .shape = shape},
        {.name = "empty", .dtype = "F32", .ndim = 2, .shape = none},
        {.name = "é\"\\\n", .dtype = "I64", .ndim = 0, .shape = NULL},
        {.name = "mask", .dtype = "BOOL", .ndim = 1, .shape = shape + 1},
    };
    static const struct weir_st_pair metadata[] = {{"format", "pt"}, {"step", "7"}};
    uint8_t *bytes;
    size_t size;
    uint64_t header;
    struct weir_st st;
    OK(weir_st_make(tensors, 4, metadata, 2, &bytes, &size));
    CHECK_EQ(size % WEIR_ST_ALIGN, 0);
    uint64_t file_size = size + 12 + 8 + 3;
    OK(weir_st_header_size(bytes, file_size, &header));
    CHECK_EQ(header, size - 8);
    OK(weir_st_parse(&st, (char *)bytes + 8, header, file_size));
    CHECK_EQ(st.count, 4);
    CHECK_EQ(st.pairs, 2);
    CHECK(!strcmp(st.metadata[1].key, "step") && !strcmp(st.metadata[1].value, "7"));
    CHECK_EQ(st.data_at, size);
    for (int i = 0; i < 4; i++) {
        CHECK(!strcmp(st.tensors[i].name, tensors[i].name));
        CHECK(!strcmp(st.tensors[i].dtype, tensors[i].dtype));
        CHECK_EQ(st.tensors[i].ndim, tensors[i].ndim);
        CHECK(!tensors[i].ndim ||
              !memcmp(st.tensors[i].shape, tensors[i].shape, 8 * tensors[i].ndim));
        CHECK_EQ(st.tensors[i].begin, tensors[i].begin);
        CHECK_EQ(st.tensors[i].end, tensors[i].end);
    }
    weir_st_free(&st);
    CHECK_EQ(weir_st_parse(&st, (char *)bytes + 8, header, file_size + 1), -EBADMSG);
    CHECK_EQ(weir_st_parse(&st, (char *)bytes + 8, header, file_size - 1), -EBADMSG);
    free(bytes);
}

#define T(dtype, shape, offsets)                                                                   \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void as_others_write_it(void)
{
    struct weir_st st;
    OK(parse(&st, "{}", 0));
    CHECK_EQ(st.count, 0);
    weir_st_free(&st);
    OK(parse(&st, " {\"b\":" T("F32", "[1]", "[4,8]") ",\"a\":" T("F32", "[]", "[0,4]") "}   ", 8));
    CHECK(!strcmp(st.tensors[0].name, "a") && !strcmp(st.tensors[1].name, "b"));
    weir_st_free(&st);
    OK(parse(&st, "{\"x\":{\"data_offsets\":[0,1],\"more\":[{}],\"shape\":[2],\"dtype\":\"F4\"}}",
             1));
    weir_st_free(&st);
}

static void malformed(void)
{
    static const struct {
        const char *json;
        uint64_t bytes;
        const char *why;
    } cases[] = {
        {"", 0, "JSON"},
        {"[]", 0, "not an object"},
        {"{\"a\":1}", 0, "not described by an object"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") "} x", 4, "more after"},
        {"{\"a\":" T("F33", "[1]", "[0,4]") "}", 4, "unknown dtype"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"a\":" T("F32", "[1]", "[4,8]") "}", 8, "twice"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"\\u0061\":" T("F32", "[1]", "[4,8]") "}", 8,
         "twice"},
        {"{\"a\":" T("F32", "[1]", "[4,8]") "}", 8, "was to be expected"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[2,6]") "}", 6, "expected"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[5,9]") "}", 9, "expected"},
        {"{\"a\":" T("F32", "[1]", "[4,0]") "}", 4, "expected"},
        {"{\"a\":" T("F32", "[2]", "[0,4]") "}", 4, "length of its shape"},
        {"{\"a\":" T("F4", "[1]", "[0,1]") "}", 1, "length of its shape"},
        {"{\"a\":" T("F32", "[4294967296,4294967296]", "[0,4]") "}", 4, "length of its shape"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") "}", 5, "where the file ends"},
        {"{\"a\":" T("F32", "[-1]", "[0,4]") "}", 4, "whole number"},
        {"{\"a\":" T("F32", "[1.5]", "[0,4]") "}", 4, "whole number"},
        {"{\"a\":" T("F32", "1", "[0,4]") "}", 4, "not an array"},
        {"{\"a\":" T("F32", "[1]", "[0]") "}", 4, "two whole numbers"},
        {"{\"a\":" T("F32", "[1]", "[0,4,8]") "}", 4, "two whole numbers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "lacks"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
         "two"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "not a string"},
        {"{\"__metadata__\":[]}", 0, "not an object"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "two __metadata__"},
        {"{\"\xff\":" T("F32", "[1]", "[0,4]") "}", 4, "UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_st st;
        int code = parse(&st, cases[i].json, cases[i].bytes);
        if (code != -EBADMSG || !strstr(weir_fail_last(), cases[i].why))
            fprintf(stderr, "%s: %d %s\n", cases[i].json, code, weir_fail_last());
        CHECK(code == -EBADMSG && strstr(weir_fail_last(), cases[i].why));
    }
}

static void lengths(void)
{
    uint8_t first[8];
    uint64_t size;
    weir_store_le(first, 100, 8);
    CHECK_EQ(weir_st_header_size(first, 7, &size), -EBADMSG);
    CHECK_EQ(weir_st_header_size(first, 107, &size), -EBADMSG);
    OK(weir_st_header_size(first, 108, &size));
    weir_store_le(first, 100000001, 8);
    CHECK_EQ(weir_st_header_size(first, UINT64_MAX, &size), -EBADMSG);
    weir_store_le(first, UINT64_MAX, 8);
    CHECK_EQ(weir_st_header_size(first, UINT64_MAX, &size), -EBADMSG);
}

static void refused_to_write(void)
{
    struct weir_st_tensor t = {.name = "__metadata__", .dtype = "F32"};
    uint8_t *bytes;
    size_t size;
    CHECK_EQ(weir_st_make(&t, 1, NULL, 0, &bytes, &size), -EINVAL);
    t.name = "\xff";
    CHECK_EQ(weir_st_make(&t, 1, NULL, 0, &bytes, &size), -EINVAL);
    t.name = "x";
    t.dtype = "F31";
    CHECK_EQ(weir_st_make(&t, 1, NULL, 0, &bytes, &size), -EINVAL);
}

int main(void)
{
    RUN(round_trip);
    RUN(as_others_write_it);
    RUN(malformed);
    RUN(lengths);
    RUN(refused_to_write);
    return TEST_RESULT;
}
