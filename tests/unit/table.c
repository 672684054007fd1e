/* Tables: rows in order, found again, and every byte of them checked when one opens. */
#include "stores.h"

#include "store/table.h"
#include "util/bytes.h"

enum { MILLION = 1000000, HEAD = 16, TAIL = 24 };

static weir_store *store;

/* Row i of the tables here. */
static size_t key_of(char out[32], uint64_t i)
{
    return (size_t)snprintf(out, 32, "key-%08llu", (unsigned long long)i);
}

static void make(const char *key, uint64_t count, uint8_t digest[WEIR_SHA256_BYTES])
{
    struct weir_table_put *put;
    char name[32];
    OK(weir_table_put_open(&put, store, key, 0));
    for (uint64_t i = 0; i < count; i++) {
        uint64_t value[2] = {i, ~i};
        size_t size = key_of(name, 2 * i);
        OK(weir_table_put_row(put, name, size, value, i % 17));
    }
    OK(weir_table_put_commit(put, digest));
    weir_table_put_close(put);
}

static void check_rows(struct weir_table *table, uint64_t count, uint64_t step)
{
    CHECK_EQ(weir_table_count(table), count);
    for (uint64_t i = 0; i < count; i += step) {
        struct weir_row row, found;
        char name[32];
        uint64_t value[2] = {i, ~i};
        size_t size = key_of(name, 2 * i);
        weir_table_row(table, i, &row);
        CHECK(row.key_size == size && !memcmp(row.key, name, size));
        CHECK(row.value_size == i % 17 && !memcmp(row.value, value, i % 17));
        CHECK_EQ(weir_table_seek(table, name, size), i);
        CHECK(weir_table_find(table, name, size, &found) && found.key == row.key);
        size = key_of(name, 2 * i + 1); /* not there: the next one is */
        CHECK_EQ(weir_table_seek(table, name, size), i + 1);
        CHECK(!weir_table_find(table, name, size, &found));
    }
    CHECK_EQ(weir_table_seek(table, "", 0), 0);
    CHECK_EQ(weir_table_seek(table, "z", 1), count);
}

static void rows_come_back(void)
{
    static const uint64_t counts[] = {0, 1, 2, 3, 100, 1025};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint8_t digest[WEIR_SHA256_BYTES], other[WEIR_SHA256_BYTES] = {1};
        struct weir_table *table;
        char key[32];
        snprintf(key, sizeof key, "t%llu", (unsigned long long)counts[i]);
        make(key, counts[i], digest);
        OK(weir_table_open(&table, store, key, digest));
        check_rows(table, counts[i], 1);
        weir_table_close(table);
        OK(weir_table_open(&table, store, key, NULL));
        weir_table_close(table);
        CHECK_EQ(weir_table_open(&table, store, key, other), -EBADMSG);
        CHECK(strstr(weir_error_text(), key) && strstr(weir_error_text(), "named"));
    }
    struct weir_table *none;
    CHECK_EQ(weir_table_open(&none, store, "nothing", NULL), -ENOENT);
    put_seed(store, "no-table", 4096, 1);
    CHECK_EQ(weir_table_open(&none, store, "no-table", NULL), -EBADMSG);
}

static void order_is_enforced(void)
{
    struct weir_table_put *put;
    struct weir_table *table;
    uint8_t digest[WEIR_SHA256_BYTES];
    OK(weir_table_put_open(&put, store, "ordered", 0));
    OK(weir_table_put_row(put, "b", 1, "1", 1));
    CHECK_EQ(weir_table_put_row(put, "b", 1, "2", 1), -EINVAL); /* twice */
    CHECK_EQ(weir_table_put_row(put, "a", 1, "2", 1), -EINVAL);
    OK(weir_table_put_row(put, "b\0", 2, "", 0)); /* a prefix comes first */
    CHECK_EQ(weir_table_put_row(put, "b", 1, "2", 1), -EINVAL);
    OK(weir_table_put_row(put, "ba", 2, "", 0));
    OK(weir_table_put_row(put, "\x80", 1, "", 0)); /* bytes, not characters */
    CHECK_EQ(weir_table_put_row(put, "\x7f", 1, "", 0), -EINVAL);
    OK(weir_table_put_commit(put, digest));
    weir_table_put_close(put);
    OK(weir_table_open(&table, store, "ordered", digest)); /* what was refused left no trace */
    CHECK_EQ(weir_table_count(table), 4);
    CHECK_EQ(weir_table_seek(table, "b\0", 2), 1);
    CHECK_EQ(weir_table_seek(table, "b", 1), 0);
    CHECK_EQ(weir_table_seek(table, "c", 1), 3);
    weir_table_close(table);
}

