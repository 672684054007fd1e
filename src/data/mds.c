/* mds.c - MDS, the shards of MosaicML Streaming, read: u32 n | u32 off[n + 1] | JSON | samples, all
 * little-endian, and an index.json beside them. What index.json says is checked against the files
 * there are, and against each shard's own header when that is scanned.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/codec.h"
#include "data/field.h"
#include "data/format.h"
#include "data/mds_columns.h"
#include "data/mds_index.h"
#include "data/mds_value.h"
#include "data/offsets.h"
#include "data/survey.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/json.h"
#include "util/sys.h"

enum {
    INDEX_BYTES_MAX = 512 << 20,
    CONFIG_BYTES_MAX = 1 << 20, /* of the JSON in a shard's header */
    HEAD_BYTES = 4096,          /* of index.json, to see whose it is */
};

extern const struct weir_format_writer weir_mds_writer;

/* ---- finding shards ---- */

/* Streaming's names: "shard.00000.mds", also compressed, also in a directory. */
static bool is_shard_name(const char *key)
{
    const char *slash = strrchr(key, '/'), *base = slash ? slash + 1 : key;
    return !strncmp(base, "shard.", 6) && strstr(base, ".mds");
}

/* Does it begin with what only an MDS index has? One that names no shard says so, too. */
static bool is_index(const struct weir_survey *survey)
{
    uint8_t head[HEAD_BYTES];
    struct weir_json json;
    size_t got;
    int code = weir_survey_head(survey, "index.json", head, sizeof head, &got);
    if (code)
        return false;
    weir_json_begin(&json, (char *)head, got);
    if (weir_json_next(&json) != 1 || json.token != WEIR_JSON_OBJECT)
        return false;
    while ((code = weir_json_next(&json)) == 1 && json.token == WEIR_JSON_KEY) {
        bool found = json.size == 6 && !memcmp(json.text, "shards", 6);
        if (weir_json_next(&json) != 1)
            return false;
        if (found)
            return json.token == WEIR_JSON_ARRAY;
        if (json.token == WEIR_JSON_OBJECT || json.token == WEIR_JSON_ARRAY)
            if (weir_json_skip(&json) < 0)
                return false;
    }
    return false;
}

static int match(const struct weir_survey *survey)
{
    struct weir_survey_file file;
    bool has_index = weir_survey_find(survey, "index.json", &file);
    for (size_t i = 0; weir_survey_file(survey, i, &file); i++)
        if (has_index ? strstr(file.key, ".mds") != NULL : is_shard_name(file.key))
            return 2;
    return has_index && is_index(survey) ? 2 : 0;
}

/* Shards are there, and what says what is in them is not. */
static int fail_missing(const struct weir_survey *survey)
{
    struct weir_survey_file file, index;
    char name[WEIR_KEY_BYTES_MAX + sizeof "index.json"];
    for (size_t i = 0; weir_survey_file(survey, i, &file); i++) {
        const char *slash = strrchr(file.key, '/');
        int above = slash ? (int)(slash - file.key) : 0;
        if (!is_shard_name(file.key))
            continue;
        snprintf(name, sizeof name, "%.*s/index.json", above, file.key);
        if (above && weir_survey_find(survey, name, &index))
            return weir_fail(EINVAL,
                             "'%s%s' has its own index.json: open '%s%.*s' (or read all of it as "
                             "plain files: --format files)",
                             weir_survey_prefix(survey), file.key, weir_survey_prefix(survey),
                             above, file.key);
        return weir_fail(ENOENT,
                         "'%s%.*s%sindex.json' is missing, which says what is in '%s': copy it "
                         "from where that was made (or read all of it as plain files: --format "
                         "files)",
                         weir_survey_prefix(survey), above, file.key, above ? "/" : "", file.key);
    }
    return weir_fail(ENOENT, "'%sindex.json' is missing", weir_survey_prefix(survey));
}

struct looking {
    struct weir_survey *survey;
    struct weir_mds_schema *schema;
};

