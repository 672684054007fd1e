/* value.c - see value.h. */
#include "cli/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/dataset.h"
#include "data/field.h"
#include "util/bytes.h"

enum { PREVIEW_ITEMS = 8, PREVIEW_TEXT_BYTES = 48 };

/* ---- numbers ---- */

static double half(uint16_t bits)
{
    int exponent = bits >> 10 & 31, sign = bits >> 15;
    double value = bits & 1023;
    if (exponent == 31)
        value = value != 0 ? __builtin_nan("") : __builtin_inf();
    else
        value =
            exponent ? __builtin_ldexp(value + 1024, exponent - 25) : __builtin_ldexp(value, -24);
    return sign ? -value : value;
}

static double real_at(const uint8_t *at, size_t width)
{
    uint64_t bits = weir_load_le(at, (unsigned)width);
    float f;
    double d;
    if (width == 2)
        return half((uint16_t)bits);
    if (width == 4) {
        uint32_t low = (uint32_t)bits;
        memcpy(&f, &low, sizeof f);
        return f;
    }
    memcpy(&d, &bits, sizeof d);
    return d;
}

static int64_t whole_at(const uint8_t *at, size_t width, bool has_sign)
{
    uint64_t bits = weir_load_le(at, (unsigned)width);
    if (has_sign && width < 8 && bits >> (8 * width - 1))
        bits |= UINT64_MAX << (8 * width);
    return (int64_t)bits;
}

static json_t *number_json(const weir_field *field, uint64_t i, size_t width)
{
    const uint8_t *at = (const uint8_t *)field->data + i * width;
    char kind = field->dtype[1];
    if (kind == 'b')
        return json_boolean(*at);
    if (kind == 'i' || kind == 'u')
        return json_integer(whole_at(at, width, kind == 'i'));
    double value = real_at(at, width);
    json_t *real = json_real(value);
    return real ? real : json_null(); /* JSON has neither NaN nor infinity */
}

static bool is_shown(const weir_field *field, size_t width)
{
    return field->kind == WEIR_FIELD_ARRAY && width && width <= 8 &&
           strchr("biuf", field->dtype[1]);
}

static size_t preview_number(char *out, size_t room, const weir_field *field, uint64_t i,
                             size_t width)
{
    const uint8_t *at = (const uint8_t *)field->data + i * width;
    char kind = field->dtype[1];
    int n;
    if (kind == 'f')
        n = snprintf(out, room, "%s%g", i ? " " : "", real_at(at, width));
    else if (kind == 'i')
        n = snprintf(out, room, "%s%lld", i ? " " : "", (long long)whole_at(at, width, true));
    else
        n = snprintf(out, room, "%s%llu", i ? " " : "",
                     (unsigned long long)whole_at(at, width, false));
    return n > 0 ? (size_t)n : 0;
}

/* ---- a few words ---- */

static void preview_text(char out[VALUE_PREVIEW_BYTES], const weir_field *field)
{
    size_t size = field->size;
    if (size > PREVIEW_TEXT_BYTES) { /* not in the middle of a character */
        size = PREVIEW_TEXT_BYTES;
        while (size && ((const uint8_t *)field->data)[size] >> 6 == 2)
            size--;
    }
    char *copy = strndup(field->data, size), *shown = copy ? cli_printable(copy) : NULL;
    snprintf(out, VALUE_PREVIEW_BYTES, "%s%s", shown ? shown : "", size < field->size ? "…" : "");
    free(copy);
    free(shown);
}

const char *value_preview(char out[VALUE_PREVIEW_BYTES], const weir_field *field)
{
    size_t width = weir_dtype_bytes(field->dtype), used = 0;
    out[0] = 0;
    if (field->kind == WEIR_FIELD_TEXT || field->kind == WEIR_FIELD_JSON) {
        preview_text(out, field);
        return out;
    }
    bool numbers = is_shown(field, width);
    uint64_t count = numbers ? field->size / width : field->size;
    for (uint64_t i = 0; i < count && i < PREVIEW_ITEMS && used < VALUE_PREVIEW_BYTES; i++)
        if (numbers)
            used += preview_number(out + used, VALUE_PREVIEW_BYTES - used, field, i, width);
        else
            used += (size_t)snprintf(out + used, VALUE_PREVIEW_BYTES - used, "%s%02x", i ? " " : "",
                                     ((const uint8_t *)field->data)[i]);
    if (count > PREVIEW_ITEMS && used < VALUE_PREVIEW_BYTES)
        snprintf(out + used, VALUE_PREVIEW_BYTES - used, " …");
    return out;
}

/* ---- JSON ---- */

static json_t *base64(const uint8_t *data, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc(size / 3 * 4 + 5), *to = text;
    if (!text)
        return NULL;
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t bits = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                        (left > 2 ? data[i + 2] : 0);
        *to++ = digits[bits >> 18];
        *to++ = digits[bits >> 12 & 63];
        *to++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[bits & 63] : '=';
    }
    json_t *string = json_stringn(text, (size_t)(to - text));
    free(text);
    return string;
}

static void add_array(json_t *object, const weir_field *field)
{
    size_t width = weir_dtype_bytes(field->dtype);
    json_t *shape = json_array();
    for (uint32_t i = 0; i < field->ndim; i++)
        json_array_append_new(shape, json_integer((json_int_t)field->shape[i]));
    json_object_set_new(object, "dtype", json_string(field->dtype));
    json_object_set_new(object, "shape", shape);
    if (!is_shown(field, width)) {
        json_object_set_new(object, "base64", base64(field->data, field->size));
        return;
    }
    if (!field->ndim) {
        json_object_set_new(object, "value", number_json(field, 0, width));
        return;
    }
    json_t *values = json_array(); /* flat: its shape says the rest */
    for (uint64_t i = 0; i < field->size / width; i++)
        json_array_append_new(values, number_json(field, i, width));
    json_object_set_new(object, "value", values);
}

json_t *value_json(const weir_field *field)
{
    char *name = dataset_field_name(field);
    json_t *object =
        json_pack("{s:o, s:s, s:I}", "name", cli_text_json(name ? name : ""), "kind",
                  dataset_kind_name(field->kind), "size_bytes", (json_int_t)field->size);
    free(name);
    json_t *value = NULL;
    if (field->kind == WEIR_FIELD_ARRAY) {
        add_array(object, field);
        return object;
    }
    if (field->kind == WEIR_FIELD_JSON)
        value = json_loadb(field->data, field->size, JSON_DECODE_ANY, NULL);
    else if (field->kind == WEIR_FIELD_TEXT)
        value = json_stringn(field->data, field->size);
    if (value)
        json_object_set_new(object, "value", value);
    else if (field->kind != WEIR_FIELD_NONE)
        json_object_set_new(object, "base64", base64(field->data, field->size));
    return object;
}
