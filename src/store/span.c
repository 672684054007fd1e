/* span.c - see span.h. */
#include "store/span.h"

#include <stdbool.h>
#include <string.h>

/* The row that byte `at` is in, or is behind; `at` is not before the span. */
static uint64_t row_at(const struct weir_span *s, uint64_t at)
{
    if (s->rows <= 1)
        return 0;
    uint64_t row = (at - s->off) / s->off_step;
    return row < s->rows ? row : s->rows - 1;
}

/* What the span wants at or behind `at`, up to the end of a row. */
static bool find_in(const struct weir_span *s, uint64_t at, struct weir_range *out)
{
    if (weir_span_end(s) <= at || !weir_span_bytes(s))
        return false;
    if (at < s->off)
        at = s->off;
    uint64_t row = row_at(s, at), begin = s->off + row * s->off_step;
    if (at >= begin + s->size) {
        begin += s->off_step;
        at = begin;
    }
    *out = (struct weir_range){at, begin + s->size};
    return true;
}

const struct weir_span *weir_spans_find(const struct weir_span **from, const struct weir_span *end,
                                        uint64_t at, struct weir_range *out)
{
    const struct weir_span *found = NULL;
    while (*from < end && weir_span_end(*from) <= at)
        ++*from;
    for (const struct weir_span *s = *from; s < end; s++) {
        struct weir_range range;
        if (found && (s->off >= out->begin || out->begin == at))
            break;
        if (find_in(s, at, &range) && (!found || range.begin < out->begin)) {
            *out = range;
            found = s;
        }
    }
    return found;
}

char *weir_span_place(const struct weir_span *s, uint64_t at)
{
    uint64_t row = row_at(s, at);
    return s->to + row * s->to_step + (at - (s->off + row * s->off_step));
}

static uint64_t copy_rows(const struct weir_span *s, const char *data,
                          const struct weir_range *range)
{
    uint64_t bytes = 0;
    for (uint64_t row = range->begin > s->off ? row_at(s, range->begin) : 0; row < s->rows; row++) {
        uint64_t begin = s->off + row * s->off_step, end = begin + s->size;
        if (begin >= range->end)
            break;
        uint64_t from = begin > range->begin ? begin : range->begin;
        end = end < range->end ? end : range->end;
        if (from >= end)
            continue;
        bytes += end - from;
        if (!s->to)
            continue;
        char *to = s->to + row * s->to_step + (from - begin);
        if (to != data + (from - range->begin))
            memcpy(to, data + (from - range->begin), end - from);
    }
    return bytes;
}

uint64_t weir_spans_copy(const struct weir_span *from, const struct weir_span *end,
                         const char *data, const struct weir_range *range)
{
    uint64_t bytes = 0;
    for (; from < end && from->off < range->end; from++)
        bytes += copy_rows(from, data, range);
    return bytes;
}
