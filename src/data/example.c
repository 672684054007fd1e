/* example.c - see example.h. Reading:
 *
 *     Example   { Features features = 1; }
 *     Features  { map<string, Feature> feature = 1; }      an entry is { key = 1; value = 2; }
 *     Feature   { one of BytesList = 1, FloatList = 2, Int64List = 3; }
 *     …List     { repeated … value = 1; }                  numbers packed, or one by one
 *
 * Records hold other things, too. What is not exactly this is not taken for an Example.
 */
#include "data/example.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "data/field.h"
#include "data/protobuf.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/utf8.h"

enum { BYTES_LIST = 1, FLOAT_LIST = 2, INT64_LIST = 3 };

/* Fields that are being found. */
struct finding {
    struct weir_arena **scratch;
    struct weir_field *fields;
    uint32_t used, room;
};

/* One entry of the map. */
struct feature {
    const char *name;
    size_t name_size;
    uint32_t list; /* 0: it has none */
    const uint8_t *data;
    size_t size;
};

/* The next field, whose name no other has; NULL with a text (-EBADMSG). */
static struct weir_field *next_field(struct finding *finding, const char *name, size_t size)
{
    for (uint32_t i = 0; i < finding->used; i++)
        if (finding->fields[i].name_size == size && !memcmp(finding->fields[i].name, name, size)) {
            (void)weir_fail(EBADMSG, "two features are named '%.*s'", (int)size, name);
            return NULL;
        }
    if (finding->used == finding->room) {
        (void)weir_fail(EBADMSG, "more than %u features", finding->room);
        return NULL;
    }
    return &finding->fields[finding->used++];
}

static int take_nothing(struct finding *finding, const struct feature *feature)
{
    struct weir_field *field = next_field(finding, feature->name, feature->name_size);
    if (!field)
        return -EBADMSG;
    weir_field_set(field, feature->name, feature->name_size, WEIR_FIELD_NONE, NULL, 0);
    return 1;
}

/* ---- lists ---- */

static struct weir_pb list_of(const struct feature *feature)
{
    return (struct weir_pb){.at = feature->data, .end = feature->data + feature->size};
}

static int numbered_name(struct finding *finding, const struct feature *feature, uint64_t i,
                         const char **out, size_t *size)
{
    size_t room = feature->name_size + 24;
    char *name = weir_arena_take(finding->scratch, room);
    if (!name)
        return weir_fail_memory();
    memcpy(name, feature->name, feature->name_size);
    *size = feature->name_size +
            (size_t)snprintf(name + feature->name_size, 24, "/%llu", (unsigned long long)i);
    *out = name;
    return 1;
}

static int take_bytes(struct finding *finding, const struct feature *feature)
{
    struct weir_pb list = list_of(feature);
    uint64_t count = 0;
    int code;
    while ((code = weir_pb_next(&list)) == 1) {
        if (list.field != 1 || list.wire != WEIR_PB_BYTES)
            return 0;
        count++;
    }
    if (code)
        return 0;
    if (!count)
        return take_nothing(finding, feature);
    list = list_of(feature);
    for (uint64_t i = 0; i < count; i++) {
        const char *name = feature->name;
        size_t size = feature->name_size;
        if (count > 1 && (code = numbered_name(finding, feature, i, &name, &size)) < 0)
            return code;
        struct weir_field *field = next_field(finding, name, size);
        if (!field)
            return -EBADMSG;
        (void)weir_pb_next(&list);
        weir_field_set(field, name, size, WEIR_FIELD_BYTES, list.data, list.size);
    }
    return 1;
}

/* How many numbers a list has, and whether they are one packed piece, which is then list->data: 1,
 * or 0 if it is none. */
static int count_numbers(struct weir_pb *list, bool floats, uint64_t *count, bool *whole)
{
    uint64_t pieces = 0, packed = 0, value;
    int code;
    *count = 0;
    while ((code = weir_pb_next(list)) == 1) {
        if (list->field != 1)
            return 0;
        pieces++;
        if (list->wire == (floats ? WEIR_PB_FIXED32 : WEIR_PB_VARINT)) {
            ++*count;
            continue;
        }
        if (list->wire != WEIR_PB_BYTES || (floats && list->size % 4))
            return 0;
        packed++;
        struct weir_pb piece = {.at = list->data, .end = list->data + list->size};
        for (; !floats && piece.at < piece.end; ++*count)
            if (weir_pb_varint(&piece, &value) < 0)
                return 0;
        *count += floats ? list->size / 4 : 0;
    }
    *whole = pieces == 1 && packed == 1;
    return !code;
}

