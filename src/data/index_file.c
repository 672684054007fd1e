/* index_file.c - see index_file.h. An index is written in one stream: entries first, as the shards
 * come, and what says where they are at the end.
 */
#include "data/index_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

enum { SUM_AT = 160, END_AT = 176 };
static const char magic[8] = {'W', 'E', 'I', 'R', 'I', 'N', 'D', 'X'};
static const char magic_end[16] = "WEIRINDXEND";

_Static_assert(END_AT + sizeof magic_end == WEIR_INDEX_TAIL_BYTES, "the tail ends there");

/* ---- reading ---- */

static const char *tail_fault(const struct weir_index_tail *t, uint64_t tail_at)
{
    uint64_t rows;
    if (t->shards > WEIR_INDEX_SHARDS_MAX)
        return "it has too many shards";
    rows = t->shards * WEIR_SHARD_ROW_BYTES;
    if (t->shards_at < WEIR_INDEX_HEAD_BYTES || t->shards_at > tail_at || t->shards_at % 8 ||
        rows > tail_at - t->shards_at || t->strings_at != t->shards_at + rows)
        return "its shards lie outside of it";
    uint64_t strings = tail_at - t->strings_at;
    if (!strings || t->schema_at > strings - 1 || t->schema_bytes > strings - 1 - t->schema_at)
        return "its schema lies outside of it";
    if (!t->shards && t->samples)
        return "it has samples without shards";
    return NULL;
}

const char *weir_index_tail_decode(struct weir_index_tail *out, const uint8_t *data, uint64_t size,
                                   unsigned *version)
{
    const uint8_t *tail = data + size - WEIR_INDEX_TAIL_BYTES;
    if (memcmp(data, magic, sizeof magic))
        return "it does not begin like one";
    if (memcmp(tail + END_AT, magic_end, sizeof magic_end) || weir_load_le(tail, 8) != size)
        return "it does not end like one: it was cut off";
    *version = (unsigned)weir_load_le(data + 8, 2);
    *out = (struct weir_index_tail){
        .samples = weir_load_le(tail + 8, 8),
        .shards = weir_load_le(tail + 16, 8),
        .sample_bytes = weir_load_le(tail + 24, 8),
        .sample_bytes_max = weir_load_le(tail + 32, 8),
        .shards_at = weir_load_le(tail + 40, 8),
        .strings_at = weir_load_le(tail + 48, 8),
        .schema_at = weir_load_le(tail + 56, 8),
        .schema_bytes = weir_load_le(tail + 64, 8),
    };
    memcpy(out->format, tail + 72, WEIR_FORMAT_NAME_BYTES);
    memcpy(out->digest, tail + 88, WEIR_SHA256_BYTES);
    memcpy(out->fingerprint, tail + 120, WEIR_SHA256_BYTES);
    return tail_fault(out, size - WEIR_INDEX_TAIL_BYTES);
}

const char *weir_index_tail_check(const struct weir_index_tail *t, const uint8_t *data,
                                  uint64_t size)
{
    uint8_t sum[WEIR_SUM_BYTES];
    uint64_t tail_at = size - WEIR_INDEX_TAIL_BYTES;
    weir_sum(sum, data + t->shards_at, tail_at + SUM_AT - t->shards_at);
    if (memcmp(sum, data + tail_at + SUM_AT, sizeof sum))
        return "its bytes do not match its own sum";
    if (data[tail_at - 1] || data[t->strings_at])
        return "its strings do not end";
    return NULL;
}

/* ---- writing ---- */

struct weir_index_put {
    weir_put *put;
    uint64_t offset;
    struct weir_index_tail tail;
    struct weir_growing rows, strings;
    struct weir_sha256_stream digest;
    uint64_t codec_at; /* the last one's: shards mostly have the same */
};

static int emit(struct weir_index_put *put, const void *data, size_t size)
{
    put->offset += size;
    return size ? weir_put_write(put->put, data, size) : 0;
}

/* What follows begins at a multiple of 8. */
static int emit_aligned(struct weir_index_put *put, const void *data, size_t size)
{
    static const uint8_t zeros[8];
    int code = emit(put, data, size);
    return code ? code : emit(put, zeros, -put->offset & 7);
}

