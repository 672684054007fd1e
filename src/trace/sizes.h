/* sizes.h - many sizes in little room: counts and bytes by orders of magnitude. */
#ifndef WEIR_TRACE_SIZES_H
#define WEIR_TRACE_SIZES_H

#include <stdint.h>

/* Bin i has those of 2^(i-1) to 2^i - 1 bytes; bin 0 has what is empty. */
enum { WEIR_SIZES_BINS = 65 };
struct weir_sizes {
    uint64_t count[WEIR_SIZES_BINS], bytes[WEIR_SIZES_BINS];
};
void weir_sizes_add(struct weir_sizes *sizes, uint64_t bytes);
/* The smallest size in a bin. */
uint64_t weir_sizes_from(unsigned bin);
/* The size that half of the bytes came in at most; 0 if there are none. */
uint64_t weir_sizes_typical(const struct weir_sizes *sizes);

#endif
