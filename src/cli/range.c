/* range.c - see range.h. */
#include "cli/range.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "util/err.h"

/* Digits at *text, or none: then *out stays. */
static int number(uint64_t *out, const char **text)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return 0;
    errno = 0;
    uint64_t value = strtoull(*text, &end, 10);
    if (errno)
        return -EINVAL;
    *out = value;
    *text = end;
    return 0;
}

int range_parse(struct range *out, const char *text)
{
    struct range range = {.last = UINT64_MAX};
    const char *at = text;
    bool tail = *at == '-';
    int code = number(&range.first, &at);
    if (at == text && !tail)
        code = -EINVAL;
    if (!code && *at++ != '-')
        code = -EINVAL;
    if (!code)
        code = number(tail ? &range.tail : &range.last, &at);
    if (code || *at || (tail && !range.tail) || range.first > range.last)
        return weir_fail(EINVAL, "'%s' is not a byte range (try 0-99, 100- or -100)", text);
    *out = range;
    return 0;
}

int range_resolve(const struct range *range, uint64_t size, uint64_t *begin, uint64_t *end)
{
    uint64_t first = range->first, stop = size;
    if (range->tail)
        first = range->tail < size ? size - range->tail : 0;
    else if (range->last < size)
        stop = range->last + 1;
    if (first >= size)
        return weir_fail(ERANGE, "it has %" PRIu64 " bytes: none is in the range", size);
    *begin = first;
    *end = stop;
    return 0;
}
