/* manifest.h - which tensors a checkpoint has, and where each piece of them is: a table (table.h)
 * written by each rank, "manifest-00001" …, merged by whoever loads. Who commits a checkpoint of
 * several ranks writes the merged one, "manifest", for those who load it later: it spares each of
 * them all the others. It is an index, and made from what the log names: its first row, with a key
 * of one zero, says from which root. If it is of another one, damaged or not there, the ranks' own
 * tables are read.
 *
 * The other rows have the name of a tensor as their key. Their value (little-endian), version 1:
 *
 *    0  2  version, 1; 2 in the merged table
 *    2  1  number of dimensions n
 *    3  1  length d of the dtype's name
 *    4  4  number of pieces
 *    8     dtype ("BF16"), zeros up to a multiple of 8
 *          shape of the whole tensor: n x u64
 *          pieces: in version 2: u64 the rank; u64 where it begins in the rank's file, u64 its
 *          bytes, n x u64 where it begins in the tensor, n x u64 its shape
 *
 * A tensor with too many pieces for one row of the merged table goes on in further rows: a zero and
 * a number (32 bits, big-endian) follow its name.
 */
#ifndef WEIR_CKPT_MANIFEST_H
#define WEIR_CKPT_MANIFEST_H

#include "store/view.h"

enum { WEIR_DIMS_MAX = 64 };

struct weir_piece {
    uint32_t part;         /* whose file it is in */
    uint64_t begin, bytes; /* within that file */
    const uint64_t *offset, *shape;
};

struct weir_manifest_tensor {
    const char *name;
    const char *dtype;
    uint32_t ndim;
    const uint64_t *shape;
    const struct weir_piece *pieces;
    size_t count;
    bool has_parts; /* its rows say of each piece whose it is */
    /* Of a loaded one: the pieces are sorted by where they begin in dimension `along`, and none
     * is longer there than `reach`. */
    uint32_t along;
    uint64_t reach;
};

/* ---- writing ---- */

/* The value of a row, owned by the caller; all pieces are of one tensor. */
int weir_manifest_encode(const struct weir_manifest_tensor *tensor, uint8_t **out, size_t *size);

/* ---- reading ---- */

struct weir_manifest;
/* From the merged table, or else from those of all parts. -EBADMSG where they do not agree, or
 * where the pieces of a tensor do not make up the whole. */
int weir_manifest_load(struct weir_manifest **out, struct weir_view *view);
/* The same, from those of all parts. */
int weir_manifest_merge(struct weir_manifest **out, struct weir_view *view);
/* Writes the merged table of what was loaded from there. */
int weir_manifest_put(const struct weir_manifest *manifest, struct weir_view *view);
void weir_manifest_free(struct weir_manifest *manifest);
size_t weir_manifest_count(const struct weir_manifest *manifest);
/* Sorted by name; borrowed. */
const struct weir_manifest_tensor *weir_manifest_at(const struct weir_manifest *manifest, size_t i);
/* The first piece that may have something of [begin, …) along t->along; t->count: none has. */
size_t weir_manifest_seek(const struct weir_manifest_tensor *t, uint64_t begin);
/* NULL if there is none. */
const struct weir_manifest_tensor *weir_manifest_find(const struct weir_manifest *manifest,
                                                      const char *name);

#endif
