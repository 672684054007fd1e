/* manifest.c - see manifest.h. */
#include "ckpt/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/arena.h"
#include "ckpt/safetensors.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

enum { HEAD_BYTES = 8, VERSION = 1, DTYPE_BYTES_MAX = 16 };

static size_t round_up8(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

static uint8_t *put_dims(uint8_t *at, const uint64_t *dims, uint32_t ndim)
{
    for (uint32_t i = 0; i < ndim; i++)
        weir_store_le(at + 8 * i, dims[i], 8);
    return at + 8 * ndim;
}

int weir_manifest_encode(const struct weir_manifest_tensor *t, uint8_t **out, size_t *size)
{
    size_t dtype = strlen(t->dtype), dims = 8 * (size_t)t->ndim;
    if (t->ndim > WEIR_DIMS_MAX)
        return weir_fail(EINVAL, "tensor '%.200s' has %u dimensions, the limit is %d", t->name,
                         t->ndim, WEIR_DIMS_MAX);
    *size = HEAD_BYTES + round_up8(dtype) + dims + t->count * (16 + 2 * dims);
    if (*size > WEIR_TABLE_VALUE_BYTES_MAX)
        return weir_fail(E2BIG, "tensor '%.200s' has too many pieces (%zu) in one rank", t->name,
                         t->count);
    uint8_t *value = weir_alloc(*size), *at = value;
    if (!value)
        return weir_fail_memory();
    weir_store_le(at, VERSION, 2);
    at[2] = (uint8_t)t->ndim;
    at[3] = (uint8_t)dtype;
    weir_store_le(at + 4, t->count, 4);
    memcpy(at + HEAD_BYTES, t->dtype, dtype);
    at = put_dims(at + HEAD_BYTES + round_up8(dtype), t->shape, t->ndim);
    for (size_t i = 0; i < t->count; i++) {
        weir_store_le(at, t->pieces[i].begin, 8);
        weir_store_le(at + 8, t->pieces[i].bytes, 8);
        at = put_dims(at + 16, t->pieces[i].offset, t->ndim);
        at = put_dims(at, t->pieces[i].shape, t->ndim);
    }
    *out = value;
    return 0;
}

/* ---- rows ---- */

static int damaged(const char *why)
{
    return weir_fail(EBADMSG, "the manifest is damaged: %s", why);
}

/* What a row says, before anything is copied. */
struct row {
    const char *dtype;
    uint32_t ndim, pieces;
    const uint8_t *shape, *list;
};

static int row_read(struct row *out, const uint8_t *value, size_t size)
{
    char dtype[DTYPE_BYTES_MAX + 1] = "";
    if (size < HEAD_BYTES)
        return damaged("a row is cut short");
    if (weir_load_le(value, 2) != VERSION)
        return weir_fail(EPROTO, "the manifest was written by a newer Weir (version %u): update",
                         (unsigned)weir_load_le(value, 2));
    size_t length = value[3];
    struct row row = {.ndim = value[2], .pieces = (uint32_t)weir_load_le(value + 4, 4)};
    size_t dims = 8 * (size_t)row.ndim;
    if (row.ndim > WEIR_DIMS_MAX || length > DTYPE_BYTES_MAX || !row.pieces ||
        (uint64_t)size != HEAD_BYTES + round_up8(length) + dims + row.pieces * (16 + 2 * dims))
        return damaged("a row has an impossible length");
    memcpy(dtype, value + HEAD_BYTES, length);
    row.dtype = strlen(dtype) == length ? weir_st_dtype_name(dtype) : NULL;
    if (!row.dtype)
        return damaged("a tensor has an unknown dtype");
    row.shape = value + HEAD_BYTES + round_up8(length);
    row.list = row.shape + dims;
    *out = row;
    return 0;
}

static const uint64_t *take_dims(struct weir_arena **arena, const uint8_t *from, uint32_t ndim)
{
    uint64_t *dims = weir_arena_take(arena, 8 * (size_t)ndim + 8);
    for (uint32_t i = 0; dims && i < ndim; i++)
        dims[i] = weir_load_le(from + 8 * i, 8);
    return dims;
}

/* A piece lies within its tensor and is as long as its shape says. */
static int piece_check(const struct row *row, const uint64_t *whole, const struct weir_piece *p)
{
    uint64_t bytes, end;
    for (uint32_t i = 0; i < row->ndim; i++)
        if (__builtin_add_overflow(p->offset[i], p->shape[i], &end) || end > whole[i])
            return damaged("a piece is not within its tensor");
    if (weir_st_bytes(row->dtype, p->shape, row->ndim, &bytes) || bytes != p->bytes ||
        __builtin_add_overflow(p->begin, p->bytes, &end))
        return damaged("a piece does not have the length of its shape");
    return 0;
}

/* Appends the pieces of one row. */
static int row_pieces(struct weir_arena **arena, const struct row *row, const uint64_t *whole,
                      uint32_t part, struct weir_piece *out)
{
    const uint8_t *at = row->list;
    size_t dims = 8 * (size_t)row->ndim;
    for (uint32_t i = 0; i < row->pieces; i++, at += 16 + 2 * dims) {
        out[i] = (struct weir_piece){part, weir_load_le(at, 8), weir_load_le(at + 8, 8),
                                     take_dims(arena, at + 16, row->ndim),
                                     take_dims(arena, at + 16 + dims, row->ndim)};
        if (!out[i].offset || !out[i].shape)
            return weir_fail_memory();
        int code = piece_check(row, whole, &out[i]);
        if (code)
            return code;
    }
    return 0;
}

int weir_manifest_decode(struct weir_manifest_tensor *out, void **memory, const uint8_t *value,
                         size_t size)
{
    struct weir_arena *arena = NULL;
    struct row row;
    int code = row_read(&row, value, size);
    if (code)
        return code;
    const uint64_t *shape = take_dims(&arena, row.shape, row.ndim);
    struct weir_piece *pieces = weir_arena_take(&arena, row.pieces * sizeof *pieces);
    code = shape && pieces ? row_pieces(&arena, &row, shape, 0, pieces) : weir_fail_memory();
    /* One block holds it all, or this would not be for tests. */
    if (!code && arena->next)
        code = weir_fail_memory();
    if (code) {
        weir_arena_free(arena);
        return code;
    }
    *out = (struct weir_manifest_tensor){"", row.dtype, row.ndim, shape, pieces, row.pieces};
    *memory = arena;
    return 0;
}

/* ---- merging ---- */

struct weir_manifest {
    struct weir_arena *arena;
    struct weir_manifest_tensor *tensors;
    size_t count;
};

/* One row of one part. */
struct line {
    const char *name;
    uint32_t part;
    struct row row;
};

struct merge {
    struct weir_manifest *manifest;
    struct weir_table **tables; /* of each part; NULL: it has none */
    uint32_t parts;
    struct line *lines;
    size_t count;
};

static int by_name(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->part > y->part) - (x->part < y->part);
}

