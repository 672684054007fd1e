/* tar.c - see tar.h. What a member is called when several extensions name it, and which types have
 * content, is as Python's tarfile does it: most shards are made and read with that.
 */
#include "data/tar.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/err.h"

/* Offsets of the header's fields. */
enum {
    NAME = 0,
    NAME_BYTES = 100,
    SIZE = 124,
    SIZE_BYTES = 12,
    CHECKSUM = 148,
    CHECKSUM_BYTES = 8,
    TYPE = 156,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_BYTES = 155,
};

#define BAD(tar, fmt, ...)                                                                         \
    weir_fail(EBADMSG, "at byte %" PRIu64 " of the archive: " fmt, (tar)->at, ##__VA_ARGS__)

/* ---- numbers ---- */

/* Digits of 8 with blanks before and blanks or NUL behind; none at all is 0. */
static bool octal(const uint8_t *at, size_t size, uint64_t *out)
{
    size_t i = 0;
    uint64_t value = 0;
    while (i < size && at[i] == ' ')
        i++;
    for (; i < size && at[i] >= '0' && at[i] <= '7'; i++) {
        if (value >> 60)
            return false;
        value = value << 3 | (uint64_t)(at[i] - '0');
    }
    *out = value;
    return i == size || at[i] == 0 || at[i] == ' ';
}

/* Octal, or big-endian with the first bit set. */
static bool number(const uint8_t *at, size_t size, uint64_t *out)
{
    if (!(at[0] & 0x80))
        return octal(at, size, out);
    uint64_t value = at[0] & 0x7f;
    for (size_t i = 1; i < size; i++) {
        if (value >> 55) /* it stays below 2^63; a negative one begins with ones */
            return false;
        value = value << 8 | at[i];
    }
    *out = value;
    return true;
}

static bool decimal(const char *at, size_t size, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        if (at[i] < '0' || at[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(at[i] - '0'), &value))
            return false;
    *out = value;
    return size > 0;
}

/* The sum of the header's bytes, with blanks for the sum itself; some old writers added chars with
 * a sign. */
static bool checksum_is_right(const uint8_t *block)
{
    uint64_t said;
    uint32_t sum = 0, high = 0;
    if (!octal(block + CHECKSUM, CHECKSUM_BYTES, &said))
        return false;
    for (size_t i = 0; i < WEIR_TAR_BLOCK; i++) {
        sum += block[i];
        high += block[i] >> 7;
    }
    for (size_t i = CHECKSUM; i < CHECKSUM + CHECKSUM_BYTES; i++) {
        sum += (uint32_t)(' ' - block[i]);
        high -= block[i] >> 7;
    }
    return said == sum || (high && said == sum - 256 * high);
}

static bool is_zeros(const uint8_t *block)
{
    return block[0] == 0 && !memcmp(block, block + 1, WEIR_TAR_BLOCK - 1);
}

/* ---- extensions ---- */

static int take_name(struct weir_tar *tar, const char *name, size_t size)
{
    if (size > WEIR_TAR_NAME_MAX)
        return BAD(tar, "a name of %zu bytes; the limit is %d", size, WEIR_TAR_NAME_MAX);
    if (memchr(name, 0, size))
        return BAD(tar, "a name with a NUL in it");
    if (tar->pending.name) /* the first one holds */
        return 0;
    if (tar->flow) { /* the flow's bytes will be gone */
        memcpy(tar->kept, name, size);
        name = tar->kept;
    }
    tar->pending.name = name;
    tar->pending.name_size = size;
    return 0;
}

static bool is_key(const char *key, size_t size, const char *word)
{
    return size == strlen(word) && !memcmp(key, word, size);
}

/* One "key=value" of a PAX header. */
static int take_record(struct weir_tar *tar, bool global, const char *key, size_t key_size,
                       const char *value, size_t size)
{
    if (key_size >= 10 && !memcmp(key, "GNU.sparse", 10))
        return BAD(tar, "a sparse member, which is not supported: make the archive without "
                        "--sparse");
    bool path = is_key(key, key_size, "path"), length = is_key(key, key_size, "size");
    if ((!path && !length) || !size)
        return 0;
    if (global)
        return BAD(tar, "a global header that sets the %s of every member", path ? "name" : "size");
    if (length) {
        if (!decimal(value, size, &tar->pending.size) || tar->pending.size >> 62)
            return BAD(tar, "a PAX size that is no number: '%.*s'", (int)(size < 32 ? size : 32),
                       value);
        tar->pending.has_size = true;
        return 0;
    }
    while (size > 1 && value[size - 1] == '/')
        size--;
    return take_name(tar, value, size);
}

/* "LENGTH key=value\n", one after the other; LENGTH counts all of it. */
static int take_pax(struct weir_tar *tar, bool global, const char *at, size_t left)
{
    while (left && *at) {
        const char *blank = memchr(at, ' ', left < 20 ? left : 20);
        uint64_t size;
        if (!blank || !decimal(at, (size_t)(blank - at), &size) || size > left ||
            size < (size_t)(blank - at) + 3 || at[size - 1] != '\n')
            return BAD(tar, "a wrong record in a PAX header");
        const char *key = blank + 1, *end = at + size - 1;
        const char *equals = memchr(key, '=', (size_t)(end - key));
        if (!equals)
            return BAD(tar, "a PAX record without '='");
        int code = take_record(tar, global, key, (size_t)(equals - key), equals + 1,
                               (size_t)(end - equals - 1));
        if (code)
            return code;
        at += size;
        left -= size;
    }
    return 0;
}

static int take_extension(struct weir_tar *tar, char type, const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    if (type == 'K') /* where a link points */
        return 0;
    if (type == 'L')
        return take_name(tar, text, strnlen(text, size));
    return take_pax(tar, type == 'g', text, size);
}

/* ---- the source ---- */

/* The next `size` bytes, which stay until the next call; fewer only at the end. */
static int look(struct weir_tar *tar, size_t size, const uint8_t **data, size_t *got)
{
    if (tar->flow)
        return weir_flow_peek(tar->flow, size, data, got);
    *data = tar->data + tar->at;
    *got = tar->size - (size_t)tar->at;
    return 0;
}

static int step(struct weir_tar *tar, uint64_t to)
{
    if (!tar->flow && to > tar->size)
        return BAD(tar, "it is cut off: %" PRIu64 " more bytes should follow", to - tar->at);
    int code = tar->flow ? weir_flow_skip(tar->flow, to - tar->at) : 0;
    if (code)
        return weir_fail_in(code, "at byte %" PRIu64 " of the archive", tar->at);
    tar->at = to;
    return 0;
}

/* ---- members ---- */

static bool is_extension(char type)
{
    return type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
}

/* The name in the header itself. */
static void header_name(struct weir_tar *tar, const uint8_t *block, struct weir_tar_member *out)
{
    const char *name = (const char *)block + NAME, *prefix = (const char *)block + PREFIX;
    size_t size = strnlen(name, NAME_BYTES), before = 0;
    if (!memcmp(block + MAGIC, "ustar", 6)) /* GNU's own has other things there */
        before = strnlen(prefix, PREFIX_BYTES);
    if (before || tar->flow) {
        size_t at = 0;
        memcpy(tar->joined, prefix, before);
        at += before;
        if (before)
            tar->joined[at++] = '/';
        memcpy(tar->joined + at, name, size);
        size += at;
        name = tar->joined;
    }
    out->name = name;
    out->name_size = size;
}

/* A header that is no extension: what it says, and what was said before it. */
static int take_member(struct weir_tar *tar, const uint8_t *block, uint64_t size,
                       struct weir_tar_member *out)
{
    const struct weir_tar_pending *pending = &tar->pending;
    char type = (char)block[TYPE];
    header_name(tar, block, out);
    if (type == 0 && out->name_size && out->name[out->name_size - 1] == '/')
        type = '5'; /* a directory, in the oldest form */
    if (type == 'S')
        return BAD(tar, "a sparse member, which is not supported: make the archive without "
                        "--sparse");
    if (pending->name) {
        out->name = pending->name;
        out->name_size = pending->name_size;
    }
    if (pending->has_size)
        size = pending->size;
    if (type >= '1' && type <= '6') /* links, devices, directories have no content */
        size = 0;
    out->is_file = type == '0' || type == 0 || type == '7';
    out->begin = pending->extensions ? pending->begin : tar->at;
    out->size = size;
    out->data_off = tar->at + WEIR_TAR_BLOCK;
    out->end = out->data_off + ((size + WEIR_TAR_BLOCK - 1) & ~(uint64_t)(WEIR_TAR_BLOCK - 1));
    return 0;
}

/* Reads the extension at `at`: its header was looked at. */
static int read_extension(struct weir_tar *tar, char type, uint64_t size)
{
    const uint8_t *data;
    size_t got, padded = ((size_t)size + WEIR_TAR_BLOCK - 1) & ~(size_t)(WEIR_TAR_BLOCK - 1);
    if (type != 'g') { /* a global one belongs to nobody */
        if (!tar->pending.extensions)
            tar->pending.begin = tar->at;
        if (++tar->pending.extensions > WEIR_TAR_EXTENSIONS_MAX)
            return BAD(tar, "more than %d headers for one member", WEIR_TAR_EXTENSIONS_MAX);
    }
    int code = step(tar, tar->at + WEIR_TAR_BLOCK);
    if (!code && padded)
        code = look(tar, padded, &data, &got);
    if (code || !padded)
        return code;
    if (got < padded)
        return BAD(tar, "it is cut off within a header");
    code = take_extension(tar, type, data, (size_t)size);
    return code ? code : step(tar, tar->at + padded);
}

static int at_end(struct weir_tar *tar, size_t got)
{
    if (got)
        return BAD(tar, "it is cut off within a header");
    if (tar->pending.extensions)
        return BAD(tar, "it is cut off behind the header of a member");
    if (tar->flow)
        return BAD(tar, "it is cut off: there is no block of zeros at its end (if it is whole, "
                        "'truncate -s +1024' puts one there)");
    return 0;
}

int weir_tar_next(struct weir_tar *tar, struct weir_tar_member *out)
{
    tar->pending = (struct weir_tar_pending){0};
    for (;;) {
        const uint8_t *block;
        size_t got;
        uint64_t size;
        int code = look(tar, WEIR_TAR_BLOCK, &block, &got);
        if (code)
            return code;
        if (got < WEIR_TAR_BLOCK)
            return at_end(tar, got);
        if (is_zeros(block))
            return tar->pending.extensions ? BAD(tar, "it ends behind the header of a member") : 0;
        if (!checksum_is_right(block))
            return BAD(tar, "a header with a wrong checksum: it is damaged, or no tar archive");
        if (!number(block + SIZE, SIZE_BYTES, &size) || size >> 62)
            return BAD(tar, "a header with a wrong size");
        char type = (char)block[TYPE];
        if (!is_extension(type)) {
            code = take_member(tar, block, size, out);
            if (!code)
                code = step(tar, out->end);
            return code ? code : 1;
        }
        if (size > WEIR_TAR_EXTENSION_MAX - WEIR_TAR_BLOCK)
            return BAD(tar, "a PAX or GNU header of %" PRIu64 " bytes; the limit is %d", size,
                       WEIR_TAR_EXTENSION_MAX - WEIR_TAR_BLOCK);
        code = read_extension(tar, type, size);
        if (code)
            return code;
    }
}

void weir_tar_begin(struct weir_tar *tar, const uint8_t *data, size_t size)
{
    tar->data = data;
    tar->size = size;
    tar->flow = NULL;
    tar->at = 0;
}

void weir_tar_begin_flow(struct weir_tar *tar, struct weir_flow *flow)
{
    tar->data = NULL;
    tar->size = 0;
    tar->flow = flow;
    tar->at = weir_flow_at(flow);
}
