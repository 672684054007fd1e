/* LitData: an index.json, a zero byte, and a chunk. What is taken of the index becomes a schema,
 * which reads as it was written; the chunk is scanned by it.
 */
#include "data/litdata_index.h"
#include "shards.h"

static void walk_chunk(const struct weir_litdata *data, const uint8_t *chunk, size_t size)
{
    struct weir_json_out out = {0};
    void *schema;
    weir_litdata_schema_write(data, &out);
    PROMISE(!out.failed && weir_format_litdata.schema_open(&schema, out.text, out.size) == 0);
    shard_schema = schema;
    shard_samples = data->chunks[0].samples;
    walk_shard(&weir_format_litdata, chunk, size, false);
    check_sample(&weir_format_litdata, chunk, size, false);
    weir_format_litdata.schema_close(schema);
    free(out.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t text = strnlen((const char *)data, size);
    size_t rest = size - text - (text < size);
    char *index = (char *)exact_copy(data, text);
    uint8_t *chunk = exact_copy(data + size - rest, rest);
    struct weir_arena *arena = NULL;
    struct weir_litdata litdata;
    int code = weir_litdata_index_read(&litdata, &arena, index, text);
    PROMISE(code <= 0);
    if (!code) {
        PROMISE(litdata.count && litdata.count <= WEIR_FIELDS_MAX && litdata.chunk_count);
        walk_chunk(&litdata, chunk, rest);
    }
    weir_arena_free(arena);
    free(index);
    free(chunk);
    return 0;
}
