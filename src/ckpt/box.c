/* box.c - see box.h. */
#include "ckpt/box.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/sys.h"

enum { HOLES_MAX = 4096 };

size_t weir_box_text(char *out, size_t room, const uint64_t *offset, const uint64_t *shape,
                     uint32_t ndim)
{
    size_t used = 0;
    if (room)
        out[0] = 0;
    for (uint32_t i = 0; i < ndim; i++)
        used += (size_t)snprintf(used < room ? out + used : NULL, used < room ? room - used : 0,
                                 "%s%" PRIu64 ":%" PRIu64 "%s", i ? "," : "[", offset[i],
                                 offset[i] + shape[i], i + 1 == ndim ? "]" : "");
    return used;
}

bool weir_box_overlap(const struct weir_piece *a, const struct weir_piece *b, uint32_t ndim)
{
    for (uint32_t i = 0; i < ndim; i++)
        if (!a->shape[i] || !b->shape[i] || a->offset[i] >= b->offset[i] + b->shape[i] ||
            b->offset[i] >= a->offset[i] + a->shape[i])
            return false;
    return true;
}

/* ---- what is left of a tensor ---- */

/* Boxes of which no piece has been taken off yet that has anything of them: each is where it
 * begins and where it ends. */
struct left {
    uint64_t *dims;
    uint32_t ndim;
    size_t count;
};

static uint64_t *begin_of(const struct left *left, size_t i)
{
    return left->dims + i * 2 * left->ndim;
}

/* Box i without a piece: at most 2 ndim boxes around it take its place. false: too many. */
static bool take_off(struct left *left, size_t i, const struct weir_piece *piece)
{
    uint32_t n = left->ndim;
    uint64_t box[2 * WEIR_DIMS_MAX];
    memcpy(box, begin_of(left, i), 2 * n * sizeof *box);
    memcpy(begin_of(left, i), begin_of(left, --left->count), 2 * n * sizeof *box);
    if (left->count + 2 * n > HOLES_MAX)
        return false;
    for (uint32_t d = 0; d < n; d++) {
        uint64_t begin = piece->offset[d], end = begin + piece->shape[d];
        if (box[d] < begin) {
            uint64_t *before = begin_of(left, left->count++);
            memcpy(before, box, 2 * n * sizeof *box);
            before[n + d] = box[d] = begin;
        }
        if (box[n + d] > end) {
            uint64_t *behind = begin_of(left, left->count++);
            memcpy(behind, box, 2 * n * sizeof *box);
            behind[d] = box[n + d] = end;
        }
    }
    return true;
}

static bool meets(const struct left *left, size_t i, const struct weir_piece *piece)
{
    const uint64_t *begin = begin_of(left, i), *end = begin + left->ndim;
    for (uint32_t d = 0; d < left->ndim; d++)
        if (begin[d] >= piece->offset[d] + piece->shape[d] || end[d] <= piece->offset[d])
            return false;
    return true;
}

bool weir_box_hole(const struct weir_manifest_tensor *t, uint64_t *offset, uint64_t *shape)
{
    struct left left = {.ndim = t->ndim, .count = 1};
    left.dims = t->ndim ? weir_alloc(HOLES_MAX * 2 * t->ndim * sizeof *left.dims) : NULL;
    if (!left.dims)
        return false;
    memcpy(begin_of(&left, 0) + t->ndim, t->shape, t->ndim * sizeof *t->shape);
    bool good = true;
    for (size_t i = 0; good && i < t->count; i++)
        for (size_t k = left.count; good && k-- > 0;)
            if (t->pieces[i].bytes && meets(&left, k, &t->pieces[i]))
                good = take_off(&left, k, &t->pieces[i]);
    good = good && left.count;
    for (uint32_t d = 0; good && d < t->ndim; d++) {
        offset[d] = begin_of(&left, 0)[d];
        shape[d] = begin_of(&left, 0)[t->ndim + d] - offset[d];
    }
    free(left.dims);
    return good;
}
