/* tune.h - the tries of weir data tune, and pictures of them. */
#ifndef WEIR_CLI_TUNE_H
#define WEIR_CLI_TUNE_H

#include <stdio.h>

#include "cli/loading.h"
#include "cli/tries.h"

enum { TUNE_TRIES_MAX = 256 };

/* One setting, and what it gave; stalled: after the first batch. */
struct tune_try {
    uint64_t batch, threads, prefetch;
    double samples_per_s, bytes_per_s, stalled;
    uint64_t first_ns, memory_bytes_peak;
    const char *waits;  /* what was waited for most */
    const char *warmth; /* see loading.h */
    char *error;        /* it could not be tried, and why; else NULL */
};

/* Tries are in the order in which they were made: batches, in them threads, in them prefetch. */
struct tune {
    struct tries batches, threads, prefetches;
    struct tune_try tries[TUNE_TRIES_MAX];
    uint32_t count;
    int best; /* -1: there is none */
};

/* Bars on standard output. */
void tune_plot_text(const struct tune *tune);
/* An SVG: a panel for each batch size, a line for each prefetch, over threads. */
void tune_plot_svg(FILE *out, const struct tune *tune, const char *title);

#endif
