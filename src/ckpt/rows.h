/* rows.h - the rows of a manifest's tables (manifest.h): written, read and checked. For manifest.c.
 */
#ifndef WEIR_CKPT_ROWS_H
#define WEIR_CKPT_ROWS_H

#include "ckpt/manifest.h"

/* Memory that only grows: what a manifest points to. */
struct weir_arena;
void *weir_arena_take(struct weir_arena **arena, size_t size);
void weir_arena_free(struct weir_arena *arena);

/* What a row says, before anything is copied; points into the row. */
struct weir_tensor_row {
    const char *dtype;
    uint32_t ndim, pieces;
    const uint8_t *shape, *list;
    bool has_parts; /* each piece says whose it is */
};
int weir_tensor_row_read(struct weir_tensor_row *out, const uint8_t *value, size_t size);
const uint64_t *weir_dims_take(struct weir_arena **arena, const uint8_t *from, uint32_t ndim);
/* How many pieces of this tensor fit into one row. */
size_t weir_tensor_row_pieces_max(const struct weir_manifest_tensor *tensor);
/* Fills out, which has room for row->pieces. part: whose they are, unless they say so themselves,
 * who are then below `part`. */
int weir_tensor_row_pieces(struct weir_arena **arena, const struct weir_tensor_row *row,
                           const uint64_t *whole, uint32_t part, struct weir_piece *out);

#endif
