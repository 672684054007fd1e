/* JSON lines: lines are found within the bytes; what is taken apart is written as a line again,
 * which reads as the same fields.
 */
#include "data/jsonl.h"
#include "shards.h"

static void write_again(const struct weir_field *fields, uint32_t count)
{
    static struct weir_field again[WEIR_FIELDS_MAX];
    struct weir_arena *scratch = NULL;
    struct weir_made out = {0};
    struct weir_writing how = {.codec = ""};
    uint32_t got = WEIR_FIELDS_MAX;
    void *writer;
    PROMISE(weir_jsonl_writer.open(&writer, &how) == 0);
    if (weir_jsonl_writer.add(writer, 0, NULL, fields, count) == 0) {
        PROMISE(weir_jsonl_writer.finish(writer, &out) == 0);
        PROMISE(out.body_size &&
                memchr(out.body, '\n', out.body_size) == out.body + out.body_size - 1);
        struct weir_sample sample = {.data = out.body, .size = out.body_size - 1, .file = "x"};
        PROMISE(weir_format_jsonl.fields(NULL, &sample, &scratch, again, &got) == 0);
        PROMISE(got == count);
        for (uint32_t i = 0; i < got; i++) {
            PROMISE(again[i].kind == fields[i].kind && again[i].size == fields[i].size);
            PROMISE(again[i].kind == WEIR_FIELD_JSON || !again[i].size ||
                    !memcmp(again[i].data, fields[i].data, again[i].size));
        }
    }
    weir_jsonl_writer.close(writer);
    weir_arena_free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct weir_field fields[WEIR_FIELDS_MAX];
    struct weir_arena *scratch = NULL;
    uint32_t count = WEIR_FIELDS_MAX;
    walk_shard(&weir_format_jsonl, data, size, false);
    uint8_t *copy = exact_copy(data, size);
    struct weir_sample sample = {.data = copy, .size = size, .file = "x"};
    if (weir_format_jsonl.fields(NULL, &sample, &scratch, fields, &count) == 0)
        write_again(fields, count);
    weir_arena_free(scratch);
    free(copy);
    return 0;
}
