/* table.h - a sorted table of (key, value) rows in one sealed object, for what is too large for a
 * record: it is written in one stream, and read in place, without parsing.
 *
 * On disk (little-endian), version 1:
 *
 *     0  8  "WEIRTABL"
 *     8  2  version, 1
 *    10  6  zero
 *    16     rows in ascending order of their keys (bytes compared, a prefix first), none twice:
 *           u32 length of the key, u32 length of the value, key, value, zeros up to a multiple of 8
 *           where each row begins: u64
 *  last 24  u64 number of rows, u64 where the list of beginnings begins, "WEIRTEND"
 *
 * A table is named by the SHA-256 of all its bytes.
 */
#ifndef WEIR_STORE_TABLE_H
#define WEIR_STORE_TABLE_H

#include "store/store.h"
#include "util/hash.h"

enum {
    WEIR_TABLE_KEY_BYTES_MAX = 4096,
    WEIR_TABLE_VALUE_BYTES_MAX = 1 << 20,
};
#define WEIR_TABLE_BYTES_MAX ((uint64_t)4 << 30) /* it is held in memory to be read */

/* ---- writing; a handle belongs to one thread ---- */

struct weir_table_put;
/* flags: of weir_put_options. */
int weir_table_put_open(struct weir_table_put **out, weir_store *store, const char *key,
                        uint32_t flags);
/* -EINVAL unless key comes after the one before it. */
int weir_table_put_row(struct weir_table_put *put, const void *key, size_t key_size,
                       const void *value, size_t value_size);
/* Seals it; as weir_put_commit(). */
int weir_table_put_commit(struct weir_table_put *put, uint8_t digest[WEIR_SHA256_BYTES]);
void weir_table_put_close(struct weir_table_put *put);

/* ---- reading; any thread ---- */

struct weir_row {
    const void *key, *value; /* borrowed from the table; a value is aligned like its key's end */
    size_t key_size, value_size;
};

struct weir_table;
/* Reads and checks the whole: -EBADMSG if it is not the table with that digest (NULL: any). */
int weir_table_open(struct weir_table **out, weir_store *store, const char *key,
                    const uint8_t *digest);
void weir_table_close(struct weir_table *table);
uint64_t weir_table_count(const struct weir_table *table);
void weir_table_row(const struct weir_table *table, uint64_t at, struct weir_row *out);
/* The first row whose key is not before the given one; the count if there is none. */
uint64_t weir_table_seek(const struct weir_table *table, const void *key, size_t key_size);
/* false if there is no such row. */
bool weir_table_find(const struct weir_table *table, const void *key, size_t key_size,
                     struct weir_row *out);

/* Checks bytes, aligned to 8, that stay the caller's; for tests. Returns -EBADMSG or -EPROTO. */
int weir_table_check(const uint8_t *bytes, size_t size);

#endif
