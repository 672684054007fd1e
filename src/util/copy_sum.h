/* copy_sum.h - a copy and a sum in one pass: while a copy waits for memory, the processor can sum
 * what has come. */
#ifndef WEIR_UTIL_COPY_SUM_H
#define WEIR_UTIL_COPY_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/hash.h"

struct weir_copy {
    const void *data;
    size_t size;         /* what is summed, */
    size_t begin, count; /* what of it is copied, */
    void *to;
    bool is_around;   /* and how: as weir_copy_around() does it, or to stay in the cache */
    const void *next; /* what is copied after it, or NULL: fetched in time */
};

/* weir_sum() of all bytes, while some of them are copied. */
void weir_copy_sum(uint8_t sum[WEIR_SUM_BYTES], const struct weir_copy *copy);

#endif
