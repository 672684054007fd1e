/* traces.h - a log of system calls becomes the accounts of files, for tests of those. */
#ifndef WEIR_TESTS_TRACES_H
#define WEIR_TESTS_TRACES_H

#include "test.h"
#include "trace/trace.h"

static struct weir_trace *trace;

/* In two pieces, cut somewhere in a line. */
static inline void feed(const char *log)
{
    size_t size = strlen(log);
    OK(weir_trace_make(&trace, "/job/here"));
    OK(weir_trace_feed(trace, log, size / 3));
    OK(weir_trace_feed(trace, log + size / 3, size - size / 3));
    OK(weir_trace_end(trace));
}

static inline void done(void)
{
    weir_trace_free(trace);
    trace = NULL;
}

static inline struct weir_trace_file *file(const char *path)
{
    struct weir_trace_file *found = weir_trace_file_find(&trace->files, path);
    CHECK(found);
    return found;
}

#endif
