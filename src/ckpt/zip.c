/* zip.c - see zip.h. */
#include "ckpt/zip.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

/* Of the records at the end of an archive, of its directory, and in front of each entry. */
enum {
    END_BYTES = 22,
    END_COMMENT_MAX = 65535,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    END_MAGIC = 0x06054b50,
    LOCATOR_MAGIC = 0x07064b50,
    END64_MAGIC = 0x06064b50,
    ENTRY_MAGIC = 0x02014b50,
    LOCAL_MAGIC = 0x04034b50,
    EXTRA_ZIP64 = 1,
    FLAG_ENCRYPTED = 1,
};
#define MISSING32 0xffffffffu
#define MISSING16 0xffffu

static int bad(const struct weir_extent *span, const char *why)
{
    return weir_fail(EBADMSG, "'%s' is a damaged archive: %s", span->file->path, why);
}

/* Where the directory is, as the end of the archive says. */
struct end {
    uint64_t at; /* where this record is: the directory ends at or before it */
    uint64_t count, size, begin;
};

static int read_end64(struct end *end, const struct weir_extent *span)
{
    uint8_t locator[LOCATOR_BYTES], record[END64_BYTES];
    if (end->at < LOCATOR_BYTES)
        return bad(span, "its zip64 record is missing");
    int code = weir_extent_read(span, end->at - LOCATOR_BYTES, locator, sizeof locator);
    if (code)
        return code;
    if (weir_load_le(locator, 4) != LOCATOR_MAGIC)
        return bad(span, "its zip64 record is missing");
    uint64_t at = weir_load_le(locator + 8, 8);
    if (at > end->at - LOCATOR_BYTES || end->at - LOCATOR_BYTES - at < END64_BYTES)
        return bad(span, "its zip64 record is not where it should be");
    code = weir_extent_read(span, at, record, sizeof record);
    if (code)
        return code;
    if (weir_load_le(record, 4) != END64_MAGIC)
        return bad(span, "its zip64 record is missing");
    *end = (struct end){at, weir_load_le(record + 32, 8), weir_load_le(record + 40, 8),
                        weir_load_le(record + 48, 8)};
    return 0;
}

/* Looks for the last record in the last `size` bytes; *found says whether it is there. */
static int look_for_end(struct end *end, const struct weir_extent *span, size_t size, bool *found)
{
    uint8_t *tail = weir_alloc(size);
    if (!tail)
        return weir_fail_memory();
    int code = weir_extent_read(span, span->size - size, tail, size);
    for (size_t i = size - END_BYTES + 1; !code && !*found && i-- > 0;) {
        const uint8_t *at = tail + i;
        if (weir_load_le(at, 4) != END_MAGIC || weir_load_le(at + 20, 2) != size - END_BYTES - i)
            continue;
        *found = true;
        *end = (struct end){span->size - size + i, weir_load_le(at + 10, 2),
                            weir_load_le(at + 12, 4), weir_load_le(at + 16, 4)};
    }
    free(tail);
    return code;
}

/* It is the last thing, or only a comment stands behind it: torch.save() writes none. */
static int find_end(struct end *end, const struct weir_extent *span)
{
    static const char none[] = "it has no end, or is cut short";
    bool found = false;
    uint64_t most = END_BYTES + END_COMMENT_MAX;
    if (span->size < END_BYTES)
        return bad(span, none);
    int code = look_for_end(end, span, END_BYTES, &found);
    if (!code && !found)
        code = look_for_end(end, span, (size_t)(most < span->size ? most : span->size), &found);
    if (!code && !found)
        code = bad(span, none);
    if (code)
        return code;
    if (end->count == MISSING16 || end->size == MISSING32 || end->begin == MISSING32)
        return read_end64(end, span);
    return 0;
}

/* The fields that did not fit are in an extra record, in this order. */
struct wide {
    uint64_t *field;
    bool needed;
};

static int read_zip64(const struct weir_extent *span, const uint8_t *extra, size_t size,
                      const struct wide *fields, size_t count)
{
    while (size >= 4) {
        size_t length = (size_t)weir_load_le(extra + 2, 2);
        if (length > size - 4)
            break;
        const uint8_t *at = extra + 4, *end = at + length;
        bool found = weir_load_le(extra, 2) == EXTRA_ZIP64;
        for (size_t i = 0; found && i < count; i++) {
            if (!fields[i].needed)
                continue;
            if (end - at < 8)
                return bad(span, "a zip64 field is cut short");
            *fields[i].field = weir_load_le(at, 8);
            at += 8;
        }
        if (found)
            return 0;
        extra += 4 + length;
        size -= 4 + length;
    }
    return bad(span, "a zip64 field is missing");
}

