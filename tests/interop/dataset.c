/* Datasets for the tests with other people's libraries, format by format and without an index:
 *
 *     dataset dump DIR [FORMAT [OPTIONS]]                one line of JSON for each sample
 *     dataset copy DIR STORE FORMAT [CODEC [COUNT]]      written anew, COUNT samples a shard
 */
#include <inttypes.h>

#include "data/codec.h"
#include "data/survey.h"
#include "made.h"
#include "stores.h"
#include "util/hash.h"
#include "util/json.h"

/* Who takes the samples, one after the other. */
typedef void (*take_fn)(void *arg, const char *key, const struct weir_field *fields,
                        uint32_t count);

struct offsets {
    struct range {
        uint64_t off, size;
    } * list;
    size_t count, room;
};

static void must(int code)
{
    if (!code)
        return;
    fprintf(stderr, "%s\n", weir_error_text());
    exit(1);
}

static int note(void *arg, uint64_t off, uint64_t size)
{
    struct offsets *o = arg;
    if (o->count == o->room) {
        o->room = o->room ? 2 * o->room : 1024;
        o->list = realloc(o->list, o->room * sizeof *o->list);
        CHECK(o->list);
    }
    o->list[o->count++] = (struct range){off, size};
    return 0;
}

static void take_sample(const struct weir_format *format, const void *schema,
                        const struct weir_sample *sample, take_fn take, void *arg)
{
    static struct weir_field fields[WEIR_FIELDS_MAX];
    struct weir_arena *scratch = NULL;
    const char *key = NULL;
    uint32_t count = WEIR_FIELDS_MAX;
    must(format->fields(schema, sample, &scratch, fields, &count));
    if (format->key)
        must(format->key(sample, &scratch, &key));
    take(arg, key, fields, count);
    weir_arena_free(scratch);
}

static void read_shard(weir_store *store, const struct weir_format *format, const void *schema,
                       const struct weir_shard_plan *shard, take_fn take, void *arg)
{
    struct weir_flow *flow;
    struct offsets o = {0};
    must(weir_flow_open(&flow, store, shard->key, shard->codec, shard->raw_bytes));
    if (format->scan && !shard->each_bytes)
        must(format->scan(flow, shard, schema, note, &o));
    else
        for (uint64_t i = 0; i < shard->samples; i++)
            note(&o, shard->first_bytes + i * shard->each_bytes,
                 shard->each_bytes ? shard->each_bytes : shard->raw_bytes);
    weir_flow_close(flow);
    must(weir_flow_open(&flow, store, shard->key, shard->codec, shard->raw_bytes));
    for (size_t i = 0; i < o.count; i++) {
        uint8_t *data = malloc((size_t)o.list[i].size + 1);
        struct weir_sample sample = {
            .data = data, .size = (size_t)o.list[i].size, .file = shard->key, .off = o.list[i].off};
        CHECK(data && o.list[i].off >= weir_flow_at(flow));
        must(weir_flow_skip(flow, o.list[i].off - weir_flow_at(flow)));
        must(weir_flow_read(flow, data, sample.size));
        take_sample(format, schema, &sample, take, arg);
        free(data);
    }
    weir_flow_close(flow);
    free(o.list);
}

static void read_dataset(const char *dir, const char *name, const char *options, take_fn take,
                         void *arg)
{
    weir_store *store;
    struct weir_survey *survey;
    const struct weir_format *format;
    void *schema = NULL;
    size_t size;
    must(weir_store_open(&store, dir, NULL));
    must(weir_survey_open(&survey, store, "", options, NULL, NULL));
    if (name)
        format = weir_format_find(name);
    else
        must(weir_format_detect(&format, survey));
    CHECK(format);
    must(format->survey(survey));
    const char *json = weir_survey_schema_get(survey, &size);
    if (format->schema_open)
        must(format->schema_open(&schema, json, size));
    for (size_t i = 0; i < weir_survey_shards(survey); i++)
        read_shard(store, format, schema, weir_survey_shard(survey, i), take, arg);
    if (format->schema_close)
        format->schema_close(schema);
    weir_survey_close(survey);
    weir_store_close(store);
}

/* ---- dumping ---- */

static void put_hex(struct weir_json_out *out, const void *data, size_t size)
{
    char *hex = malloc(2 * size + 1);
    CHECK(hex);
    weir_hex(hex, data, size);
    weir_json_put_string(out, hex, 2 * size);
    free(hex);
}

