/* mds_value_write.c - writes a field as the encoding of its column has it: see mds_value.h. A field
 * fits if it is held exactly: numbers are not rounded, and become those of another dtype only where
 * --columns says so; text is no number unless it looks like one, and what should be an image or a
 * list of them begins as one.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/field.h"
#include "data/jsonl.h"
#include "data/mds_image.h"
#include "data/mds_number.h"
#include "data/mds_value.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/utf8.h"

enum {
    INT_DIGITS_MAX = 4300, /* Python's int() takes no more */
};

/* MDS has no booleans: they are numbers of one byte. */
static const char *dtype_in_mds(const struct weir_field *field)
{
    return strcmp(field->dtype, "|b1") != 0 ? field->dtype : "|u1";
}

static bool is_number(const struct weir_field *field)
{
    return field->kind == WEIR_FIELD_ARRAY && !field->ndim && field->size &&
           field->dtype[1] != 'c' && weir_dtype_bytes(field->dtype) == field->size;
}

static bool is_text(const struct weir_field *field)
{
    return field->kind == WEIR_FIELD_TEXT || field->kind == WEIR_FIELD_JSON;
}

/* ---- what does not fit ---- */

static bool is_of_images(const struct weir_mds_column *column)
{
    return column->value >= WEIR_MDS_JPEG && column->value <= WEIR_MDS_LIST_PIL;
}

/* Which encoding would hold what others of this column are, and this field; "": none. */
static void suggest(char out[32], const struct weir_mds_column *column,
                    const struct weir_field *field)
{
    bool is_array = field->kind == WEIR_FIELD_ARRAY && field->ndim && field->size;
    const char *dtype = is_array ? dtype_in_mds(field) : "";
    enum weir_mds_value value = column->value;
    out[0] = 0;
    if (value == WEIR_MDS_NDARRAY && weir_mds_dtype_code(dtype))
        snprintf(out, 32, strcmp(column->dtype, dtype) ? "ndarray" : "ndarray:%s",
                 weir_mds_dtype_name(dtype));
    else if (value == WEIR_MDS_NUMBER && is_number(field))
        strcpy(out, weir_dtype_is_whole(column->dtype) && weir_dtype_is_whole(field->dtype)
                        ? "str_int"
                        : "float64");
    else if (is_of_images(column) && (field->kind == WEIR_FIELD_BYTES || is_text(field)))
        strcpy(out, "bytes");
    else if (value == WEIR_MDS_STR || value == WEIR_MDS_JSON)
        strcpy(out, field->kind == WEIR_FIELD_BYTES ? "bytes" : "json");
    else if (value > WEIR_MDS_JSON && field->kind != WEIR_FIELD_BYTES)
        strcpy(out, "json");
    if (!strcmp(out, column->encoding))
        out[0] = 0;
}

static int misfit(const struct weir_mds_column *column, const struct weir_field *field,
                  const char *why)
{
    char other[32];
    suggest(other, column, field);
    if (!other[0])
        return weir_fail(EINVAL,
                         "field '%.100s' does not fit its column in MDS, which is %.60s: %s; "
                         "--columns chooses how it is encoded",
                         column->name, column->encoding, why);
    return weir_fail(EINVAL,
                     "field '%.100s' does not fit its column in MDS, which is %.60s: %s; "
                     "--columns '%.100s:%s' would hold it",
                     column->name, column->encoding, why, column->name, other);
}

static const char *kind_name(const struct weir_field *field)
{
    switch (field->kind) {
    case WEIR_FIELD_BYTES:
        return "it is bytes";
    case WEIR_FIELD_TEXT:
        return "it is text";
    case WEIR_FIELD_JSON:
        return "it is JSON";
    case WEIR_FIELD_ARRAY:
        return field->ndim ? "it is an array" : "it is a number";
    default:
        return "it is null";
    }
}

/* ---- numbers ---- */

/* Those of a field, as the column has them. */
static int write_numbers(const struct weir_mds_column *column, const struct weir_field *field,
                         struct weir_growing *out)
{
    const char *from = dtype_in_mds(field);
    size_t step = weir_dtype_bytes(from), bytes = weir_dtype_bytes(column->dtype), all;
    if (!*column->dtype || !strcmp(from, column->dtype))
        return weir_growing_add(out, field->data, field->size);
    if (!column->is_chosen || !step || from[1] == 'c')
        return misfit(column, field, "it has another dtype");
    if (__builtin_mul_overflow(field->size / step, bytes, &all))
        return weir_fail_memory();
    int code = weir_growing_room(out, all);
    if (code)
        return code;
    for (size_t at = 0; at < field->size; at += step, out->size += bytes)
        if (!weir_mds_number_put(column->dtype, from, (const uint8_t *)field->data + at,
                                 out->data + out->size))
            return misfit(column, field, "that does not hold its numbers exactly");
    return 0;
}

/* ---- numbers as text ---- */

static size_t digits_at(const char *text, size_t size)
{
    size_t n = 0;
    while (n < size && text[n] >= '0' && text[n] <= '9')
        n++;
    return n;
}

