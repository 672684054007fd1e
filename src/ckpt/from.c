/* from.c - see from.h. */
#include "ckpt/from.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/safetensors.h"
#include "util/err.h"
#include "util/sys.h"

enum {
    WINDOW_BYTES = 1 << 20,
    WINDOWS = 512,    /* 512 MiB at most, and only if something is not contiguous */
    RUN_DIRECT = 4096 /* longer ones are read where they are */
};

struct weir_window {
    const struct weir_source_file *file;
    uint64_t begin;
    uint8_t *bytes;
};

const uint64_t *weir_from_strides(struct weir_arena **arena, const uint64_t *shape, uint32_t ndim)
{
    uint64_t *stride = weir_arena_take(arena, 8 * (size_t)ndim + 8), next = 1;
    for (uint32_t i = ndim; stride && i-- > 0;) {
        stride[i] = next;
        next *= shape[i] ? shape[i] : 1;
    }
    return stride;
}

static bool is_flat(const uint64_t *shape, const uint64_t *stride, uint32_t ndim)
{
    uint64_t expected = 1;
    for (uint32_t i = ndim; stride && i-- > 0;) {
        if (shape[i] != 1 && stride[i] != expected)
            return false;
        expected *= shape[i];
    }
    return true;
}

/* The number of the last element, counted from the beginning of the storage. */
static bool last_element(const uint64_t *shape, const uint64_t *stride, uint32_t ndim, uint64_t at,
                         uint64_t *out)
{
    for (uint32_t i = 0; i < ndim; i++) {
        uint64_t far;
        if (__builtin_mul_overflow(shape[i] - 1, stride[i], &far) ||
            __builtin_add_overflow(at, far, &at))
            return false;
    }
    *out = at;
    return true;
}

static int outside(const struct weir_extent *span)
{
    return weir_fail(EBADMSG, "'%s': it is not within its storage of %" PRIu64 " bytes",
                     span->file->path, span->size);
}

int weir_from_make(struct weir_from *out, struct weir_arena **arena, const char *dtype,
                   const uint64_t *shape, const uint64_t *stride, uint32_t ndim,
                   const struct weir_extent *span, uint64_t at)
{
    struct weir_from from = {.dtype = weir_st_dtype_name(dtype), .ndim = ndim, .shape = shape};
    uint64_t last = 0, end;
    int code = weir_st_bytes(dtype, shape, ndim, &from.bytes);
    if (code)
        return code;
    from.element_bytes = weir_st_dtype_bits(dtype) / 8;
    from.flat = is_flat(shape, stride, ndim);
    if (!from.flat && !from.element_bytes)
        return weir_fail(ENOTSUP, "elements of %u bits that are not contiguous",
                         weir_st_dtype_bits(dtype));
    if (!stride)
        end = from.bytes; /* also where an element is less than a byte */
    else if (!from.bytes)
        end = 0;
    else if (!last_element(shape, stride, ndim, at, &last) ||
             __builtin_mul_overflow(last + 1, from.element_bytes, &end) || last == UINT64_MAX)
        return outside(span);
    if (end > span->size)
        return outside(span);
    struct weir_box *box = weir_arena_take(arena, sizeof *box);
    uint64_t *zeros = weir_arena_take(arena, 8 * (size_t)ndim + 8);
    if (!box || !zeros)
        return weir_fail_memory();
    uint64_t begin = from.bytes ? at * from.element_bytes : 0;
    *box = (struct weir_box){span->file, span->begin + begin, zeros, shape, stride};
    from.boxes = box;
    from.count = 1;
    *out = from;
    return 0;
}

/* ---- reading ---- */

