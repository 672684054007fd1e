/* hist.h - counts over orders of magnitude. */
#ifndef WEIR_TRACE_HIST_H
#define WEIR_TRACE_HIST_H

#include <stdint.h>

/* Sizes: bin i has those of 2^(i-1) to 2^i - 1 bytes; bin 0 has what is empty. */
enum { WEIR_SIZES_BINS = 65 };
struct weir_sizes {
    uint64_t count[WEIR_SIZES_BINS], bytes[WEIR_SIZES_BINS];
};
void weir_sizes_add(struct weir_sizes *sizes, uint64_t bytes);
/* The smallest size in a bin. */
uint64_t weir_sizes_from(unsigned bin);
/* The size that half of the bytes came in at most; 0 if there are none. */
uint64_t weir_sizes_typical(const struct weir_sizes *sizes);

/* Times: eight bins for each doubling, so that a percentile is within 9 %. */
enum { WEIR_TIMES_BINS = 8 * 44 };
struct weir_times {
    uint64_t count[WEIR_TIMES_BINS], total_ns, calls;
};
void weir_times_add(struct weir_times *times, uint64_t ns);
/* share: 0.5, 0.99; 0 if there are none. */
uint64_t weir_times_percentile(const struct weir_times *times, double share);

#endif
