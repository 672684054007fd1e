/* span.h - what a scattered read asks for: bytes of an object, and where they go. Pure functions.
 *
 * A span is rows of equal size at equal distances, in the object and in memory: a column slice of a
 * matrix is one span, and plain bytes are one row. Spans are sorted by where they begin. Their rows
 * may lie between each other and may overlap in the object (the same bytes can go to several
 * places), but not in memory.
 */
#ifndef WEIR_STORE_SPAN_H
#define WEIR_STORE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_span {
    uint64_t off;      /* of the first row */
    uint64_t size;     /* of each row */
    uint64_t rows;     /* a span without rows, or with empty ones, asks for nothing */
    uint64_t off_step; /* from row to row, at least size; of no meaning with one row */
    uint64_t to_step;
    char *to;            /* NULL: the bytes are only verified */
    bool is_padded;      /* behind the last row, up to a whole page, anything may be written */
    uint32_t group, tag; /* the asker's own */
};

/* Bytes [begin, end) of an object. */
struct weir_range {
    uint64_t begin, end;
};

/* Where its last row ends. */
static inline uint64_t weir_span_end(const struct weir_span *s)
{
    return s->rows && s->size ? s->off + (s->rows - 1) * s->off_step + s->size : s->off;
}

/* How many bytes it asks for. */
static inline uint64_t weir_span_bytes(const struct weir_span *s)
{
    return s->rows * s->size;
}

/* Which of the spans [*from, end) wants the first byte at or behind `at`, and from there up to the
 * end of that row; NULL if none wants any. *from steps over spans that end at or before `at`: who
 * goes on from there looks at each span but a few times. */
const struct weir_span *weir_spans_find(const struct weir_span **from, const struct weir_span *end,
                                        uint64_t at, struct weir_range *out);
/* Where byte `at`, which is within a row, goes. */
char *weir_span_place(const struct weir_span *s, uint64_t at);
/* Hands the bytes of a range, which are at `data`, to every span of [from, end) that wants some of
 * them; returns how many were wanted. Where data is their place already, nothing is copied. */
uint64_t weir_spans_copy(const struct weir_span *from, const struct weir_span *end,
                         const char *data, const struct weir_range *range);

#endif