static void copy_numbers(const struct feature *feature, bool floats, uint8_t *at)
{
    struct weir_pb list = list_of(feature);
    unsigned width = floats ? 4 : 8;
    while (weir_pb_next(&list) == 1) {
        if (list.wire != WEIR_PB_BYTES) {
            weir_store_le(at, list.value, width);
            at += width;
        } else if (floats) {
            memcpy(at, list.data, list.size);
            at += list.size;
        } else {
            struct weir_pb piece = {.at = list.data, .end = list.data + list.size};
            for (uint64_t value; piece.at < piece.end && weir_pb_varint(&piece, &value) == 1;) {
                weir_store_le(at, value, width);
                at += width;
            }
        }
    }
}

static int take_numbers(struct finding *finding, const struct feature *feature)
{
    bool floats = feature->list == FLOAT_LIST, whole;
    struct weir_pb list = list_of(feature);
    uint64_t count;
    if (!count_numbers(&list, floats, &count, &whole))
        return 0;
    struct weir_field *field = next_field(finding, feature->name, feature->name_size);
    if (!field)
        return -EBADMSG;
    size_t bytes = (size_t)count * (floats ? 4 : 8);
    const uint8_t *data = list.data;
    if (!floats || !whole) { /* a packed list of floats is as we want it */
        uint8_t *copy = weir_arena_take(finding->scratch, bytes ? bytes : 1);
        if (!copy)
            return weir_fail_memory();
        copy_numbers(feature, floats, copy);
        data = copy;
    }
    weir_field_set(field, feature->name, feature->name_size, WEIR_FIELD_ARRAY, data, bytes);
    strcpy(field->dtype, floats ? "<f4" : "<i8");
    field->ndim = 1;
    field->shape[0] = count;
    return 1;
}

/* ---- the message ---- */

static int take_feature(struct finding *finding, const struct feature *feature)
{
    if (feature->list == BYTES_LIST)
        return take_bytes(finding, feature);
    return feature->list ? take_numbers(finding, feature) : take_nothing(finding, feature);
}

/* { key = 1; value = 2; }, of which either may be missing when it is empty. 1 or 0. */
static int read_entry(struct feature *feature, const uint8_t *data, size_t size)
{
    struct weir_pb entry = {.at = data, .end = data + size}, value = {0};
    int code;
    *feature = (struct feature){.name = ""};
    while ((code = weir_pb_next(&entry)) == 1) {
        if (entry.field > 2 || entry.wire != WEIR_PB_BYTES)
            return 0;
        if (entry.field == 1) {
            feature->name = (const char *)entry.data;
            feature->name_size = entry.size;
        } else {
            value.at = entry.data;
            value.end = entry.data + entry.size;
        }
    }
    if (code || !weir_utf8_valid(feature->name, feature->name_size))
        return 0;
    while ((code = weir_pb_next(&value)) == 1) {
        if (value.field > INT64_LIST || value.wire != WEIR_PB_BYTES || feature->list)
            return 0;
        feature->list = value.field;
        feature->data = value.data;
        feature->size = value.size;
    }
    return !code;
}

static int read_features(struct finding *finding, const uint8_t *data, size_t size)
{
    struct weir_pb features = {.at = data, .end = data + size};
    int code;
    while ((code = weir_pb_next(&features)) == 1) {
        struct feature feature;
        if (features.field != 1 || features.wire != WEIR_PB_BYTES ||
            !read_entry(&feature, features.data, features.size))
            return 0;
        code = take_feature(finding, &feature);
        if (code != 1)
            return code;
    }
    return !code;
}

int weir_example_fields(const uint8_t *data, size_t size, struct weir_arena **scratch,
                        struct weir_field *fields, uint32_t *count)
{
    struct finding finding = {scratch, fields, 0, *count};
    struct weir_pb example = {.at = data, .end = data + size};
    int code;
    if (!size) /* by the letter an Example without features */
        return 0;
    while ((code = weir_pb_next(&example)) == 1) {
        if (example.field != 1 || example.wire != WEIR_PB_BYTES)
            return 0;
        code = read_features(&finding, example.data, example.size);
        if (code != 1)
            return code;
    }
    if (code)
        return 0;
    *count = finding.used;
    return 1;
}
