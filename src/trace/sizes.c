/* sizes.c - see sizes.h. */
#include "trace/sizes.h"

void weir_sizes_add(struct weir_sizes *sizes, uint64_t bytes)
{
    unsigned bin = bytes ? 64u - (unsigned)__builtin_clzll(bytes) : 0;
    sizes->count[bin]++;
    sizes->bytes[bin] += bytes;
}

uint64_t weir_sizes_from(unsigned bin)
{
    return bin ? (uint64_t)1 << (bin - 1) : 0;
}

uint64_t weir_sizes_typical(const struct weir_sizes *sizes)
{
    uint64_t total = 0, sum = 0;
    for (unsigned i = 0; i < WEIR_SIZES_BINS; i++)
        total += sizes->bytes[i];
    for (unsigned i = 0; i < WEIR_SIZES_BINS && total; i++) {
        sum += sizes->bytes[i];
        if (sum >= total - total / 2)
            return sizes->bytes[i] / sizes->count[i];
    }
    return 0;
}