/* The file as index.json says it is: there, and of that size; else -errno. */
static int find_file(const struct weir_survey *survey, const struct weir_mds_file *wanted,
                     struct weir_survey_file *out)
{
    if (!weir_survey_find(survey, wanted->name, out))
        return weir_fail(ENOENT, "index.json names '%.200s', which is not there", wanted->name);
    int code = weir_survey_fault(out);
    if (code)
        return code;
    if (out->size_bytes != wanted->bytes)
        return weir_fail(EBADMSG,
                         "'%.200s' has %" PRIu64 " bytes, where index.json says %" PRIu64
                         ": it is cut off, or belongs to another index.json",
                         wanted->name, out->size_bytes, wanted->bytes);
    return 0;
}

static int add_shard(void *arg, const struct weir_mds_shard *shard)
{
    struct looking *l = arg;
    struct weir_survey_file file;
    struct weir_shard_plan plan = {
        .codec = "", .raw_bytes = shard->raw.bytes, .samples = shard->samples};
    char codec[16];
    /* Streaming leaves the decompressed file beside the compressed one, or in its place. */
    int code = find_file(l->survey, &shard->raw, &file);
    if (code == -ENOENT && shard->zip.name) {
        size_t size = strcspn(shard->compression, ":");
        if (!size || size >= sizeof codec)
            return weir_fail(EINVAL, "index.json: '%.100s' is compressed with '%.40s'",
                             shard->zip.name, shard->compression);
        memcpy(codec, shard->compression, size);
        codec[size] = 0;
        plan.codec = codec;
        code = weir_codec_check(codec);
        if (!code)
            code = find_file(l->survey, &shard->zip, &file);
    }
    if (code)
        return code;
    plan.key = file.key;
    plan.file_bytes = file.size_bytes;
    plan.time_ns = file.time_ns;
    code = weir_mds_schema_add(l->schema, file.key, &shard->columns);
    return code ? code : weir_survey_add(l->survey, &plan);
}

static int tell_schema(struct weir_survey *survey, const struct weir_mds_schema *schema)
{
    struct weir_json_out out = {0};
    weir_mds_schema_write(schema, &out);
    int code = out.failed ? weir_fail_memory() : weir_survey_schema(survey, out.text, out.size);
    free(out.text);
    return code;
}

static int survey(struct weir_survey *survey)
{
    struct looking looking = {.survey = survey};
    uint8_t *text;
    size_t size;
    struct weir_survey_file file;
    if (!weir_survey_find(survey, "index.json", &file))
        return fail_missing(survey);
    int code = weir_survey_load(survey, "index.json", INDEX_BYTES_MAX, &text, &size);
    if (code)
        return code;
    looking.schema = weir_alloc(sizeof *looking.schema);
    code = looking.schema ? weir_mds_index_read((char *)text, size, add_shard, &looking)
                          : weir_fail_memory();
    if (!code && !looking.schema->count)
        code = weir_fail(EINVAL, "it has no samples: it names no shard");
    if (!code)
        code = tell_schema(survey, looking.schema);
    else
        code = weir_fail_in(code, "'%sindex.json'", weir_survey_prefix(survey));
    weir_mds_schema_free(looking.schema);
    free(text);
    return code;
}

/* ---- scanning ---- */

/* The columns that stand in the header are those of index.json. */
static int check_config(struct weir_flow *flow, const struct weir_shard_plan *shard, uint64_t end,
                        const struct weir_mds_columns *columns)
{
    uint64_t bytes = end - weir_flow_at(flow);
    struct weir_arena *arena = NULL;
    struct weir_mds_shard own;
    const uint8_t *text;
    size_t size;
    if (!bytes)
        return 0;
    if (bytes > CONFIG_BYTES_MAX)
        return weir_fail(EBADMSG, "'%s': its header has %" PRIu64 " bytes; the limit is %d",
                         shard->key, bytes, CONFIG_BYTES_MAX);
    int code = weir_flow_peek(flow, (size_t)bytes, &text, &size);
    if (code)
        return code;
    if (size < bytes)
        return weir_fail(EBADMSG, "'%s' ends within its header", shard->key);
    code = weir_mds_header_read(&own, &arena, (const char *)text, (size_t)bytes);
    if (code)
        code = weir_fail(EBADMSG, "'%s': its header is damaged: %s", shard->key, weir_fail_last());
    else if (!weir_mds_columns_same(&own.columns, columns))
        code = weir_fail(EBADMSG, "'%s' has other columns than index.json says", shard->key);
    weir_arena_free(arena);
    return code;
}

