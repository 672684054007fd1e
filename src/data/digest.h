/* digest.h - what was delivered, as a sum that does not depend on the order: over (number, bytes)
 * of every sample, modulo 2^128. Sums of ranks add up to the sum of the whole.
 */
#ifndef WEIR_DATA_DIGEST_H
#define WEIR_DATA_DIGEST_H

#include <stdint.h>

#include "util/hash.h"

struct weir_digest {
    uint64_t low, high;
};

/* Of one sample, with the sum of its bytes. */
struct weir_digest weir_digest_of(uint64_t sample, const uint8_t sum[WEIR_SUM_BYTES]);
void weir_digest_add(struct weir_digest *sum, struct weir_digest more);

#endif
