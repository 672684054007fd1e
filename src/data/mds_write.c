/* mds_write.c - MDS, written as MosaicML Streaming writes it. The offsets of a shard's samples
 * stand in front of them, and are known last.
 *
 * Columns are those of the schema, or of the first sample: sorted by name, and the same in all
 * samples. Their encodings are those that were asked for; without that, those of MDS that becomes
 * MDS, whose values are then written as they stand, or what a field of that kind has. Such arrays
 * have their dtype in the column; their shape is in each value, since the next may have another.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/codec.h"
#include "data/field.h"
#include "data/mds_columns.h"
#include "data/mds_value.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/hash.h"
#include "util/sys.h"
#include "util/utf8.h"

struct writer {
    struct weir_mds_schema *schema; /* NULL: the first sample will say */
    struct weir_mds_columns chosen; /* whose encoding was asked for */
    struct weir_arena *arena;
    struct weir_json_out text; /* for values that become text */
    char codec[16];
    struct weir_growing samples; /* that were not handed over yet, one after the other */
    struct weir_growing ends;    /* u32 each: of every sample, from the first on */
    struct weir_growing head;    /* of the last shard */
    uint64_t drained;            /* bytes of samples that were handed over */
    uint32_t count;
};

static void mds_name(char out[64], uint32_t i, const char *codec)
{
    snprintf(out, 64, "shard.%05" PRIu32 ".mds%s", i, weir_codec_suffix(codec));
}

static void mds_close(void *arg)
{
    struct writer *w = arg;
    if (!w)
        return;
    weir_mds_schema_free(w->schema);
    weir_arena_free(w->arena);
    free(w->text.text);
    weir_growing_free(&w->samples);
    weir_growing_free(&w->ends);
    weir_growing_free(&w->head);
    free(w);
}

static void mark_chosen(struct writer *w)
{
    struct weir_mds_columns *columns = &w->schema->kinds[0];
    for (uint32_t i = 0; i < columns->count; i++) {
        struct weir_mds_column *c = &columns->list[i];
        c->is_chosen = weir_mds_columns_find(&w->chosen, c->name, c->name_size, 0);
    }
}

static int mds_open(void **out, const struct weir_writing *how)
{
    struct writer *w = weir_alloc(sizeof *w);
    if (!w)
        return weir_fail_memory();
    snprintf(w->codec, sizeof w->codec, "%s", how->codec);
    int code = weir_codec_check(how->codec);
    if (!code && how->columns) {
        code = weir_mds_columns_parse(&w->chosen, &w->arena, how->columns);
        if (code)
            weir_fail_in(code, "--columns");
    }
    if (!code && how->schema)
        code = weir_mds_schema_read(&w->schema, how->schema, strlen(how->schema));
    if (!code && w->schema && w->schema->count > 1)
        code = weir_fail(EINVAL, "a dataset is written with one list of columns, not %u",
                         w->schema->count);
    if (code) {
        mds_close(w);
        return code;
    }
    if (w->schema)
        mark_chosen(w);
    *out = w;
    return 0;
}

/* ---- columns ---- */

static int encoding_of(const struct weir_field *field, char out[32])
{
    const char *dtype;
    switch (field->kind) {
    case WEIR_FIELD_BYTES:
        strcpy(out, "bytes");
        return 0;
    case WEIR_FIELD_TEXT:
        strcpy(out, "str");
        return 0;
    case WEIR_FIELD_JSON:
        strcpy(out, "json");
        return 0;
    case WEIR_FIELD_ARRAY:
        dtype = !strcmp(field->dtype, "|b1") ? "uint8" : weir_mds_dtype_name(field->dtype);
        if (!dtype)
            return weir_fail(EINVAL, "field '%.*s' has dtype '%s', which MDS does not have",
                             (int)(field->name_size < 100 ? field->name_size : 100), field->name,
                             field->dtype);
        snprintf(out, 32, "%s%s", field->ndim ? "ndarray:" : "", dtype);
        return 0;
    default:
        return weir_fail(
            EINVAL,
            "field '%.*s' is null, which MDS does not have, but for JSON: --columns NAME:json",
            (int)(field->name_size < 100 ? field->name_size : 100), field->name);
    }
}

static int by_name(const void *a, const void *b)
{
    const struct weir_mds_column *x = a, *y = b;
    size_t least = x->name_size < y->name_size ? x->name_size : y->name_size;
    int order = memcmp(x->name, y->name, least);
    return order ? order : (x->name_size > y->name_size) - (x->name_size < y->name_size);
}