static int scan(struct weir_flow *flow, const struct weir_shard_plan *shard, const void *schema,
                weir_sample_fn fn, void *arg)
{
    struct weir_offsets offsets;
    int code = weir_offsets_scan(&offsets, flow, shard, fn, arg);
    if (code)
        return code;
    if (offsets.last != shard->raw_bytes)
        return weir_fail(EBADMSG,
                         "'%s': its samples end at byte %" PRIu64 " of %" PRIu64
                         ": it is cut off, or belongs to another index.json",
                         shard->key, offsets.last, shard->raw_bytes);
    return check_config(flow, shard, offsets.first, weir_mds_schema_of(schema, shard->key));
}

/* ---- samples ---- */

static int schema_open(void **out, const char *json, size_t size)
{
    struct weir_mds_schema *schema;
    int code = weir_mds_schema_read(&schema, json, size);
    if (!code)
        *out = schema;
    return code;
}

static void schema_close(void *schema)
{
    weir_mds_schema_free(schema);
}

/* Where the bytes of each column are. */
static int split(const struct weir_mds_columns *columns, const struct weir_sample *sample,
                 struct weir_field *fields, uint32_t *count)
{
    size_t sizes = 4 * (size_t)columns->sized, at = sizes;
    const uint8_t *next = sample->data;
    if (columns->count > *count)
        return weir_fail(EINVAL, "samples have %u fields; there is room for %u", columns->count,
                         *count);
    if (sizes > sample->size)
        return weir_fail(EBADMSG, "it ends within the sizes of its columns");
    for (uint32_t i = 0; i < columns->count; i++) {
        const struct weir_mds_column *column = &columns->list[i];
        uint64_t size = column->bytes;
        if (!size) {
            size = weir_load_le(next, 4);
            next += 4;
        }
        if (size > sample->size - at)
            return weir_fail(EBADMSG, "column '%.100s' ends behind the sample", column->name);
        weir_field_set(&fields[i], column->name, column->name_size, WEIR_FIELD_BYTES,
                       sample->data + at, (size_t)size);
        at += size;
    }
    if (at != sample->size)
        return weir_fail(EBADMSG, "its columns have %zu bytes, it has %zu", at, sample->size);
    *count = columns->count;
    return 0;
}

static int stored(const void *schema, const struct weir_sample *sample, struct weir_field *fields,
                  uint32_t *count)
{
    return split(weir_mds_schema_of(schema, sample->file), sample, fields, count);
}

static int fields(const void *schema, const struct weir_sample *sample, struct weir_arena **scratch,
                  struct weir_field *fields, uint32_t *count)
{
    const struct weir_mds_columns *columns = weir_mds_schema_of(schema, sample->file);
    int code = split(columns, sample, fields, count);
    for (uint32_t i = 0; !code && i < *count; i++)
        code = weir_mds_value_read(&fields[i], &columns->list[i], fields[i].data, fields[i].size,
                                   scratch);
    return code;
}

const struct weir_format weir_format_mds = {
    .name = "mds",
    .about = "shards of MosaicML Streaming, with their index.json",
    .match = match,
    .survey = survey,
    .scan = scan,
    .schema_open = schema_open,
    .schema_close = schema_close,
    .fields = fields,
    .stored = stored,
    .ends_with_sample = true,
    .writer = &weir_mds_writer,
};
