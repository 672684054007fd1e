/* range.h - a byte range as HTTP writes it: "A-B" (both included), "A-", "-N" (the last N). */
#ifndef WEIR_CLI_RANGE_H
#define WEIR_CLI_RANGE_H

#include <stdint.h>

struct range {
    uint64_t first, last; /* last UINT64_MAX: to the end */
    uint64_t tail;        /* not 0: the last so many bytes */
};

/* -EINVAL with a text. */
int range_parse(struct range *out, const char *text);
/* [*begin, *end) within an object of this size; -ERANGE if none of it is there. */
int range_resolve(const struct range *range, uint64_t size, uint64_t *begin, uint64_t *end);

#endif
