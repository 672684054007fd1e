/* trace_run.h - runs a command under strace, which follows its children and threads and stops only
 * the system calls that have to do with files. The command keeps our standard streams, and signals
 * reach it; ours come back when it has ended.
 */
#ifndef WEIR_CLI_TRACE_RUN_H
#define WEIR_CLI_TRACE_RUN_H

#include <stddef.h>
#include <stdint.h>

struct trace_run {
    const char **argv; /* ended by NULL */
    /* Takes the log piece by piece; what it fails with ends the reading, not the command. */
    int (*take)(void *arg, const void *data, size_t size);
    /* The command's process, once it is known, or 0: signals are handed on to it. */
    uint32_t (*pid)(void *arg);
    void *arg;
};

/* *status: its exit code, or 128 and the signal that ended it. */
int trace_run(const struct trace_run *run, int *status);

/* Which calls are watched, as strace -e trace= takes them. */
extern const char trace_run_calls[];

#endif
