/* example_write.c - writes tf.Examples: see example.h. Sizes go in front of everything, so each
 * message is measured before it is written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/example.h"
#include "data/field.h"
#include "data/protobuf.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

enum kind { NOTHING = 0, BYTES = 1, FLOATS = 2, WHOLES = 3 }; /* the number of a Feature's list */

/* A feature to be written: some fields in a row, or the shape of one. */
struct feature {
    const char *name;
    size_t name_size;
    const struct weir_field *field;
    uint32_t count; /* fields in a row that are values of one list */
    enum kind kind;
    bool shape;
    size_t list_bytes, payload_bytes; /* of the list; of its packed numbers */
};

/* Tag and length in front of so many bytes, and these; all fields are below 16. */
static size_t framed(size_t size)
{
    return 1 + weir_pb_varint_bytes(size) + size;
}

static uint64_t count_of(const struct feature *feature)
{
    return feature->shape ? feature->field->ndim : weir_field_count(feature->field);
}

/* Whole number i of a feature; they were checked. */
static uint64_t whole_of(const struct feature *feature, uint64_t i)
{
    const struct weir_field *field = feature->field;
    int64_t value = 0;
    if (feature->shape)
        return field->shape[i];
    (void)weir_dtype_i64(field->dtype,
                         (const uint8_t *)field->data + i * weir_dtype_bytes(field->dtype), &value);
    return (uint64_t)value;
}

/* ---- measuring ---- */

static int check_wholes(const struct weir_field *field)
{
    size_t bytes = weir_dtype_bytes(field->dtype);
    int64_t value;
    if (strcmp(field->dtype, "<u8") != 0)
        return 0;
    for (size_t at = 0; at < field->size; at += bytes)
        if (!weir_dtype_i64(field->dtype, (const uint8_t *)field->data + at, &value))
            return weir_fail(EINVAL,
                             "field '%.*s' has a number above 2^63, which tf.Example "
                             "cannot hold",
                             (int)field->name_size, field->name);
    return 0;
}

static int kind_of(const struct weir_field *field, enum kind *out)
{
    *out = field->kind == WEIR_FIELD_NONE ? NOTHING : BYTES;
    if (field->kind != WEIR_FIELD_ARRAY)
        return 0;
    *out = WHOLES;
    if (weir_dtype_is_whole(field->dtype))
        return check_wholes(field);
    *out = FLOATS;
    if (!strcmp(field->dtype, "<f4") || !strcmp(field->dtype, "<f2"))
        return 0;
    return weir_fail(EINVAL, "field '%.*s' is of %s, and tf.Example has floats of 32 bits only",
                     (int)field->name_size, field->name, field->dtype);
}

static void measure(struct feature *feature)
{
    uint64_t count;
    if (feature->kind == NOTHING)
        return;
    if (feature->kind == BYTES) {
        for (uint32_t i = 0; i < feature->count; i++)
            feature->list_bytes += framed(feature->field[i].size);
        return;
    }
    count = count_of(feature);
    for (uint64_t i = 0; feature->kind == WHOLES && i < count; i++)
        feature->payload_bytes += weir_pb_varint_bytes(whole_of(feature, i));
    if (feature->kind == FLOATS)
        feature->payload_bytes = (size_t)count * 4;
    feature->list_bytes = count ? framed(feature->payload_bytes) : 0;
}

static size_t feature_bytes(const struct feature *feature)
{
    return feature->kind == NOTHING ? 0 : framed(feature->list_bytes);
}

static size_t entry_bytes(const struct feature *feature)
{
    return framed(feature->name_size) + framed(feature_bytes(feature));
}

/* ---- writing ---- */

static uint8_t *put_copy(uint8_t *at, const void *data, size_t size)
{
    if (size)
        memcpy(at, data, size);
    return at + size;
}

static uint8_t *put_floats(uint8_t *at, const struct weir_field *field)
{
    size_t bytes = weir_dtype_bytes(field->dtype);
    if (bytes == 4)
        return put_copy(at, field->data, field->size);
    for (size_t i = 0; i < field->size; i += bytes, at += 4) {
        float value = (float)weir_dtype_f64(field->dtype, (const uint8_t *)field->data + i);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        weir_store_le(at, bits, 4);
    }
    return at;
}

