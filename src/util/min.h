/* min.h - the smaller of two numbers. */
#ifndef WEIR_UTIL_MIN_H
#define WEIR_UTIL_MIN_H

#include <stdint.h>

static inline uint64_t weir_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