/* Where a string is, once it is among them. */
static int add_string(struct weir_index_put *put, const char *text, size_t size, uint64_t *at)
{
    static const char end = 0;
    uint64_t begin = put->strings.size;
    int code = weir_growing_add(&put->strings, text, size);
    if (!code)
        code = weir_growing_add(&put->strings, &end, 1);
    if (!code)
        *at = begin;
    return code;
}

static void digest_number(struct weir_index_put *put, uint64_t number)
{
    uint8_t bytes[8];
    weir_store_le(bytes, number, 8);
    weir_sha256_more(&put->digest, bytes, sizeof bytes);
}

static void digest_text(struct weir_index_put *put, const char *text)
{
    weir_sha256_more(&put->digest, text, strlen(text) + 1);
}

static int begin(struct weir_index_put *put, const char *format, const char *schema, size_t size)
{
    uint8_t head[WEIR_INDEX_HEAD_BYTES] = {0};
    uint64_t empty;
    memcpy(head, magic, sizeof magic);
    weir_store_le(head + 8, WEIR_INDEX_VERSION, 2);
    memcpy(put->tail.format, format, strnlen(format, WEIR_FORMAT_NAME_BYTES));
    put->tail.schema_bytes = size;
    int code = weir_sha256_begin(&put->digest);
    if (code)
        return code;
    digest_text(put, put->tail.format);
    digest_number(put, size);
    weir_sha256_more(&put->digest, schema, size);
    code = add_string(put, "", 0, &empty);
    if (!code)
        code = add_string(put, schema, size, &put->tail.schema_at);
    return code ? code : emit(put, head, sizeof head);
}

int weir_index_put_open(struct weir_index_put **out, weir_store *store, const char *key,
                        const char *format, const char *schema, size_t schema_size)
{
    weir_put_options opts;
    weir_put_options_init(&opts);
    opts.block_bytes = WEIR_INDEX_BLOCK_BYTES;
    struct weir_index_put *put = weir_alloc(sizeof *put);
    if (!put)
        return weir_fail_memory();
    int code = weir_put_open(&put->put, store, key, &opts);
    if (!code)
        code = begin(put, format, schema, schema_size);
    if (code)
        weir_index_put_close(put);
    else
        *out = put;
    return code;
}

static void digest_shard(struct weir_index_put *put, const struct weir_shard *shard,
                         const uint8_t *entries)
{
    if (shard->kind != WEIR_ENTRIES_FILES) {
        digest_text(put, shard->key);
        digest_text(put, shard->codec);
        digest_number(put, shard->file_bytes);
        digest_number(put, shard->samples);
        return;
    }
    for (uint64_t i = 0; i < shard->samples; i++) {
        struct weir_file_record file;
        uint64_t off, size;
        if (weir_shard_locate(shard, entries, i, &off, &size) ||
            weir_file_record_decode(&file, entries + off, size))
            return; /* weir_shard_measure() has looked */
        digest_text(put, file.key);
        digest_number(put, file.size_bytes);
    }
}

static int add_row(struct weir_index_put *put, const struct weir_shard *shard)
{
    uint64_t key_at;
    const char *last = (const char *)put->strings.data + put->codec_at;
    int code = add_string(put, shard->key, strlen(shard->key), &key_at);
    if (!code && strcmp(last, shard->codec))
        code = add_string(put, shard->codec, strlen(shard->codec), &put->codec_at);
    if (!code)
        code = weir_growing_room(&put->rows, WEIR_SHARD_ROW_BYTES);
    if (code)
        return code;
    weir_shard_encode(put->rows.data + put->rows.size, shard, key_at, put->codec_at);
    put->rows.size += WEIR_SHARD_ROW_BYTES;
    return 0;
}

