/* mds_value.c - see mds_value.h. */
#include "data/mds_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/field.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/json.h"
#include "util/utf8.h"

enum { FLOAT_BYTES_MAX = 63 };

/* ---- reading ---- */

static int bad(const struct weir_mds_column *column, const char *why)
{
    return weir_fail(EBADMSG, "column '%.100s' (%.60s) %s", column->name, column->encoding, why);
}

/* As Python's str(float) writes it: "1.5", "1e-07", "-inf", "nan". */
static bool text_f64(const uint8_t *data, size_t size, double *out)
{
    char text[FLOAT_BYTES_MAX + 1], *end;
    if (!size || size > FLOAT_BYTES_MAX)
        return false;
    memcpy(text, data, size);
    text[size] = 0;
    if (text[strspn(text, "+-.0123456789eE"
                          "infaINFA")])
        return false;
    *out = strtod(text, &end);
    return end == text + size;
}

/* The shape in front of an array: a byte with the number of dimensions and the width of each. */
static int read_shape(struct weir_field *out, const struct weir_mds_column *column,
                      const uint8_t **data, size_t *size)
{
    if (!*size)
        return bad(column, "lacks its shape");
    uint32_t ndim = **data >> 2;
    unsigned width = 1u << (**data & 3);
    if (ndim > WEIR_FIELD_DIMS_MAX)
        return bad(column, "has more than 32 dimensions");
    if (*size - 1 < (size_t)ndim * width)
        return bad(column, "ends within its shape");
    for (uint32_t i = 0; i < ndim; i++)
        out->shape[i] = weir_load_le(*data + 1 + (size_t)i * width, width);
    out->ndim = ndim;
    *data += 1 + (size_t)ndim * width;
    *size -= 1 + (size_t)ndim * width;
    return 0;
}

static int read_array(struct weir_field *out, const struct weir_mds_column *column,
                      const uint8_t *data, size_t size)
{
    const char *dtype = column->dtype;
    if (!*dtype) {
        dtype = size ? weir_mds_dtype_of_code(*data) : NULL;
        if (!dtype)
            return bad(column, size ? "is of no dtype there is" : "lacks its dtype");
        data++;
        size--;
    }
    weir_field_set(out, column->name, column->name_size, WEIR_FIELD_ARRAY, NULL, 0);
    strcpy(out->dtype, dtype);
    if (column->is_shaped) {
        out->ndim = column->ndim;
        memcpy(out->shape, column->shape, column->ndim * sizeof *out->shape);
    } else {
        int code = read_shape(out, column, &data, &size);
        if (code)
            return code;
    }
    uint64_t bytes = weir_field_count(out);
    if (__builtin_mul_overflow(bytes, weir_dtype_bytes(dtype), &bytes) || bytes != size)
        return bad(column, "does not have as many numbers as its shape says");
    out->data = data;
    out->size = size;
    return 0;
}

int weir_mds_value_read(struct weir_field *out, const struct weir_mds_column *column,
                        const uint8_t *data, size_t size, struct weir_arena **scratch)
{
    int64_t whole;
    double real;
    enum weir_field_kind kind = WEIR_FIELD_TEXT;
    switch (column->value) {
    case WEIR_MDS_NDARRAY:
        return read_array(out, column, data, size);
    case WEIR_MDS_NUMBER:
        if (size != column->bytes)
            return bad(column, "has another size");
        weir_field_set_number(out, column->name, column->name_size, column->dtype, data);
        return 0;
    case WEIR_MDS_STR_INT:
        if (weir_text_i64((const char *)data, size, &whole))
            return weir_field_put_i64(out, column->name, column->name_size, whole, scratch);
        break;
    case WEIR_MDS_STR_FLOAT:
        if (text_f64(data, size, &real))
            return weir_field_put_f64(out, column->name, column->name_size, real, scratch);
        break;
    case WEIR_MDS_JSON:
        if (!weir_json_check((const char *)data, size))
            kind = WEIR_FIELD_JSON;
        break;
    case WEIR_MDS_BYTES:
        kind = WEIR_FIELD_BYTES;
        break;
    default:
        break;
    }
    if (kind == WEIR_FIELD_TEXT && !weir_utf8_valid(data, size))
        return bad(column, "is not UTF-8");
    weir_field_set(out, column->name, column->name_size, kind, data, size);
    return 0;
}

