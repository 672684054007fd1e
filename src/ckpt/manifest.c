/* manifest.c - see manifest.h: what was loaded, and the merged table. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/merge.h"
#include "util/err.h"
#include "util/sys.h"

#define MERGED_NAME "manifest"
static const char root_key[1] = {0};

/* ---- the merged table ---- */

static void merged_key(char key[WEIR_KEY_BYTES_MAX + 16], struct weir_view *view)
{
    snprintf(key, WEIR_KEY_BYTES_MAX + 16, "%s/%s", weir_view_prefix(view), MERGED_NAME);
}

/* The rows of one tensor. */
static int put_tensor(struct weir_table_put *put, const struct weir_manifest_tensor *t)
{
    char key[WEIR_TABLE_KEY_BYTES_MAX + 8];
    size_t name = strlen(t->name), most = weir_tensor_row_pieces_max(t);
    int code = 0;
    memcpy(key, t->name, name + 1);
    for (size_t i = 0, number = 0; !code && i < t->count; i += most, number++) {
        struct weir_manifest_tensor some = *t;
        uint8_t *value;
        size_t size;
        some.has_parts = true;
        some.pieces += i;
        some.count = t->count - i < most ? t->count - i : most;
        code = weir_manifest_encode(&some, &value, &size);
        if (code)
            return code;
        for (unsigned k = 0; k < 4; k++)
            key[name + 1 + k] = (char)(number >> (24 - 8 * k));
        code = weir_table_put_row(put, key, number ? name + 5 : name, value, size);
        free(value);
    }
    return code;
}

int weir_manifest_put(const struct weir_manifest *m, struct weir_view *view)
{
    char key[WEIR_KEY_BYTES_MAX + 16];
    uint8_t digest[WEIR_SHA256_BYTES];
    struct weir_table_put *put;
    merged_key(key, view);
    int code = weir_table_put_open(&put, weir_view_store(view), key,
                                   WEIR_PUT_OF_SAVE(weir_view_prefix(view)));
    if (code)
        return code;
    code = weir_table_put_row(put, root_key, sizeof root_key, weir_view_entry(view)->root,
                              WEIR_SHA256_BYTES);
    for (size_t i = 0; !code && i < m->count; i++)
        code = put_tensor(put, &m->tensors[i]);
    if (!code)
        code = weir_table_put_commit(put, digest);
    weir_table_put_close(put);
    return code;
}

/* -ENOENT if it is not there, or not of this save. */
static int open_merged(struct weir_table **out, struct weir_view *view)
{
    char key[WEIR_KEY_BYTES_MAX + 16];
    struct weir_table *table;
    struct weir_row row;
    merged_key(key, view);
    int code = weir_table_open(&table, weir_view_store(view), key, NULL);
    if (code)
        return code;
    if (!weir_table_find(table, root_key, sizeof root_key, &row) ||
        row.value_size != WEIR_SHA256_BYTES ||
        memcmp(row.value, weir_view_entry(view)->root, WEIR_SHA256_BYTES)) {
        weir_table_close(table);
        return -ENOENT;
    }
    *out = table;
    return 0;
}

/* ---- loading ---- */

int weir_manifest_load(struct weir_manifest **out, struct weir_view *view)
{
    struct weir_table *table;
    uint32_t parts = weir_view_entry(view)->save.parts;
    if (parts > 1 && !open_merged(&table, view)) {
        int code = weir_merge_tables(out, &table, 1, true, parts);
        weir_table_close(table);
        if (!code)
            return 0;
    }
    return weir_manifest_merge(out, view);
}

void weir_manifest_free(struct weir_manifest *m)
{
    if (!m)
        return;
    weir_arena_free(m->arena);
    free(m->tensors);
    free(m);
}

size_t weir_manifest_count(const struct weir_manifest *m)
{
    return m->count;
}

const struct weir_manifest_tensor *weir_manifest_at(const struct weir_manifest *m, size_t i)
{
    return &m->tensors[i];
}

const struct weir_manifest_tensor *weir_manifest_find(const struct weir_manifest *m,
                                                      const char *name)
{
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(m->tensors[middle].name, name);
        if (!order)
            return &m->tensors[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

size_t weir_manifest_seek(const struct weir_manifest_tensor *t, uint64_t begin)
{
    size_t low = 0, high = t->count;
    while (t->ndim && low < high) {
        size_t middle = low + (high - low) / 2;
        /* None of those before it is longer than reach: they end before begin. */
        if (t->pieces[middle].offset[t->along] + t->reach <= begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
