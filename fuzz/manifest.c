/* Rows of a checkpoint's manifest: the pieces of one that is read lie within their tensor, and
 * encoded again it is the same.
 */
#include "ckpt/rows.h"
#include "target.h"

/* Reads a row as weir_merge_tables() does; false if it is refused. */
static bool row_read(struct weir_manifest_tensor *out, struct weir_arena **arena,
                     const uint8_t *bytes, size_t size)
{
    struct weir_tensor_row row;
    if (weir_tensor_row_read(&row, bytes, size))
        return false;
    const uint64_t *shape = weir_dims_take(arena, row.shape, row.ndim);
    struct weir_piece *pieces = weir_arena_take(arena, row.pieces * sizeof *pieces);
    if (!shape || !pieces ||
        weir_tensor_row_pieces(arena, &row, shape, row.has_parts ? UINT32_MAX : 0, pieces))
        return false;
    *out = (struct weir_manifest_tensor){.name = "",
                                         .dtype = row.dtype,
                                         .ndim = row.ndim,
                                         .shape = shape,
                                         .pieces = pieces,
                                         .count = row.pieces,
                                         .has_parts = row.has_parts};
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_manifest_tensor tensor;
    struct weir_arena *arena = NULL;
    uint8_t *bytes = exact_copy(data, size), *again;
    size_t again_size;
    if (row_read(&tensor, &arena, bytes, size)) {
        for (size_t i = 0; i < tensor.count; i++)
            for (uint32_t d = 0; d < tensor.ndim; d++)
                PROMISE(tensor.pieces[i].offset[d] + tensor.pieces[i].shape[d] <= tensor.shape[d]);
        PROMISE(weir_manifest_encode(&tensor, &again, &again_size) == 0 && again_size == size);
        PROMISE(!memcmp(again, bytes, 8));
        free(again);
    }
    weir_arena_free(arena);
    free(bytes);
    return 0;
}
