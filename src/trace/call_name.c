/* call_name.c - the calls that name files; see call.h. */
#include <string.h>

#include "trace/call.h"
#include "trace/path.h"
#include "util/sys.h"

/* ---- opening ---- */

static struct weir_trace_open *open_make(struct weir_call *call, struct weir_trace_file *file,
                                         struct weir_span flags, bool is_new)
{
    struct weir_trace_open *open = weir_alloc(sizeof *open);
    if (!open)
        return NULL;
    open->file = file;
    open->told = call->line->result_path[0] ? weir_trace_path_hash(call->line->result_path) : 0;
    open->renames = call->trace->renames;
    open->pid = call->task->pid;
    open->is_thread = call->task->is_thread;
    open->opened_ns = call->begin_ns;
    open->is_direct = weir_call_flag(flags, "O_DIRECT");
    open->is_sync = weir_call_flag(flags, "O_SYNC") || weir_call_flag(flags, "O_DSYNC");
    open->is_append = weir_call_flag(flags, "O_APPEND");
    if (is_new || !file->exists || weir_call_flag(flags, "O_TRUNC")) {
        open->is_in_place = file->exists && file->size_bytes > 0;
        file->size_bytes = 0;
        weir_trace_file_renew(&call->trace->files, file);
    }
    file->exists = true;
    return open;
}

static void note_open(struct weir_call *call, struct weir_trace_file *file, bool is_direct)
{
    file->opens++;
    file->opens_direct += is_direct;
    weir_call_note(call, file, WEIR_TRACE_OPEN);
    if (!file->is_program && !file->is_dir)
        weir_timeline_add(&call->trace->timeline, WEIR_ROW_OPENS, call->end_ns, 1);
}

/* open(path, flags), creat(path, mode), openat(dir, path, flags), openat2(dir, path, {flags=…}) */
void weir_call_open(struct weir_call *call)
{
    struct weir_trace *trace = call->trace;
    const struct weir_line *line = call->line;
    bool at = weir_span_skip(&(struct weir_span){line->name.at, line->name.end}, "openat");
    bool creat = weir_span_is(line->name, "creat");
    char path[WEIR_TRACE_PATH_MAX];
    struct weir_span flags = weir_call_argument(call, at ? 2 : 1);
    weir_span_member(flags, "flags", &flags);
    if (!line->has_result || !weir_call_path(call, at ? 0 : -1, at, path))
        return;
    /* Where it is seen from may not be known; then the kernel's name for it is better. */
    if (path[0] != '/' && line->result_path[0])
        strcpy(path, line->result_path);
    if (line->result < 0) {
        trace->opens_failed += !weir_trace_path_is_program(path);
        return;
    }
    struct weir_trace_file *file = weir_trace_file_get(&trace->files, path);
    struct weir_trace_open *open = file ? open_make(call, file, flags, creat) : NULL;
    if (!open)
        return;
    file->is_dir = weir_call_flag(flags, "O_DIRECTORY");
    note_open(call, file, open->is_direct);
    weir_trace_fd_set(&trace->tasks, call->task, line->result, open,
                      weir_call_flag(flags, "O_CLOEXEC"));
}

/* ---- looking ---- */

/* stat(path, …), fstat(fd, …), newfstatat(dir, path, …), statx(dir, path, …). What is not there
 * has no account: Python looks for its modules in many places. */
void weir_call_stat(struct weir_call *call)
{
    const struct weir_line *line = call->line;
    bool by_fd = weir_span_is(line->name, "fstat");
    bool by_path = weir_span_is(line->name, "stat") || weir_span_is(line->name, "lstat");
    char path[WEIR_TRACE_PATH_MAX];
    struct weir_trace_file *file = NULL;
    struct weir_span size;
    int64_t bytes;
    bool named = !by_fd && weir_call_path(call, by_path ? -1 : 0, !by_path, path);
    if (named && (weir_trace_path_is_program(path) || weir_span_has(line->args, "S_IFDIR")))
        return; /* whoever wants a real path looks at every directory on the way */
    call->trace->stats += named;
    if (named && line->has_result && !line->result && weir_span_has(line->args, "S_IFREG"))
        file = weir_trace_file_get(&call->trace->files, path);
    if (!named && !by_path) {
        struct weir_trace_open *open = weir_call_file(call, 0);
        file = open ? open->file : NULL;
    }
    if (!file) {
        if (named)
            weir_hist_add(&call->trace->times[WEIR_TRACE_NAMES], call->took_ns);
        return;
    }
    weir_call_note(call, file, WEIR_TRACE_NAMES);
    if (named && !file->exists) { /* made by somebody else since it was removed */
        file->exists = true;
        file->size_bytes = 0;
        weir_trace_file_renew(&call->trace->files, file);
    }
    if ((weir_span_member(line->args, "st_size", &size) ||
         weir_span_member(line->args, "stx_size", &size)) &&
        weir_span_int(size, &bytes) && bytes > 0 && (uint64_t)bytes > file->size_bytes)
        file->size_bytes = (uint64_t)bytes;
}

