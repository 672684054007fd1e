/* litdata_value.c - see litdata_value.h. */
#include "data/litdata_value.h"

#include <errno.h>
#include <string.h>

#include "data/field.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/json.h"
#include "util/utf8.h"

/* By the numbers that LitData gives them; "": no numbers, or none that numpy has. */
static const char torch_dtypes[][5] = {"<f4",  "<f4", "<f8", "<f8", "<c8", "<c8", "<c16",
                                       "<c16", "<f2", "<f2", "",    "|u1", "|i1", "<i2",
                                       "<i2",  "<i4", "<i4", "<i8", "<i8", "|b1", "<u2"};
static const char numpy_dtypes[][5] = {"|i1", "<i2", "<i4", "<i8", "|u1", "<u2",  "<u4",
                                       "<u8", "<f2", "<f4", "<f8", "<c8", "<c16", "|b1"};

struct value {
    struct weir_field *out;
    const struct weir_litdata_field *field;
    const uint8_t *data;
    size_t size;
};

static int bad(const struct value *v, const char *why)
{
    return weir_fail(EBADMSG, "field '%.100s' (%.40s) %s", v->field->name, v->field->serializer,
                     why);
}

static void set(const struct value *v, enum weir_field_kind kind, const void *data, size_t size)
{
    weir_field_set(v->out, v->field->name, strlen(v->field->name), kind, data, size);
}

static int set_number(const struct value *v, const char *dtype, size_t at)
{
    if (v->size - at != weir_dtype_bytes(dtype))
        return bad(v, "has another size");
    weir_field_set_number(v->out, v->field->name, strlen(v->field->name), dtype, v->data + at);
    return 0;
}

/* An array whose numbers begin there and whose shape is set. */
static int set_array(const struct value *v, const char *dtype, size_t at)
{
    uint64_t bytes = weir_field_count(v->out);
    if (__builtin_mul_overflow(bytes, weir_dtype_bytes(dtype), &bytes) || bytes != v->size - at)
        return bad(v, "does not have as many numbers as its shape says");
    strcpy(v->out->dtype, dtype);
    v->out->data = v->data + at;
    v->out->size = v->size - at;
    return 0;
}

/* Of one dimension, as long as there are numbers. */
static int set_row(const struct value *v, const char *dtype, size_t at)
{
    set(v, WEIR_FIELD_ARRAY, NULL, 0);
    v->out->ndim = 1;
    v->out->shape[0] = (v->size - at) / weir_dtype_bytes(dtype);
    return set_array(v, dtype, at);
}

static const char *dtype_of(const char table[][5], size_t count, uint64_t number)
{
    return number < count && *table[number] ? table[number] : NULL;
}

static const char *torch_dtype(uint64_t number)
{
    return dtype_of(torch_dtypes, sizeof torch_dtypes / sizeof *torch_dtypes, number);
}

static const char *numpy_dtype(uint64_t number)
{
    return dtype_of(numpy_dtypes, sizeof numpy_dtypes / sizeof *numpy_dtypes, number);
}

/* u32 dtype | u32 rank | u32 shape[rank] | numbers: big-endian in tensors, little in arrays. */
static int read_headed(const struct value *v, bool is_tensor)
{
    if (v->size < 8)
        return bad(v, "lacks its header");
    uint32_t words[2 + WEIR_FIELD_DIMS_MAX];
    for (uint32_t i = 0, count = 2; i < count; i++) {
        if (v->size / 4 <= i)
            return bad(v, "ends within its shape");
        words[i] = (uint32_t)weir_load_le(v->data + 4 * i, 4);
        words[i] = is_tensor ? __builtin_bswap32(words[i]) : words[i];
        if (i == 1 && words[1] > WEIR_FIELD_DIMS_MAX)
            return bad(v, "has more than 32 dimensions");
        count = i ? 2 + words[1] : 2;
    }
    const char *dtype = is_tensor ? torch_dtype(words[0]) : numpy_dtype(words[0]);
    if (!dtype)
        return bad(v, "is of no dtype that Weir knows");
    set(v, WEIR_FIELD_ARRAY, NULL, 0);
    v->out->ndim = words[1];
    for (uint32_t i = 0; i < words[1]; i++)
        v->out->shape[i] = words[2 + i];
    return set_array(v, dtype, 8 + 4 * (size_t)words[1]);
}

