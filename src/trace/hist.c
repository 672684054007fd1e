/* hist.c - see hist.h. */
#include "trace/hist.h"

static unsigned log2_of(uint64_t value)
{
    return 63u - (unsigned)__builtin_clzll(value);
}

void weir_sizes_add(struct weir_sizes *sizes, uint64_t bytes)
{
    unsigned bin = bytes ? log2_of(bytes) + 1 : 0;
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

/* Below 8 ns each value has its bin; above, three bits follow the first. */
static unsigned time_bin(uint64_t ns)
{
    if (ns < 8)
        return (unsigned)ns;
    unsigned bits = log2_of(ns), bin = (bits - 2) * 8 + (unsigned)(ns >> (bits - 3) & 7);
    return bin < WEIR_TIMES_BINS ? bin : WEIR_TIMES_BINS - 1;
}

static uint64_t bin_middle(unsigned bin)
{
    if (bin < 8)
        return bin;
    unsigned shift = bin / 8 - 1;
    return ((uint64_t)(8 + bin % 8) << shift) + ((uint64_t)1 << shift >> 1);
}

void weir_times_add(struct weir_times *times, uint64_t ns)
{
    times->count[time_bin(ns)]++;
    times->total_ns += ns;
    times->calls++;
}

uint64_t weir_times_percentile(const struct weir_times *times, double share)
{
    uint64_t sum = 0, want = (uint64_t)((double)times->calls * share);
    for (unsigned i = 0; i < WEIR_TIMES_BINS && times->calls; i++) {
        sum += times->count[i];
        if (sum > want || sum == times->calls)
            return bin_middle(i);
    }
    return 0;
}
