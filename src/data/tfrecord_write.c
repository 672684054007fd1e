/* tfrecord_write.c - writes TFRecord shards of tf.Examples. A single field "data" of bytes, which
 * is what a record that is no Example reads as, is such a record again.
 */
#include <stdio.h>
#include <stdlib.h>

#include "data/example.h"
#include "data/field.h"
#include "data/shards.h"
#include "data/tfrecord.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

static void name(char out[64], uint32_t i, const char *codec)
{
    weir_shard_name(out, i, ".tfrecord", codec);
}

static int open_writer(void **out, const struct weir_writing *how)
{
    (void)how;
    *out = weir_alloc(sizeof(struct weir_growing));
    return *out ? 0 : weir_fail_memory();
}

static int add(void *writer, uint64_t number, const char *key, const struct weir_field *fields,
               uint32_t count)
{
    (void)number;
    (void)key;
    struct weir_growing *shard = writer;
    size_t begin = shard->size;
    int code = weir_growing_room(shard, WEIR_TFRECORD_FRAME);
    if (code)
        return code;
    shard->size += WEIR_TFRECORD_HEAD;
    if (count == 1 && weir_field_is(fields, "data") && fields->kind == WEIR_FIELD_BYTES)
        code = weir_growing_add(shard, fields->data, fields->size);
    else
        code = weir_example_put(shard, fields, count);
    if (!code)
        code = weir_growing_room(shard, 4);
    if (code) {
        shard->size = begin;
        return code;
    }
    uint8_t *head = shard->data + begin, *data = head + WEIR_TFRECORD_HEAD;
    size_t size = shard->size - begin - WEIR_TFRECORD_HEAD;
    weir_store_le(head, size, 8);
    weir_store_le(head + 8, weir_tfrecord_check(head, 8), 4);
    weir_store_le(data + size, weir_tfrecord_check(data, size), 4);
    shard->size += 4;
    return 0;
}

static void drain(void *writer, struct weir_made *out)
{
    struct weir_growing *shard = writer;
    *out = (struct weir_made){.body = shard->data, .body_size = shard->size};
    shard->size = 0;
}

static int finish(void *writer, struct weir_made *out)
{
    drain(writer, out);
    return 0;
}

static void close_writer(void *writer)
{
    if (writer)
        weir_growing_free(writer);
    free(writer);
}

const struct weir_format_writer weir_tfrecord_writer = {
    .name = name,
    .open = open_writer,
    .add = add,
    .drain = drain,
    .finish = finish,
    .close = close_writer,
};
