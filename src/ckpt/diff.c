/* diff.c - what changed from one checkpoint to another, tensor by tensor. Those that both have with
 * the same dtype and shape are read side by side (stream.h), whatever pieces each is in.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/number.h"
#include "ckpt/safetensors.h"
#include "ckpt/stream.h"
#include "util/err.h"
#include "util/sys.h"

enum { STRIDE_BYTES = 4096 }; /* compared at once; a multiple of every element */

struct compare {
    weir_restore *a, *b;
    size_t *in_a, *in_b; /* the tensors that can be compared, by number */
    size_t count;
    int (*fn)(void *arg, const weir_tensor_diff *diff);
    weir_progress_fn progress;
    void *arg;
    weir_tensor_diff diff; /* of the tensor that is being compared */
    bool begun;
};

static int tell(struct compare *c, const weir_tensor_diff *diff)
{
    return c->fn(c->arg, diff) ? weir_fail(ECANCELED, "comparing '%s' and '%s' was stopped",
                                           c->a->info.prefix, c->b->info.prefix)
                               : 0;
}

/* ---- which ---- */

static bool is_alike(const weir_tensor_info *a, const weir_tensor_info *b)
{
    return !strcmp(a->dtype, b->dtype) && a->ndim == b->ndim &&
           (!a->ndim || !memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape));
}

/* Both lists are sorted: tells of what only one of them has, and notes what both have alike. */
static int match(struct compare *c)
{
    size_t i = 0, k = 0;
    int code = 0;
    while (!code && (i < c->a->info.tensors || k < c->b->info.tensors)) {
        weir_tensor_diff diff = {0};
        bool has_a = i < c->a->info.tensors, has_b = k < c->b->info.tensors;
        if (has_a)
            weir_restore_tensor(c->a, i, &diff.a);
        if (has_b)
            weir_restore_tensor(c->b, k, &diff.b);
        int order = !has_a ? 1 : !has_b ? -1 : strcmp(diff.a.name, diff.b.name);
        diff.name = order <= 0 ? diff.a.name : diff.b.name;
        if (order < 0)
            diff.b = (weir_tensor_info){0};
        else if (order > 0)
            diff.a = (weir_tensor_info){0};
        i += order <= 0;
        k += order >= 0;
        if (!order && is_alike(&diff.a, &diff.b)) {
            c->in_a[c->count] = i - 1;
            c->in_b[c->count++] = k - 1;
            continue;
        }
        diff.change = order < 0   ? WEIR_CHANGE_REMOVED
                      : order > 0 ? WEIR_CHANGE_ADDED
                                  : WEIR_CHANGE_TYPE;
        code = tell(c, &diff);
    }
    return code;
}

/* ---- how much ---- */

static void compare_elements(weir_tensor_diff *diff, weir_number_fn number, const uint8_t *a,
                             const uint8_t *b, size_t size, size_t width)
{
    for (size_t at = 0; at < size; at += width) {
        if (!memcmp(a + at, b + at, width))
            continue;
        diff->differing++;
        if (!number)
            continue;
        double by = fabs(number(a + at) - number(b + at));
        if (!isfinite(by))
            diff->not_finite++;
        else if (by > diff->max_abs)
            diff->max_abs = by;
    }
}

static void compare_bytes(weir_tensor_diff *diff, const uint8_t *a, const uint8_t *b, size_t size)
{
    unsigned bits = weir_st_dtype_bits(diff->a.dtype);
    size_t width = bits < 8 ? 1 : bits / 8;
    weir_number_fn number = weir_number_of(diff->a.dtype);
    diff->elements += size / width;
    for (size_t at = 0, n; at < size; at += n) {
        n = size - at < STRIDE_BYTES ? size - at : STRIDE_BYTES;
        if (memcmp(a + at, b + at, n))
            compare_elements(diff, number, a + at, b + at, n, width);
    }
}

static int compare_spans(struct compare *c, const struct weir_stretch *a,
                         const struct weir_stretch *b)
{
    if (!c->begun) {
        c->diff = (weir_tensor_diff){0};
        weir_restore_tensor(c->a, c->in_a[a->at], &c->diff.a);
        weir_restore_tensor(c->b, c->in_b[b->at], &c->diff.b);
        c->diff.name = c->diff.a.name;
        c->diff.is_number = weir_number_of(c->diff.a.dtype) != NULL;
    }
    compare_bytes(&c->diff, a->data, b->data, a->size);
    c->begun = !a->last;
    if (!a->last)
        return 0;
    c->diff.change = c->diff.differing ? WEIR_CHANGE_BYTES : WEIR_CHANGE_NONE;
    return tell(c, &c->diff);
}

static int compare_all(struct compare *c)
{
    struct weir_stream *a, *b = NULL;
    const struct weir_stretch *spans_a, *spans_b;
    size_t count_a, count_b;
    int code = weir_stream_open(&a, c->a, c->in_a, c->count);
    if (code)
        return code;
    code = weir_stream_open(&b, c->b, c->in_b, c->count);
    while (!code && (code = weir_stream_next(a, &spans_a, &count_a, c->progress, c->arg)) == 1) {
        code = weir_stream_next(b, &spans_b, &count_b, c->progress, c->arg);
        if (code < 0)
            break;
        code = 0;
        for (size_t i = 0; !code && i < count_a; i++) /* they are cut alike */
            code = compare_spans(c, &spans_a[i], &spans_b[i]);
    }
    weir_stream_close(a);
    weir_stream_close(b);
    return code;
}

int weir_restore_diff(weir_restore *a, weir_restore *b,
                      int (*fn)(void *arg, const weir_tensor_diff *diff), weir_progress_fn progress,
                      void *arg)
{
    struct compare c = {.a = a, .b = b, .fn = fn, .progress = progress, .arg = arg};
    c.in_a = weir_alloc((a->info.tensors + 1) * sizeof *c.in_a);
    c.in_b = weir_alloc((a->info.tensors + 1) * sizeof *c.in_b);
    int code = c.in_a && c.in_b ? match(&c) : weir_fail_memory();
    if (!code)
        code = compare_all(&c);
    free(c.in_a);
    free(c.in_b);
    return code;
}
