/* Token files: by the first byte, the head of a .bin, an .idx of Megatron's (head, and documents
 * where they begin), or a schema and a sample.
 */
#include "data/token_file.h"
#include "target.h"
#include "util/bytes.h"

enum { SCHEMA_BYTES_MAX = 200, SHARD_BYTES = 1 << 20 };

static int count_mark(void *arg, uint64_t off)
{
    PROMISE(off <= SHARD_BYTES);
    ++*(uint64_t *)arg;
    return 0;
}

static void walk_idx(const uint8_t *data, size_t size)
{
    struct weir_shard_plan plan = {.key = "x.bin", .codec = "", .file_bytes = SHARD_BYTES};
    weir_store_options opts;
    weir_store *store;
    weir_put *put;
    uint64_t marks = 0;
    weir_store_options_init(&opts);
    opts.flags = WEIR_STORE_CREATE;
    PROMISE(!weir_store_open(&store, "mem:", &opts));
    PROMISE(!weir_put_open(&put, store, "x.idx", NULL));
    PROMISE(!weir_put_write(put, data, size) && !weir_put_commit(put, NULL));
    weir_put_close(put);
    weir_megatron_marks(store, "x.idx", &plan, count_mark, &marks);
    PROMISE(marks <= size / 8 + 1);
    weir_store_close(store);
}

/* A sample of the bytes behind the schema's zero; the marks are its own bytes. */
static void take_apart(const uint8_t *data, size_t size)
{
    const struct weir_format *format = &weir_format_tokens;
    size_t text = strnlen((const char *)data, size < SCHEMA_BYTES_MAX ? size : SCHEMA_BYTES_MAX);
    struct weir_field fields[2];
    struct weir_arena *scratch = NULL;
    void *schema;
    if (format->schema_open(&schema, (const char *)data, text))
        return;
    size_t rest = size > text ? size - text - 1 : 0;
    uint8_t *bytes = exact_copy(data + size - rest, rest);
    struct weir_sample sample = {
        .data = bytes, .size = rest, .file = "x.bin", .marks = {bytes, 4, rest / 4}};
    uint32_t count = 2;
    if (!format->fields(schema, &sample, &scratch, fields, &count)) {
        PROMISE(count >= 1 && count <= 2 && fields[0].size == rest);
        for (uint64_t i = 0; count == 2 && i < fields[1].shape[0]; i++)
            PROMISE(weir_load_le((const uint8_t *)fields[1].data + 4 * i, 4) < fields[0].shape[0]);
    }
    weir_arena_free(scratch);
    format->schema_close(schema);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_token_file file;
    struct weir_megatron megatron;
    if (!size)
        return 0;
    uint8_t how = *data % 3, *bytes = exact_copy(data + 1, --size);
    if (how == 0) {
        if (!weir_token_head(&file, "x.bin", bytes, size, size))
            PROMISE(file.begin <= size && file.tokens <= size);
    } else if (how == 1) {
        if (size >= WEIR_MEGATRON_HEAD_BYTES)
            weir_megatron_head(&megatron, "x.idx", bytes, size);
        walk_idx(bytes, size);
    } else {
        take_apart(bytes, size);
    }
    free(bytes);
    return 0;
}
