/* index.c - see index.h. The tail, the shards and the strings are checked when it is opened; an
 * entry when it is looked up.
 */
#include "data/index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/index_file.h"
#include "store/map.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

/* What cannot be mapped (a store in memory, a file that is not Weir's) is read whole. */
#define READ_BYTES_MAX ((uint64_t)1 << 30)

struct weir_index {
    char *name; /* for failures */
    weir_object *obj;
    struct weir_map *map;
    uint8_t *owned;
    const uint8_t *data;
    uint64_t size;
    const struct weir_format *format;
    void *schema;
    struct weir_index_tail tail;
    struct weir_strings strings;
    uint64_t *firsts; /* of each shard, and the count of samples */
};

static int damaged(const struct weir_index *index, const char *why)
{
    return weir_fail(EBADMSG, "the index '%s' is damaged: %s", index->name, why);
}

/* Before anything there is read. */
static int touch(const struct weir_index *index, uint64_t off, uint64_t size)
{
    return index->map ? weir_map_check(index->map, off, size) : 0;
}

/* ---- what it says ---- */

const struct weir_format *weir_index_format(const struct weir_index *index)
{
    return index->format;
}

const void *weir_index_schema(const struct weir_index *index)
{
    return index->schema;
}

const char *weir_index_schema_json(const struct weir_index *index, size_t *size)
{
    *size = index->tail.schema_bytes;
    return index->strings.text + index->tail.schema_at;
}

uint64_t weir_index_count(const struct weir_index *index)
{
    return index->tail.samples;
}

uint64_t weir_index_shards(const struct weir_index *index)
{
    return index->tail.shards;
}

uint64_t weir_index_bytes(const struct weir_index *index)
{
    return index->tail.sample_bytes;
}

uint64_t weir_index_bytes_max(const struct weir_index *index)
{
    return index->tail.sample_bytes_max;
}

uint64_t weir_index_file_bytes(const struct weir_index *index)
{
    return index->size;
}

bool weir_index_is_read(const struct weir_index *index)
{
    return index->owned;
}

const uint8_t *weir_index_digest(const struct weir_index *index)
{
    return index->tail.digest;
}

const uint8_t *weir_index_fingerprint(const struct weir_index *index)
{
    return index->tail.fingerprint;
}

static const uint8_t *row_at(const struct weir_index *index, uint64_t i)
{
    return index->data + index->tail.shards_at + i * WEIR_SHARD_ROW_BYTES;
}

/* The rows were checked when it was opened. */
static void row(const struct weir_index *index, uint64_t i, struct weir_shard *out)
{
    weir_shard_read(out, row_at(index, i), &index->strings);
}

void weir_index_shard(const struct weir_index *index, uint64_t i, struct weir_index_shard *out)
{
    struct weir_shard shard;
    row(index, i, &shard);
    *out = (struct weir_index_shard){
        .key = shard.key,
        .codec = shard.codec,
        .file_bytes = shard.file_bytes,
        .raw_bytes = shard.raw_bytes,
        .time_ns = shard.time_ns,
        .marks_stamp = shard.marks_stamp,
        .first = shard.first,
        .samples = shard.samples,
        .is_files = shard.kind == WEIR_ENTRIES_FILES,
    };
}

int weir_index_row(const struct weir_index *index, uint64_t i, struct weir_shard *out,
                   const uint8_t **entries, const uint8_t **marks)
{
    row(index, i, out);
    int code = touch(index, out->entries_at, out->entries_bytes);
    if (!code)
        code = touch(index, out->marks_at, out->marks * out->mark_width);
    if (code)
        return code;
    *entries = index->data + out->entries_at;
    *marks = index->data + out->marks_at;
    if (out->sum && out->sum != weir_shard_sum(out, *entries, *marks))
        return weir_fail(EBADMSG,
                         "the index '%s' is damaged: the entries of shard '%s' do not "
                         "match their sum",
                         index->name, out->key);
    return 0;
}

int weir_index_check(const struct weir_index *index)
{
    uint64_t all = 0, most = 0;
    for (uint64_t i = 0; i < index->tail.shards; i++) {
        struct weir_shard shard;
        const uint8_t *entries, *marks;
        uint64_t bytes, bytes_max;
        int code = weir_index_row(index, i, &shard, &entries, &marks);
        if (code)
            return code;
        const char *fault = weir_shard_measure(&shard, entries, &bytes, &bytes_max);
        if (!fault && __builtin_add_overflow(all, bytes, &all))
            fault = "its samples are too large";
        if (fault)
            return weir_fail(EBADMSG, "the index '%s' is damaged: shard '%s': %s", index->name,
                             shard.key, fault);
        most = bytes_max > most ? bytes_max : most;
    }
    if (all != index->tail.sample_bytes || most != index->tail.sample_bytes_max)
        return damaged(index, "its samples have other sizes than it says");
    return 0;
}