/* One record of the directory; *used says how long it is. */
static int read_entry(struct weir_zip *zip, struct weir_arena **arena, const uint8_t *at,
                      size_t left, size_t *used)
{
    const struct weir_extent *span = &zip->span;
    struct weir_zip_entry entry;
    if (left < ENTRY_BYTES || weir_load_le(at, 4) != ENTRY_MAGIC)
        return bad(span, "its directory is cut short");
    size_t name = (size_t)weir_load_le(at + 28, 2), extra = (size_t)weir_load_le(at + 30, 2);
    *used = ENTRY_BYTES + name + extra + (size_t)weir_load_le(at + 32, 2);
    if (*used > left)
        return bad(span, "its directory is cut short");
    char *text = weir_arena_take(arena, name + 1);
    if (!text)
        return weir_fail_memory();
    memcpy(text, at + ENTRY_BYTES, name);
    uint64_t packed = weir_load_le(at + 20, 4);
    entry = (struct weir_zip_entry){text, weir_load_le(at + 42, 4), weir_load_le(at + 24, 4)};
    const struct wide wide[] = {{&entry.size, entry.size == MISSING32},
                                {&packed, packed == MISSING32},
                                {&entry.header, entry.header == MISSING32}};
    if (strlen(text) != name)
        return bad(span, "a name with a zero in it");
    if (weir_load_le(at + 8, 2) & FLAG_ENCRYPTED || weir_load_le(at + 10, 2) != 0)
        return weir_fail(ENOTSUP,
                         "'%s': '%.200s' is compressed or encrypted, as torch.save() does "
                         "not do: load it in Python and save it again",
                         span->file->path, text);
    int code = wide[0].needed || wide[1].needed || wide[2].needed
                   ? read_zip64(span, at + ENTRY_BYTES + name, extra, wide, 3)
                   : 0;
    if (!code && packed != entry.size)
        code = bad(span, "an entry has two sizes");
    if (!code)
        zip->entries[zip->count++] = entry;
    return code;
}

static int by_name(const void *a, const void *b)
{
    const struct weir_zip_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int read_directory(struct weir_zip *zip, struct weir_arena **arena, const struct end *end)
{
    const struct weir_extent *span = &zip->span;
    uint8_t *bytes = weir_alloc((size_t)end->size + 1);
    size_t used = 0, n = 0;
    zip->entries = weir_arena_take(arena, (size_t)end->count * sizeof *zip->entries);
    int code = bytes && zip->entries ? weir_extent_read(span, end->begin, bytes, (size_t)end->size)
                                     : weir_fail_memory();
    for (uint64_t i = 0; !code && i < end->count; i++) {
        code = read_entry(zip, arena, bytes + used, (size_t)end->size - used, &n);
        used += code ? 0 : n;
    }
    free(bytes);
    if (!code && used != end->size)
        code = bad(span, "its directory has another length");
    if (code)
        return code;
    qsort(zip->entries, zip->count, sizeof *zip->entries, by_name);
    for (size_t i = 1; i < zip->count; i++)
        if (!strcmp(zip->entries[i - 1].name, zip->entries[i].name))
            return bad(span, "two entries have one name");
    return 0;
}

int weir_zip_open(struct weir_zip *out, struct weir_arena **arena, const struct weir_extent *span)
{
    struct end end = {0};
    struct weir_zip zip = {.span = *span};
    int code = find_end(&end, span);
    if (code)
        return code;
    if (end.begin > end.at || end.size > end.at - end.begin)
        return bad(span, "its directory is not where it should be");
    if (end.size > WEIR_ZIP_DIRECTORY_BYTES_MAX)
        return bad(span, "its directory is longer than 256 MiB");
    if (!end.count || end.count > end.size / ENTRY_BYTES)
        return bad(span, "it does not have as many entries as it says");
    zip.directory = end.begin;
    code = read_directory(&zip, arena, &end);
    if (!code)
        *out = zip;
    return code;
}

const struct weir_zip_entry *weir_zip_find(const struct weir_zip *zip, const char *name)
{
    const struct weir_zip_entry key = {.name = name};
    return bsearch(&key, zip->entries, zip->count, sizeof key, by_name);
}

int weir_zip_span(const struct weir_zip *zip, const struct weir_zip_entry *entry,
                  struct weir_extent *out)
{
    uint8_t local[LOCAL_BYTES];
    uint64_t begin;
    int code = weir_extent_read(&zip->span, entry->header, local, sizeof local);
    if (code)
        return code;
    size_t name = (size_t)weir_load_le(local + 26, 2);
    if (weir_load_le(local, 4) != LOCAL_MAGIC || name != strlen(entry->name))
        return bad(&zip->span, "an entry is not where the directory says");
    if (__builtin_add_overflow(entry->header,
                               LOCAL_BYTES + name + (size_t)weir_load_le(local + 28, 2), &begin) ||
        begin > zip->directory || entry->size > zip->directory - begin)
        return bad(&zip->span, "an entry reaches beyond its end");
    *out = (struct weir_extent){zip->span.file, zip->span.begin + begin, entry->size};
    return 0;
}
