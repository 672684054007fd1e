/* sample.c - one sample in memory: its bytes and its fields. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/dataset.h"
#include "util/err.h"
#include "util/sys.h"

struct weir_data_sample {
    weir_data *data;
    struct weir_place place;
    weir_data_sample_info info;
    uint8_t *bytes;
    struct weir_arena *scratch;
    weir_field *fields;
    uint32_t count;
};

static int read_plain(struct weir_data_sample *s)
{
    weir_object *obj;
    size_t got = 0;
    int code = weir_data_object(s->data, &s->place, false, &obj);
    if (code)
        return code;
    code = weir_object_read(obj, s->bytes, s->place.size, s->place.off, &got);
    weir_object_close(obj);
    if (!code && got != s->place.size)
        code = weir_fail(EBADMSG, "'%s' ends before it", s->place.key);
    return code;
}

static int read_compressed(struct weir_data_sample *s)
{
    struct weir_flow *flow;
    struct weir_index_shard shard;
    weir_index_shard(weir_data_index(s->data), s->place.shard, &shard);
    int code = weir_data_flow(s->data, &s->place, &flow);
    if (code)
        return code;
    code = weir_flow_skip(flow, s->place.off);
    if (!code)
        code = weir_flow_read(flow, s->bytes, s->place.size);
    /* What follows the sample is not looked at, unless it is the last one. */
    if (!code && s->place.off + s->place.size == shard.raw_bytes)
        code = weir_flow_finish(flow);
    weir_flow_close(flow);
    return code;
}

static int read_sample(struct weir_data_sample *s, uint64_t number)
{
    int code = weir_index_find(weir_data_index(s->data), number, &s->place);
    if (code)
        return code;
    uint64_t most = weir_data_sample_bytes_max(s->data);
    if (*s->place.codec && s->place.size > most)
        return weir_fail(EFBIG,
                         "sample %" PRIu64 " has %" PRIu64 " bytes when it is decompressed, and "
                         "%" PRIu64 " are allowed: allow more memory",
                         number, s->place.size, most);
    s->bytes = weir_realloc(NULL, s->place.size);
    if (!s->bytes)
        return weir_fail_memory();
    code = *s->place.codec ? read_compressed(s) : read_plain(s);
    if (code)
        return weir_fail_in(code, "sample %" PRIu64, number);
    s->info = (weir_data_sample_info){
        .number = number,
        .shard = s->place.shard,
        .key = s->place.key,
        .off = s->place.off,
        .data = s->bytes,
        .size = s->place.size,
    };
    return 0;
}

int weir_data_sample_open(weir_data_sample **out, weir_data *data, uint64_t number)
{
    int code = weir_data_check(data);
    if (code)
        return code;
    struct weir_data_sample *s = weir_alloc(sizeof *s);
    if (!s)
        return weir_fail_memory();
    s->data = data;
    code = read_sample(s, number);
    if (code)
        weir_data_sample_close(s);
    else
        *out = s;
    return code;
}

void weir_data_sample_close(weir_data_sample *s)
{
    if (!s)
        return;
    weir_arena_free(s->scratch);
    free(s->fields);
    free(s->bytes);
    free(s);
}

const weir_data_sample_info *weir_data_sample_get(const weir_data_sample *s)
{
    return &s->info;
}

static struct weir_sample as_stored(const weir_data_sample *s)
{
    return (struct weir_sample){s->bytes, s->info.size, s->info.key, s->info.off, s->place.marks};
}

static int fail_sample(const weir_data_sample *s, int code)
{
    return weir_fail_in(code, "sample %" PRIu64 " in '%s'", s->info.number, s->info.key);
}

int weir_data_sample_raw(const weir_data_sample *s, weir_field *field)
{
    struct weir_sample sample = as_stored(s);
    int code = weir_format_raw(weir_index_format(weir_data_index(s->data)), &sample, field);
    return code ? fail_sample(s, code) : 0;
}

static int take_apart(weir_data_sample *s)
{
    const struct weir_index *index = weir_data_index(s->data);
    struct weir_sample sample = as_stored(s);
    uint32_t count = WEIR_FIELDS_MAX;
    weir_field *fields = weir_realloc(NULL, count * sizeof *fields);
    if (!fields)
        return weir_fail_memory();
    int code = weir_index_format(index)->fields(weir_index_schema(index), &sample, &s->scratch,
                                                fields, &count);
    if (code) {
        free(fields);
        return fail_sample(s, code);
    }
    s->fields = fields;
    s->count = count;
    return 0;
}

int weir_data_sample_fields(weir_data_sample *s, const weir_field **fields, uint32_t *count)
{
    int code = s->fields ? 0 : take_apart(s);
    if (!code) {
        *fields = s->fields;
        *count = s->count;
    }
    return code;
}