static uint8_t *put_list(uint8_t *at, const struct feature *feature)
{
    if (feature->kind == BYTES) {
        for (uint32_t i = 0; i < feature->count; i++) {
            at = weir_pb_put_bytes(at, 1, feature->field[i].size);
            at = put_copy(at, feature->field[i].data, feature->field[i].size);
        }
        return at;
    }
    uint64_t count = count_of(feature);
    if (!count)
        return at;
    at = weir_pb_put_bytes(at, 1, feature->payload_bytes);
    if (feature->kind == FLOATS)
        return put_floats(at, feature->field);
    for (uint64_t i = 0; i < count; i++)
        at = weir_pb_put_varint(at, whole_of(feature, i));
    return at;
}

static uint8_t *put_entry(uint8_t *at, const struct feature *feature)
{
    at = weir_pb_put_bytes(at, 1, entry_bytes(feature));
    at = weir_pb_put_bytes(at, 1, feature->name_size);
    at = put_copy(at, feature->name, feature->name_size);
    at = weir_pb_put_bytes(at, 2, feature_bytes(feature));
    if (feature->kind == NOTHING)
        return at;
    at = weir_pb_put_bytes(at, feature->kind, feature->list_bytes);
    return put_list(at, feature);
}

/* ---- which features ---- */

/* How many fields from here on are "name/0", "name/1", … of bytes; 1 if that is no list. */
static uint32_t run_of(const struct weir_field *fields, uint32_t count, size_t *name_size)
{
    if (!weir_field_ends(&fields[0], "/0"))
        return 1;
    size_t stem = fields[0].name_size - 2;
    uint32_t run = 0;
    for (; run < count && fields[run].kind == WEIR_FIELD_BYTES; run++) {
        char number[16];
        size_t size = (size_t)snprintf(number, sizeof number, "/%u", run);
        if (fields[run].name_size != stem + size ||
            memcmp(fields[run].name, fields[0].name, stem) ||
            memcmp(fields[run].name + stem, number, size))
            break;
    }
    if (run < 2)
        return 1;
    *name_size = stem;
    return run;
}

static int by_name(const void *a, const void *b)
{
    const struct feature *x = a, *y = b;
    size_t size = x->name_size < y->name_size ? x->name_size : y->name_size;
    int order = size ? memcmp(x->name, y->name, size) : 0;
    return order ? order : (x->name_size > y->name_size) - (x->name_size < y->name_size);
}

static int add_shape(struct weir_arena **names, struct feature *out, const struct feature *of)
{
    static const char end[] = "/shape";
    char *name = weir_arena_take(names, of->name_size + sizeof end);
    if (!name)
        return weir_fail_memory();
    memcpy(name, of->name, of->name_size);
    memcpy(name + of->name_size, end, sizeof end);
    *out = (struct feature){name, of->name_size + sizeof end - 1, of->field, 1, WHOLES, true, 0, 0};
    return 0;
}

static int collect(const struct weir_field *fields, uint32_t count, struct weir_arena **names,
                   struct feature *features, size_t *used)
{
    for (uint32_t i = 0, run; i < count; i += run) {
        struct feature feature = {
            fields[i].name, fields[i].name_size, &fields[i], 1, NOTHING, false, 0, 0};
        run = run_of(fields + i, count - i, &feature.name_size);
        feature.count = run;
        int code = kind_of(&fields[i], &feature.kind);
        if (!code && fields[i].kind == WEIR_FIELD_ARRAY && fields[i].ndim > 1)
            code = add_shape(names, &features[(*used)++], &feature);
        if (code)
            return code;
        features[(*used)++] = feature;
    }
    qsort(features, *used, sizeof *features, by_name);
    for (size_t i = 1; i < *used; i++)
        if (!by_name(&features[i - 1], &features[i]))
            return weir_fail(EINVAL, "two fields are named '%.*s'", (int)features[i].name_size,
                             features[i].name);
    return 0;
}

int weir_example_put(struct weir_growing *out, const struct weir_field *fields, uint32_t count)
{
    struct weir_arena *names = NULL;
    struct feature *features = weir_alloc((2 * (size_t)count + 1) * sizeof *features);
    size_t used = 0, bytes = 0;
    if (!features)
        return weir_fail_memory();
    int code = collect(fields, count, &names, features, &used);
    for (size_t i = 0; !code && i < used; i++) {
        measure(&features[i]);
        bytes += framed(entry_bytes(&features[i]));
    }
    if (!code)
        code = weir_growing_room(out, framed(bytes));
    if (!code) {
        uint8_t *at = weir_pb_put_bytes(out->data + out->size, 1, bytes);
        for (size_t i = 0; i < used; i++)
            at = put_entry(at, &features[i]);
        out->size += framed(bytes);
    }
    weir_arena_free(names);
    free(features);
    return code;
}
