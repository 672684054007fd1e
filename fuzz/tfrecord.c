/* TFRecord and tf.Example: as a shard, and as the data of a record, whose checks are put around it.
 * What is an Example is written as one again, which reads the same.
 */
#include "data/example.h"
#include "data/tfrecord.h"
#include "shards.h"
#include "util/bytes.h"

static void write_again(const struct weir_field *fields, uint32_t count)
{
    static struct weir_field again[WEIR_FIELDS_MAX];
    uint32_t got = WEIR_FIELDS_MAX;
    struct weir_growing out = {0}, twice = {0};
    struct weir_arena *scratch = NULL;
    if (weir_example_put(&out, fields, count) == 0) {
        PROMISE(weir_example_fields(out.data, out.size, &scratch, again, &got) == 1);
        PROMISE(weir_example_put(&twice, again, got) == 0);
        PROMISE(twice.size == out.size && !memcmp(twice.data, out.data, out.size));
    }
    weir_growing_free(&out);
    weir_growing_free(&twice);
    weir_arena_free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct weir_field fields[WEIR_FIELDS_MAX];
    uint32_t count = WEIR_FIELDS_MAX;
    struct weir_arena *scratch = NULL;
    walk_shard(&weir_format_tfrecord, data, size, false);
    uint8_t *record = malloc(size + WEIR_TFRECORD_FRAME);
    PROMISE(record);
    weir_store_le(record, size, 8);
    weir_store_le(record + 8, weir_tfrecord_check(record, 8), 4);
    if (size)
        memcpy(record + WEIR_TFRECORD_HEAD, data, size);
    weir_store_le(record + WEIR_TFRECORD_HEAD + size, weir_tfrecord_check(data, size), 4);
    check_sample(&weir_format_tfrecord, record, size + WEIR_TFRECORD_FRAME, false);
    free(record);

    uint8_t *copy = exact_copy(data, size);
    if (weir_example_fields(copy, size, &scratch, fields, &count) == 1)
        write_again(fields, count);
    weir_arena_free(scratch);
    free(copy);
    return 0;
}
