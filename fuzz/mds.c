/* MDS: an index.json, a zero byte, and a shard. What is taken of the index becomes a schema, which
 * reads as it was written; the shard is scanned by it, and its samples are written again.
 */
#include "data/mds_columns.h"
#include "data/mds_index.h"
#include "shards.h"

struct took {
    struct weir_mds_schema *schema;
    uint64_t samples;
};

static int take(void *arg, const struct weir_mds_shard *shard)
{
    struct took *took = arg;
    PROMISE(shard->raw.name && shard->columns.count && shard->columns.count <= WEIR_FIELDS_MAX);
    took->samples = shard->samples;
    return weir_mds_schema_add(took->schema, shard->raw.name, &shard->columns);
}

/* The schema through JSON, as it is kept in an index. */
static struct weir_mds_schema *again(const struct weir_mds_schema *schema)
{
    struct weir_json_out out = {0};
    struct weir_mds_schema *back;
    weir_mds_schema_write(schema, &out);
    PROMISE(!out.failed && weir_mds_schema_read(&back, out.text, out.size) == 0);
    PROMISE(back->count == schema->count && back->exception_count == schema->exception_count);
    for (uint32_t i = 0; i < back->count; i++)
        PROMISE(weir_mds_columns_same(&back->kinds[i], &schema->kinds[i]));
    free(out.text);
    return back;
}

/* A sample that was read is written by the columns it has, and reads the same. */
static void write_again(const uint8_t *data, size_t size)
{
    static struct weir_field fields[WEIR_FIELDS_MAX];
    uint32_t count = WEIR_FIELDS_MAX;
    struct weir_arena *scratch = NULL;
    struct weir_made out = {0};
    void *writer;
    struct weir_sample sample = {.data = data, .size = size, .file = "shard"};
    struct weir_writing how = {.codec = ""};
    const struct weir_format_writer *w = weir_format_mds.writer;
    PROMISE(w->open(&writer, &how) == 0);
    if (weir_format_mds.fields(shard_schema, &sample, &scratch, fields, &count) == 0 &&
        w->add(writer, 0, NULL, fields, count) == 0)
        PROMISE(w->finish(writer, &out) == 0 && out.head_size > 8);
    w->close(writer);
    weir_arena_free(scratch);
}

/* One that can be taken apart is written as it stands, whatever its values are. */
static void write_stored(const uint8_t *data, size_t size)
{
    static struct weir_field fields[WEIR_FIELDS_MAX];
    uint32_t count = WEIR_FIELDS_MAX;
    struct weir_arena *scratch = NULL;
    struct weir_made out = {0};
    void *writer;
    struct weir_sample sample = {.data = data, .size = size, .file = "shard"};
    struct weir_writing how = {.codec = ""};
    const struct weir_format_writer *w = weir_format_mds.writer;
    if (weir_format_mds.stored(shard_schema, &sample, fields, &count))
        return;
    PROMISE(w->open(&writer, &how) == 0);
    PROMISE(w->add_stored(writer, shard_schema, &sample, &scratch, fields, count) == 0);
    PROMISE(w->finish(writer, &out) == 0 && out.body_size == size);
    w->close(writer);
    weir_arena_free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t text = strnlen((const char *)data, size);
    size_t rest = size - text - (text < size);
    char *index = (char *)exact_copy(data, text);
    uint8_t *shard = exact_copy(data + size - rest, rest);
    struct took took = {.schema = calloc(1, sizeof *took.schema)};
    PROMISE(took.schema);
    int code = weir_mds_index_read(index, text, take, &took);
    PROMISE(code <= 0);
    if (took.schema->count) {
        struct weir_mds_schema *schema = again(took.schema);
        shard_schema = schema;
        shard_samples = took.samples;
        walk_shard(&weir_format_mds, shard, rest, false);
        check_sample(&weir_format_mds, shard, rest, false);
        write_again(shard, rest);
        write_stored(shard, rest);
        weir_mds_schema_free(schema);
    }
    weir_mds_schema_free(took.schema);
    free(index);
    free(shard);
    return 0;
}
