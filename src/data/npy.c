/* npy.c - see npy.h. The header is a dict in Python's notation with three items: 'descr',
 * 'fortran_order' and 'shape', in any order, and blanks anywhere.
 */
#include "data/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/field.h"
#include "util/bytes.h"

static const char magic[] = "\x93NUMPY";
enum { MAGIC_BYTES = 6, ALIGN = 64, HEADER_MAX = 1 << 16, COUNT_OF_ITEMS = 3 };

struct reader {
    const char *at, *end;
};

static void skip_blanks(struct reader *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n'))
        in->at++;
}

/* Steps over the word if it is next. */
static bool take(struct reader *in, const char *word)
{
    size_t size = strlen(word);
    skip_blanks(in);
    if ((size_t)(in->end - in->at) < size || memcmp(in->at, word, size))
        return false;
    in->at += size;
    return true;
}

static bool take_number(struct reader *in, uint64_t *out)
{
    uint64_t value = 0;
    skip_blanks(in);
    const char *begin = in->at;
    for (; in->at < in->end && *in->at >= '0' && *in->at <= '9'; in->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*in->at - '0'), &value))
            return false;
    *out = value;
    return in->at > begin;
}

/* A text in quotes of a few characters without escapes. */
static bool take_dtype(struct reader *in, struct weir_field *out)
{
    skip_blanks(in);
    char quote = in->at < in->end ? *in->at++ : 0;
    const char *begin = in->at;
    if (quote != '\'' && quote != '"')
        return false;
    while (in->at < in->end && *in->at != quote)
        in->at++;
    size_t size = (size_t)(in->at - begin);
    if (in->at == in->end || size >= sizeof out->dtype)
        return false;
    in->at++;
    memcpy(out->dtype, begin, size);
    out->dtype[size] = 0;
    return weir_dtype_bytes(out->dtype) > 0;
}

/* "()", "(3,)", "(3, 4)". */
static bool take_shape(struct reader *in, struct weir_field *out)
{
    out->ndim = 0;
    if (!take(in, "("))
        return false;
    while (!take(in, ")")) {
        if (out->ndim == WEIR_FIELD_DIMS_MAX || !take_number(in, &out->shape[out->ndim++]))
            return false;
        if (take(in, ","))
            continue;
        return out->ndim > 1 && take(in, ")");
    }
    return true;
}

static bool take_item(struct reader *in, struct weir_field *out, bool *columns)
{
    if (take(in, "'descr'"))
        return take(in, ":") && take_dtype(in, out);
    if (take(in, "'shape'"))
        return take(in, ":") && take_shape(in, out);
    if (!take(in, "'fortran_order'") || !take(in, ":"))
        return false;
    *columns = take(in, "True");
    return *columns || take(in, "False");
}

/* Where the array begins, or 0. */
static size_t header_of(struct reader *in, const uint8_t *data, size_t size)
{
    if (size < MAGIC_BYTES + 6 || memcmp(data, magic, MAGIC_BYTES) || data[6] < 1 || data[6] > 3)
        return 0;
    unsigned width = data[6] == 1 ? 2 : 4;
    size_t begin = MAGIC_BYTES + 2 + width;
    uint64_t length = weir_load_le(data + MAGIC_BYTES + 2, width);
    if (length > HEADER_MAX || length > size - begin)
        return 0;
    *in = (struct reader){(const char *)data + begin, (const char *)data + begin + length};
    return begin + (size_t)length;
}

bool weir_npy_parse(struct weir_field *field, const uint8_t *data, size_t size)
{
    struct weir_field out = {.ndim = UINT32_MAX};
    struct reader in;
    bool columns = false;
    uint64_t bytes;
    size_t begin = header_of(&in, data, size);
    if (!begin || !take(&in, "{"))
        return false;
    for (int i = 0; i < COUNT_OF_ITEMS; i++) {
        if (!take_item(&in, &out, &columns) || (!take(&in, ",") && i < COUNT_OF_ITEMS - 1))
            return false;
    }
    if (!take(&in, "}") || !out.dtype[0] || out.ndim == UINT32_MAX || (columns && out.ndim > 1))
        return false;
    uint64_t count = weir_field_count(&out);
    if (count == UINT64_MAX || __builtin_mul_overflow(count, weir_dtype_bytes(out.dtype), &bytes) ||
        bytes != size - begin)
        return false;
    field->kind = WEIR_FIELD_ARRAY;
    field->data = data + begin;
    field->size = (size_t)bytes;
    memcpy(field->dtype, out.dtype, sizeof field->dtype);
    field->ndim = out.ndim;
    memcpy(field->shape, out.shape, out.ndim * sizeof out.shape[0]);
    return true;
}

int weir_npy_put(struct weir_growing *out, const struct weir_field *field)
{
    char text[128 + WEIR_FIELD_DIMS_MAX * 22];
    size_t at = (size_t)snprintf(
        text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", field->dtype);
    for (uint32_t i = 0; i < field->ndim; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%" PRIu64, i ? ", " : "",
                               field->shape[i]);
    at += (size_t)snprintf(text + at, sizeof text - at, "%s), }", field->ndim == 1 ? "," : "");
    size_t before = MAGIC_BYTES + 4, whole = (before + at + 1 + ALIGN - 1) / ALIGN * ALIGN;
    int code = weir_growing_room(out, whole);
    if (code)
        return code;
    uint8_t *header = out->data + out->size;
    memset(header, ' ', whole);
    memcpy(header, magic, MAGIC_BYTES);
    header[6] = 1;
    header[7] = 0;
    weir_store_le(header + 8, whole - before, 2);
    memcpy(header + before, text, at);
    header[whole - 1] = '\n';
    out->size += whole;
    return weir_growing_add(out, field->data, field->size);
}
