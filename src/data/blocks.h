/* blocks.h - SHA256BLOCKS: the SHA-256 of every block of every file of a dataset, so that a part of
 * a file can be trusted without the rest. Little-endian, and found without reading it all:
 *
 *      0  "WEIRBLKS"
 *      8  u32 version, 1     12  u32 block_bytes, a power of two
 *     16  u64 files          24  u64 blocks          32  u64 name_bytes
 *     40  files rows of three u64: size in bytes, number of its first block, where its name begins
 *         name_bytes of names, one behind the other, sorted, each but once
 *         blocks hashes of 32 bytes; a file of n bytes has ceil(n / block_bytes) of them
 *
 * Nothing else is in it, and nothing is behind that. Pure functions.
 */
#ifndef WEIR_DATA_BLOCKS_H
#define WEIR_DATA_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "util/hash.h"

/* 1 MiB costs 32 bytes: 32 MiB of them for a dataset of 1 TiB, which every process that reads it
 * holds in memory. With 64 KiB that would be 512 MiB; larger blocks would make a reader that wants
 * one sample read more than storage gives at once, and are more than the store reads at once. */
enum {
    WEIR_BLOCKS_BYTES = 1 << 20,
    WEIR_BLOCKS_BYTES_MIN = 1 << 16,
    WEIR_BLOCKS_HEAD = 40,
    WEIR_BLOCKS_ROW = 24,
};

struct weir_blocks {
    uint32_t block_bytes;
    uint64_t files, blocks, name_bytes;
    const uint8_t *rows, *names, *sums;
};

struct weir_blocks_file {
    const char *name; /* not terminated */
    size_t name_size;
    uint64_t size_bytes;
    uint64_t first, count; /* its blocks */
};

/* Bytes that are borrowed. -EBADMSG says what is wrong, -EPROTO that a newer Weir made it. */
int weir_blocks_open(struct weir_blocks *out, const uint8_t *data, size_t size);
void weir_blocks_file(const struct weir_blocks *blocks, uint64_t i, struct weir_blocks_file *out);
/* Its number, or -ENOENT without a text. */
int64_t weir_blocks_find(const struct weir_blocks *blocks, const char *name);

/* A new one of files whose names are sorted: all but the hashes, which are zeros at *sums within
 * it, to be filled in. The caller frees *out. */
struct weir_blocks_entry {
    const char *name;
    uint64_t size_bytes;
};
int weir_blocks_make(uint8_t **out, size_t *size, uint8_t **sums, uint32_t block_bytes,
                     const struct weir_blocks_entry *entries, uint64_t count);

#endif
