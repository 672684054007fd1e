/* tar_write.c - see tar_write.h. */
#include "data/tar_write.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "data/tar.h"
#include "util/utf8.h"

enum { NAME_BYTES = 100, PREFIX_BYTES = 155, SIZE_DIGITS = 11 };
#define SIZE_MAX_OCTAL (((uint64_t)1 << (3 * SIZE_DIGITS)) - 1)

static void put_octal(uint8_t *at, unsigned digits, uint64_t value)
{
    for (unsigned i = 0; i < digits; i++)
        at[i] = (uint8_t)('0' + (value >> (3 * (digits - 1 - i)) & 7));
}

/* One header block. The name fits, in one part or two. */
static int put_block(struct weir_growing *out, const char *prefix, size_t prefix_size,
                     const char *name, size_t name_size, uint64_t size, char type)
{
    int code = weir_growing_room(out, WEIR_TAR_BLOCK);
    if (code)
        return code;
    uint8_t *block = out->data + out->size;
    uint32_t sum = 0;
    memset(block, 0, WEIR_TAR_BLOCK);
    memcpy(block, name, name_size);
    memcpy(block + 100, "0000444", 7);
    memcpy(block + 108, "0000000", 7);
    memcpy(block + 116, "0000000", 7);
    put_octal(block + 124, SIZE_DIGITS, size);
    memcpy(block + 136, "00000000000", 11);
    memset(block + 148, ' ', 8);
    block[156] = (uint8_t)type;
    memcpy(block + 257, "ustar\00000", 8);
    memcpy(block + 345, prefix, prefix_size);
    for (size_t i = 0; i < WEIR_TAR_BLOCK; i++)
        sum += block[i];
    put_octal(block + 148, 6, sum);
    block[154] = 0;
    out->size += WEIR_TAR_BLOCK;
    return 0;
}

/* "LENGTH key=value\n", where LENGTH counts itself. */
static int put_record(struct weir_growing *out, const char *key, const char *value, size_t size)
{
    char head[64];
    size_t rest = 1 + strlen(key) + 1 + size + 1, length = rest, before = 0;
    while (length != before) {
        before = length;
        length = rest + (size_t)snprintf(head, sizeof head, "%zu", before);
    }
    size_t head_size = (size_t)snprintf(head, sizeof head, "%zu %s=", length, key);
    int code = weir_growing_add(out, head, head_size);
    if (!code)
        code = weir_growing_add(out, value, size);
    return code ? code : weir_growing_add(out, "\n", 1);
}

/* Where the name may be cut for the prefix: the slash, or the size if there is no need or no way.
 */
static size_t cut_of(const char *name, size_t size)
{
    if (size <= NAME_BYTES)
        return size;
    for (size_t at = size - NAME_BYTES - 1; at < size - 1 && at <= PREFIX_BYTES; at++)
        if (name[at] == '/' && at)
            return at;
    return size;
}

/* A PAX header, whose records are collected behind its block and then counted. */
static int put_pax(struct weir_growing *out, const char *name, size_t name_size, bool with_name,
                   uint64_t size)
{
    static const char own[] = "././@PaxHeader";
    struct weir_growing records = {0};
    char text[24];
    int code = 0;
    if (with_name && !weir_utf8_valid(name, name_size))
        code = put_record(&records, "hdrcharset", "BINARY", 6);
    if (!code && with_name)
        code = put_record(&records, "path", name, name_size);
    if (!code && size > SIZE_MAX_OCTAL)
        code = put_record(&records, "size", text,
                          (size_t)snprintf(text, sizeof text, "%" PRIu64, size));
    if (!code)
        code = put_block(out, "", 0, own, sizeof own - 1, records.size, 'x');
    if (!code)
        code = weir_growing_add(out, records.data, records.size);
    if (!code)
        code = weir_tar_put_padding(out, records.size);
    weir_growing_free(&records);
    return code;
}

static bool is_ascii(const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (name[i] & 0x80)
            return false;
    return true;
}

int weir_tar_put_header(struct weir_growing *out, const char *name, size_t name_size, uint64_t size)
{
    assert(name_size && name_size <= WEIR_TAR_NAME_MAX && !memchr(name, 0, name_size));
    size_t cut = cut_of(name, name_size);
    bool fits = name_size <= NAME_BYTES || cut<name_size, large = size> SIZE_MAX_OCTAL;
    bool with_name = !fits || !is_ascii(name, name_size);
    int code = 0;
    if (with_name || large)
        code = put_pax(out, name, name_size, with_name, size);
    if (code)
        return code;
    if (!fits) /* whoever cannot read the header above sees its beginning */
        return put_block(out, "", 0, name, NAME_BYTES, large ? 0 : size, '0');
    if (cut < name_size)
        return put_block(out, name, cut, name + cut + 1, name_size - cut - 1, large ? 0 : size,
                         '0');
    return put_block(out, "", 0, name, name_size, large ? 0 : size, '0');
}

int weir_tar_put_padding(struct weir_growing *out, uint64_t size)
{
    size_t more = (size_t)(-size & (WEIR_TAR_BLOCK - 1));
    int code = weir_growing_room(out, more);
    if (code)
        return code;
    if (more)
        memset(out->data + out->size, 0, more);
    out->size += more;
    return 0;
}

int weir_tar_put_end(struct weir_growing *out)
{
    static const uint8_t zeros[2 * WEIR_TAR_BLOCK];
    return weir_growing_add(out, zeros, sizeof zeros);
}