static void limits(void)
{
    struct weir_table_put *put;
    struct weir_table *table;
    struct weir_row row;
    uint8_t digest[WEIR_SHA256_BYTES];
    uint8_t *big = calloc(1, WEIR_TABLE_VALUE_BYTES_MAX + 1);
    data_fill(big, WEIR_TABLE_VALUE_BYTES_MAX, 3, 0);
    OK(weir_table_put_open(&put, store, "limits", 0));
    CHECK_EQ(weir_table_put_row(put, "", 0, "x", 1), -EINVAL);
    CHECK_EQ(weir_table_put_row(put, big, WEIR_TABLE_KEY_BYTES_MAX + 1, "x", 1), -EINVAL);
    CHECK_EQ(weir_table_put_row(put, "k", 1, big, WEIR_TABLE_VALUE_BYTES_MAX + 1), -EINVAL);
    OK(weir_table_put_row(put, big, WEIR_TABLE_KEY_BYTES_MAX, big, WEIR_TABLE_VALUE_BYTES_MAX));
    OK(weir_table_put_commit(put, digest));
    weir_table_put_close(put);
    OK(weir_table_open(&table, store, "limits", digest));
    weir_table_row(table, 0, &row);
    CHECK(row.key_size == WEIR_TABLE_KEY_BYTES_MAX && data_is(row.key, row.key_size, 3, 0));
    CHECK(row.value_size == WEIR_TABLE_VALUE_BYTES_MAX && data_is(row.value, row.value_size, 3, 0));
    weir_table_close(table);
    free(big);
    /* One that is not committed is not there. */
    OK(weir_table_put_open(&put, store, "dropped", 0));
    OK(weir_table_put_row(put, "k", 1, "v", 1));
    weir_table_put_close(put);
    CHECK_EQ(weir_table_open(&table, store, "dropped", NULL), -ENOENT);
    weir_table_put_close(NULL);
    weir_table_close(NULL);
}

/* ---- damage ---- */

/* The bytes of a table of `count` rows; the caller frees them. */
static uint8_t *bytes_of(const char *key, size_t *size)
{
    weir_object *obj;
    OK(weir_object_open(&obj, store, key));
    *size = weir_object_info(obj)->size_bytes;
    uint8_t *bytes = data_buffer(*size, 0);
    OK(weir_object_read(obj, bytes, *size, 0, size));
    weir_object_close(obj);
    return bytes;
}

static int check_copy(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); /* exact: a sanitizer sees the first byte beyond */
    memcpy(copy, bytes, size);
    int code = weir_table_check(copy, size);
    free(copy);
    return code;
}

static void damage_is_found(void)
{
    uint8_t digest[WEIR_SHA256_BYTES];
    size_t size;
    make("damage", 20, digest);
    uint8_t *bytes = bytes_of("damage", &size);
    OK(check_copy(bytes, size));
    for (size_t cut = 0; cut < size; cut++)
        CHECK_EQ(check_copy(bytes, cut), -EBADMSG);
    uint64_t starts = weir_load_le(bytes + size - 16, 8);
    for (size_t at = 0; at < size; at++) {
        /* Without the digest, keys, values and padding may be other ones; nothing else may. */
        bytes[at] ^= 0x80;
        int code = check_copy(bytes, size);
        bool structure = at < 10 || at >= starts;
        CHECK(structure ? code == -EBADMSG || code == -EPROTO : code == 0 || code == -EBADMSG);
        bytes[at] ^= 0x80;
    }
    weir_store_le(bytes + 8, 2, 2);
    CHECK_EQ(check_copy(bytes, size), -EPROTO);
    weir_store_le(bytes + 8, 1, 2);
    static const uint64_t wild[] = {0, 8, 1ull << 32, 1ull << 63, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++)
        for (size_t field = 0; field < 2; field++) {
            uint8_t *at = bytes + size - TAIL + 8 * field;
            uint64_t was = weir_load_le(at, 8);
            weir_store_le(at, wild[i], 8);
            CHECK_EQ(check_copy(bytes, size), -EBADMSG);
            weir_store_le(at, was, 8);
        }
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) { /* the first row's lengths */
        uint64_t was = weir_load_le(bytes + HEAD, 8);
        weir_store_le(bytes + HEAD, wild[i], 8);
        CHECK_EQ(check_copy(bytes, size), -EBADMSG);
        weir_store_le(bytes + HEAD, was, 8);
    }
    data_free(bytes, 0);
}

/* Rows exchanged, or one of them twice: good sums would not tell, the order does. */
static void disorder_is_found(void)
{
    uint8_t digest[WEIR_SHA256_BYTES];
    size_t size;
    make("disorder", 3, digest);
    uint8_t *bytes = bytes_of("disorder", &size);
    size_t second = (size_t)weir_load_le(bytes + weir_load_le(bytes + size - 16, 8) + 8, 8);
    uint8_t *digit = bytes + second + 8 + strlen("key-0000000"); /* of "key-00000002" */
    CHECK_EQ(*digit, '2');
    *digit = '0';
    CHECK_EQ(check_copy(bytes, size), -EBADMSG);
    CHECK(strstr(weir_error_text(), "order"));
    *digit = '9';
    CHECK_EQ(check_copy(bytes, size), -EBADMSG);
    *digit = '3';
    OK(check_copy(bytes, size)); /* another table, and a good one: only the digest tells */
    data_free(bytes, 0);
}

static void a_million_rows(void)
{
    uint8_t digest[WEIR_SHA256_BYTES];
    struct weir_table *table;
    make("million", MILLION, digest);
    OK(weir_table_open(&table, store, "million", digest));
    check_rows(table, MILLION, 997);
    weir_table_close(table);
}

int main(void)
{
    store = store_at("mem:?size=1G", "inline");
    RUN(rows_come_back);
    RUN(order_is_enforced);
    RUN(limits);
    RUN(damage_is_found);
    RUN(disorder_is_found);
    RUN(a_million_rows);
    weir_store_close(store);
    return TEST_RESULT;
}
