/* stream.c - see stream.h. */
#include "ckpt/stream.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/safetensors.h"
#include "util/err.h"
#include "util/sys.h"

enum {
    WINDOW_BYTES = 16 << 20,
    CUT_BYTES_MIN = 1 << 20, /* what is left of a window is not worth a cut if it is less */
    SPANS_MAX = 16384,
    BOXES_MAX = 64, /* spans of a window that are not whole tensors */
};

struct box {
    uint64_t offset[WEIR_DIMS_MAX], shape[WEIR_DIMS_MAX];
};

struct weir_stream {
    weir_restore *restore;
    const size_t *tensors;
    size_t count;
    size_t next;      /* in the list */
    uint64_t element; /* of that one, in row-major order */
    uint8_t *window;
    size_t used, spans, boxes;
    struct weir_stretch span[SPANS_MAX];
    weir_slice slice[SPANS_MAX];
    struct box box[BOXES_MAX];
};

int weir_stream_open(struct weir_stream **out, weir_restore *restore, const size_t *tensors,
                     size_t count)
{
    struct weir_stream *s = weir_alloc(sizeof *s);
    if (!s)
        return weir_fail_memory();
    s->restore = restore;
    s->tensors = tensors;
    s->count = count;
    s->window = weir_alloc(WINDOW_BYTES);
    if (!s->window) {
        free(s);
        return weir_fail_memory();
    }
    *out = s;
    return 0;
}

void weir_stream_close(struct weir_stream *s)
{
    if (!s)
        return;
    free(s->window);
    free(s);
}

static void add_span(struct weir_stream *s, const weir_slice *slice, size_t size, bool last)
{
    s->slice[s->spans] = *slice;
    s->span[s->spans++] = (struct weir_stretch){s->next, size, s->window + s->used, last};
    s->used += size;
    if (last) {
        s->next++;
        s->element = 0;
    }
}

/* The largest box that begins at s->element, is without gaps in the tensor, and has at most
 * `room` bytes: some rows of the outermost dimension for which that holds. Returns its elements. */
static uint64_t cut(const struct weir_stream *s, const weir_tensor_info *t, uint64_t room,
                    struct box *box)
{
    uint64_t bits = weir_st_dtype_bits(t->dtype), inner = 1, rows = 0, rest = s->element;
    uint32_t at = t->ndim;
    for (uint32_t d = t->ndim; d-- > 0;) {
        box->offset[d] = rest % t->shape[d];
        rest /= t->shape[d];
    }
    for (uint32_t d = t->ndim; d-- > 0 && inner * bits <= 8 * room;) {
        rows = 8 * room / bits / inner;
        if (rows > t->shape[d] - box->offset[d])
            rows = t->shape[d] - box->offset[d];
        else if (bits < 8 && rows >= 8)
            rows -= rows % 8; /* whole bytes */
        at = d;
        if (box->offset[d]) /* it does not begin at the beginning of what is further out */
            break;
        inner *= t->shape[d];
    }
    uint64_t elements = rows;
    for (uint32_t d = 0; d < t->ndim; d++) {
        box->shape[d] = d < at ? 1 : d == at ? rows : t->shape[d];
        if (d > at)
            elements *= t->shape[d];
    }
    return elements;
}

/* Adds what there is room for of the next tensor; false: the window is full. */
static bool add_next(struct weir_stream *s)
{
    weir_tensor_info t;
    size_t room = WINDOW_BYTES - s->used;
    weir_slice slice = {.tensor = s->tensors[s->next], .data = s->window + s->used};
    weir_restore_tensor(s->restore, slice.tensor, &t);
    if (s->spans == SPANS_MAX)
        return false;
    if (!s->element && t.size_bytes <= room) {
        add_span(s, &slice, (size_t)t.size_bytes, true);
        return true;
    }
    if (s->boxes == BOXES_MAX || (s->used && room < CUT_BYTES_MIN))
        return false;
    struct box *box = &s->box[s->boxes++];
    uint64_t bits = weir_st_dtype_bits(t.dtype), elements = cut(s, &t, room, box);
    slice.offset = box->offset;
    slice.shape = box->shape;
    s->element += elements;
    bool last = s->element == 8 * t.size_bytes / bits;
    add_span(s, &slice, (size_t)(elements * bits / 8), last);
    return true;
}

int weir_stream_next(struct weir_stream *s, const struct weir_stretch **spans, size_t *count,
                     weir_progress_fn progress, void *arg)
{
    s->used = s->spans = s->boxes = 0;
    while (s->next < s->count && add_next(s))
        ;
    if (!s->spans)
        return 0;
    int code = weir_restore_read(s->restore, s->slice, s->spans, progress, arg);
    *spans = s->span;
    *count = s->spans;
    return code ? code : 1;
}
