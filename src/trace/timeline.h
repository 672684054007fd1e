/* timeline.h - what happened when, in a fixed number of bins: when a run outgrows them, two become
 * one and each is twice as long.
 */
#ifndef WEIR_TRACE_TIMELINE_H
#define WEIR_TRACE_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_TIMELINE_BINS = 240, WEIR_TIMELINE_FIRST_NS = 10000000 };

enum weir_timeline_row { WEIR_ROW_READ_BYTES, WEIR_ROW_WRITE_BYTES, WEIR_ROW_OPENS, WEIR_ROWS };

struct weir_timeline {
    bool begun;
    uint64_t begin_ns, end_ns, bin_ns;
    uint64_t row[WEIR_ROWS][WEIR_TIMELINE_BINS];
};

/* Notes that the run was going on at that time. Times before the first are taken as that. */
void weir_timeline_see(struct weir_timeline *line, uint64_t time_ns);
void weir_timeline_add(struct weir_timeline *line, enum weir_timeline_row row, uint64_t time_ns,
                       uint64_t amount);
/* The same, of something that took a while: evenly over the bins from begin to end. */
void weir_timeline_spread(struct weir_timeline *line, enum weir_timeline_row row, uint64_t begin_ns,
                          uint64_t end_ns, uint64_t amount);
uint64_t weir_timeline_span_ns(const struct weir_timeline *line);
/* Bins in use. */
unsigned weir_timeline_bins(const struct weir_timeline *line);

#endif
