/* explore.h - visits every state that a model can reach, breadth first, so that the first trace to
 * a broken property is also a shortest one.
 *
 * A state is a plain block of bytes without padding. Visited states are remembered by a 64-bit
 * fingerprint: two of n states share one with a chance of n^2 / 2^65 (one in 350,000 for ten
 * million), which could only hide states, never invent a violation. One thread.
 */
#ifndef WEIR_TESTS_MODEL_EXPLORE_H
#define WEIR_TESTS_MODEL_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct explore {
    size_t state_bytes;
    size_t states_max; /* a bound on memory: reaching it fails the run */
    /* Calls explore_emit() for each successor of `state`, always in the same order. */
    void (*expand)(struct explore *x, const void *state);
    /* Looks at a new state; may call explore_fail(). */
    void (*check)(struct explore *x, const void *state);
    /* Looks at a state that has no successor. */
    void (*at_end)(struct explore *x, const void *state);

    size_t states, transitions, ends, frontier_max;
    unsigned depth;
    const char *failed; /* the property that broke; NULL: all hold */
    bool telling;       /* a trace is being written: steps describe themselves */
    char told[200];
    struct explore_memory *memory;
};

/* True: every reachable state was visited and no property broke. */
bool explore_run(struct explore *x, const void *initial);
void explore_emit(struct explore *x, const void *state);
/* The first failure stays. `property` is static text. */
void explore_fail(struct explore *x, const char *property);
/* What the step about to be emitted does; costs nothing unless a trace is written. */
void explore_say(struct explore *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The steps from `initial` to the failure, one a line. */
void explore_trace(struct explore *x, const void *initial, FILE *out);
void explore_free(struct explore *x);

#endif
