/* advice.c - see advice.h. */
#include "trace/advice.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/opt.h"

struct weir_advice *weir_advice_add(struct weir_advices *out, const char *kind,
                                    enum weir_advice_weight weight)
{
    if (out->count == WEIR_ADVICE_MAX)
        return NULL;
    struct weir_advice *advice = &out->item[out->count++];
    *advice = (struct weir_advice){.kind = kind, .weight = weight};
    return advice;
}

double weir_advice_rate(const struct weir_trace *trace, const struct weir_advice_how *how)
{
    enum { ENOUGH = 16 };
    uint64_t floor = weir_trace_floor_ns(trace) * trace->large_reads;
    if (how->rate)
        return (double)how->rate;
    if (trace->large_reads < ENOUGH || trace->large_read_ns <= floor)
        return 0;
    return (double)trace->large_read_bytes / ((double)(trace->large_read_ns - floor) / 1e9);
}

/* ---- what a trace cannot see ---- */

static void advise_hidden(struct weir_advices *out, const struct weir_trace *trace)
{
    struct weir_advice *advice;
    char size[32];
    if (trace->data.mapped_bytes && (advice = weir_advice_add(out, "mapped", WEIR_ADVICE_NOTE))) {
        snprintf(advice->what, sizeof advice->what,
                 "%s of files are mapped: what is read of them does not show here",
                 weir_format_size(size, sizeof size, trace->data.mapped_bytes));
        snprintf(advice->why, sizeof advice->why,
                 "page faults read mapped files, and no system call tells of them. Look at major "
                 "faults (/usr/bin/time -v), or measure the reading by itself with 'weir data "
                 "stream'");
    }
    if ((trace->ring_waits || trace->aio_calls) &&
        (advice = weir_advice_add(out, "asynchronous", WEIR_ADVICE_NOTE))) {
        snprintf(advice->what, sizeof advice->what,
                 "%llu io_uring rings (%llu waits) and %llu calls of libaio: what they read and "
                 "write does not show here",
                 (unsigned long long)trace->rings, (unsigned long long)trace->ring_waits,
                 (unsigned long long)trace->aio_calls);
        snprintf(advice->why, sizeof advice->why,
                 "requests in a ring are no system calls. Weir uses one where it can: trace it "
                 "with WEIR_IO=threads in the environment to see its requests");
    }
}

static void advise_fine(struct weir_advices *out)
{
    for (size_t i = 0; i < out->count; i++)
        if (out->item[i].weight > WEIR_ADVICE_NOTE)
            return;
    struct weir_advice *advice = weir_advice_add(out, "fine", WEIR_ADVICE_NOTE);
    if (!advice)
        return;
    snprintf(advice->what, sizeof advice->what, "nothing here asks to be changed");
    snprintf(advice->why, sizeof advice->why,
             "no small files in numbers, no small or scattered requests that cost much, no write "
             "that the program waits long for or may lose");
}

void weir_advise(struct weir_advices *out, struct weir_trace *trace,
                 const struct weir_advice_how *how)
{
    *out = (struct weir_advices){.count = 0};
    weir_advise_writing(out, trace, how);
    weir_advise_reading(out, trace, how);
    advise_fine(out);
    advise_hidden(out, trace);
}

void weir_advices_free(struct weir_advices *advices)
{
    for (size_t i = 0; i < advices->count; i++)
        free(advices->item[i].command);
    advices->count = 0;
}