static int open_tables(struct merge *m, struct weir_view *view)
{
    for (uint32_t i = 0; i < m->parts; i++) {
        struct weir_part part;
        int code = weir_view_part(view, i, &part);
        const uint8_t *at = part.refs_at;
        for (uint32_t k = 0; !code && k < part.refs; k++) {
            struct weir_ref ref;
            weir_part_ref(&ref, &at);
            if (ref.kind == WEIR_REF_TABLE && !m->tables[i])
                code = weir_view_table(view, &ref, &m->tables[i]);
        }
        if (code)
            return code;
        m->count += m->tables[i] ? (size_t)weir_table_count(m->tables[i]) : 0;
    }
    return 0;
}

static int read_lines(struct merge *m)
{
    size_t used = 0;
    m->lines = weir_alloc(m->count * sizeof *m->lines);
    if (!m->lines)
        return weir_fail_memory();
    for (uint32_t i = 0; i < m->parts; i++) {
        uint64_t rows = m->tables[i] ? weir_table_count(m->tables[i]) : 0;
        for (uint64_t k = 0; k < rows; k++) {
            struct line *line = &m->lines[used++];
            struct weir_row row;
            weir_table_row(m->tables[i], k, &row);
            char *name = weir_arena_take(&m->manifest->arena, row.key_size + 1);
            if (!name)
                return weir_fail_memory();
            memcpy(name, row.key, row.key_size);
            *line = (struct line){.name = name, .part = i};
            int code = row_read(&line->row, row.value, row.value_size);
            if (code)
                return weir_fail_in(code, "tensor '%.200s'", name);
        }
    }
    return 0;
}

/* The pieces make up the whole: they have as many elements together, and no two of them overlap. */
static int check_cover(const struct weir_manifest_tensor *t)
{
    uint64_t whole, sum = 0;
    if (weir_st_bytes(t->dtype, t->shape, t->ndim, &whole))
        return damaged("a tensor has an impossible shape");
    for (size_t i = 0; i < t->count; i++)
        if (__builtin_add_overflow(sum, t->pieces[i].bytes, &sum))
            return damaged("a tensor has an impossible shape");
    if (sum != whole)
        return weir_fail(EBADMSG,
                         "the pieces of tensor '%.200s' have %" PRIu64 " bytes, the whole %" PRIu64,
                         t->name, sum, whole);
    for (size_t i = 0; t->ndim && i < t->count; i++) {
        const struct weir_piece *a = &t->pieces[i];
        for (size_t k = i + 1; k < t->count; k++) {
            const struct weir_piece *b = &t->pieces[k];
            if (b->offset[0] >= a->offset[0] + a->shape[0])
                break; /* sorted by where they begin in the first dimension */
            bool apart = !a->bytes || !b->bytes;
            for (uint32_t d = 0; !apart && d < t->ndim; d++)
                apart = a->offset[d] >= b->offset[d] + b->shape[d] ||
                        b->offset[d] >= a->offset[d] + a->shape[d];
            if (!apart)
                return weir_fail(EBADMSG, "pieces of tensor '%.200s' overlap", t->name);
        }
    }
    return 0;
}

