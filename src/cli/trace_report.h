/* trace_report.h - what `weir trace` tells: for people, for scripts, as pictures. */
#ifndef WEIR_CLI_TRACE_REPORT_H
#define WEIR_CLI_TRACE_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "trace/advice.h"

struct trace_report {
    const char *source; /* the command, or the log */
    struct weir_trace *trace;
    struct weir_advices advices;
    struct weir_advice_how how;
    int status; /* of the command; -1: a log was read */
};

enum { TRACE_TOP = 12 }; /* rows of directories and files that are shown */

/* The directories whose own files were read or written most, the busiest first; how many. */
size_t trace_top_dirs(const struct weir_trace *trace, const struct weir_trace_dir *top[TRACE_TOP]);
size_t trace_top_files(const struct weir_trace *trace,
                       const struct weir_trace_file *top[TRACE_TOP]);

void trace_report_text(FILE *out, const struct trace_report *report);
json_t *trace_report_json(const struct trace_report *report);
void trace_report_html(FILE *out, const struct trace_report *report);
void trace_report_svg(FILE *out, const struct trace_report *report);

#endif
