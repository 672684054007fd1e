/* text.h - the small words of strace's language: numbers, quoted strings with escapes, descriptors
 * with the path behind them, arguments between commas. Pure functions over a span of bytes that
 * need not be terminated; any bytes may be in it.
 */
#ifndef WEIR_TRACE_TEXT_H
#define WEIR_TRACE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_span {
    const char *at, *end;
};

static inline size_t weir_span_size(struct weir_span span)
{
    return (size_t)(span.end - span.at);
}
bool weir_span_is(struct weir_span span, const char *text);
bool weir_span_has(struct weir_span span, const char *text);
/* Does it begin with text? Then it is stepped over. */
bool weir_span_skip(struct weir_span *span, const char *text);
void weir_span_blanks(struct weir_span *span);

/* Steps over a decimal number; false (and nothing stepped over) if there is none, or too large. */
bool weir_span_uint(struct weir_span *span, uint64_t *out);
/* Decimal or 0x…, with a sign; a whole argument or the beginning of one. */
bool weir_span_int(struct weir_span span, int64_t *out);
/* Steps over "12.000345" as nanoseconds; a fraction is optional. */
bool weir_span_seconds(struct weir_span *span, uint64_t *ns);

/* Steps to the first of stop's characters that is outside of quotes, brackets and the <path> behind
 * a descriptor; what was stepped over is the answer. At the end of the span if there is none. */
struct weir_span weir_span_until(struct weir_span *span, const char *stop);
/* The next argument of a call, without the blanks around it; false at the end. */
bool weir_span_argument(struct weir_span *args, struct weir_span *out);

/* "quoted\t\"text\"" resolved into out, cut to size - 1 bytes and terminated (a NUL within ends
 * it): its length, or -1 if that is no quoted text. */
int weir_span_quoted(struct weir_span arg, char *out, size_t size);
/* 3, 3</data/a>, AT_FDCWD, AT_FDCWD</tmp>: the number (AT_FDCWD is WEIR_TRACE_CWD), and the path,
 * escapes resolved, in out ("" if it is not told, or no path). */
enum { WEIR_TRACE_CWD = -100 };
bool weir_span_fd(struct weir_span arg, int64_t *fd, char *out, size_t size);
/* The value behind "name=" within a struct, up to its comma; false if there is none. */
bool weir_span_member(struct weir_span arg, const char *name, struct weir_span *out);

#endif