/* One that samples do not have was misspelt. */
static int check_chosen(const struct weir_mds_columns *chosen,
                        const struct weir_mds_columns *columns)
{
    for (uint32_t i = 0; i < chosen->count; i++)
        if (!weir_mds_columns_find(columns, chosen->list[i].name, chosen->list[i].name_size, i))
            return weir_fail(EINVAL, "it has no field '%.100s', which --columns names",
                             chosen->list[i].name);
    return 0;
}

static int column_of(struct weir_mds_column *out, struct weir_arena **arena,
                     const struct weir_mds_columns *chosen, const struct weir_mds_columns *source,
                     const struct weir_field *field, uint32_t number)
{
    const struct weir_mds_column *like =
        weir_mds_columns_find(chosen, field->name, field->name_size, 0);
    char encoding[32];
    if (!like && source)
        like = weir_mds_columns_find(source, field->name, field->name_size, number);
    int code = like ? 0 : encoding_of(field, encoding);
    if (!code && !weir_utf8_valid(field->name, field->name_size))
        code = weir_fail(EINVAL,
                         "the name of field %" PRIu32 " is not UTF-8, and names are JSON in MDS",
                         number);
    return code ? code
                : weir_mds_column_make(out, arena, field->name, field->name_size,
                                       like ? like->encoding : encoding);
}

static int columns_of(struct weir_mds_columns *out, struct weir_arena **arena,
                      const struct writer *w, const struct weir_mds_columns *source,
                      const struct weir_field *fields, uint32_t count)
{
    out->list = weir_arena_take(arena, (count ? count : 1) * sizeof *out->list);
    if (!out->list)
        return weir_fail_memory();
    for (uint32_t i = 0; i < count; i++) {
        int code = column_of(&out->list[i], arena, &w->chosen, source, &fields[i], i);
        if (code)
            return code;
    }
    out->count = count;
    qsort(out->list, count, sizeof *out->list, by_name);
    int code = check_chosen(&w->chosen, out);
    return code ? code : weir_mds_columns_check(out);
}

static int go_by_sample(struct writer *w, const struct weir_mds_columns *source,
                        const struct weir_field *fields, uint32_t count)
{
    struct weir_mds_columns columns = {0};
    struct weir_arena *arena = NULL;
    struct weir_mds_schema *schema = weir_alloc(sizeof *schema);
    int code = schema ? columns_of(&columns, &arena, w, source, fields, count) : weir_fail_memory();
    if (!code)
        code = weir_mds_schema_add(schema, "", &columns);
    weir_arena_free(arena);
    if (code) {
        weir_mds_schema_free(schema);
        return code;
    }
    w->schema = schema;
    mark_chosen(w);
    return 0;
}

/* ---- samples ---- */

/* A sample to be written; source: the columns of MDS that its fields are the bytes of, or NULL. */
struct adding {
    const struct weir_mds_columns *source;
    const struct weir_field *fields;
    uint32_t count;
    struct weir_arena **scratch; /* with source */
};

/* What stands in MDS is only decoded to be encoded otherwise. */
static int write_value(struct writer *w, const struct weir_mds_column *column,
                       const struct adding *from, const struct weir_field *field, uint32_t number)
{
    struct weir_field decoded;
    if (from->source) {
        const struct weir_mds_column *was =
            weir_mds_columns_find(from->source, field->name, field->name_size, number);
        if (!strcmp(was->encoding, column->encoding))
            return weir_growing_add(&w->samples, field->data, field->size);
        int code = weir_mds_value_read(&decoded, was, field->data, field->size, from->scratch);
        if (code)
            return code;
        field = &decoded;
    }
    return weir_mds_value_write(column, field, &w->samples, &w->text);
}

/* The sizes, then the values; what was appended before a failure is the caller's to drop. */
static int write_sample(struct writer *w, const struct weir_mds_columns *columns,
                        const struct adding *from)
{
    struct weir_growing *out = &w->samples;
    size_t sizes = out->size;
    int code = weir_growing_room(out, 4 * (size_t)columns->sized);
    if (code)
        return code;
    out->size += 4 * (size_t)columns->sized;
    for (uint32_t i = 0; i < columns->count; i++) {
        const struct weir_mds_column *column = &columns->list[i];
        const struct weir_field *field =
            weir_field_find(from->fields, from->count, column->name, column->name_size, i);
        size_t begin = out->size;
        if (!field)
            return weir_fail(EINVAL, "it has no field '%.100s', which all samples of MDS have",
                             column->name);
        code = write_value(w, column, from, field, i);
        if (code)
            return code;
        if (out->size - begin > UINT32_MAX)
            return weir_fail(EFBIG, "field '%.100s' is larger than 4 GiB", column->name);
        if (!column->bytes) {
            weir_store_le(out->data + sizes, out->size - begin, 4);
            sizes += 4;
        }
    }
    return 0;
}