uint64_t weir_index_shard_of(const struct weir_index *index, uint64_t sample)
{
    /* The last that begins at or before it: shards without samples are passed over. */
    uint64_t low = 0, high = index->tail.shards;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (index->firsts[middle] <= sample)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- finding ---- */

/* How many of the shard's marks are before `off`. */
static int count_marks(const struct weir_index *index, const struct weir_shard *shard, uint64_t off,
                       uint64_t *out)
{
    uint64_t low = 0, high = shard->marks;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2, at = shard->marks_at + middle * shard->mark_width;
        int code = touch(index, at, shard->mark_width);
        if (code)
            return code;
        if (weir_load_le(index->data + at, shard->mark_width) < off)
            low = middle + 1;
        else
            high = middle;
    }
    *out = low;
    return 0;
}

static int find_marks(const struct weir_index *index, const struct weir_shard *shard,
                      struct weir_place *place)
{
    uint64_t begin = 0, end = 0;
    int code = count_marks(index, shard, place->off, &begin);
    if (!code)
        code = count_marks(index, shard, place->off + place->size, &end);
    if (code || begin >= end)
        return code; /* marks that are not sorted are found or not: nothing else */
    uint64_t at = shard->marks_at + begin * shard->mark_width;
    place->marks = (struct weir_marks){index->data + at, shard->mark_width, end - begin};
    return touch(index, at, (end - begin) * shard->mark_width);
}

/* A shard of files: the sample is a whole one. */
static int find_file(const struct weir_index *index, const struct weir_shard *shard,
                     struct weir_place *place)
{
    struct weir_file_record file;
    uint64_t at = shard->entries_at + place->off;
    int code = touch(index, at, place->size);
    if (code)
        return code;
    const char *fault = weir_file_record_decode(&file, index->data + at, place->size);
    if (fault)
        return damaged(index, fault);
    place->key = file.key;
    place->off = 0;
    place->size = place->file_bytes = file.size_bytes;
    place->time_ns = file.time_ns;
    return 0;
}

int weir_index_find(const struct weir_index *index, uint64_t sample, struct weir_place *out)
{
    struct weir_shard shard;
    if (sample >= index->tail.samples)
        return weir_fail(EINVAL, "there is no sample %" PRIu64 ": there are %" PRIu64, sample,
                         index->tail.samples);
    struct weir_place place = {.shard = weir_index_shard_of(index, sample)};
    uint64_t i = sample - index->firsts[place.shard], at, size;
    row(index, place.shard, &shard);
    place.key = shard.key;
    place.codec = shard.codec;
    place.file_bytes = shard.file_bytes;
    place.time_ns = shard.time_ns;
    weir_shard_entry(&shard, i, &at, &size);
    int code = touch(index, shard.entries_at + at, size);
    if (code)
        return code;
    const char *fault =
        weir_shard_locate(&shard, index->data + shard.entries_at, i, &place.off, &place.size);
    if (fault)
        return weir_fail(EBADMSG, "the index '%s' is damaged: shard '%s': %s", index->name,
                         shard.key, fault);
    if (shard.kind == WEIR_ENTRIES_FILES)
        code = find_file(index, &shard, &place);
    else if (shard.marks)
        code = find_marks(index, &shard, &place);
    if (!code)
        *out = place;
    return code;
}

/* ---- opening ---- */

/* What all shards have, which others add up without a look. */
struct total {
    uint64_t samples, file_bytes, raw_bytes;
    uint64_t sample_bytes_max; /* that all samples may have together */
};

static const char *add_shard(struct total *total, const struct weir_shard *shard)
{
    uint64_t bytes = shard->raw_bytes;
    if (shard->first != total->samples)
        return "its samples do not follow those of the shard before it";
    if (__builtin_add_overflow(total->samples, shard->samples, &total->samples))
        return "there are too many samples";
    if ((shard->kind == WEIR_ENTRIES_NONE &&
         __builtin_mul_overflow(shard->samples, shard->each_bytes, &bytes)) ||
        __builtin_add_overflow(total->sample_bytes_max, bytes, &total->sample_bytes_max))
        return "its samples are too large";
    total->file_bytes += shard->file_bytes; /* neither overflows, being at most 2^51 */
    total->raw_bytes += shard->raw_bytes;
    if (total->file_bytes > WEIR_INDEX_BYTES_MAX || total->raw_bytes > WEIR_INDEX_BYTES_MAX)
        return "all shards together are too large";
    return NULL;
}

/* The sizes of samples that the tail has can be those of its shards. */
static bool sizes_fit(const struct weir_index_tail *tail, const struct total *total)
{
    uint64_t all = tail->sample_bytes, most = tail->sample_bytes_max;
    if (all > total->sample_bytes_max || all > WEIR_INDEX_BYTES_MAX ||
        most > WEIR_OBJECT_BYTES_MAX || most > all)
        return false;
    return !tail->samples || all / tail->samples <= most;
}

