/* hist.c - see hist.h. Small values have a bin each; from there on, every power of two has 32. */
#include "util/hist.h"

enum { FINE = 1 << WEIR_HIST_FINE };

static unsigned bin_of(uint64_t ns)
{
    if (ns < FINE)
        return (unsigned)ns;
    unsigned power = 63 - (unsigned)__builtin_clzll(ns), shift = power - WEIR_HIST_FINE;
    return ((shift + 1) << WEIR_HIST_FINE) + (unsigned)((ns >> shift) & (FINE - 1));
}

/* The middle of a bin. */
static uint64_t value_of(unsigned bin)
{
    if (bin < FINE)
        return bin;
    unsigned shift = (bin >> WEIR_HIST_FINE) - 1;
    uint64_t from = (uint64_t)(FINE + (bin & (FINE - 1))) << shift;
    return from + ((uint64_t)1 << shift) / 2;
}

void weir_hist_add(struct weir_hist *hist, uint64_t ns)
{
    hist->bins[bin_of(ns)]++;
    hist->count++;
    hist->total_ns += ns;
    if (ns > hist->max_ns)
        hist->max_ns = ns;
}

void weir_hist_merge(struct weir_hist *into, const struct weir_hist *from)
{
    for (unsigned i = 0; i < WEIR_HIST_BINS; i++)
        into->bins[i] += from->bins[i];
    into->count += from->count;
    into->total_ns += from->total_ns;
    if (from->max_ns > into->max_ns)
        into->max_ns = from->max_ns;
}

uint64_t weir_hist_quantile(const struct weir_hist *hist, double share)
{
    double want = share * (double)hist->count, seen = 0;
    for (unsigned i = 0; i < WEIR_HIST_BINS && hist->count; i++) {
        seen += (double)hist->bins[i];
        if (hist->bins[i] && seen >= want)
            return value_of(i) < hist->max_ns ? value_of(i) : hist->max_ns;
    }
    return 0;
}
