/* trace.c - see trace.h: lines are put together, and calls whose two halves came apart. */
#include "trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/call.h"
#include "util/err.h"
#include "util/sys.h"

int weir_trace_make(struct weir_trace **out, const char *cwd)
{
    struct weir_trace *trace = weir_alloc(sizeof *trace);
    if (!trace)
        return weir_fail_memory();
    int code = weir_trace_files_init(&trace->files);
    if (!code)
        code = weir_trace_tasks_init(&trace->tasks);
    if (!code)
        code = weir_pages_init(&trace->pages);
    trace->line = weir_alloc(WEIR_TRACE_LINE_MAX);
    trace->joined = weir_alloc(WEIR_TRACE_BEGUN_MAX + WEIR_TRACE_LINE_MAX);
    trace->bursts = weir_alloc(WEIR_TRACE_BURSTS_MAX * sizeof *trace->bursts);
    trace->cwd = cwd ? weir_strdup(cwd) : NULL;
    if (!code && (!trace->line || !trace->joined || !trace->bursts || (cwd && !trace->cwd)))
        code = weir_fail_memory();
    if (code) {
        weir_trace_free(trace);
        return code;
    }
    trace->tasks.closed = weir_burst_closed;
    trace->tasks.arg = trace;
    *out = trace;
    return 0;
}

void weir_trace_free(struct weir_trace *trace)
{
    if (!trace)
        return;
    trace->tasks.closed = NULL;
    weir_trace_tasks_free(&trace->tasks);
    weir_trace_files_free(&trace->files);
    weir_pages_free(&trace->pages);
    free(trace->line);
    free(trace->joined);
    free(trace->bursts);
    free(trace->cwd);
    free(trace);
}

/* ---- time ---- */

static void set_clock(struct weir_trace *trace, const struct weir_line *line)
{
    static const uint64_t day_ns = 86400ull * 1000000000;
    uint64_t now_ns = trace->now_ns;
    if (line->clock == WEIR_LINE_NO_TIME)
        return;
    trace->has_time = true;
    if (line->clock == WEIR_LINE_UNIX)
        now_ns = line->time_ns;
    else if (line->clock == WEIR_LINE_SINCE_LAST)
        now_ns += line->time_ns;
    else {
        if (line->time_ns + trace->day_ns + day_ns / 2 < now_ns) /* it was midnight */
            trace->day_ns += day_ns;
        now_ns = line->time_ns + trace->day_ns;
    }
    trace->now_ns = now_ns < INT64_MAX ? now_ns : INT64_MAX;
    weir_timeline_see(&trace->timeline, trace->now_ns);
}

/* ---- tasks ---- */

static bool is_birth(const char *begun, size_t size)
{
    struct weir_span span = {begun, begun + size};
    return weir_span_skip(&span, "clone") || weir_span_skip(&span, "fork") ||
           weir_span_skip(&span, "vfork");
}

/* The task of a line. A child's first line may come before its parent's clone has returned: then
 * whoever began a clone last is its parent, until one returns with its number. */
static struct weir_trace_task *task_of(struct weir_trace *trace, uint32_t pid)
{
    struct weir_trace_task *task = weir_trace_task_find(&trace->tasks, pid), *parent = NULL;
    struct weir_trace_birth birth = {0};
    if (task && !task->is_gone)
        return task;
    if (task) /* another one has its number by now */
        weir_trace_task_end(&trace->tasks, task);
    if (trace->cloning_pid)
        parent = weir_trace_task_find(&trace->tasks, trace->cloning_pid);
    if (parent && parent->begun && is_birth(parent->begun, parent->begun_size)) {
        struct weir_span args = {parent->begun, parent->begun + parent->begun_size};
        birth.is_thread = weir_span_has(args, "CLONE_THREAD");
        birth.shares_fds = weir_span_has(args, "CLONE_FILES");
        birth.shares_cwd = weir_span_has(args, "CLONE_FS");
    } else
        parent = NULL;
    bool is_root = !trace->tasks.total;
    task = weir_trace_task_make(&trace->tasks, pid, parent, birth);
    if (task) {
        task->is_guess = !is_root;
        task->guess_pid = parent ? parent->pid : 0;
        task->awaits_clone = parent != NULL;
    }
    if (task && is_root) {
        trace->root_pid = pid;
        if (trace->cwd)
            weir_trace_task_chdir(task, trace->cwd);
    }
    return task;
}

/* ---- lines ---- */

static void take_call(struct weir_trace *trace, struct weir_trace_task *task,
                      const struct weir_line *line, uint64_t begin_ns)
{
    struct weir_call call = {trace, task, line, begin_ns, begin_ns + line->took_ns, line->took_ns};
    if (call.end_ns < begin_ns) /* a log may say anything */
        call.end_ns = begin_ns;
    trace->has_took |= line->took_ns > 0;
    weir_timeline_see(&trace->timeline, call.end_ns);
    weir_call_take(&call);
}

