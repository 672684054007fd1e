/* mds_columns.c - see mds_columns.h. */
#include "data/mds_columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/field.h"
#include "util/err.h"

static const struct {
    char dtype[4];
    uint8_t code;
    const char *name;
} dtypes[] = {
    {"|u1", 8, "uint8"},    {"|i1", 9, "int8"},    {"<u2", 16, "uint16"},  {"<i2", 17, "int16"},
    {"<f2", 18, "float16"}, {"<u4", 32, "uint32"}, {"<i4", 33, "int32"},   {"<f4", 34, "float32"},
    {"<u8", 64, "uint64"},  {"<i8", 65, "int64"},  {"<f8", 66, "float64"},
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

const char *weir_mds_dtype_name(const char *dtype)
{
    for (size_t i = 0; i < DTYPES; i++)
        if (!strcmp(dtype, dtypes[i].dtype))
            return dtypes[i].name;
    return NULL;
}

uint8_t weir_mds_dtype_code(const char *dtype)
{
    for (size_t i = 0; i < DTYPES; i++)
        if (!strcmp(dtype, dtypes[i].dtype))
            return dtypes[i].code;
    return 0;
}

const char *weir_mds_dtype_of_code(uint8_t code)
{
    for (size_t i = 0; i < DTYPES; i++)
        if (code == dtypes[i].code)
            return dtypes[i].dtype;
    return NULL;
}

/* By Streaming's name, of so many bytes; NULL. */
static const char *dtype_named(const char *name, size_t size)
{
    for (size_t i = 0; i < DTYPES; i++)
        if (strlen(dtypes[i].name) == size && !memcmp(dtypes[i].name, name, size))
            return dtypes[i].dtype;
    return NULL;
}

/* ---- encodings ---- */

static const struct {
    const char *name;
    enum weir_mds_value value;
} sized[] = {
    {"bytes", WEIR_MDS_BYTES},
    {"str", WEIR_MDS_STR},
    {"json", WEIR_MDS_JSON},
    {"str_int", WEIR_MDS_STR_INT},
    {"str_float", WEIR_MDS_STR_FLOAT},
    {"str_decimal", WEIR_MDS_STR_DECIMAL},
    {"pil", WEIR_MDS_PIL},
    {"jpeg", WEIR_MDS_JPEG},
    {"png", WEIR_MDS_PNG},
    {"jpeg_array", WEIR_MDS_JPEG_ARRAY},
    {"jpegarray", WEIR_MDS_JPEG_ARRAY},
    {"list[pil]", WEIR_MDS_LIST_PIL},
    {"list[jpeg]", WEIR_MDS_LIST_JPEG},
    {"list[png]", WEIR_MDS_LIST_PNG},
};

static int fail_encoding(const struct weir_mds_column *column, const char *why)
{
    return weir_fail(EINVAL, "column '%.100s' has the encoding '%.60s', %s", column->name,
                     column->encoding, why);
}

/* "3,224,224" */
static int parse_shape(struct weir_mds_column *c, struct weir_arena **arena, const char *text)
{
    uint64_t *shape = weir_arena_take(arena, WEIR_FIELD_DIMS_MAX * sizeof *shape), bytes;
    if (!shape)
        return weir_fail_memory();
    bytes = weir_dtype_bytes(c->dtype);
    for (;; text++) {
        size_t digits = strspn(text, "0123456789");
        if (!digits || digits > 10 || c->ndim == WEIR_FIELD_DIMS_MAX)
            return fail_encoding(c, "whose shape is none");
        uint64_t dim = strtoull(text, NULL, 10);
        if (!dim || __builtin_mul_overflow(bytes, dim, &bytes) || bytes > UINT32_MAX)
            return fail_encoding(c, "whose shape is empty, or more than a shard can hold");
        shape[c->ndim++] = dim;
        text += digits;
        if (*text != ',')
            break;
    }
    if (*text)
        return fail_encoding(c, "whose shape is none");
    c->shape = shape;
    c->is_shaped = true;
    c->bytes = bytes;
    return 0;
}

/* "", ":float32" or ":float32:3,224,224" */
static int parse_ndarray(struct weir_mds_column *c, struct weir_arena **arena, const char *text)
{
    c->value = WEIR_MDS_NDARRAY;
    if (!*text)
        return 0;
    size_t size = strcspn(++text, ":");
    const char *dtype = dtype_named(text, size);
    if (!dtype)
        return fail_encoding(c, "whose dtype is none");
    strcpy(c->dtype, dtype);
    return text[size] ? parse_shape(c, arena, text + size + 1) : 0;
}

static int parse_encoding(struct weir_mds_column *c, struct weir_arena **arena)
{
    const char *name = c->encoding;
    const char *dtype = !strcmp(name, "int") ? "<i8" : dtype_named(name, strlen(name));
    if (dtype) {
        c->value = WEIR_MDS_NUMBER;
        strcpy(c->dtype, dtype);
        c->bytes = weir_dtype_bytes(dtype);
        return 0;
    }
    if (!strncmp(name, "ndarray", 7) && (!name[7] || name[7] == ':'))
        return parse_ndarray(c, arena, name + 7);
    for (size_t i = 0; i < sizeof sized / sizeof *sized; i++) {
        if (!strcmp(name, sized[i].name)) {
            c->value = sized[i].value;
            return 0;
        }
    }
    if (!strcmp(name, "pkl"))
        return weir_fail(ENOTSUP,
                         "column '%.100s' is pickled, and a pickle is a program that runs when it "
                         "is read: write the dataset again with json or ndarray",
                         c->name);
    return fail_encoding(c, "which Weir does not know");
}

int weir_mds_column_make(struct weir_mds_column *out, struct weir_arena **arena, const char *name,
                         size_t name_size, const char *encoding)
{
    struct weir_mds_column column = {.name_size = name_size};
    char *name_copy = weir_arena_take(arena, name_size + 1);
    char *encoding_copy = weir_arena_take(arena, strlen(encoding) + 1);
    if (!name_copy || !encoding_copy)
        return weir_fail_memory();
    if (name_size)
        memcpy(name_copy, name, name_size);
    column.name = name_copy;
    column.encoding = strcpy(encoding_copy, encoding);
    int code = parse_encoding(&column, arena);
    if (!code)
        *out = column;
    return code;
}

/* ---- columns ---- */

int weir_mds_columns_check(struct weir_mds_columns *columns)
{
    if (!columns->count || columns->count > WEIR_FIELDS_MAX)
        return weir_fail(EINVAL, "samples have %u columns; they may have 1 to %d", columns->count,
                         WEIR_FIELDS_MAX);
    columns->sized = 0;
    columns->fixed = 0;
    for (uint32_t i = 0; i < columns->count; i++) {
        const struct weir_mds_column *a = &columns->list[i];
        columns->sized += !a->bytes;
        columns->fixed += a->bytes;
        for (uint32_t j = 0; j < i; j++) {
            const struct weir_mds_column *b = &columns->list[j];
            if (a->name_size == b->name_size && !memcmp(a->name, b->name, a->name_size))
                return weir_fail(EINVAL, "there are two columns '%.100s'", a->name);
        }
    }
    return 0;
}

const struct weir_mds_column *weir_mds_columns_find(const struct weir_mds_columns *columns,
                                                    const char *name, size_t name_size,
                                                    uint32_t guess)
{
    for (uint32_t i = 0; i < columns->count; i++) {
        const struct weir_mds_column *c = &columns->list[(guess + i) % columns->count];
        if (c->name_size == name_size && !memcmp(c->name, name, name_size))
            return c;
    }
    return NULL;
}

/* Where the column ends that begins there: at a comma, but not at one of its shape. */
static const char *column_end(const char *at)
{
    for (at = strchrnul(at, ','); *at; at = strchrnul(at + 1, ',')) {
        size_t digits = strspn(at + 1, "0123456789");
        if (!digits || (at[1 + digits] && at[1 + digits] != ','))
            break;
    }
    return at;
}

int weir_mds_columns_parse(struct weir_mds_columns *out, struct weir_arena **arena,
                           const char *text)
{
    struct weir_mds_columns columns = {0};
    columns.list = weir_arena_take(arena, WEIR_FIELDS_MAX * sizeof *columns.list);
    if (!columns.list)
        return weir_fail_memory();
    for (const char *at = text, *end;; at = end + 1) {
        end = column_end(at);
        const char *colon = memchr(at, ':', (size_t)(end - at));
        if (!colon || colon == at || columns.count == WEIR_FIELDS_MAX)
            return weir_fail(EINVAL,
                             "'%.200s': at most %d names of fields, each with its encoding in MDS, "
                             "as in image:jpeg,label:int32",
                             text, WEIR_FIELDS_MAX);
        size_t size = (size_t)(end - colon - 1);
        char *encoding = weir_arena_take(arena, size + 1);
        if (!encoding)
            return weir_fail_memory();
        memcpy(encoding, colon + 1, size);
        encoding[size] = 0;
        int code = weir_mds_column_make(&columns.list[columns.count++], arena, at,
                                        (size_t)(colon - at), encoding);
        if (code)
            return code;
        if (!*end)
            break;
    }
    *out = columns;
    return weir_mds_columns_check(out);
}

bool weir_mds_columns_same(const struct weir_mds_columns *a, const struct weir_mds_columns *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct weir_mds_column *x = &a->list[i], *y = &b->list[i];
        if (x->name_size != y->name_size || memcmp(x->name, y->name, x->name_size) != 0 ||
            strcmp(x->encoding, y->encoding) != 0)
            return false;
    }
    return true;
}