/* The window that has this byte of the file, read if it is not there. */
static int window_at(struct weir_windows *windows, struct weir_source_file *file, uint64_t at,
                     const struct weir_window **out)
{
    uint64_t number = at / WINDOW_BYTES, begin = number * WINDOW_BYTES;
    if (!windows->list)
        windows->list = weir_alloc(WINDOWS * sizeof *windows->list);
    if (!windows->list)
        return weir_fail_memory();
    struct weir_window *w = &windows->list[(number + (uintptr_t)file / 64 * 31) % WINDOWS];
    *out = w;
    if (w->file == file && w->begin == begin)
        return 0;
    if (!w->bytes)
        w->bytes = weir_realloc(NULL, WINDOW_BYTES);
    if (!w->bytes)
        return weir_fail_memory();
    uint64_t left = file->size - begin;
    w->file = NULL;
    int code =
        weir_source_read(file, begin, w->bytes, left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES);
    if (code)
        return code;
    w->file = file;
    w->begin = begin;
    return 0;
}

static int read_run(struct weir_windows *windows, struct weir_source_file *file, uint64_t at,
                    char *buf, size_t size)
{
    if (size >= RUN_DIRECT)
        return weir_source_read(file, at, buf, size);
    while (size) {
        const struct weir_window *w = NULL;
        int code = window_at(windows, file, at, &w);
        if (code)
            return code;
        size_t n = WINDOW_BYTES - (size_t)(at - w->begin);
        n = n < size ? n : size;
        memcpy(buf, w->bytes + (at - w->begin), n);
        buf += n;
        at += n;
        size -= n;
    }
    return 0;
}

static bool box_has(const struct weir_from *from, const struct weir_box *box, const uint64_t *index)
{
    for (uint32_t i = 0; i < from->ndim; i++)
        if (index[i] < box->offset[i] || index[i] - box->offset[i] >= box->shape[i])
            return false;
    return true;
}

/* From the last one on: the next is mostly the one behind it. */
static const struct weir_box *box_of(const struct weir_from *from, struct weir_windows *windows,
                                     const uint64_t *index)
{
    for (size_t i = 0; i < from->count; i++) {
        size_t k = (windows->hint + i) % from->count;
        if (!box_has(from, &from->boxes[k], index))
            continue;
        windows->hint = k;
        return &from->boxes[k];
    }
    return NULL;
}

/* Which element of the box's storage this is, and how many from here on are contiguous both there
 * and in the whole. */
static uint64_t locate(const struct weir_from *from, const struct weir_box *box,
                       const uint64_t *index, uint64_t *run)
{
    uint64_t at = 0, length = 1, within = 0;
    bool open = true;
    for (uint32_t i = from->ndim; i-- > 0;) {
        uint64_t here = index[i] - box->offset[i];
        at += here * box->stride[i];
        if (!open || (box->shape[i] != 1 && box->stride[i] != length)) {
            open = false;
            continue;
        }
        within += here * length;
        length *= box->shape[i];
        open = box->shape[i] == from->shape[i];
    }
    *run = length - within;
    return at;
}

static void index_of(const struct weir_from *from, uint64_t element, uint64_t *index)
{
    for (uint32_t i = from->ndim; i-- > 0;) {
        index[i] = element % from->shape[i];
        element /= from->shape[i];
    }
}

int weir_from_read(const struct weir_from *from, struct weir_windows *windows, uint64_t begin,
                   void *buf, size_t size)
{
    uint64_t index[WEIR_ST_DIMS_MAX], run;
    if (from->flat)
        return weir_source_read(from->boxes[0].file, from->boxes[0].begin + begin, buf, size);
    for (size_t done = 0; done < size;) {
        uint64_t element = (begin + done) / from->element_bytes;
        uint64_t skip = (begin + done) % from->element_bytes; /* a buffer may end within one */
        index_of(from, element, index);
        const struct weir_box *box = box_of(from, windows, index);
        if (!box)
            return weir_fail(EBADMSG, "its pieces do not make up the whole");
        uint64_t at = locate(from, box, index, &run) * from->element_bytes + skip;
        uint64_t left = run * from->element_bytes - skip;
        size_t n = left < size - done ? (size_t)left : size - done;
        int code = read_run(windows, box->file, box->begin + at, (char *)buf + done, n);
        if (code)
            return code;
        done += n;
    }
    return 0;
}

void weir_windows_free(struct weir_windows *windows)
{
    for (size_t i = 0; windows->list && i < WINDOWS; i++)
        free(windows->list[i].bytes);
    free(windows->list);
    *windows = (struct weir_windows){0};
}