static void take_begun(struct weir_trace *trace, struct weir_trace_task *task,
                       const struct weir_line *line)
{
    size_t size = (size_t)(line->args.end - line->rest.at);
    free(task->begun);
    task->begun = size <= WEIR_TRACE_BEGUN_MAX ? weir_alloc(size + 1) : NULL;
    if (!task->begun)
        return;
    memcpy(task->begun, line->rest.at, size);
    task->begun_size = size;
    task->begun_ns = trace->now_ns;
    if (is_birth(task->begun, size))
        trace->cloning_pid = task->pid;
}

/* task may be NULL. */
static void take_resumed(struct weir_trace *trace, struct weir_trace_task *task,
                         struct weir_line *line)
{
    if (!task || !task->begun) {
        trace->strange++; /* its beginning is not in the log */
        return;
    }
    size_t size = task->begun_size, more = weir_span_size(line->rest);
    memcpy(trace->joined, task->begun, size);
    memcpy(trace->joined + size, line->rest.at, more);
    free(task->begun);
    task->begun = NULL;
    weir_line_call(line, (struct weir_span){trace->joined, trace->joined + size + more});
    if (line->form == WEIR_LINE_CALL)
        take_call(trace, task, line, task->begun_ns);
    else
        trace->strange++;
}

static void take_line(struct weir_trace *trace)
{
    struct weir_line *line = &trace->current;
    struct weir_trace_task *task;
    weir_line_read(line, trace->line, trace->line_size);
    trace->lines++;
    if (line->form == WEIR_LINE_NOTHING || line->form == WEIR_LINE_STRANGE) {
        trace->strange += line->form == WEIR_LINE_STRANGE;
        return;
    }
    set_clock(trace, line);
    if (line->form == WEIR_LINE_GONE) {
        if ((task = weir_trace_task_find(&trace->tasks, line->pid)))
            weir_trace_task_end(&trace->tasks, task);
        return;
    }
    if (line->form == WEIR_LINE_RESUMED) {
        take_resumed(trace, weir_trace_task_find(&trace->tasks, line->pid), line);
        return;
    }
    if (!(task = task_of(trace, line->pid)))
        return;
    if (line->form == WEIR_LINE_BEGUN)
        take_begun(trace, task, line);
    else
        take_call(trace, task, line, trace->now_ns);
}

int weir_trace_feed(struct weir_trace *trace, const void *data, size_t size)
{
    const char *at = data, *end = at + size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t more = (size_t)((newline ? newline : end) - at);
        size_t room = WEIR_TRACE_LINE_MAX - trace->line_size;
        trace->line_is_cut |= more > room;
        memcpy(trace->line + trace->line_size, at, more < room ? more : room);
        trace->line_size += more < room ? more : room;
        at += more + (newline != NULL);
        if (!newline)
            break;
        trace->cut += trace->line_is_cut;
        take_line(trace);
        trace->line_size = 0;
        trace->line_is_cut = false;
    }
    return 0;
}

/* ---- the end ---- */

int weir_trace_end(struct weir_trace *trace)
{
    if (trace->line_size) /* the log was cut: what is there may still be a call */
        take_line(trace);
    trace->line_size = 0;
    for (size_t i = 0; i < trace->files.file_count; i++) {
        const struct weir_trace_file *file = trace->files.files[i];
        if (file->reads && !file->is_program)
            weir_sizes_add(&trace->file_sizes, file->size_bytes);
    }
    uint64_t total = trace->tasks.total, threads = trace->tasks.threads;
    weir_trace_tasks_free(&trace->tasks);
    if (weir_trace_tasks_init(&trace->tasks))
        return -ENOMEM;
    trace->tasks.total = total;
    trace->tasks.threads = threads;
    trace->readers = trace->readers_much ? trace->readers_much : trace->readers_all;
    weir_trace_files_sum(&trace->files, &trace->data, &trace->program);
    return 0;
}

uint64_t weir_trace_floor_ns(const struct weir_trace *trace)
{
    enum { ENOUGH = 16 }; /* calls, or it is not known */
    return trace->floor.count < ENOUGH ? 0 : weir_hist_quantile(&trace->floor, 0.5);
}

uint64_t weir_trace_net_ns(const struct weir_trace *trace, enum weir_trace_kind kind)
{
    const struct weir_hist *times = &trace->times[kind];
    uint64_t floor = weir_trace_floor_ns(trace) * times->count;
    return times->total_ns > floor ? times->total_ns - floor : 0;
}
