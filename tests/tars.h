/* tars.h - tar archives for tests, header by header, also wrong ones. */
#ifndef WEIR_TESTS_TARS_H
#define WEIR_TESTS_TARS_H

#include <stdint.h>

#include "test.h"

struct tar {
    uint8_t data[1 << 18];
    size_t size;
};

static inline void tar_sum(uint8_t *block)
{
    unsigned sum = 0;
    memset(block + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += block[i];
    for (int i = 0; i < 6; i++)
        block[148 + i] = (uint8_t)('0' + (sum >> (3 * (5 - i)) & 7));
}

/* A header alone; the block, for what a test wants otherwise (and tar_sum() then). */
static inline uint8_t *tar_header(struct tar *tar, const char *name, uint64_t size, char type)
{
    uint8_t *block = tar->data + tar->size;
    CHECK(tar->size + 512 <= sizeof tar->data && strlen(name) <= 100);
    memset(block, 0, 512);
    memcpy(block, name, strlen(name));
    memcpy(block + 100, "0000644", 7);
    for (int i = 0; i < 11; i++)
        block[124 + i] = (uint8_t)('0' + (size >> (3 * (10 - i)) & 7));
    memcpy(block + 136, "00000000000", 11);
    block[156] = (uint8_t)type;
    memcpy(block + 257, "ustar\00000", 8);
    tar_sum(block);
    tar->size += 512;
    return block;
}

static inline void tar_content(struct tar *tar, const void *data, size_t size)
{
    size_t padded = (size + 511) / 512 * 512;
    CHECK(tar->size + padded <= sizeof tar->data);
    memset(tar->data + tar->size, 0, padded);
    if (size)
        memcpy(tar->data + tar->size, data, size);
    tar->size += padded;
}

static inline void tar_file(struct tar *tar, const char *name, const char *text)
{
    tar_header(tar, name, strlen(text), '0');
    tar_content(tar, text, strlen(text));
}

/* An extension: PAX records as they are, or GNU's name. */
static inline void tar_extension(struct tar *tar, char type, const char *text, size_t size)
{
    tar_header(tar, "././@extension", size, type);
    tar_content(tar, text, size);
}

/* One PAX record with its length. */
static inline void tar_pax(struct tar *tar, char type, const char *key, const char *value)
{
    static char text[8192];
    size_t rest = strlen(key) + strlen(value) + 3, size = rest + 1;
    for (size_t before = 0; before != size;) {
        before = size;
        size = rest + (size_t)snprintf(NULL, 0, "%zu", before);
    }
    CHECK((size_t)snprintf(text, sizeof text, "%zu %s=%s\n", size, key, value) == size);
    tar_extension(tar, type, text, size);
}

static inline void tar_end(struct tar *tar)
{
    CHECK(tar->size + 1024 <= sizeof tar->data);
    memset(tar->data + tar->size, 0, 1024);
    tar->size += 1024;
}

#endif
