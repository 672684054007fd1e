/* timeline.c - see timeline.h. */
#include "trace/timeline.h"

#include <string.h>

static void fold(struct weir_timeline *line)
{
    enum { HALF = WEIR_TIMELINE_BINS / 2 };
    for (int r = 0; r < WEIR_ROWS; r++) {
        uint64_t *row = line->row[r];
        for (int i = 0; i < HALF; i++)
            row[i] = row[2 * i] + row[2 * i + 1];
        memset(row + HALF, 0, (WEIR_TIMELINE_BINS - HALF) * sizeof *row);
    }
    line->bin_ns *= 2;
}

void weir_timeline_see(struct weir_timeline *line, uint64_t time_ns)
{
    if (!line->begun) {
        line->begun = true;
        line->begin_ns = line->end_ns = time_ns;
        line->bin_ns = WEIR_TIMELINE_FIRST_NS;
    }
    line->end_ns = time_ns > line->end_ns ? time_ns : line->end_ns;
    while (weir_timeline_span_ns(line) / line->bin_ns >= WEIR_TIMELINE_BINS)
        fold(line);
}

static uint64_t bin_of(const struct weir_timeline *line, uint64_t time_ns)
{
    return time_ns > line->begin_ns ? (time_ns - line->begin_ns) / line->bin_ns : 0;
}

void weir_timeline_add(struct weir_timeline *line, enum weir_timeline_row row, uint64_t time_ns,
                       uint64_t amount)
{
    weir_timeline_see(line, time_ns);
    line->row[row][bin_of(line, time_ns)] += amount;
}

void weir_timeline_spread(struct weir_timeline *line, enum weir_timeline_row row, uint64_t begin_ns,
                          uint64_t end_ns, uint64_t amount)
{
    weir_timeline_see(line, end_ns);
    uint64_t first = bin_of(line, begin_ns), last = bin_of(line, end_ns);
    first = first < last ? first : last;
    uint64_t each = amount / (last - first + 1);
    for (uint64_t i = first; i <= last; i++)
        line->row[row][i] += each;
    line->row[row][last] += amount - each * (last - first + 1);
}

uint64_t weir_timeline_span_ns(const struct weir_timeline *line)
{
    return line->end_ns - line->begin_ns;
}

unsigned weir_timeline_bins(const struct weir_timeline *line)
{
    return line->begun ? (unsigned)(weir_timeline_span_ns(line) / line->bin_ns) + 1 : 0;
}
