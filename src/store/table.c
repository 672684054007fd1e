/* table.c - see table.h. The reader takes any bytes: everything is checked once, when it opens. */
#include "store/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

enum {
    HEAD_BYTES = 16,
    TAIL_BYTES = 24,
    ROW_HEAD_BYTES = 8,
    VERSION = 1,
    STARTS_ROOM_MIN = 1024,
};
static const char magic[8] = {'W', 'E', 'I', 'R', 'T', 'A', 'B', 'L'};
static const char magic_end[8] = {'W', 'E', 'I', 'R', 'T', 'E', 'N', 'D'};

static uint64_t round_up8(uint64_t size)
{
    return (size + 7) & ~(uint64_t)7;
}

static int compare(const void *a, size_t a_size, const void *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

/* ---- writing ---- */

struct weir_table_put {
    weir_put *put;
    struct weir_sha256_stream digest;
    uint64_t offset, count, room;
    uint8_t *starts; /* u64 each, as on disk */
    size_t last_size;
    uint8_t last[WEIR_TABLE_KEY_BYTES_MAX];
};

static int emit(struct weir_table_put *put, const void *data, size_t size)
{
    weir_sha256_more(&put->digest, data, size);
    put->offset += size;
    return weir_put_write(put->put, data, size);
}

int weir_table_put_open(struct weir_table_put **out, weir_store *store, const char *key,
                        uint32_t flags)
{
    uint8_t head[HEAD_BYTES] = {0};
    weir_put_options opts;
    weir_put_options_init(&opts);
    opts.flags = flags;
    struct weir_table_put *put = weir_alloc(sizeof *put);
    if (!put)
        return weir_fail_memory();
    int code = weir_sha256_begin(&put->digest);
    if (!code)
        code = weir_put_open(&put->put, store, key, &opts);
    memcpy(head, magic, sizeof magic);
    weir_store_le(head + 8, VERSION, 2);
    if (!code)
        code = emit(put, head, sizeof head);
    if (code)
        weir_table_put_close(put);
    else
        *out = put;
    return code;
}

static int remember_start(struct weir_table_put *put)
{
    if (put->count == put->room) {
        uint64_t room = put->room ? 2 * put->room : STARTS_ROOM_MIN;
        uint8_t *starts = weir_realloc(put->starts, room * 8);
        if (!starts)
            return weir_fail_memory();
        put->starts = starts;
        put->room = room;
    }
    weir_store_le(put->starts + 8 * put->count++, put->offset, 8);
    return 0;
}

int weir_table_put_row(struct weir_table_put *put, const void *key, size_t key_size,
                       const void *value, size_t value_size)
{
    uint8_t head[ROW_HEAD_BYTES], zeros[8] = {0};
    if (!key_size || key_size > WEIR_TABLE_KEY_BYTES_MAX || value_size > WEIR_TABLE_VALUE_BYTES_MAX)
        return weir_fail(EINVAL,
                         "a row with a key of %zu and a value of %zu bytes: keys have 1 to %d, "
                         "values at most %d",
                         key_size, value_size, WEIR_TABLE_KEY_BYTES_MAX,
                         WEIR_TABLE_VALUE_BYTES_MAX);
    if (put->count && compare(key, key_size, put->last, put->last_size) <= 0)
        return weir_fail(EINVAL, "the key of row %llu does not come after the one before it",
                         (unsigned long long)put->count);
    uint64_t end = put->offset + ROW_HEAD_BYTES + round_up8(key_size + value_size);
    if (end + 8 * (put->count + 1) + TAIL_BYTES > WEIR_TABLE_BYTES_MAX)
        return weir_fail(EFBIG, "a table of more than %llu bytes",
                         (unsigned long long)WEIR_TABLE_BYTES_MAX);
    int code = remember_start(put);
    weir_store_le(head, key_size, 4);
    weir_store_le(head + 4, value_size, 4);
    memcpy(put->last, key, key_size);
    put->last_size = key_size;
    if (!code)
        code = emit(put, head, sizeof head);
    if (!code)
        code = emit(put, key, key_size);
    if (!code && value_size)
        code = emit(put, value, value_size);
    if (!code && put->offset < end)
        code = emit(put, zeros, (size_t)(end - put->offset));
    return code;
}

int weir_table_put_commit(struct weir_table_put *put, uint8_t digest[WEIR_SHA256_BYTES])
{
    uint8_t tail[TAIL_BYTES];
    weir_store_le(tail, put->count, 8);
    weir_store_le(tail + 8, put->offset, 8);
    memcpy(tail + 16, magic_end, sizeof magic_end);
    int code = put->count ? emit(put, put->starts, 8 * put->count) : 0;
    if (!code)
        code = emit(put, tail, sizeof tail);
    weir_sha256_end(&put->digest, digest);
    return code ? code : weir_put_commit(put->put, NULL);
}

void weir_table_put_close(struct weir_table_put *put)
{
    if (!put)
        return;
    weir_sha256_end(&put->digest, NULL);
    weir_put_close(put->put);
    free(put->starts);
    free(put);
}

/* ---- reading ---- */

struct weir_table {
    const uint8_t *bytes, *starts;
    uint64_t count;
    void *memory; /* owns bytes, which are aligned in it */
};

static int damaged(const char *why)
{
    return weir_fail(EBADMSG, "the table is damaged: %s", why);
}

static void row_at(const uint8_t *bytes, uint64_t start, struct weir_row *out)
{
    size_t key_size = (size_t)weir_load_le(bytes + start, 4);
    const uint8_t *key = bytes + start + ROW_HEAD_BYTES;
    *out = (struct weir_row){key, key + key_size, key_size,
                             (size_t)weir_load_le(bytes + start + 4, 4)};
}

/* Rows follow each other without a gap and in order, up to the list of where they begin. */
static const char *rows_fault(const uint8_t *bytes, uint64_t count, uint64_t starts)
{
    uint64_t at = HEAD_BYTES;
    struct weir_row row, last = {0};
    for (uint64_t i = 0; i < count; i++) {
        if (weir_load_le(bytes + starts + 8 * i, 8) != at || starts - at < ROW_HEAD_BYTES)
            return "a row is not where it should be";
        row_at(bytes, at, &row);
        if (!row.key_size || row.key_size > WEIR_TABLE_KEY_BYTES_MAX ||
            row.value_size > WEIR_TABLE_VALUE_BYTES_MAX ||
            round_up8(row.key_size + row.value_size) > starts - at - ROW_HEAD_BYTES)
            return "a row has an impossible length";
        if (i && compare(row.key, row.key_size, last.key, last.key_size) <= 0)
            return "its rows are out of order";
        last = row;
        at += ROW_HEAD_BYTES + round_up8(row.key_size + row.value_size);
    }
    return at == starts ? NULL : "there is something between its rows and their list";
}

static int check(const uint8_t *bytes, uint64_t size, uint64_t *count, uint64_t *starts)
{
    if (size < HEAD_BYTES + TAIL_BYTES || size % 8 || size > WEIR_TABLE_BYTES_MAX)
        return damaged("its length is impossible");
    if (memcmp(bytes, magic, sizeof magic))
        return damaged("it does not begin like one");
    if (weir_load_le(bytes + 8, 2) != VERSION)
        return weir_fail(EPROTO, "the table was written by a newer Weir (version %u): update",
                         (unsigned)weir_load_le(bytes + 8, 2));
    const uint8_t *tail = bytes + size - TAIL_BYTES;
    if (memcmp(tail + 16, magic_end, sizeof magic_end))
        return damaged("it does not end like one");
    *count = weir_load_le(tail, 8);
    *starts = weir_load_le(tail + 8, 8);
    if (*starts < HEAD_BYTES || *starts > size - TAIL_BYTES || *starts % 8 ||
        *count != (size - TAIL_BYTES - *starts) / 8)
        return damaged("its counts are impossible");
    const char *fault = rows_fault(bytes, *count, *starts);
    return fault ? damaged(fault) : 0;
}

int weir_table_check(const uint8_t *bytes, size_t size)
{
    uint64_t count, starts;
    return check(bytes, size, &count, &starts);
}

/* Reads all of it into fresh aligned memory. */
static int read_all(weir_object *obj, void **memory, uint8_t **bytes, size_t *size)
{
    uint64_t total = weir_object_info(obj)->size_bytes;
    if (total > WEIR_TABLE_BYTES_MAX)
        return damaged("its length is impossible");
    *memory = weir_alloc((size_t)total + WEIR_IO_ALIGN);
    if (!*memory)
        return weir_fail_memory();
    *bytes = (uint8_t *)(((uintptr_t)*memory + WEIR_IO_ALIGN - 1) & ~(WEIR_IO_ALIGN - 1));
    int code = weir_object_read(obj, *bytes, (size_t)total, 0, size);
    if (!code && *size != total)
        code = damaged("it is cut short");
    return code;
}

int weir_table_open(struct weir_table **out, weir_store *store, const char *key,
                    const uint8_t *digest)
{
    uint8_t there[WEIR_SHA256_BYTES], *bytes = NULL;
    uint64_t starts = 0;
    size_t size = 0;
    weir_object *obj;
    int code = weir_object_open(&obj, store, key);
    if (code)
        return code;
    struct weir_table *table = weir_alloc(sizeof *table);
    code = table ? read_all(obj, &table->memory, &bytes, &size) : weir_fail_memory();
    weir_object_close(obj);
    if (!code && digest) {
        weir_sha256(there, bytes, size);
        if (memcmp(there, digest, sizeof there))
            code = damaged("it is not the one that was named");
    }
    if (!code)
        code = check(bytes, size, &table->count, &starts);
    if (code) {
        weir_table_close(table);
        return weir_fail_in(code, "'%s'", key);
    }
    table->bytes = bytes;
    table->starts = bytes + starts;
    *out = table;
    return 0;
}

void weir_table_close(struct weir_table *table)
{
    if (!table)
        return;
    free(table->memory);
    free(table);
}

uint64_t weir_table_count(const struct weir_table *table)
{
    return table->count;
}

void weir_table_row(const struct weir_table *table, uint64_t at, struct weir_row *out)
{
    assert(at < table->count);
    row_at(table->bytes, weir_load_le(table->starts + 8 * at, 8), out);
}

uint64_t weir_table_seek(const struct weir_table *table, const void *key, size_t key_size)
{
    uint64_t low = 0, high = table->count;
    while (low < high) {
        struct weir_row row;
        uint64_t middle = low + (high - low) / 2;
        weir_table_row(table, middle, &row);
        if (compare(row.key, row.key_size, key, key_size) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool weir_table_find(const struct weir_table *table, const void *key, size_t key_size,
                     struct weir_row *out)
{
    struct weir_row row;
    uint64_t at = weir_table_seek(table, key, key_size);
    if (at == table->count)
        return false;
    weir_table_row(table, at, &row);
    if (compare(row.key, row.key_size, key, key_size))
        return false;
    *out = row;
    return true;
}
