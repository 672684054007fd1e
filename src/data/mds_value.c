/* mds_value.c - see mds_value.h. */
#include "data/mds_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/field.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/json.h"
#include "util/utf8.h"

enum { FLOAT_BYTES_MAX = 63 };

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
    case WEIR_MDS_STR:
    case WEIR_MDS_STR_DECIMAL:
        break;
    default: /* bytes, and images of all kinds */
        kind = WEIR_FIELD_BYTES;
        break;
    }
    if (kind == WEIR_FIELD_TEXT && !weir_utf8_valid(data, size))
        return bad(column, "is not UTF-8");
    weir_field_set(out, column->name, column->name_size, kind, data, size);
    return 0;
}
