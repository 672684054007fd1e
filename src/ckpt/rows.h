/* rows.h - the rows of a manifest's tables (manifest.h): written, read and checked. For manifest.c.
 */
#ifndef WEIR_CKPT_ROWS_H
#define WEIR_CKPT_ROWS_H

#include "util/arena.h"
#include "ckpt/manifest.h"

/* What a row says, before anything is copied; points into the row. */
struct weir_tensor_row {
    const char *dtype;
    uint32_t ndim, pieces;
    const uint8_t *shape, *list;
    bool has_parts; /* each piece says whose it is */
};
int weir_tensor_row_read(struct weir_tensor_row *out, const uint8_t *value, size_t size);
/* Writes them, zeros for NULL; returns where they end. */
uint8_t *weir_dims_put(uint8_t *at, const uint64_t *dims, uint32_t ndim);
const uint64_t *weir_dims_take(struct weir_arena **arena, const uint8_t *from, uint32_t ndim);
/* How many pieces of this tensor fit into one row. */
size_t weir_tensor_row_pieces_max(const struct weir_manifest_tensor *tensor);
/* Fills out, which has room for row->pieces. part: whose they are, unless they say so themselves,
 * who are then below `part`. */
int weir_tensor_row_pieces(struct weir_arena **arena, const struct weir_tensor_row *row,
                           const uint64_t *whole, uint32_t part, struct weir_piece *out);

#endif