int weir_index_put_shard(struct weir_index_put *put, const struct weir_shard *given,
                         const uint8_t *entries, const uint8_t *marks)
{
    struct weir_shard shard = *given;
    uint64_t bytes, bytes_max;
    const char *fault = weir_shard_measure(&shard, entries, &bytes, &bytes_max);
    if (fault)
        return weir_fail(EBADMSG, "shard '%s' cannot be indexed: %s", shard.key, fault);
    if (put->tail.shards == WEIR_INDEX_SHARDS_MAX)
        return weir_fail(EFBIG, "a dataset of more than %" PRIu64 " shards", WEIR_INDEX_SHARDS_MAX);
    if (__builtin_add_overflow(put->tail.sample_bytes, bytes, &bytes) ||
        bytes > WEIR_INDEX_BYTES_MAX)
        return weir_fail(EFBIG, "a dataset of more than 4 EiB");
    shard.first = put->tail.samples;
    shard.sum = weir_shard_sum(&shard, entries, marks);
    shard.entries_at = put->offset;
    int code = emit_aligned(put, entries, shard.entries_bytes);
    shard.marks_at = put->offset;
    if (!code)
        code = emit_aligned(put, marks, shard.marks * shard.mark_width);
    if (!code)
        code = add_row(put, &shard);
    if (code)
        return code;
    digest_shard(put, &shard, entries);
    put->tail.shards++;
    put->tail.samples += shard.samples;
    put->tail.sample_bytes = bytes;
    if (bytes_max > put->tail.sample_bytes_max)
        put->tail.sample_bytes_max = bytes_max;
    return 0;
}

static int emit_tail(struct weir_index_put *put)
{
    struct weir_index_tail *t = &put->tail;
    /* One piece, because one sum is over all of it. */
    struct weir_growing all = put->rows;
    uint8_t tail[WEIR_INDEX_TAIL_BYTES] = {0};
    t->shards_at = put->offset;
    t->strings_at = t->shards_at + put->rows.size;
    weir_sha256_end(&put->digest, t->digest);
    put->digest.context = NULL;
    weir_store_le(tail, t->strings_at + put->strings.size + sizeof tail, 8);
    weir_store_le(tail + 8, t->samples, 8);
    weir_store_le(tail + 16, t->shards, 8);
    weir_store_le(tail + 24, t->sample_bytes, 8);
    weir_store_le(tail + 32, t->sample_bytes_max, 8);
    weir_store_le(tail + 40, t->shards_at, 8);
    weir_store_le(tail + 48, t->strings_at, 8);
    weir_store_le(tail + 56, t->schema_at, 8);
    weir_store_le(tail + 64, t->schema_bytes, 8);
    memcpy(tail + 72, t->format, WEIR_FORMAT_NAME_BYTES);
    memcpy(tail + 88, t->digest, WEIR_SHA256_BYTES);
    memcpy(tail + 120, t->fingerprint, WEIR_SHA256_BYTES);
    memcpy(tail + END_AT, magic_end, sizeof magic_end);
    int code = weir_growing_add(&all, put->strings.data, put->strings.size);
    if (!code)
        code = weir_growing_add(&all, tail, sizeof tail);
    put->rows = all;
    if (code)
        return code;
    uint8_t *sum = all.data + all.size - sizeof tail + SUM_AT;
    weir_sum(sum, all.data, (size_t)(sum - all.data));
    return emit(put, all.data, all.size);
}

int weir_index_put_commit(struct weir_index_put *put, const uint8_t *fingerprint)
{
    if (fingerprint)
        memcpy(put->tail.fingerprint, fingerprint, WEIR_SHA256_BYTES);
    int code = emit_tail(put);
    return code ? code : weir_put_commit(put->put, NULL);
}

void weir_index_put_close(struct weir_index_put *put)
{
    if (!put)
        return;
    if (put->digest.context)
        weir_sha256_end(&put->digest, NULL);
    weir_put_close(put->put);
    weir_growing_free(&put->rows);
    weir_growing_free(&put->strings);
    free(put);
}

int weir_index_copy(const struct weir_index *index, weir_store *store, const char *key)
{
    struct weir_index_put *put;
    size_t size;
    const char *schema = weir_index_schema_json(index, &size);
    int code = weir_index_put_open(&put, store, key, weir_index_format(index)->name, schema, size);
    if (code)
        return code;
    for (uint64_t i = 0; !code && i < weir_index_shards(index); i++) {
        struct weir_shard shard;
        const uint8_t *entries, *marks;
        code = weir_index_row(index, i, &shard, &entries, &marks);
        if (!code)
            code = weir_index_put_shard(put, &shard, entries, marks);
    }
    if (!code)
        code = weir_index_put_commit(put, weir_index_fingerprint(index));
    weir_index_put_close(put);
    return code;
}