static int by_place(const void *a, const void *b, void *arg)
{
    const struct weir_piece *x = a, *y = b;
    uint32_t ndim = *(uint32_t *)arg;
    for (uint32_t i = 0; i < ndim; i++)
        if (x->offset[i] != y->offset[i])
            return x->offset[i] < y->offset[i] ? -1 : 1;
    for (uint32_t i = 0; i < ndim; i++)
        if (x->shape[i] != y->shape[i])
            return x->shape[i] < y->shape[i] ? -1 : 1;
    return 0;
}

/* Sorts, and drops what several ranks have written alike. Returns how many are left. */
static size_t unique_pieces(struct weir_piece *pieces, size_t count, uint32_t ndim)
{
    size_t kept = 0;
    qsort_r(pieces, count, sizeof *pieces, by_place, &ndim);
    for (size_t i = 0; i < count; i++)
        if (!kept || by_place(&pieces[kept - 1], &pieces[i], &ndim))
            pieces[kept++] = pieces[i];
    return kept;
}

/* One tensor from the `count` lines that bear its name. */
static int merge_lines(struct merge *m, const struct line *lines, size_t count)
{
    struct weir_arena **arena = &m->manifest->arena;
    const struct row *first = &lines[0].row;
    size_t total = 0, used = 0;
    for (size_t i = 0; i < count; i++)
        total += lines[i].row.pieces;
    const uint64_t *shape = take_dims(arena, first->shape, first->ndim);
    struct weir_piece *pieces = weir_arena_take(arena, total * sizeof *pieces);
    if (!shape || !pieces)
        return weir_fail_memory();
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &lines[i].row;
        if (row->dtype != first->dtype || row->ndim != first->ndim ||
            memcmp(row->shape, first->shape, 8 * (size_t)row->ndim))
            return weir_fail(EBADMSG,
                             "ranks %u and %u do not agree on the dtype or shape of '%.200s'",
                             lines[0].part, lines[i].part, lines[0].name);
        int code = row_pieces(arena, row, shape, lines[i].part, pieces + used);
        if (code)
            return weir_fail_in(code, "tensor '%.200s'", lines[0].name);
        used += row->pieces;
    }
    total = unique_pieces(pieces, total, first->ndim);
    struct weir_manifest_tensor *t = &m->manifest->tensors[m->manifest->count++];
    *t = (struct weir_manifest_tensor){lines[0].name, first->dtype, first->ndim,
                                       shape,         pieces,       total};
    return check_cover(t);
}

static int merge_all(struct merge *m)
{
    int code = 0;
    if (m->count)
        qsort(m->lines, m->count, sizeof *m->lines, by_name);
    m->manifest->tensors = weir_alloc(m->count * sizeof *m->manifest->tensors);
    if (!m->manifest->tensors)
        return weir_fail_memory();
    for (size_t i = 0, k; !code && i < m->count; i = k) {
        for (k = i + 1; k < m->count && !strcmp(m->lines[i].name, m->lines[k].name); k++)
            ;
        code = merge_lines(m, m->lines + i, k - i);
    }
    return code;
}

int weir_manifest_load(struct weir_manifest **out, struct weir_view *view)
{
    struct merge m = {.parts = weir_view_entry(view)->save.parts};
    m.manifest = weir_alloc(sizeof *m.manifest);
    m.tables = weir_alloc(m.parts * sizeof *m.tables);
    int code = m.manifest && m.tables ? open_tables(&m, view) : weir_fail_memory();
    if (!code)
        code = read_lines(&m);
    if (!code)
        code = merge_all(&m);
    for (uint32_t i = 0; m.tables && i < m.parts; i++)
        weir_table_close(m.tables[i]);
    free(m.tables);
    free(m.lines);
    if (code)
        weir_manifest_free(m.manifest);
    else
        *out = m.manifest;
    return code;
}

void weir_manifest_free(struct weir_manifest *manifest)
{
    if (!manifest)
        return;
    weir_arena_free(manifest->arena);
    free(manifest->tensors);
    free(manifest);
}

size_t weir_manifest_count(const struct weir_manifest *manifest)
{
    return manifest->count;
}

const struct weir_manifest_tensor *weir_manifest_at(const struct weir_manifest *manifest, size_t i)
{
    return &manifest->tensors[i];
}

const struct weir_manifest_tensor *weir_manifest_find(const struct weir_manifest *manifest,
                                                      const char *name)
{
    size_t low = 0, high = manifest->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(manifest->tensors[middle].name, name);
        if (!order)
            return &manifest->tensors[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