static void put_field(struct weir_json_out *out, const struct weir_field *field)
{
    static const char *const kinds[] = {"bytes", "text", "json", "array", "none"};
    weir_json_puts(out, "{\"kind\": \"");
    weir_json_puts(out, kinds[field->kind]);
    weir_json_puts(out, "\", \"name\": ");
    put_hex(out, field->name, field->name_size);
    weir_json_puts(out, ", \"dtype\": ");
    weir_json_put_string(out, field->dtype, strlen(field->dtype));
    weir_json_puts(out, ", \"shape\": [");
    for (uint32_t i = 0; i < field->ndim; i++) {
        weir_json_puts(out, i ? ", " : "");
        weir_json_put_uint(out, field->shape[i]);
    }
    weir_json_puts(out, "], \"data\": ");
    put_hex(out, field->data, field->size);
    weir_json_puts(out, "}");
}

static void dump(void *arg, const char *key, const struct weir_field *fields, uint32_t count)
{
    struct weir_json_out out = {0};
    (void)arg;
    weir_json_puts(&out, "{\"key\": ");
    put_hex(&out, key, key ? strlen(key) : 0);
    weir_json_puts(&out, ", \"fields\": [");
    for (uint32_t i = 0; i < count; i++) {
        weir_json_puts(&out, i ? ", " : "");
        put_field(&out, &fields[i]);
    }
    weir_json_puts(&out, "]}\n");
    CHECK(!out.failed && fwrite(out.text, 1, out.size, stdout) == out.size);
    free(out.text);
}

/* ---- copying ---- */

struct copy {
    weir_store *store;
    const struct weir_format_writer *writer;
    struct weir_writing how;
    void *state;
    uint64_t in_shard, per_shard, number;
    struct weir_written written[1000];
    uint32_t shards;
};

static void put_object(weir_store *store, const char *key, const struct weir_growing *bytes)
{
    weir_put *put;
    must(weir_put_open(&put, store, key, NULL));
    must(weir_put_write(put, bytes->data, bytes->size));
    must(weir_put_commit(put, NULL));
    weir_put_close(put);
}

static void end_shard(struct copy *c)
{
    struct weir_growing raw = {0}, packed = {0};
    struct weir_written *w = &c->written[c->shards];
    CHECK(c->shards < 1000);
    c->writer->name(w->name, c->shards++, c->how.codec);
    must(made_whole(c->writer, c->state, &raw));
    must(weir_codec_encode(c->how.codec, raw.data, raw.size, &packed));
    w->samples = c->in_shard;
    w->raw_bytes = raw.size;
    w->file_bytes = packed.size;
    put_object(c->store, w->name, &packed);
    weir_growing_free(&raw);
    weir_growing_free(&packed);
    c->in_shard = 0;
}

static void copy(void *arg, const char *key, const struct weir_field *fields, uint32_t count)
{
    struct copy *c = arg;
    must(c->writer->add(c->state, c->number++, key, fields, count));
    if (++c->in_shard == c->per_shard)
        end_shard(c);
}

static void copy_dataset(int argc, char **argv)
{
    static struct copy c;
    const struct weir_format *format = weir_format_find(argv[4]);
    CHECK(format && format->writer);
    c.store = store_at(argv[3], NULL);
    c.writer = format->writer;
    c.how.codec = argc > 5 ? argv[5] : "";
    c.per_shard = argc > 6 ? strtoull(argv[6], NULL, 10) : UINT64_MAX;
    must(c.writer->open(&c.state, &c.how));
    read_dataset(argv[2], NULL, NULL, copy, &c);
    if (c.in_shard)
        end_shard(&c);
    if (c.writer->index) {
        struct weir_growing index = {0};
        must(c.writer->index(&c.how, c.state, c.written, c.shards, &index));
        put_object(c.store, c.writer->index_name, &index);
        weir_growing_free(&index);
    }
    c.writer->close(c.state);
    weir_store_close(c.store);
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "dump"))
        read_dataset(argv[2], argc > 3 ? argv[3] : NULL, argc > 4 ? argv[4] : NULL, dump, NULL);
    else if (argc > 4 && !strcmp(argv[1], "copy"))
        copy_dataset(argc, argv);
    else
        return 2;
    return 0;
}
