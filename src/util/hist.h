/* hist.h - many durations in little room: each is kept within 3 % of what it was. One owner. */
#ifndef WEIR_UTIL_HIST_H
#define WEIR_UTIL_HIST_H

#include <stdint.h>

enum { WEIR_HIST_FINE = 5, WEIR_HIST_BINS = (64 - WEIR_HIST_FINE + 1) << WEIR_HIST_FINE };

struct weir_hist {
    uint64_t bins[WEIR_HIST_BINS], count, total_ns, max_ns;
};

void weir_hist_add(struct weir_hist *hist, uint64_t ns);
void weir_hist_merge(struct weir_hist *into, const struct weir_hist *from);
/* So much of all of them (0 to 1) took no longer; 0 if there are none. */
uint64_t weir_hist_quantile(const struct weir_hist *hist, double share);

#endif
