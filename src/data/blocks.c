/* blocks.c - see blocks.h. */
#include "data/blocks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"
#include "weir.h"

#define MAGIC "WEIRBLKS"
enum { VERSION = 1 };

static uint64_t count_of(uint64_t size, uint32_t block_bytes)
{
    return size / block_bytes + (size % block_bytes != 0);
}

/* ---- reading ---- */

static bool is_block_size(uint32_t bytes)
{
    return bytes >= WEIR_BLOCKS_BYTES_MIN && bytes <= WEIR_BLOCK_BYTES_MAX &&
           !(bytes & (bytes - 1));
}

static uint64_t row(const struct weir_blocks *b, uint64_t i, unsigned column)
{
    return weir_load_le(b->rows + i * WEIR_BLOCKS_ROW + 8 * column, 8);
}

void weir_blocks_file(const struct weir_blocks *b, uint64_t i, struct weir_blocks_file *out)
{
    uint64_t name = row(b, i, 2), end = i + 1 < b->files ? row(b, i + 1, 2) : b->name_bytes;
    out->size_bytes = row(b, i, 0);
    out->first = row(b, i, 1);
    out->count = count_of(out->size_bytes, b->block_bytes);
    out->name = (const char *)b->names + name;
    out->name_size = end - name;
}

static int by_name(const char *a, size_t a_size, const char *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

/* Rows follow each other without gaps, and names are sorted: so every one is within its place. */
static int check_rows(const struct weir_blocks *b)
{
    struct weir_blocks_file last = {.name = ""}, file;
    uint64_t blocks = 0, names = 0;
    for (uint64_t i = 0; i < b->files; i++) {
        uint64_t end = i + 1 < b->files ? row(b, i + 1, 2) : b->name_bytes;
        if (row(b, i, 1) != blocks || row(b, i, 2) != names || end <= names || end > b->name_bytes)
            return weir_fail(EBADMSG, "row %" PRIu64 " does not follow the one before it", i);
        weir_blocks_file(b, i, &file);
        if (file.count > b->blocks - blocks)
            return weir_fail(EBADMSG, "row %" PRIu64 " has more blocks than there are", i);
        if (memchr(file.name, 0, file.name_size) ||
            by_name(last.name, last.name_size, file.name, file.name_size) >= 0)
            return weir_fail(EBADMSG, "the name of row %" PRIu64 " is not behind the last", i);
        blocks += file.count;
        names = end;
        last = file;
    }
    if (blocks != b->blocks || names != b->name_bytes)
        return weir_fail(EBADMSG,
                         "%" PRIu64 " blocks and %" PRIu64 " bytes of names, not %" PRIu64
                         " and %" PRIu64,
                         blocks, names, b->blocks, b->name_bytes);
    return 0;
}

int weir_blocks_open(struct weir_blocks *out, const uint8_t *data, size_t size)
{
    if (size < WEIR_BLOCKS_HEAD || memcmp(data, MAGIC, 8))
        return weir_fail(EBADMSG, "it does not begin with \"" MAGIC "\"");
    uint64_t version = weir_load_le(data + 8, 4);
    if (version != VERSION)
        return weir_fail(EPROTO, "version %" PRIu64 ": this Weir reads version %d", version,
                         VERSION);
    struct weir_blocks b = {
        .block_bytes = (uint32_t)weir_load_le(data + 12, 4),
        .files = weir_load_le(data + 16, 8),
        .blocks = weir_load_le(data + 24, 8),
        .name_bytes = weir_load_le(data + 32, 8),
    };
    uint64_t left = size - WEIR_BLOCKS_HEAD;
    if (!is_block_size(b.block_bytes))
        return weir_fail(EBADMSG, "a block size of %u", b.block_bytes);
    if (b.files > left / WEIR_BLOCKS_ROW || b.blocks > left / WEIR_SHA256_BYTES ||
        b.name_bytes > left ||
        b.files * WEIR_BLOCKS_ROW + b.name_bytes + b.blocks * WEIR_SHA256_BYTES != left)
        return weir_fail(EBADMSG, "its size is not what its head says");
    b.rows = data + WEIR_BLOCKS_HEAD;
    b.names = b.rows + b.files * WEIR_BLOCKS_ROW;
    b.sums = b.names + b.name_bytes;
    int code = check_rows(&b);
    if (!code)
        *out = b;
    return code;
}

int64_t weir_blocks_find(const struct weir_blocks *b, const char *name)
{
    size_t size = strlen(name);
    uint64_t low = 0, high = b->files;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct weir_blocks_file file;
        weir_blocks_file(b, middle, &file);
        int order = by_name(name, size, file.name, file.name_size);
        if (!order)
            return (int64_t)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -ENOENT;
}

/* ---- writing ---- */

int weir_blocks_make(uint8_t **out, size_t *size, uint8_t **sums, uint32_t block_bytes,
                     const struct weir_blocks_entry *entries, uint64_t count)
{
    uint64_t blocks = 0, names = 0;
    for (uint64_t i = 0; i < count; i++) {
        blocks += count_of(entries[i].size_bytes, block_bytes);
        names += strlen(entries[i].name);
    }
    uint64_t before = WEIR_BLOCKS_HEAD + count * WEIR_BLOCKS_ROW + names;
    uint8_t *data = weir_alloc(before + blocks * WEIR_SHA256_BYTES);
    if (!data)
        return weir_fail_memory();
    memcpy(data, MAGIC, 8);
    weir_store_le(data + 8, VERSION, 4);
    weir_store_le(data + 12, block_bytes, 4);
    weir_store_le(data + 16, count, 8);
    weir_store_le(data + 24, blocks, 8);
    weir_store_le(data + 32, names, 8);
    uint8_t *at = data + WEIR_BLOCKS_HEAD, *text = at + count * WEIR_BLOCKS_ROW;
    blocks = names = 0;
    for (uint64_t i = 0; i < count; i++, at += WEIR_BLOCKS_ROW) {
        size_t length = strlen(entries[i].name);
        weir_store_le(at, entries[i].size_bytes, 8);
        weir_store_le(at + 8, blocks, 8);
        weir_store_le(at + 16, names, 8);
        memcpy(text + names, entries[i].name, length);
        blocks += count_of(entries[i].size_bytes, block_bytes);
        names += length;
    }
    *out = data;
    *size = before + blocks * WEIR_SHA256_BYTES;
    *sums = data + before;
    return 0;
}
