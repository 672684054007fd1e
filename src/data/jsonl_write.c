/* jsonl_write.c - writes JSON lines: an object a line, in the order of the fields. Bytes that are
 * UTF-8 become text (tf.Example has no other form of it); others have no form in JSON and are
 * refused, and so is what is not a finite number.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/field.h"
#include "data/jsonl.h"
#include "data/shards.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/json.h"
#include "util/sys.h"
#include "util/utf8.h"

static int refuse(const struct weir_field *field, const char *why)
{
    return weir_fail(EINVAL, "field '%.*s' %s", (int)field->name_size, field->name, why);
}

/* ---- values ---- */

/* Newlines are blanks between tokens: within strings they are escaped. */
static void put_json(struct weir_json_out *out, const struct weir_field *field)
{
    size_t begin = out->size;
    weir_json_put(out, field->data, field->size);
    for (size_t i = begin; i < out->size; i++)
        if (out->text[i] == '\n' || out->text[i] == '\r')
            out->text[i] = ' ';
}

static void put_whole(struct weir_json_out *out, const char *dtype, const uint8_t *at)
{
    char text[24];
    int64_t value;
    if (dtype[1] == 'b') {
        weir_json_puts(out, *at ? "true" : "false");
    } else if (weir_dtype_i64(dtype, at, &value)) {
        snprintf(text, sizeof text, "%" PRId64, value);
        weir_json_puts(out, text);
    } else {
        weir_json_put_uint(out, weir_load_le(at, 8));
    }
}

static int put_number(struct weir_json_out *out, const struct weir_field *field, const uint8_t *at)
{
    if (weir_dtype_is_whole(field->dtype)) {
        put_whole(out, field->dtype, at);
        return 0;
    }
    double value = weir_dtype_f64(field->dtype, at);
    if (!isfinite(value))
        return refuse(field, "has a number that is not finite, which JSON cannot hold");
    weir_json_put_double(out, value);
    return 0;
}

/* So many brackets open in front of element i, or close behind element i - 1: one for each
 * dimension whose parts it begins. */
static uint32_t brackets(const struct weir_field *field, uint64_t i)
{
    uint64_t part = 1;
    uint32_t count = 0;
    for (uint32_t d = field->ndim; d-- > 0;) {
        part *= field->shape[d];
        count += i % part == 0;
    }
    return count;
}

static int put_array(struct weir_json_out *out, const struct weir_field *field)
{
    size_t bytes = weir_dtype_bytes(field->dtype);
    uint64_t count = weir_field_count(field);
    if (!bytes || field->dtype[1] == 'c')
        return refuse(field, "has elements that JSON cannot hold");
    if (!count) {
        weir_json_puts(out, "[]");
        return 0;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (i)
            weir_json_put(out, ",", 1);
        for (uint32_t open = brackets(field, i); open; open--)
            weir_json_put(out, "[", 1);
        int code = put_number(out, field, (const uint8_t *)field->data + i * bytes);
        if (code)
            return code;
        for (uint32_t shut = brackets(field, i + 1); shut; shut--)
            weir_json_put(out, "]", 1);
    }
    return 0;
}

int weir_jsonl_put_value(struct weir_json_out *out, const struct weir_field *field)
{
    switch (field->kind) {
    case WEIR_FIELD_TEXT:
        weir_json_put_string(out, field->data, field->size);
        return 0;
    case WEIR_FIELD_JSON:
        put_json(out, field);
        return 0;
    case WEIR_FIELD_ARRAY:
        return put_array(out, field);
    case WEIR_FIELD_NONE:
        weir_json_puts(out, "null");
        return 0;
    case WEIR_FIELD_BYTES:
        break;
    }
    return refuse(
        field,
        "is bytes that are no text, which JSON cannot hold: leave it out, or pack as mds or wds");
}

static int put_members(struct weir_json_out *out, const struct weir_field *fields, uint32_t count)
{
    weir_json_put(out, "{", 1);
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_field *field = &fields[i];
        struct weir_field text;
        if (!weir_utf8_valid(field->name, field->name_size))
            return refuse(field, "has a name that is not UTF-8, which JSON cannot hold");
        if (field->kind == WEIR_FIELD_BYTES) {
            weir_field_set_text(&text, field->name, field->name_size, field->data, field->size);
            field = &text;
        }
        if (i)
            weir_json_put(out, ",", 1);
        weir_json_put_string(out, field->name, field->name_size);
        weir_json_put(out, ":", 1);
        int code = weir_jsonl_put_value(out, field);
        if (code)
            return code;
    }
    weir_json_put(out, "}", 1);
    return 0;
}

/* Is that what a line that is no object reads as? */
static bool was_no_object(const struct weir_field *fields, uint32_t count)
{
    if (count != 1 || !weir_field_is(fields, "json") || fields->kind != WEIR_FIELD_JSON)
        return false;
    const char *text = fields->data;
    size_t at = 0;
    while (at < fields->size && strchr(" \t\r\n", text[at]))
        at++;
    return at < fields->size && text[at] != '{';
}

/* ---- the writer ---- */

static void name(char out[64], uint32_t i, const char *codec)
{
    weir_shard_name(out, i, ".jsonl", codec);
}

static int open_writer(void **out, const struct weir_writing *how)
{
    (void)how;
    *out = weir_alloc(sizeof(struct weir_json_out));
    return *out ? 0 : weir_fail_memory();
}

static int add(void *writer, uint64_t number, const char *key, const struct weir_field *fields,
               uint32_t count)
{
    (void)number;
    (void)key;
    struct weir_json_out *out = writer;
    size_t begin = out->size;
    int code = 0;
    if (was_no_object(fields, count))
        put_json(out, fields);
    else
        code = put_members(out, fields, count);
    if (!code && out->size - begin > WEIR_JSONL_LINE_MAX)
        code = weir_fail(EINVAL, "a line of %zu bytes; the limit is %" PRIu64, out->size - begin,
                         WEIR_JSONL_LINE_MAX);
    weir_json_put(out, "\n", 1);
    if (!code && out->failed)
        code = weir_fail_memory();
    if (code) {
        out->size = begin;
        out->failed = false;
    }
    return code;
}

static void drain(void *writer, struct weir_made *made)
{
    struct weir_json_out *out = writer;
    *made = (struct weir_made){.body = (const uint8_t *)out->text, .body_size = out->size};
    out->size = 0;
}

static int finish(void *writer, struct weir_made *made)
{
    drain(writer, made);
    return 0;
}

static void close_writer(void *writer)
{
    if (writer)
        free(((struct weir_json_out *)writer)->text);
    free(writer);
}

const struct weir_format_writer weir_jsonl_writer = {
    .name = name,
    .open = open_writer,
    .add = add,
    .drain = drain,
    .finish = finish,
    .close = close_writer,
};