/* "no_header_tensor:18": the number of the dtype is behind the colon. */
static int read_bare(const struct value *v, bool is_tensor)
{
    const char *colon = strchr(v->field->serializer, ':');
    int64_t number = -1;
    if (colon)
        weir_text_i64(colon + 1, strlen(colon + 1), &number);
    const char *dtype = is_tensor ? torch_dtype((uint64_t)number) : numpy_dtype((uint64_t)number);
    if (!dtype)
        return bad(v, "is of no dtype that Weir knows");
    return set_row(v, dtype, 0);
}

static int read_text(const struct value *v, size_t at)
{
    if (!weir_utf8_valid(v->data + at, v->size - at))
        return bad(v, "is not UTF-8");
    set(v, WEIR_FIELD_TEXT, v->data + at, v->size - at);
    return 0;
}

/* JSON, or what newer LitData makes of it: a tag, and lists of numbers as numbers. Lists of strings
 * and records stay as they are. */
static int read_nested(const struct value *v)
{
    enum { JSON = 0, INTS = 2, FLOATS = 3, BOOLS = 4, STRING = 7, INT = 8, FLOAT = 9, BOOL = 10 };
    if (v->size && (*v->data == '{' || *v->data == '[')) {
        weir_field_set_json(v->out, v->field->name, strlen(v->field->name), v->data, v->size);
        return 0;
    }
    switch (v->size ? *v->data : 255) {
    case INT:
        return set_number(v, "<i8", 1);
    case FLOAT:
        return set_number(v, "<f8", 1);
    case BOOL:
        return set_number(v, "|b1", 1);
    case INTS:
        return v->size < 5 ? bad(v, "lacks its length") : set_row(v, "<i8", 5);
    case FLOATS:
        return v->size < 5 ? bad(v, "lacks its length") : set_row(v, "<f8", 5);
    case BOOLS:
        return v->size < 5 ? bad(v, "lacks its length") : set_row(v, "|b1", 5);
    case STRING:
        return v->size < 5 ? bad(v, "lacks its length") : read_text(v, 5);
    case JSON:
        if (v->size < 5)
            return bad(v, "lacks its length");
        weir_field_set_json(v->out, v->field->name, strlen(v->field->name), v->data + 5,
                            v->size - 5);
        return 0;
    default:
        set(v, WEIR_FIELD_BYTES, v->data, v->size);
        return 0;
    }
}

/* Is it "name" or "name:…"? */
static bool is(const struct weir_litdata_field *field, const char *name)
{
    size_t size = strlen(name);
    return !strncmp(field->serializer, name, size) &&
           (!field->serializer[size] || field->serializer[size] == ':');
}

int weir_litdata_value_read(struct weir_field *out, const struct weir_litdata_field *field,
                            const uint8_t *data, size_t size)
{
    struct value v = {out, field, data, size};
    if (is(field, "int"))
        return set_number(&v, "<i8", 0);
    if (is(field, "float"))
        return set_number(&v, "<f8", 0);
    if (is(field, "bool"))
        return set_number(&v, "|b1", 0);
    if (is(field, "str") || is(field, "text"))
        return read_text(&v, 0);
    if (is(field, "tensor") || is(field, "numpy"))
        return read_headed(&v, is(field, "tensor"));
    if (is(field, "no_header_tensor") || is(field, "no_header_numpy"))
        return read_bare(&v, is(field, "no_header_tensor"));
    if (is(field, "json"))
        return read_nested(&v);
    set(&v, WEIR_FIELD_BYTES, data, size);
    return 0;
}