/* As Python's int(), float() and Decimal() take it: -12, and if it need not be whole 1.5e-7. */
static bool looks_like_number(const char *text, size_t size, bool is_whole)
{
    size_t at = size && (*text == '-' || *text == '+'), whole = digits_at(text + at, size - at);
    size_t part = 0;
    at += whole;
    if (is_whole)
        return whole && whole <= INT_DIGITS_MAX && at == size;
    if (at < size && text[at] == '.') {
        part = digits_at(text + at + 1, size - at - 1);
        at += 1 + part;
    }
    if (at < size && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        at += at < size && (text[at] == '-' || text[at] == '+');
        size_t power = digits_at(text + at, size - at);
        if (!power)
            return false;
        at += power;
    }
    return whole + part && at == size;
}

static int write_as_text(const struct weir_mds_column *column, const struct weir_field *field,
                         struct weir_growing *out, struct weir_json_out *text)
{
    bool is_whole = column->value == WEIR_MDS_STR_INT;
    text->size = 0;
    if (is_text(field)) {
        if (!looks_like_number(field->data, field->size, is_whole))
            return misfit(column, field,
                          is_whole ? "it is no whole number" : "it is no number in digits");
        return weir_growing_add(out, field->data, field->size);
    }
    if (!is_number(field))
        return misfit(column, field, kind_name(field));
    double value = weir_dtype_f64(field->dtype, field->data);
    if (weir_dtype_is_whole(field->dtype)) {
        struct weir_field number = *field;
        strcpy(number.dtype, dtype_in_mds(field)); /* 1, not true */
        weir_jsonl_put_value(text, &number);
    } else if (is_whole) {
        return misfit(column, field, "it is no whole number");
    } else if (isfinite(value)) {
        weir_json_put_double(text, value);
    } else {
        weir_json_puts(text, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    }
    return text->failed ? weir_fail_memory() : weir_growing_add(out, text->text, text->size);
}

/* ---- JSON ---- */

static int write_json(const struct weir_mds_column *column, const struct weir_field *field,
                      struct weir_growing *out, struct weir_json_out *text)
{
    if (field->kind == WEIR_FIELD_JSON)
        return weir_growing_add(out, field->data, field->size);
    text->size = 0;
    if (weir_jsonl_put_value(text, field))
        return misfit(column, field,
                      field->kind == WEIR_FIELD_ARRAY ? "JSON has no such numbers"
                                                      : kind_name(field));
    return text->failed ? weir_fail_memory() : weir_growing_add(out, text->text, text->size);
}

/* ---- arrays ---- */

/* The width that holds every dimension, as a power of two. */
static unsigned width_log2(const struct weir_field *field)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < field->ndim; i++)
        most = field->shape[i] > most ? field->shape[i] : most;
    return most < 1u << 8 ? 0 : most < 1u << 16 ? 1 : most < (uint64_t)1 << 32 ? 2 : 3;
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
    if (field->kind != WEIR_FIELD_ARRAY)
        return misfit(column, field, kind_name(field));
    if (!field->ndim || !field->size)
        return misfit(column, field, "MDS has neither empty arrays nor ones without dimensions");
    if (!*column->dtype && !weir_mds_dtype_code(dtype))
        return misfit(column, field, "MDS does not have its dtype");
    if (!*column->dtype)
        head[size++] = weir_mds_dtype_code(dtype);
    if (!column->is_shaped) {
        unsigned log2 = width_log2(field);
        head[size++] = (uint8_t)(field->ndim << 2 | log2);
        for (uint32_t i = 0; i < field->ndim; i++, size += (size_t)1 << log2)
            weir_store_le(head + size, field->shape[i], 1u << log2);
    } else if (!has_shape(column, field)) {
        return misfit(column, field, "it has another shape");
    }
    int code = weir_growing_add(out, head, size);
    return code ? code : write_numbers(column, field, out);
}

/* ---- all of them ---- */

int weir_mds_value_write(const struct weir_mds_column *column, const struct weir_field *field,
                         struct weir_growing *out, struct weir_json_out *text)
{
    bool fits;
    switch (column->value) {
    case WEIR_MDS_NUMBER:
        return is_number(field) ? write_numbers(column, field, out)
                                : misfit(column, field, kind_name(field));
    case WEIR_MDS_NDARRAY:
        return write_array(column, field, out);
    case WEIR_MDS_JSON:
        return write_json(column, field, out, text);
    case WEIR_MDS_STR_INT:
    case WEIR_MDS_STR_FLOAT:
    case WEIR_MDS_STR_DECIMAL:
        return write_as_text(column, field, out, text);
    case WEIR_MDS_BYTES:
        fits = is_text(field) || field->kind == WEIR_FIELD_BYTES;
        break;
    case WEIR_MDS_STR:
        fits = is_text(field) ||
               (field->kind == WEIR_FIELD_BYTES && weir_utf8_valid(field->data, field->size));
        break;
    default:
        if (field->kind == WEIR_FIELD_BYTES &&
            !weir_mds_is_image(column->value, field->data, field->size))
            return misfit(column, field, "its bytes are something else");
        fits = field->kind == WEIR_FIELD_BYTES;
        break;
    }
    return fits ? weir_growing_add(out, field->data, field->size)
                : misfit(column, field, kind_name(field));
}
