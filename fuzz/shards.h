/* shards.h - what the targets for dataset formats share: a shard is scanned, and what it finds lies
 * within the shard, in order; each sample is taken apart in a block of its own.
 */
#ifndef WEIR_FUZZ_SHARDS_H
#define WEIR_FUZZ_SHARDS_H

#include "data/field.h"
#include "data/format.h"
#include "target.h"
#include "util/json.h"
#include "util/utf8.h"

enum { SAMPLES_MAX = 64 };

/* For formats that have them: what an index says. */
static const void *shard_schema;
static uint64_t shard_samples = UINT64_MAX;

struct shard_walk {
    const struct weir_format *format;
    const uint8_t *data;
    size_t size;
    uint64_t end; /* of the sample before */
    bool strict;  /* what is found by scan() can be taken apart */
    int samples;
};

/* Reads every byte, for the sanitizers. */
static inline void check_field(const struct weir_field *field)
{
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < field->name_size; i++)
        sum = (uint8_t)(sum + (uint8_t)field->name[i]);
    for (size_t i = 0; i < field->size; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)field->data)[i]);
    if (field->kind == WEIR_FIELD_TEXT)
        PROMISE(weir_utf8_valid(field->data, field->size));
    if (field->kind == WEIR_FIELD_JSON)
        PROMISE(!weir_json_check(field->data, field->size));
    if (field->kind == WEIR_FIELD_ARRAY)
        PROMISE(weir_dtype_bytes(field->dtype) &&
                weir_field_count(field) * weir_dtype_bytes(field->dtype) == field->size);
}

static inline void check_sample(const struct weir_format *format, const uint8_t *data, size_t size,
                                bool strict)
{
    static struct weir_field fields[WEIR_FIELDS_MAX];
    uint32_t count = WEIR_FIELDS_MAX;
    struct weir_arena *scratch = NULL;
    const char *key = NULL;
    uint8_t *copy = exact_copy(data, size);
    struct weir_sample sample = {.data = copy, .size = size, .file = "some/file"};
    int code = format->fields(shard_schema, &sample, &scratch, fields, &count);
    PROMISE(code <= 0 && (!strict || !code));
    if (!code) {
        PROMISE(count <= WEIR_FIELDS_MAX);
        for (uint32_t i = 0; i < count; i++)
            check_field(&fields[i]);
    }
    if (format->key && !code)
        PROMISE(format->key(&sample, &scratch, &key) == 0 && (!key || strlen(key) <= size));
    weir_arena_free(scratch);
    free(copy);
}

static inline int walk_sample(void *arg, uint64_t off, uint64_t size)
{
    struct shard_walk *walk = arg;
    PROMISE(off >= walk->end && size <= walk->size && off <= walk->size - size);
    walk->end = off + size;
    if (walk->samples++ < SAMPLES_MAX)
        check_sample(walk->format, walk->data + off, (size_t)size, walk->strict);
    return 0;
}

static inline int walk_shard(const struct weir_format *format, const uint8_t *data, size_t size,
                             bool strict)
{
    struct weir_flow *flow;
    struct shard_walk walk = {.format = format, .data = data, .size = size, .strict = strict};
    struct weir_shard_plan plan = {
        .key = "shard", .codec = "", .raw_bytes = size, .samples = shard_samples};
    PROMISE(weir_flow_open_bytes(&flow, data, size, "", UINT64_MAX) == 0);
    int code = format->scan(flow, &plan, shard_schema, walk_sample, &walk);
    PROMISE(code <= 0);
    weir_flow_close(flow);
    return code;
}

#endif
