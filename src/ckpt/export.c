/* export.c - a checkpoint as safetensors files that any tool reads: whole tensors, in files of a
 * size that is asked for, and the index that Hugging Face's libraries look for.
 *
 * Files take the tensors in the order of their names. Within a file the larger elements come first,
 * so that every tensor begins at a multiple of its element: some readers map them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/ckpt.h"
#include "ckpt/stream.h"
#include "util/err.h"
#include "util/json.h"
#include "util/sys.h"

struct shard {
    size_t first, count; /* of the tensors, by number */
};

struct export
{
    weir_restore *restore;
    const weir_export_sink *sink;
    void *arg;
    struct shard *shards;
    size_t count;
};

static void file_name(const struct export *e, size_t shard, char out[64])
{
    weir_ckpt_file_name(out, (uint32_t)shard, (uint32_t)e->count);
}

/* Which tensors come into which file. */
static int divide(struct export *e, uint64_t bytes_max)
{
    uint64_t used = 0;
    e->shards = weir_alloc((e->restore->info.tensors + 1) * sizeof *e->shards);
    if (!e->shards)
        return weir_fail_memory();
    e->count = 1; /* also of no tensors */
    for (size_t i = 0; i < e->restore->info.tensors; i++) {
        weir_tensor_info t;
        int code = weir_restore_tensor(e->restore, i, &t);
        if (code)
            return code;
        if (bytes_max && used && (t.size_bytes > bytes_max || used > bytes_max - t.size_bytes)) {
            e->shards[e->count++].first = i;
            used = 0;
        }
        e->shards[e->count - 1].count++;
        used += t.size_bytes;
    }
    return e->count <= WEIR_SET_PARTS_MAX
               ? 0
               : weir_fail(E2BIG, "'%s' would be %zu files: make them larger",
                           e->restore->info.prefix, e->count);
}

/* ---- one file ---- */

static int by_element(const void *a, const void *b, void *arg)
{
    const size_t *x = a, *y = b;
    weir_tensor_info s, t;
    weir_restore_tensor(arg, *x, &s);
    weir_restore_tensor(arg, *y, &t);
    unsigned s_bits = weir_st_dtype_bits(s.dtype), t_bits = weir_st_dtype_bits(t.dtype);
    if (s_bits != t_bits)
        return s_bits > t_bits ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

static int put_header(struct export *e, const size_t *order, size_t count, const char *name)
{
    static const struct weir_st_pair metadata[] = {{"format", "pt"}};
    struct weir_st_tensor *tensors = weir_alloc((count + 1) * sizeof *tensors);
    uint8_t *header = NULL;
    size_t size = 0;
    if (!tensors)
        return weir_fail_memory();
    for (size_t i = 0; i < count; i++) {
        weir_tensor_info t;
        weir_restore_tensor(e->restore, order[i], &t);
        tensors[i] = (struct weir_st_tensor){
            .name = t.name, .dtype = t.dtype, .ndim = t.ndim, .shape = t.shape};
    }
    int code = weir_st_make(tensors, count, metadata, 1, &header, &size);
    uint64_t bytes = count ? tensors[count - 1].end : 0;
    free(tensors);
    if (!code)
        code = e->sink->begin(e->arg, name, size + bytes);
    if (!code)
        code = e->sink->write(e->arg, header, size);
    free(header);
    return code;
}

static int put_tensors(struct export *e, const size_t *order, size_t count)
{
    struct weir_stream *stream;
    const struct weir_stretch *spans;
    size_t found;
    int code = weir_stream_open(&stream, e->restore, order, count);
    if (code)
        return code;
    while ((code = weir_stream_next(stream, &spans, &found, NULL, NULL)) == 1) {
        const struct weir_stretch *last = &spans[found - 1];
        code = e->sink->write(e->arg, spans->data, (size_t)(last->data - spans->data) + last->size);
        if (code)
            break;
    }
    weir_stream_close(stream);
    return code;
}

static int put_shard(struct export *e, size_t number)
{
    const struct shard *shard = &e->shards[number];
    char name[64];
    size_t *order = weir_alloc((shard->count + 1) * sizeof *order);
    if (!order)
        return weir_fail_memory();
    for (size_t i = 0; i < shard->count; i++)
        order[i] = shard->first + i;
    qsort_r(order, shard->count, sizeof *order, by_element, e->restore);
    file_name(e, number, name);
    int code = put_header(e, order, shard->count, name);
    if (!code)
        code = put_tensors(e, order, shard->count);
    free(order);
    return code ? code : e->sink->end(e->arg);
}

/* ---- the index ---- */

static void index_text(const struct export *e, struct weir_json_out *json)
{
    char name[64];
    weir_json_puts(json, "{\"metadata\":{\"total_size\":");
    weir_json_put_uint(json, e->restore->info.size_bytes);
    weir_json_puts(json, "},\"weight_map\":{");
    for (size_t i = 0; i < e->count; i++) {
        file_name(e, i, name);
        for (size_t k = 0; k < e->shards[i].count; k++) {
            weir_tensor_info t;
            weir_restore_tensor(e->restore, e->shards[i].first + k, &t);
            weir_json_puts(json, i || k ? ",\n" : "\n");
            weir_json_put_string(json, t.name, strlen(t.name));
            weir_json_puts(json, ":\"");
            weir_json_puts(json, name);
            weir_json_puts(json, "\"");
        }
    }
    weir_json_puts(json, "}}\n");
}

static int put_index(struct export *e)
{
    struct weir_json_out json = {0};
    index_text(e, &json);
    int code = json.failed ? weir_fail_memory() : 0;
    if (!code)
        code = e->sink->begin(e->arg, "model.safetensors.index.json", json.size);
    if (!code)
        code = e->sink->write(e->arg, json.text, json.size);
    free(json.text);
    return code ? code : e->sink->end(e->arg);
}

int weir_restore_export(weir_restore *restore, uint64_t shard_bytes_max,
                        const weir_export_sink *sink, void *arg)
{
    struct export e = {.restore = restore, .sink = sink, .arg = arg};
    int code = divide(&e, shard_bytes_max);
    for (size_t i = 0; !code && i < e.count; i++)
        code = put_shard(&e, i);
    if (!code && e.count > 1)
        code = put_index(&e);
    free(e.shards);
    return code;
}
