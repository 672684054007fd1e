/* cliff.c - see cliff.h. The slots are gathered into a few windows, so that a single pause is no
 * cliff; each way to cut them in two is tried, and the one is taken whose halves differ most
 * clearly. It is a cliff if the second half is much slower, and nearly all of it is.
 */
#include "measure/cliff.h"

#include <stdlib.h>
#include <string.h>

enum {
    WINDOWS = 40,
    WINDOWS_MIN = 10, /* with less there is nothing to be said */
    SIDE_MIN = 3,     /* windows on either side */
};
static const double fell_to = 0.7; /* of the rate before: less is a cliff */
static const double mostly = 0.8;  /* of the windows after it are that slow */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, uint32_t count)
{
    double sorted[WINDOWS];
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, by_size);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* The cut that leaves the least variance within the halves: that maximises n1 n2 (m1 - m2)^2. */
static uint32_t best_cut(const double *rates, uint32_t count)
{
    double total = 0, left = 0, most = -1;
    uint32_t best = SIDE_MIN;
    for (uint32_t i = 0; i < count; i++)
        total += rates[i];
    for (uint32_t i = 0; i < count; i++) {
        if (i >= SIDE_MIN && count - i >= SIDE_MIN) {
            double gap = left / i - (total - left) / (count - i);
            double clear = (double)i * (count - i) * gap * gap;
            if (clear > most) {
                most = clear;
                best = i;
            }
        }
        left += rates[i];
    }
    return best;
}

static double slow_share(const double *rates, uint32_t count, double limit)
{
    uint32_t slow = 0;
    for (uint32_t i = 0; i < count; i++)
        slow += rates[i] < limit;
    return (double)slow / count;
}

/* The slot with which a window begins: all slots are in one. */
static uint32_t begin_of(uint32_t window, uint32_t windows, uint32_t slots)
{
    return (uint32_t)((uint64_t)window * slots / windows);
}

void weir_cliff_find(struct weir_cliff *out, const uint64_t *slot_bytes, uint32_t count,
                     uint64_t slot_ns)
{
    double rates[WINDOWS];
    uint32_t windows = count < WINDOWS ? count : WINDOWS;
    *out = (struct weir_cliff){0};
    for (uint32_t i = 0; i < windows; i++) {
        uint32_t begin = begin_of(i, windows, count), end = begin_of(i + 1, windows, count);
        uint64_t bytes = 0;
        for (uint32_t k = begin; k < end; k++)
            bytes += slot_bytes[k];
        rates[i] = (double)bytes / ((double)((end - begin) * slot_ns) / 1e9);
    }
    if (!windows)
        return;
    out->before_bytes_per_s = out->after_bytes_per_s = median(rates, windows);
    if (windows < WINDOWS_MIN)
        return;
    out->is_known = true;
    uint32_t cut = best_cut(rates, windows);
    double before = median(rates, cut), after = median(rates + cut, windows - cut);
    double limit = fell_to * before;
    if (after >= limit || slow_share(rates + cut, windows - cut, limit) < mostly)
        return;
    out->fell = true;
    out->before_bytes_per_s = before;
    out->after_bytes_per_s = after;
    for (uint32_t i = 0; i < begin_of(cut, windows, count); i++)
        out->at_bytes += slot_bytes[i];
}
