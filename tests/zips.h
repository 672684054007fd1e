/* zips.h - makes archives as torch.save() does, for tests that want to change them: entries that
 * are stored, a directory, an end, and the larger records (zip64) where asked for.
 */
#ifndef WEIR_TESTS_ZIPS_H
#define WEIR_TESTS_ZIPS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "test.h"
#include "util/bytes.h"

enum { ZIP_BYTES_MAX = 1 << 16, ZIP_ENTRIES_MAX = 32 };

struct zip_maker {
    uint8_t bytes[ZIP_BYTES_MAX];
    size_t size;
    struct {
        const char *name;
        size_t size, header;
    } entries[ZIP_ENTRIES_MAX];
    size_t count;
    size_t directory; /* where it begins, once it is there */
    size_t end;       /* and the last record */
};

static inline void zip_put(struct zip_maker *zip, uint64_t value, unsigned bytes)
{
    CHECK(zip->size + bytes <= ZIP_BYTES_MAX);
    weir_store_le(zip->bytes + zip->size, value, bytes);
    zip->size += bytes;
}

static inline void zip_put_bytes(struct zip_maker *zip, const void *bytes, size_t size)
{
    CHECK(zip->size + size <= ZIP_BYTES_MAX);
    if (size)
        memcpy(zip->bytes + zip->size, bytes, size);
    zip->size += size;
}

static inline void zip_add(struct zip_maker *zip, const char *name, const void *bytes, size_t size)
{
    CHECK(zip->count < ZIP_ENTRIES_MAX);
    zip->entries[zip->count].name = name;
    zip->entries[zip->count].size = size;
    zip->entries[zip->count++].header = zip->size;
    zip_put(zip, 0x04034b50, 4);
    zip_put(zip, 0, 8);
    zip_put(zip, 0, 6);
    zip_put(zip, size, 4);
    zip_put(zip, size, 4);
    zip_put(zip, strlen(name), 2);
    zip_put(zip, 5, 2); /* some padding, as torch.save() has it */
    zip_put_bytes(zip, name, strlen(name));
    zip_put_bytes(zip, "FB\1\0Z", 5);
    zip_put_bytes(zip, bytes, size);
}

static inline void zip_put_entry(struct zip_maker *zip, size_t i, bool large)
{
    uint64_t size = zip->entries[i].size, header = zip->entries[i].header;
    zip_put(zip, 0x02014b50, 4);
    zip_put(zip, 0, 8);
    zip_put(zip, 0, 8);
    zip_put(zip, large ? UINT32_MAX : size, 4);
    zip_put(zip, large ? UINT32_MAX : size, 4);
    zip_put(zip, strlen(zip->entries[i].name), 2);
    zip_put(zip, large ? 28 : 0, 2);
    zip_put(zip, 0, 2);
    zip_put(zip, 0, 8);
    zip_put(zip, large ? UINT32_MAX : header, 4);
    zip_put_bytes(zip, zip->entries[i].name, strlen(zip->entries[i].name));
    if (!large)
        return;
    zip_put(zip, 1, 2);
    zip_put(zip, 24, 2);
    zip_put(zip, size, 8);
    zip_put(zip, size, 8);
    zip_put(zip, header, 8);
}

static inline void zip_end(struct zip_maker *zip, bool large)
{
    zip->directory = zip->size;
    for (size_t i = 0; i < zip->count; i++)
        zip_put_entry(zip, i, large);
    size_t size = zip->size - zip->directory, end64 = zip->size;
    if (large) {
        zip_put(zip, 0x06064b50, 4);
        zip_put(zip, 44, 8);
        zip_put(zip, 0, 8);
        zip_put(zip, 0, 4);
        zip_put(zip, zip->count, 8);
        zip_put(zip, zip->count, 8);
        zip_put(zip, size, 8);
        zip_put(zip, zip->directory, 8);
        zip_put(zip, 0x07064b50, 4);
        zip_put(zip, 0, 4);
        zip_put(zip, end64, 8);
        zip_put(zip, 1, 4);
    }
    zip->end = zip->size;
    zip_put(zip, 0x06054b50, 4);
    zip_put(zip, 0, 4);
    zip_put(zip, large ? UINT16_MAX : zip->count, 2);
    zip_put(zip, large ? UINT16_MAX : zip->count, 2);
    zip_put(zip, large ? UINT32_MAX : size, 4);
    zip_put(zip, large ? UINT32_MAX : zip->directory, 4);
    zip_put(zip, 0, 2);
}

#endif