static int fail_large(void)
{
    return weir_fail(EFBIG, "the shard becomes larger than 4 GiB: make smaller shards");
}

static int add(struct writer *w, const struct adding *from)
{
    size_t before = w->samples.size;
    uint8_t end[4];
    int code = w->schema ? 0 : go_by_sample(w, from->source, from->fields, from->count);
    if (code)
        return code;
    const struct weir_mds_columns *columns = &w->schema->kinds[0];
    if (from->count != columns->count)
        return weir_fail(EINVAL,
                         "it has %" PRIu32 " fields, where all samples of MDS have %" PRIu32,
                         from->count, columns->count);
    code = write_sample(w, columns, from);
    if (!code && w->drained + w->samples.size > UINT32_MAX)
        code = fail_large();
    if (!code) {
        weir_store_le(end, w->drained + w->samples.size, 4);
        code = weir_growing_add(&w->ends, end, 4);
    }
    if (code)
        w->samples.size = before;
    else
        w->count++;
    return code;
}

static int mds_add(void *arg, uint64_t number, const char *key, const struct weir_field *fields,
                   uint32_t count)
{
    (void)number;
    (void)key;
    return add(arg, &(struct adding){.fields = fields, .count = count});
}

static int mds_add_stored(void *arg, const void *schema, const struct weir_sample *sample,
                          struct weir_arena **scratch, const struct weir_field *fields,
                          uint32_t count)
{
    return add(arg,
               &(struct adding){weir_mds_schema_of(schema, sample->file), fields, count, scratch});
}

/* ---- JSON ---- */

static void put_strings(struct weir_json_out *out, const char *key,
                        const struct weir_mds_columns *columns, bool names)
{
    weir_json_puts(out, key);
    for (uint32_t i = 0; i < columns->count; i++) {
        const struct weir_mds_column *c = &columns->list[i];
        weir_json_puts(out, i ? ", " : "[");
        if (names)
            weir_json_put_string(out, c->name, c->name_size);
        else
            weir_json_put_string(out, c->encoding, strlen(c->encoding));
    }
    weir_json_puts(out, "], ");
}

static void put_sizes(struct weir_json_out *out, const struct weir_mds_columns *columns)
{
    weir_json_puts(out, "\"column_sizes\": ");
    for (uint32_t i = 0; i < columns->count; i++) {
        weir_json_puts(out, i ? ", " : "[");
        if (columns->list[i].bytes)
            weir_json_put_uint(out, columns->list[i].bytes);
        else
            weir_json_puts(out, "null");
    }
    weir_json_puts(out, "], ");
}

/* What stands in a header and in index.json, keys sorted as Streaming has them. */
static void put_columns(struct weir_json_out *out, const struct weir_mds_columns *columns,
                        const char *codec)
{
    put_strings(out, "\"column_encodings\": ", columns, false);
    put_strings(out, "\"column_names\": ", columns, true);
    put_sizes(out, columns);
    weir_json_puts(out, "\"compression\": ");
    if (*codec)
        weir_json_put_string(out, codec, strlen(codec));
    else
        weir_json_puts(out, "null");
    weir_json_puts(out, ", \"format\": \"mds\", \"hashes\": [], ");
}

/* Without hashes, which Streaming does not look at unless it is told to: `weir data manifest`
 * writes them for any format, and seals verify every block anyway. */
static void put_file(struct weir_json_out *out, const char *key, const char *name, uint64_t bytes)
{
    weir_json_puts(out, key);
    weir_json_puts(out, "{\"basename\": ");
    weir_json_put_string(out, name, strlen(name));
    weir_json_puts(out, ", \"bytes\": ");
    weir_json_put_uint(out, bytes);
    weir_json_puts(out, ", \"hashes\": {}}");
}

static void put_shard(struct weir_json_out *out, const struct writer *w,
                      const struct weir_written *shard)
{
    const char *suffix = weir_codec_suffix(w->codec);
    char raw_name[64];
    snprintf(raw_name, sizeof raw_name, "%.*s", (int)(strlen(shard->name) - strlen(suffix)),
             shard->name);
    weir_json_puts(out, "{");
    put_columns(out, &w->schema->kinds[0], w->codec);
    put_file(out, "\"raw_data\": ", raw_name, shard->raw_bytes);
    weir_json_puts(out, ", \"samples\": ");
    weir_json_put_uint(out, shard->samples);
    weir_json_puts(out, ", \"size_limit\": null, \"version\": 2, ");
    if (*suffix)
        put_file(out, "\"zip_data\": ", shard->name, shard->file_bytes);
    else
        weir_json_puts(out, "\"zip_data\": null");
    weir_json_puts(out, "}");
}

