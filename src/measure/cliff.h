/* cliff.h - where the rate of a long write fell, and stayed low: consumer drives take the first
 * gigabytes into fast cells, and what comes after them much more slowly. Pure functions.
 */
#ifndef WEIR_MEASURE_CLIFF_H
#define WEIR_MEASURE_CLIFF_H

#include <stdbool.h>
#include <stdint.h>

struct weir_cliff {
    bool is_known; /* it was long enough to tell */
    bool fell;
    uint64_t at_bytes;                            /* so much was written before it fell */
    double before_bytes_per_s, after_bytes_per_s; /* medians; the same if it did not fall */
};

/* slot_bytes: what was written in each of `count` equal spans of slot_ns. */
void weir_cliff_find(struct weir_cliff *out, const uint64_t *slot_bytes, uint32_t count,
                     uint64_t slot_ns);

#endif
