/* line.h - one line of a log of strace, with or without -f, -t, -tt, -ttt, -r, -T, -y:
 *
 *     28759 1794773602.209240 openat(AT_FDCWD, "d/5", O_RDONLY) = 3 <0.000007>
 *     [pid 28759] read(3, "…"..., 4096 <unfinished ...>
 *     28759 <... read resumed>) = 4096
 *     28759 +++ exited with 0 +++
 *
 * Pure; the spans point into the line.
 */
#ifndef WEIR_TRACE_LINE_H
#define WEIR_TRACE_LINE_H

#include "trace/text.h"

enum weir_line_form {
    WEIR_LINE_CALL,
    WEIR_LINE_BEGUN,   /* another thread's line comes between: the rest follows */
    WEIR_LINE_RESUMED, /* that rest, in .rest */
    WEIR_LINE_GONE,    /* the process ended, or became another's by exec */
    WEIR_LINE_NOTHING, /* a signal, a remark of strace */
    WEIR_LINE_STRANGE, /* not understood */
};

enum weir_line_clock { WEIR_LINE_NO_TIME, WEIR_LINE_UNIX, WEIR_LINE_OF_DAY, WEIR_LINE_SINCE_LAST };

struct weir_line {
    enum weir_line_form form;
    enum weir_line_clock clock;
    uint32_t pid; /* 0: not told */
    uint64_t time_ns;
    struct weir_span rest; /* all after pid and time */
    struct weir_span name, args;
    int64_t result; /* -1: it failed */
    bool has_result;
    char result_path[4096]; /* of -y, or "" */
    uint64_t took_ns;       /* 0: not told */
};

void weir_line_read(struct weir_line *line, const char *text, size_t size);
/* Reads rest as "name(args) = result <time>" into the other fields. */
void weir_line_call(struct weir_line *line, struct weir_span rest);

#endif