static int mds_index(const struct weir_writing *how, const void *arg,
                     const struct weir_written *shards, uint32_t count, struct weir_growing *out)
{
    const struct writer *w = arg;
    struct weir_json_out json = {0};
    (void)how;
    if (count && !w->schema)
        return weir_fail(EINVAL, "there are no columns: no sample was written, nor a schema given");
    weir_json_puts(&json, "{\"shards\": [");
    for (uint32_t i = 0; i < count; i++) {
        weir_json_puts(&json, i ? ", " : "");
        put_shard(&json, w, &shards[i]);
    }
    weir_json_puts(&json, "], \"version\": 2}");
    int code = json.failed ? weir_fail_memory() : weir_growing_add(out, json.text, json.size);
    free(json.text);
    return code;
}

static int mds_schema(const void *arg, struct weir_growing *out)
{
    const struct writer *w = arg;
    struct weir_json_out json = {0};
    if (!w->schema)
        return weir_fail(EINVAL, "there are no columns yet");
    weir_mds_schema_write(w->schema, &json);
    int code = json.failed ? weir_fail_memory() : weir_growing_add(out, json.text, json.size);
    free(json.text);
    return code;
}

/* ---- shards ---- */

/* What the header says of the shard, as JSON: the caller frees its text. */
static int make_config(const struct writer *w, struct weir_json_out *json)
{
    if (!w->schema)
        return weir_fail(EINVAL, "a shard of MDS has samples, or at least a schema");
    weir_json_puts(json, "{");
    put_columns(json, &w->schema->kinds[0], w->codec);
    weir_json_puts(json, "\"size_limit\": null, \"version\": 2}");
    return json->failed ? weir_fail_memory() : 0;
}

static uint64_t head_bytes(uint64_t samples, size_t config)
{
    return 4 * (samples + 2) + config;
}

static int mds_expect(const void *arg, uint64_t samples, uint64_t *out)
{
    struct weir_json_out json = {0};
    int code = make_config(arg, &json);
    *out = head_bytes(samples, json.size);
    free(json.text);
    return !code && *out > UINT32_MAX ? fail_large() : code;
}

static void mds_drain(void *arg, struct weir_made *out)
{
    struct writer *w = arg;
    *out = (struct weir_made){.body = w->samples.data, .body_size = w->samples.size};
    w->drained += w->samples.size;
    w->samples.size = 0;
}

/* Writes what stands in front of the samples. */
static void write_head(const struct writer *w, const struct weir_json_out *config, uint8_t *out)
{
    uint64_t first = head_bytes(w->count, config->size);
    weir_store_le(out, w->count, 4);
    weir_store_le(out + 4, first, 4);
    for (uint32_t i = 0; i < w->count; i++)
        weir_store_le(out + 8 + 4 * (size_t)i,
                      first + weir_load_le(w->ends.data + 4 * (size_t)i, 4), 4);
    memcpy(out + first - config->size, config->text, config->size);
}

static int make_shard(struct writer *w, const struct weir_json_out *config, struct weir_made *out)
{
    uint64_t first = head_bytes(w->count, config->size);
    if (first + w->drained + w->samples.size > UINT32_MAX)
        return fail_large();
    w->head.size = 0;
    int code = weir_growing_room(&w->head, (size_t)first);
    if (code)
        return code;
    write_head(w, config, w->head.data);
    mds_drain(w, out);
    out->head = w->head.data;
    out->head_size = (size_t)first;
    return 0;
}

static int mds_finish(void *arg, struct weir_made *out)
{
    struct writer *w = arg;
    struct weir_json_out json = {0};
    int code = make_config(w, &json);
    if (!code)
        code = make_shard(w, &json, out);
    free(json.text);
    w->samples.size = w->ends.size = w->drained = 0;
    w->count = 0;
    return code;
}

const struct weir_format_writer weir_mds_writer = {
    .name = mds_name,
    .open = mds_open,
    .expect = mds_expect,
    .add = mds_add,
    .add_stored = mds_add_stored,
    .drain = mds_drain,
    .finish = mds_finish,
    .close = mds_close,
    .schema = mds_schema,
    .index_name = "index.json",
    .index = mds_index,
};
