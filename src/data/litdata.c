/* litdata.c - LitData's chunks, read: u32 n | u32 off[n + 1] | items, an item being u32
 * size[leaves] and its leaves, and an index.json beside them. With TokensLoader an item is a
 * document, and its tokens are all there is of it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/codec.h"
#include "data/format.h"
#include "data/litdata_index.h"
#include "data/litdata_value.h"
#include "data/offsets.h"
#include "data/survey.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

enum { INDEX_BYTES_MAX = 512 << 20 };

struct schema {
    struct weir_arena *arena;
    struct weir_litdata data;
};

/* ---- finding chunks ---- */

static int match(const struct weir_survey *survey)
{
    struct weir_survey_file file;
    if (!weir_survey_find(survey, "index.json", &file))
        return 0;
    for (size_t i = 0; weir_survey_file(survey, i, &file); i++)
        if (!strncmp(file.key, "chunk-", 6) && strstr(file.key, ".bin"))
            return 2;
    return 0;
}

static int add_chunk(struct weir_survey *survey, const struct weir_litdata *data,
                     const struct weir_litdata_chunk *chunk)
{
    struct weir_survey_file file;
    char codec[16] = "";
    size_t size = strcspn(data->compression, ":");
    if (!weir_survey_find(survey, chunk->name, &file))
        return weir_fail(ENOENT, "it names '%.200s', which is not there", chunk->name);
    if (size >= sizeof codec)
        return weir_fail(EINVAL, "its compression is '%.40s'", data->compression);
    memcpy(codec, data->compression, size);
    struct weir_shard_plan plan = {
        .key = file.key,
        .codec = codec,
        .file_bytes = file.size_bytes,
        .time_ns = file.time_ns,
        .raw_bytes = size ? UINT64_MAX : file.size_bytes,
        .samples = chunk->samples,
    };
    int code = weir_codec_check(codec);
    return code ? code : weir_survey_add(survey, &plan);
}

static int add_all(struct weir_survey *survey, const struct weir_litdata *data)
{
    struct weir_json_out out = {0};
    int code = 0;
    for (size_t i = 0; !code && i < data->chunk_count; i++)
        code = add_chunk(survey, data, &data->chunks[i]);
    weir_litdata_schema_write(data, &out);
    if (!code)
        code = out.failed ? weir_fail_memory() : weir_survey_schema(survey, out.text, out.size);
    free(out.text);
    return code;
}

static int survey(struct weir_survey *survey)
{
    struct weir_arena *arena = NULL;
    struct weir_litdata data;
    uint8_t *text;
    size_t size;
    int code = weir_survey_load(survey, "index.json", INDEX_BYTES_MAX, &text, &size);
    if (code)
        return code;
    code = weir_litdata_index_read(&data, &arena, (char *)text, size);
    if (!code)
        code = add_all(survey, &data);
    if (code)
        code = weir_fail_in(code, "'%sindex.json'", weir_survey_prefix(survey));
    weir_arena_free(arena);
    free(text);
    return code;
}

/* What is behind the last item is no part of the chunk: newer LitData puts tables there. But where
 * items are nothing but such a table, there is nothing to read. */
static int scan(struct weir_flow *flow, const struct weir_shard_plan *shard, const void *schema,
                weir_sample_fn fn, void *arg)
{
    struct weir_offsets offsets;
    (void)schema;
    int code = weir_offsets_scan(&offsets, flow, shard, fn, arg);
    if (!code && offsets.first == offsets.last && shard->samples)
        code = weir_fail(ENOTSUP, "'%s': its items are rows of Arrow, which Weir does not read",
                         shard->key);
    return code;
}

/* ---- items ---- */

static void schema_close(void *arg)
{
    struct schema *schema = arg;
    if (!schema)
        return;
    weir_arena_free(schema->arena);
    free(schema);
}

static int schema_open(void **out, const char *json, size_t size)
{
    struct schema *schema = weir_alloc(sizeof *schema);
    if (!schema)
        return weir_fail_memory();
    int code = weir_litdata_schema_read(&schema->data, &schema->arena, json, size);
    if (code) {
        schema_close(schema);
        return code;
    }
    *out = schema;
    return 0;
}

static int fields(const void *arg, const struct weir_sample *sample, struct weir_arena **scratch,
                  struct weir_field *fields, uint32_t *count)
{
    const struct weir_litdata *data = &((const struct schema *)arg)->data;
    size_t at = data->tokens ? 0 : 4 * (size_t)data->count;
    (void)scratch;
    if (data->count > *count)
        return weir_fail(EINVAL, "samples have %u fields; there is room for %u", data->count,
                         *count);
    if (at > sample->size)
        return weir_fail(EBADMSG, "it ends within the sizes of its fields");
    for (uint32_t i = 0; i < data->count; i++) {
        uint64_t size = data->tokens ? sample->size : weir_load_le(sample->data + 4 * i, 4);
        if (size > sample->size - at)
            return weir_fail(EBADMSG, "field '%.100s' ends behind the sample",
                             data->fields[i].name);
        int code =
            weir_litdata_value_read(&fields[i], &data->fields[i], sample->data + at, (size_t)size);
        if (code)
            return code;
        at += size;
    }
    if (at != sample->size)
        return weir_fail(EBADMSG, "its fields have %zu bytes, it has %zu", at, sample->size);
    *count = data->count;
    return 0;
}

const struct weir_format weir_format_litdata = {
    .name = "litdata",
    .about = "chunks of LitData, with their index.json; read only",
    .match = match,
    .survey = survey,
    .scan = scan,
    .schema_open = schema_open,
    .schema_close = schema_close,
    .fields = fields,
    .ends_with_sample = true,
};
