/* text.c - see text.h. */
#include "trace/text.h"

#include <string.h>

bool weir_span_is(struct weir_span span, const char *text)
{
    size_t size = strlen(text);
    return weir_span_size(span) == size && !memcmp(span.at, text, size);
}

bool weir_span_has(struct weir_span span, const char *text)
{
    return memmem(span.at, weir_span_size(span), text, strlen(text)) != NULL;
}

bool weir_span_skip(struct weir_span *span, const char *text)
{
    size_t size = strlen(text);
    if (weir_span_size(*span) < size || memcmp(span->at, text, size))
        return false;
    span->at += size;
    return true;
}

void weir_span_blanks(struct weir_span *span)
{
    while (span->at < span->end && (*span->at == ' ' || *span->at == '\t'))
        span->at++;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool weir_span_uint(struct weir_span *span, uint64_t *out)
{
    uint64_t value = 0;
    const char *at = span->at;
    for (; at < span->end && is_digit(*at); at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    if (at == span->at)
        return false;
    span->at = at;
    *out = value;
    return true;
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool weir_span_int(struct weir_span span, int64_t *out)
{
    uint64_t value = 0;
    if (weir_span_skip(&span, "0x")) {
        const char *begin = span.at;
        for (; span.at < span.end && hex_digit(*span.at) >= 0; span.at++) {
            if (value >> 60)
                return false;
            value = value << 4 | (unsigned)hex_digit(*span.at);
        }
        *out = (int64_t)value;
        return span.at > begin;
    }
    bool minus = weir_span_skip(&span, "-");
    if (!weir_span_uint(&span, &value) || value > INT64_MAX)
        return false;
    *out = minus ? -(int64_t)value : (int64_t)value;
    return true;
}

bool weir_span_seconds(struct weir_span *span, uint64_t *ns)
{
    struct weir_span at = *span;
    uint64_t whole, fraction = 0, unit = 1000000000;
    if (!weir_span_uint(&at, &whole) || whole > UINT64_MAX / 2 / 1000000000)
        return false;
    if (at.at < at.end && *at.at == '.')
        for (at.at++; at.at < at.end && is_digit(*at.at); at.at++) {
            unit /= 10;
            fraction += unit * (uint64_t)(*at.at - '0');
        }
    *ns = whole * 1000000000 + fraction;
    *span = at;
    return true;
}

/* ---- nesting ---- */

/* A quote ends at the next one that is not escaped. */
static const char *after_quote(const char *at, const char *end)
{
    for (at++; at < end; at++)
        if (*at == '\\' && at + 1 < end)
            at++;
        else if (*at == '"')
            return at + 1;
    return end;
}

/* The <path> of -y stands right behind a number or AT_FDCWD, and has no bare '<' or '>' in it. */
static bool is_annotation(const char *begin, const char *at, const char *end)
{
    return at > begin && (is_digit(at[-1]) || at[-1] == 'D') && at + 1 < end && at[1] != '<' &&
           !is_digit(at[1]) && at[1] != ' ' && memchr(at, '>', (size_t)(end - at));
}

struct weir_span weir_span_until(struct weir_span *span, const char *stop)
{
    const char *begin = span->at, *at = begin, *end = span->end;
    unsigned depth = 0;
    while (at < end) {
        char c = *at;
        if (!depth && c && strchr(stop, c))
            break;
        if (c == '"')
            at = after_quote(at, end);
        else if (c == '<' && is_annotation(begin, at, end))
            at = (const char *)memchr(at, '>', (size_t)(end - at)) + 1;
        else {
            if (c == '(' || c == '[' || c == '{')
                depth++;
            else if ((c == ')' || c == ']' || c == '}') && depth)
                depth--;
            at++;
        }
    }
    span->at = at;
    return (struct weir_span){begin, at};
}

bool weir_span_argument(struct weir_span *args, struct weir_span *out)
{
    weir_span_blanks(args);
    if (args->at >= args->end)
        return false;
    *out = weir_span_until(args, ",");
    if (args->at < args->end)
        args->at++;
    while (out->end > out->at && out->end[-1] == ' ')
        out->end--;
    return true;
}

/* ---- quoted texts ---- */

static int octal(const char **at, const char *end)
{
    int value = 0;
    for (int i = 0; i < 3 && *at < end && **at >= '0' && **at <= '7'; i++)
        value = value * 8 + (*(*at)++ - '0');
    return value & 255;
}

/* One character after a backslash, as C has them. */
static char unescape(const char **at, const char *end)
{
    static const char letters[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
    char c = **at;
    const char *found = c ? strchr(letters, c) : NULL;
    if (c >= '0' && c <= '7')
        return (char)octal(at, end);
    ++*at;
    if (found)
        return values[found - letters];
    if (c != 'x')
        return c;
    int value = 0;
    for (int i = 0; i < 2 && *at < end && hex_digit(**at) >= 0; i++)
        value = value * 16 + hex_digit(*(*at)++);
    return (char)value;
}

/* Up to close, which is not part of it; false if it does not come. */
static bool resolve(const char **from, const char *end, char close, char *out, size_t size)
{
    size_t used = 0;
    const char *at = *from;
    while (at < end && *at != close) {
        char c = *at++;
        if (c == '\\' && at < end)
            c = unescape(&at, end);
        if (used + 1 < size)
            out[used++] = c;
    }
    out[used] = 0;
    *from = at;
    return at < end;
}

int weir_span_quoted(struct weir_span arg, char *out, size_t size)
{
    out[0] = 0;
    if (!weir_span_skip(&arg, "\"") || !resolve(&arg.at, arg.end, '"', out, size))
        return -1;
    return (int)strlen(out);
}

bool weir_span_fd(struct weir_span arg, int64_t *fd, char *out, size_t size)
{
    uint64_t number;
    out[0] = 0;
    if (weir_span_skip(&arg, "AT_FDCWD"))
        *fd = WEIR_TRACE_CWD;
    else if (weir_span_uint(&arg, &number) && number <= INT32_MAX)
        *fd = (int64_t)number;
    else
        return false;
    if (weir_span_skip(&arg, "<") && (!resolve(&arg.at, arg.end, '>', out, size) || out[0] != '/'))
        out[0] = 0;
    return true;
}

bool weir_span_member(struct weir_span arg, const char *name, struct weir_span *out)
{
    size_t size = strlen(name);
    for (const char *at = arg.at; at < arg.end;) {
        at = memmem(at, (size_t)(arg.end - at), name, size);
        if (!at || at + size >= arg.end)
            return false;
        if (at[size] == '=' && (at == arg.at || strchr("{ ,", at[-1]))) {
            struct weir_span rest = {at + size + 1, arg.end};
            *out = weir_span_until(&rest, ",}");
            return true;
        }
        at += size;
    }
    return false;
}
