/* index.h - where every sample of a dataset is: one file for all formats, read in place.
 *
 * A sample is found by a search among the shards and two loads; what a lookup touches is checked
 * when it is touched (its block against the seal, then that it lies within its shard), so opening
 * costs the same for a thousand samples and for a hundred million. A file format is a few bytes for
 * each sample: offsets of 4 bytes (8 in a shard beyond 4 GiB), none where all are of one size.
 *
 * On disk (little-endian), version 1:
 *
 *     0 16  "WEIRINDX", u16 version, zeros
 *    16     what belongs to each shard (aligned to 8): its entries, then its marks
 *           shards, 128 bytes each, in the order of their samples:
 *              0  8  key: where in the strings (they end with a zero byte)
 *              8  8  codec: the same
 *             16  8  bytes of the file, as the store listed it; of several files, of all
 *             24  8  its time (Unix ns); of several files, the sum of all, modulo 2^64
 *             32  8  bytes when decompressed
 *             40  8  number of its first sample
 *             48  8  number of samples
 *             56  8  where its entries begin in this file
 *             64  8  bytes of the entries
 *             72  8  where its marks begin in this file
 *             80  8  number of marks
 *             88  1  entries: 0 none, 1 ends, 2 ranges, 3 files
 *             89  1  bytes of a number in the entries, 4 or 8
 *             90  1  bytes of a mark, 4 or 8
 *             91  1  zero
 *             92  4  of XXH3-128 over two XXH3-128, of the entries and of the marks, the first 4
 *                    bytes; 0: none was made
 *             96  8  where the first sample begins   \
 *            104  8  bytes of each sample, of which   |  without entries
 *                    the last may be shorter: it ends |
 *                    with the bytes at 32             |
 *            112  8  from one sample to the next     /
 *            120  8  XXH3 of size and time (8 bytes each) of the file that the marks are from, or
 *                    zeros
 *           strings: a zero byte, then keys, codecs and the schema (JSON), each with a zero byte
 *  last 192
 *     0  8  bytes of this file
 *     8  8  samples
 *    16  8  shards
 *    24  8  bytes of all samples
 *    32  8  bytes of the largest sample
 *    40  8  where the shards begin
 *    48  8  where the strings begin
 *    56  8  where the schema is in the strings
 *    64  8  its length
 *    72 16  name of the format, zeros behind it
 *    88 32  digest: SHA-256 over format, schema, and of each shard key, codec, bytes and samples
 *   120 32  fingerprint: SHA-256 over the schema, and of each file name, bytes and time; it says
 *           whether the files are still those that were indexed. Zeros in a part of an index
 *   152  8  zeros
 *   160 16  XXH3-128 of everything from where the shards begin up to here
 *   176 16  "WEIRINDXEND", zeros
 *
 * Entries of n samples. Ends: n + 1 offsets, a sample is what lies between two of them. Ranges
 * (where something lies between samples): n times offset and size. Files: a shard is up to 1,024
 * files in a row, each a sample; n + 1 offsets of records behind the offsets: u64 size, i64 time,
 * key and a zero byte. Marks are offsets within the shard in ascending order, at which documents
 * begin.
 *
 * An open index may be used by any number of threads.
 */
#ifndef WEIR_DATA_INDEX_H
#define WEIR_DATA_INDEX_H

#include "data/format.h"
#include "util/hash.h"

enum {
    WEIR_INDEX_FILES = 1024, /* that make a shard where every file is a sample */
};
#define WEIR_INDEX_SHARDS_MAX ((uint64_t)1 << 24)

struct weir_index;

/* ---- what it says ---- */

const struct weir_format *weir_index_format(const struct weir_index *index);
/* As the format's schema_open() made it; NULL where it has none. */
const void *weir_index_schema(const struct weir_index *index);
const char *weir_index_schema_json(const struct weir_index *index, size_t *size);
uint64_t weir_index_count(const struct weir_index *index); /* samples */
uint64_t weir_index_shards(const struct weir_index *index);
uint64_t weir_index_bytes(const struct weir_index *index);     /* of all samples, raw */
uint64_t weir_index_bytes_max(const struct weir_index *index); /* of the largest sample */
/* Which data this is, whenever and wherever it was copied: SHA-256, without times. */
const uint8_t *weir_index_digest(const struct weir_index *index);
/* Which files it was made of, with their times. */
const uint8_t *weir_index_fingerprint(const struct weir_index *index);

struct weir_index_shard {
    const char *key;     /* below the dataset's prefix; of several files, the first one's */
    const char *codec;   /* "": none */
    uint64_t file_bytes; /* as listed; raw_bytes: decompressed */
    uint64_t raw_bytes;
    int64_t time_ns;
    uint64_t marks_stamp;    /* of the file that its marks are from; 0: there is none */
    uint64_t first, samples; /* its samples are [first, first + samples) of the dataset */
    bool is_files;           /* several files, each a sample */
};
/* i < weir_index_shards(). Borrowed until the index is closed. */
void weir_index_shard(const struct weir_index *index, uint64_t i, struct weir_index_shard *out);
/* Which shard a sample is in: sample < weir_index_count(). */
uint64_t weir_index_shard_of(const struct weir_index *index, uint64_t sample);

/* Where a sample is: bytes [off, off + size) of a file, or of what it decompresses to. */
struct weir_place {
    uint64_t shard;
    uint64_t off, size;
    const char *key;     /* of the file, below the dataset's prefix; borrowed from the index */
    const char *codec;   /* "": none */
    uint64_t file_bytes; /* of the file when it was indexed: another size or time, and it is */
    int64_t time_ns;     /* another file */
    struct weir_marks marks;
};
/* 0, or -EBADMSG for an index that is damaged there; -EINVAL for a number beyond the last. */
int weir_index_find(const struct weir_index *index, uint64_t sample, struct weir_place *out);

/* ---- opening ---- */

/* From an object of a store; it is mapped where that can be, else read. The store may be closed
 * afterwards only when the index is. -EBADMSG if it is damaged, -EPROTO if a newer Weir made it. */
int weir_index_open(struct weir_index **out, weir_store *store, const char *key);
/* From memory, which must stay, aligned to 8: for tests and fuzzers. */
int weir_index_open_bytes(struct weir_index **out, const void *data, size_t size);
void weir_index_close(struct weir_index *index);

#endif