void weir_call_list(struct weir_call *call)
{
    struct weir_trace_open *open = weir_call_file(call, 0);
    if (!open)
        return;
    open->file->is_dir = true;
    call->trace->lists += !open->file->is_program;
    weir_call_note(call, open->file, WEIR_TRACE_NAMES);
}

/* ---- renaming and removing ---- */

static void swap(uint64_t *a, uint64_t *b)
{
    uint64_t was = *a;
    *a = *b;
    *b = was;
}

/* Each name has what the other had. */
static void exchange(struct weir_call *call, const char *from, const char *to)
{
    struct weir_trace_files *files = &call->trace->files;
    struct weir_trace_file *one = weir_trace_file_find(files, from);
    struct weir_trace_file *other = weir_trace_file_find(files, to);
    if (one || other) { /* else they are nobody's, or directories */
        bool is_new = !one || !other, is_dir = one ? one->is_dir : other->is_dir;
        one = one ? one : weir_trace_file_get(files, from);
        other = other ? other : weir_trace_file_get(files, to);
        if (!one || !other || one == files->rest || other == files->rest)
            return; /* too many files: these have no account of their own */
        if (is_new) /* of one that was never opened nothing else is known */
            one->is_dir = other->is_dir = is_dir;
        weir_call_note(call, one, WEIR_TRACE_NAMES);
        swap(&one->size_bytes, &other->size_bytes);
        swap(&one->number, &other->number);
        one->exists = other->exists = true;
    } else {
        weir_hist_add(&call->trace->times[WEIR_TRACE_NAMES], call->took_ns);
    }
    weir_burst_swapped(call, one, other, from, to);
}

/* rename(a, b), renameat(dir, a, dir, b), renameat2(dir, a, dir, b, flags) */
void weir_call_rename(struct weir_call *call)
{
    char from[WEIR_TRACE_PATH_MAX], to[WEIR_TRACE_PATH_MAX];
    bool at = !weir_span_is(call->line->name, "rename");
    if (!call->line->has_result || call->line->result ||
        !weir_call_path(call, at ? 0 : -1, at, from) ||
        !weir_call_path(call, at ? 2 : -1, at ? 3 : 1, to))
        return;
    if (weir_trace_path_is_program(to))
        return; /* Python's caches of modules */
    call->trace->renames++;
    if (at && weir_call_flag(weir_call_argument(call, 4), "RENAME_EXCHANGE")) {
        exchange(call, from, to);
        return;
    }
    struct weir_trace_file *old = weir_trace_file_find(&call->trace->files, from);
    struct weir_trace_file *new = old ? weir_trace_file_get(&call->trace->files, to) : NULL;
    if (new) {
        weir_call_note(call, old, WEIR_TRACE_NAMES);
        new->size_bytes = old->size_bytes;
        new->number = old->number;
        old->exists = false;
        new->exists = true;
    } else {
        weir_hist_add(&call->trace->times[WEIR_TRACE_NAMES], call->took_ns);
        struct weir_trace_file *over = weir_trace_file_find(&call->trace->files, to);
        if (over)
            weir_trace_file_renew(&call->trace->files, over);
    }
    weir_burst_renamed(call, old, new, from);
}

void weir_call_remove(struct weir_call *call)
{
    char path[WEIR_TRACE_PATH_MAX];
    bool at = weir_span_is(call->line->name, "unlinkat");
    if (!call->line->has_result || call->line->result ||
        !weir_call_path(call, at ? 0 : -1, at, path))
        return;
    struct weir_trace_file *file = weir_trace_file_find(&call->trace->files, path);
    if (!file)
        return;
    weir_call_note(call, file, WEIR_TRACE_NAMES);
    file->exists = false;
    file->dirty = 0;
}
