/* shard.h - one shard as an index has it: its row, and where a sample is according to its entries.
 * Pure functions over bytes that may be anything: a row is checked when it is decoded, and then may
 * be read; an entry is checked when it is looked at.
 */
#ifndef WEIR_DATA_SHARD_H
#define WEIR_DATA_SHARD_H

#include "data/format.h"

enum {
    WEIR_SHARD_ROW_BYTES = 128,
    WEIR_SHARD_RECORD_BYTES = 16, /* of a file's size and time, in front of its key */
    /* Bytes of a record at most: those, a key and its zero. */
    WEIR_SHARD_RECORD_BYTES_MAX = WEIR_SHARD_RECORD_BYTES + WEIR_KEY_BYTES_MAX + 1,
};

enum weir_entries {
    WEIR_ENTRIES_NONE,   /* samples of one size; the last may be shorter */
    WEIR_ENTRIES_ENDS,   /* n + 1 offsets */
    WEIR_ENTRIES_RANGES, /* n times offset and size */
    WEIR_ENTRIES_FILES,  /* n + 1 offsets of records, and those */
};

struct weir_shard {
    const char *key, *codec;
    uint64_t file_bytes, raw_bytes;
    int64_t time_ns;
    uint64_t first, samples;
    enum weir_entries kind;
    uint32_t width, mark_width;
    uint64_t entries_at, entries_bytes; /* within the index */
    uint64_t marks_at, marks;
    uint64_t first_bytes, each_bytes, step_bytes;
    uint64_t marks_stamp;
    uint32_t sum; /* of entries and marks; 0: none was made */
};

/* Where the keys and codecs of rows are: a zero byte first and last. */
struct weir_strings {
    const char *text;
    uint64_t size;
};

/* Where its strings are is the caller's. */
void weir_shard_encode(uint8_t out[WEIR_SHARD_ROW_BYTES], const struct weir_shard *shard,
                       uint64_t key_at, uint64_t codec_at);
/* NULL, or what is wrong with the row; what it points to lies between `begin` and `end`. */
const char *weir_shard_decode(struct weir_shard *out, const uint8_t row[WEIR_SHARD_ROW_BYTES],
                              const struct weir_strings *strings, uint64_t begin, uint64_t end);
/* Without a check: only of a row that weir_shard_decode() has found right. */
void weir_shard_read(struct weir_shard *out, const uint8_t row[WEIR_SHARD_ROW_BYTES],
                     const struct weir_strings *strings);
/* How many bytes of its entries are numbers; the rest are records. */
uint64_t weir_shard_numbers_bytes(const struct weir_shard *shard);

/* Which bytes of the entries say where sample i of the shard is. */
void weir_shard_entry(const struct weir_shard *shard, uint64_t i, uint64_t *off, uint64_t *size);
/* What they say; `entries` are all the shard's, of which those bytes can be read. For FILES: where
 * the record is within the entries. NULL, or what is wrong. */
const char *weir_shard_locate(const struct weir_shard *shard, const uint8_t *entries, uint64_t i,
                              uint64_t *off, uint64_t *size);
/* The record of a file, of so many bytes: its key points into it. */
struct weir_file_record {
    const char *key;
    uint64_t size_bytes;
    int64_t time_ns;
};
const char *weir_file_record_decode(struct weir_file_record *out, const uint8_t *record,
                                    uint64_t size);

uint32_t weir_shard_sum(const struct weir_shard *shard, const uint8_t *entries,
                        const uint8_t *marks);
/* Goes through all entries: NULL, or what is wrong; how large all samples and the largest are. */
const char *weir_shard_measure(const struct weir_shard *shard, const uint8_t *entries,
                               uint64_t *bytes, uint64_t *bytes_max);

#endif
