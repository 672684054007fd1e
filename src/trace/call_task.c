/* call_task.c - the calls of processes and descriptors; see call.h. */
#include <string.h>

#include "trace/call.h"
#include "trace/path.h"

static bool succeeded(const struct weir_call *call)
{
    return call->line->has_result && call->line->result >= 0;
}

static bool fd_of(const struct weir_call *call, unsigned i, int64_t *fd)
{
    char path[WEIR_TRACE_PATH_MAX];
    return weir_span_fd(weir_call_argument(call, i), fd, path, sizeof path) && *fd >= 0;
}

/* Also if it fails: the descriptor is gone then, too. */
void weir_call_close(struct weir_call *call)
{
    int64_t fd;
    struct weir_trace_open *open = weir_call_file(call, 0);
    if (!open || !fd_of(call, 0, &fd))
        return;
    weir_call_note(call, open->file, WEIR_TRACE_OPEN);
    if (open->written_bytes) {
        open->written_ns += call->took_ns; /* a network file system writes here */
        open->end_ns = call->end_ns;
    }
    weir_trace_fd_close(&call->trace->tasks, call->task, fd);
}

void weir_call_close_range(struct weir_call *call)
{
    int64_t first, last;
    if (succeeded(call) && weir_span_int(weir_call_argument(call, 0), &first) &&
        weir_span_int(weir_call_argument(call, 1), &last) && first >= 0)
        weir_trace_fd_close_range(&call->trace->tasks, call->task, first, last,
                                  weir_span_has(weir_call_argument(call, 2), "CLOEXEC"));
}

static void duplicate(struct weir_call *call, bool cloexec)
{
    int64_t fd;
    struct weir_trace_open *open = weir_call_file(call, 0);
    if (!succeeded(call) || (fd_of(call, 0, &fd) && fd == call->line->result))
        return;
    if (open)
        weir_trace_fd_set(&call->trace->tasks, call->task, call->line->result, open, cloexec);
    else /* a pipe, say: the number may have been a file's */
        weir_trace_fd_close(&call->trace->tasks, call->task, call->line->result);
}

void weir_call_dup(struct weir_call *call)
{
    duplicate(call, weir_span_has(weir_call_argument(call, 2), "O_CLOEXEC"));
    weir_hist_add(&call->trace->floor, call->took_ns);
}

void weir_call_fcntl(struct weir_call *call)
{
    int64_t fd;
    struct weir_span command = weir_call_argument(call, 1), value = weir_call_argument(call, 2);
    weir_hist_add(&call->trace->floor, call->took_ns);
    if (!succeeded(call))
        return;
    if (weir_span_is(command, "F_DUPFD") || weir_span_is(command, "F_DUPFD_CLOEXEC"))
        duplicate(call, weir_span_is(command, "F_DUPFD_CLOEXEC"));
    else if (weir_span_is(command, "F_SETFD") && fd_of(call, 0, &fd))
        weir_trace_fd_mark(call->task, fd, weir_span_has(value, "FD_CLOEXEC"));
    else if (weir_span_is(command, "F_SETFL")) {
        struct weir_trace_open *open = weir_call_file(call, 0);
        if (open)
            open->is_direct = weir_call_flag(value, "O_DIRECT");
    }
}

void weir_call_clone(struct weir_call *call)
{
    struct weir_span args = call->line->args;
    struct weir_trace_birth birth = {.is_thread = weir_span_has(args, "CLONE_THREAD"),
                                     .shares_fds = weir_span_has(args, "CLONE_FILES"),
                                     .shares_cwd = weir_span_has(args, "CLONE_FS")};
    if (!succeeded(call) || !call->line->result || call->line->result > INT32_MAX)
        return;
    weir_trace_task_born(&call->trace->tasks, (uint32_t)call->line->result, call->task, birth);
}

void weir_call_exec(struct weir_call *call)
{
    if (call->line->has_result && !call->line->result)
        weir_trace_task_exec(&call->trace->tasks, call->task);
}

void weir_call_chdir(struct weir_call *call)
{
    char path[WEIR_TRACE_PATH_MAX];
    if (!call->line->has_result || call->line->result)
        return;
    if (weir_span_is(call->line->name, "chdir")) {
        if (weir_call_path(call, -1, 0, path) && path[0] == '/')
            weir_trace_task_chdir(call->task, path);
        return;
    }
    struct weir_trace_open *open = weir_call_file(call, 0);
    if (open)
        weir_trace_task_chdir(call->task, weir_trace_file_path(open->file, path, sizeof path));
}
