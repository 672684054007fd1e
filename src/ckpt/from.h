/* from.h - where the bytes of a foreign tensor are, and how they are brought into order.
 *
 * A tensor consists of boxes, each somewhere in a file with strides of its own: a view of a larger
 * storage is one box that is not contiguous, a sharded tensor is one box a shard. They are read row
 * by row of the whole, in runs as long as both sides are contiguous. Short runs are read from
 * windows that are kept, so that a transposed matrix does not need a system call for each element.
 */
#ifndef WEIR_CKPT_FROM_H
#define WEIR_CKPT_FROM_H

#include <stdbool.h>

#include "util/arena.h"
#include "ckpt/source.h"

struct weir_box {
    struct weir_source_file *file;
    uint64_t begin; /* where its first element is in the file */
    const uint64_t *offset, *shape;
    const uint64_t *stride; /* in elements */
};

struct weir_from {
    const char *dtype; /* as safetensors names it */
    uint32_t ndim;
    const uint64_t *shape;
    uint64_t bytes;
    uint32_t element_bytes;
    const struct weir_box *boxes;
    size_t count;
    bool flat; /* one box, without gaps: boxes[0].begin is all there is to know */
};

/* Row-major strides of a shape; in the arena. NULL: no memory. */
const uint64_t *weir_from_strides(struct weir_arena **arena, const uint64_t *shape, uint32_t ndim);
/* One box that is the whole, with these strides (NULL: none but row-major), in `span`, beginning
 * at element `at`. -EBADMSG if it does not fit in there; -ENOTSUP if the dtype has no name. */
int weir_from_make(struct weir_from *out, struct weir_arena **arena, const char *dtype,
                   const uint64_t *shape, const uint64_t *stride, uint32_t ndim,
                   const struct weir_extent *span, uint64_t at);

/* The windows. Zeroed at first. */
struct weir_windows {
    struct weir_window *list;
    size_t hint; /* the box that was used last */
};
/* Bytes begin to begin + size of the tensor, row-major. */
int weir_from_read(const struct weir_from *from, struct weir_windows *windows, uint64_t begin,
                   void *buf, size_t size);
void weir_windows_free(struct weir_windows *windows);

#endif
