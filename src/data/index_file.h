/* index_file.h - the bytes of an index (index.h has the layout): its tail, and how one is written.
 * For the files that make and open indexes.
 */
#ifndef WEIR_DATA_INDEX_FILE_H
#define WEIR_DATA_INDEX_FILE_H

#include "data/index.h"
#include "data/shard.h"

enum {
    WEIR_INDEX_VERSION = 1,
    WEIR_INDEX_HEAD_BYTES = 16,
    WEIR_INDEX_TAIL_BYTES = 192,
    WEIR_INDEX_BLOCK_BYTES = 65536, /* of its seal: so much is checked for one lookup */
    WEIR_FORMAT_NAME_BYTES = 16,
};

/* Of a dataset, so that sums of its sizes do not overflow. */
#define WEIR_INDEX_BYTES_MAX ((uint64_t)1 << 62)

struct weir_index_tail {
    uint64_t samples, shards, sample_bytes, sample_bytes_max;
    uint64_t shards_at, strings_at;
    uint64_t schema_at, schema_bytes; /* within the strings */
    char format[WEIR_FORMAT_NAME_BYTES + 1];
    uint8_t digest[WEIR_SHA256_BYTES], fingerprint[WEIR_SHA256_BYTES];
};

/* Head and tail of `size` bytes, at least those two: NULL, or what is wrong. Nothing else is
 * looked at. */
const char *weir_index_tail_decode(struct weir_index_tail *out, const uint8_t *data, uint64_t size,
                                   unsigned *version);
/* The sum of everything from the shards on, and the strings. */
const char *weir_index_tail_check(const struct weir_index_tail *tail, const uint8_t *data,
                                  uint64_t size);

uint64_t weir_index_file_bytes(const struct weir_index *index);
/* Is all of it in this process's memory, because it could not be mapped? */
bool weir_index_is_read(const struct weir_index *index);
/* The same index as another object. */
int weir_index_copy(const struct weir_index *index, weir_store *store, const char *key);
/* All of it, for one that no seal speaks for: -EBADMSG if anything in it is damaged. Reads it. */
int weir_index_check(const struct weir_index *index);
/* A shard with all its entries and marks, checked against the seal and their sum; borrowed. */
int weir_index_row(const struct weir_index *index, uint64_t i, struct weir_shard *out,
                   const uint8_t **entries, const uint8_t **marks);

/* ---- writing; a handle belongs to one thread ---- */

struct weir_index_put;
int weir_index_put_open(struct weir_index_put **out, weir_store *store, const char *key,
                        const char *format, const char *schema, size_t schema_size);
/* The next shard. Where its entries go in the file and which is its first sample is found here; the
 * rest of `shard` is the caller's. -EBADMSG if entries lie outside of it. */
int weir_index_put_shard(struct weir_index_put *put, const struct weir_shard *shard,
                         const uint8_t *entries, const uint8_t *marks);
/* Seals it; as weir_put_commit(). fingerprint: of the files it is made of, or NULL. */
int weir_index_put_commit(struct weir_index_put *put, const uint8_t *fingerprint);
void weir_index_put_close(struct weir_index_put *put);

#endif
