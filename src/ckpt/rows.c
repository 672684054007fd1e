/* rows.c - see rows.h. */
#include "ckpt/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/safetensors.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

enum { HEAD_BYTES = 8, VERSION = 1, VERSION_PARTS = 2, DTYPE_BYTES_MAX = 16 };

/* How much a piece takes in a row. */
static size_t piece_bytes(bool has_parts, uint32_t ndim)
{
    return (has_parts ? 24 : 16) + 16 * (size_t)ndim;
}

size_t weir_tensor_row_pieces_max(const struct weir_manifest_tensor *t)
{
    return (WEIR_TABLE_VALUE_BYTES_MAX - HEAD_BYTES - DTYPE_BYTES_MAX - 8 * (size_t)t->ndim) /
           piece_bytes(t->has_parts, t->ndim);
}

static size_t round_up8(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

uint8_t *weir_dims_put(uint8_t *at, const uint64_t *dims, uint32_t ndim)
{
    for (uint32_t i = 0; i < ndim; i++)
        weir_store_le(at + 8 * i, dims ? dims[i] : 0, 8);
    return at + 8 * ndim;
}

int weir_manifest_encode(const struct weir_manifest_tensor *t, uint8_t **out, size_t *size)
{
    size_t dtype = strlen(t->dtype), dims = 8 * (size_t)t->ndim;
    if (t->ndim > WEIR_DIMS_MAX)
        return weir_fail(EINVAL, "tensor '%.200s' has %u dimensions, the limit is %d", t->name,
                         t->ndim, WEIR_DIMS_MAX);
    *size = HEAD_BYTES + round_up8(dtype) + dims + t->count * piece_bytes(t->has_parts, t->ndim);
    if (*size > WEIR_TABLE_VALUE_BYTES_MAX)
        return weir_fail(E2BIG, "tensor '%.200s' has too many pieces (%zu) in one rank", t->name,
                         t->count);
    uint8_t *value = weir_alloc(*size), *at = value;
    if (!value)
        return weir_fail_memory();
    weir_store_le(at, t->has_parts ? VERSION_PARTS : VERSION, 2);
    at[2] = (uint8_t)t->ndim;
    at[3] = (uint8_t)dtype;
    weir_store_le(at + 4, t->count, 4);
    memcpy(at + HEAD_BYTES, t->dtype, dtype);
    at = weir_dims_put(at + HEAD_BYTES + round_up8(dtype), t->shape, t->ndim);
    for (size_t i = 0; i < t->count; i++) {
        if (t->has_parts) {
            weir_store_le(at, t->pieces[i].part, 8);
            at += 8;
        }
        weir_store_le(at, t->pieces[i].begin, 8);
        weir_store_le(at + 8, t->pieces[i].bytes, 8);
        at = weir_dims_put(at + 16, t->pieces[i].offset, t->ndim);
        at = weir_dims_put(at, t->pieces[i].shape, t->ndim);
    }
    *out = value;
    return 0;
}

/* ---- rows ---- */

static int damaged(const char *why)
{
    return weir_fail(EBADMSG, "the manifest is damaged: %s", why);
}

int weir_tensor_row_read(struct weir_tensor_row *out, const uint8_t *value, size_t size)
{
    char dtype[DTYPE_BYTES_MAX + 1] = "";
    if (size < HEAD_BYTES)
        return damaged("a row is cut short");
    unsigned version = (unsigned)weir_load_le(value, 2);
    if (version != VERSION && version != VERSION_PARTS)
        return weir_fail(EPROTO, "the manifest was written by a newer Weir (version %u): update",
                         version);
    size_t length = value[3];
    struct weir_tensor_row row = {.ndim = value[2],
                                  .pieces = (uint32_t)weir_load_le(value + 4, 4),
                                  .has_parts = version == VERSION_PARTS};
    size_t dims = 8 * (size_t)row.ndim;
    if (row.ndim > WEIR_DIMS_MAX || length > DTYPE_BYTES_MAX || !row.pieces ||
        (uint64_t)size != HEAD_BYTES + round_up8(length) + dims +
                              row.pieces * piece_bytes(row.has_parts, row.ndim))
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

const uint64_t *weir_dims_take(struct weir_arena **arena, const uint8_t *from, uint32_t ndim)
{
    uint64_t *dims = weir_arena_take(arena, ndim ? 8 * (size_t)ndim : 8);
    for (uint32_t i = 0; dims && i < ndim; i++)
        dims[i] = weir_load_le(from + 8 * i, 8);
    return dims;
}

/* A piece lies within its tensor and is as long as its shape says. */
static int piece_check(const struct weir_tensor_row *row, const uint64_t *whole,
                       const struct weir_piece *p)
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
int weir_tensor_row_pieces(struct weir_arena **arena, const struct weir_tensor_row *row,
                           const uint64_t *whole, uint32_t part, struct weir_piece *out)
{
    const uint8_t *at = row->list;
    size_t dims = 8 * (size_t)row->ndim;
    for (uint32_t i = 0; i < row->pieces; i++, at += 16 + 2 * dims) {
        uint64_t whose = row->has_parts ? weir_load_le(at, 8) : part;
        at += row->has_parts ? 8 : 0;
        if (row->has_parts && whose >= part)
            return damaged("a piece is of no rank");
        out[i] = (struct weir_piece){(uint32_t)whose, weir_load_le(at, 8), weir_load_le(at + 8, 8),
                                     weir_dims_take(arena, at + 16, row->ndim),
                                     weir_dims_take(arena, at + 16 + dims, row->ndim)};
        if (!out[i].offset || !out[i].shape)
            return weir_fail_memory();
        int code = piece_check(row, whole, &out[i]);
        if (code)
            return code;
    }
    return 0;
}