/* ---- writing ---- */

static int misfit(const struct weir_mds_column *column, const char *why)
{
    return weir_fail(EINVAL, "field '%.100s' does not fit its column in MDS, which is %.60s: %s",
                     column->name, column->encoding, why);
}

/* The width that holds every dimension, as a power of two. */
static unsigned width_log2(const struct weir_field *field)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < field->ndim; i++)
        most = field->shape[i] > most ? field->shape[i] : most;
    return most < 1u << 8 ? 0 : most < 1u << 16 ? 1 : most < (uint64_t)1 << 32 ? 2 : 3;
}

/* MDS has no booleans: they are numbers of one byte. */
static const char *dtype_in_mds(const struct weir_field *field)
{
    return strcmp(field->dtype, "|b1") != 0 ? field->dtype : "|u1";
}

static bool has_shape(const struct weir_mds_column *column, const struct weir_field *field)
{
    return field->ndim == column->ndim &&
           !memcmp(field->shape, column->shape, field->ndim * sizeof *field->shape);
}

static int write_array(const struct weir_mds_column *column, const struct weir_field *field,
                       struct weir_growing *out)
{
    uint8_t head[2 + 8 * WEIR_FIELD_DIMS_MAX];
    size_t size = 0;
    const char *dtype = dtype_in_mds(field);
    if (*column->dtype ? strcmp(column->dtype, dtype) != 0 : !weir_mds_dtype_code(dtype))
        return misfit(column, "it has another dtype");
    if (!field->ndim || !field->size)
        return misfit(column, "MDS has neither empty arrays nor ones without dimensions");
    if (!*column->dtype)
        head[size++] = weir_mds_dtype_code(dtype);
    if (!column->is_shaped) {
        unsigned log2 = width_log2(field);
        head[size++] = (uint8_t)(field->ndim << 2 | log2);
        for (uint32_t i = 0; i < field->ndim; i++, size += (size_t)1 << log2)
            weir_store_le(head + size, field->shape[i], 1u << log2);
    } else if (!has_shape(column, field)) {
        return misfit(column, "it has another shape");
    }
    int code = weir_growing_add(out, head, size);
    return code ? code : weir_growing_add(out, field->data, field->size);
}

static bool fits(const struct weir_mds_column *column, const struct weir_field *field)
{
    switch (column->value) {
    case WEIR_MDS_NUMBER:
        return field->kind == WEIR_FIELD_ARRAY && !field->ndim &&
               !strcmp(dtype_in_mds(field), column->dtype) && field->size == column->bytes;
    case WEIR_MDS_NDARRAY:
        return field->kind == WEIR_FIELD_ARRAY;
    case WEIR_MDS_STR: /* what is JSON in one sample may be text in the next: NaN */
    case WEIR_MDS_JSON:
        return field->kind == WEIR_FIELD_JSON || field->kind == WEIR_FIELD_TEXT;
    case WEIR_MDS_BYTES:
        return field->kind == WEIR_FIELD_BYTES;
    default:
        return field->kind == WEIR_FIELD_TEXT;
    }
}

int weir_mds_value_write(const struct weir_mds_column *column, const struct weir_field *field,
                         struct weir_growing *out)
{
    if (!fits(column, field))
        return misfit(column, "it is something else in this sample");
    if (column->value == WEIR_MDS_NDARRAY)
        return write_array(column, field, out);
    return weir_growing_add(out, field->data, field->size);
}
