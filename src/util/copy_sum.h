/* copy_sum.h - a copy and a sum in one pass: while a copy waits for memory, the processor can sum
 * what has come. */
#ifndef WEIR_UTIL_COPY_SUM_H
#define WEIR_UTIL_COPY_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "util/hash.h"

/* weir_sum() of the bytes, of which `count`, from `begin` on, go to `to` as weir_copy_around() does
 * it. */
void weir_copy_sum(uint8_t sum[WEIR_SUM_BYTES], const void *data, size_t size, size_t begin,
                   size_t count, void *to);

#endif