static int check_rows(struct weir_index *index)
{
    struct total total = {0};
    for (uint64_t i = 0; i < index->tail.shards; i++) {
        struct weir_shard shard;
        const char *fault = weir_shard_decode(&shard, row_at(index, i), &index->strings,
                                              WEIR_INDEX_HEAD_BYTES, index->tail.shards_at);
        if (!fault)
            fault = add_shard(&total, &shard);
        if (fault)
            return weir_fail(EBADMSG, "the index '%s' is damaged: shard %" PRIu64 ": %s",
                             index->name, i, fault);
        index->firsts[i] = shard.first;
    }
    index->firsts[index->tail.shards] = total.samples;
    if (total.samples != index->tail.samples)
        return damaged(index, "samples are missing");
    return sizes_fit(&index->tail, &total) ? 0
                                           : damaged(index, "its samples cannot be of their size");
}

static int open_schema(struct weir_index *index)
{
    const struct weir_index_tail *tail = &index->tail;
    index->format = weir_format_find(tail->format);
    if (!index->format)
        return weir_fail(EPROTO, "the index '%s' is of an unknown format, '%s': update Weir",
                         index->name, tail->format);
    if (!index->format->schema_open)
        return 0;
    return index->format->schema_open(&index->schema, index->strings.text + tail->schema_at,
                                      tail->schema_bytes);
}

static int open_data(struct weir_index *index)
{
    uint64_t size = index->size;
    if (size < WEIR_INDEX_HEAD_BYTES + WEIR_INDEX_TAIL_BYTES)
        return damaged(index, "it is too short");
    uint64_t tail_at = size - WEIR_INDEX_TAIL_BYTES;
    int code = touch(index, 0, WEIR_INDEX_HEAD_BYTES);
    if (!code)
        code = touch(index, tail_at, WEIR_INDEX_TAIL_BYTES);
    if (code)
        return code;
    unsigned version = 0;
    const char *fault = weir_index_tail_decode(&index->tail, index->data, size, &version);
    if (version > WEIR_INDEX_VERSION)
        return weir_fail(EPROTO, "the index '%s' was made by a newer Weir (version %u): update",
                         index->name, version);
    if (fault)
        return damaged(index, fault);
    code = touch(index, index->tail.shards_at, size - index->tail.shards_at);
    if (code)
        return code;
    fault = weir_index_tail_check(&index->tail, index->data, size);
    if (fault)
        return damaged(index, fault);
    index->strings = (struct weir_strings){(const char *)index->data + index->tail.strings_at,
                                           tail_at - index->tail.strings_at};
    index->firsts = weir_alloc((index->tail.shards + 1) * sizeof *index->firsts);
    if (!index->firsts)
        return weir_fail_memory();
    code = check_rows(index);
    return code ? code : open_schema(index);
}

/* NULL: no memory. */
static struct weir_index *index_new(const char *name)
{
    struct weir_index *index = weir_alloc(sizeof *index);
    if (index && (index->name = weir_strdup(name)))
        return index;
    free(index);
    return NULL;
}

static int read_all(struct weir_index *index)
{
    size_t got = 0;
    if (index->size > READ_BYTES_MAX)
        return weir_fail(EFBIG,
                         "the index '%s' has %" PRIu64 " bytes, which is too much for memory: keep "
                         "it in a store of files",
                         index->name, index->size);
    index->owned = weir_alloc(index->size);
    if (!index->owned)
        return weir_fail_memory();
    index->data = index->owned;
    int code = weir_object_read(index->obj, index->owned, index->size, 0, &got);
    return !code && got != index->size ? damaged(index, "it became shorter") : code;
}

static int open_object(struct weir_index *index, weir_store *store, const char *key)
{
    int code = weir_object_open(&index->obj, store, key);
    if (code)
        return code;
    index->size = weir_object_info(index->obj)->size_bytes;
    code = weir_object_map(&index->map, index->obj);
    if (code == -ENOTSUP)
        code = read_all(index);
    else if (!code)
        index->data = weir_map_data(index->map);
    return code ? code : open_data(index);
}

int weir_index_open(struct weir_index **out, weir_store *store, const char *key)
{
    struct weir_index *index = index_new(key);
    if (!index)
        return weir_fail_memory();
    int code = open_object(index, store, key);
    if (code)
        weir_index_close(index);
    else
        *out = index;
    return code;
}

int weir_index_open_bytes(struct weir_index **out, const void *data, size_t size)
{
    struct weir_index *index = index_new("of these bytes");
    if (!index)
        return weir_fail_memory();
    index->data = data;
    index->size = size;
    int code = open_data(index);
    if (code)
        weir_index_close(index);
    else
        *out = index;
    return code;
}

void weir_index_close(struct weir_index *index)
{
    if (!index)
        return;
    if (index->schema)
        index->format->schema_close(index->schema);
    weir_map_close(index->map);
    weir_object_close(index->obj);
    free(index->owned);
    free(index->firsts);
    free(index->name);
    free(index);
}
