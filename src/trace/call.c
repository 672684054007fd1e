/* call.c - see call.h. */
#include "trace/call.h"

#include <stdlib.h>
#include <string.h>

#include "trace/path.h"
#include "util/sys.h"

/* ---- arguments ---- */

struct weir_span weir_call_argument(const struct weir_call *call, unsigned i)
{
    struct weir_span args = call->line->args, out = {args.end, args.end};
    for (unsigned n = 0; n <= i; n++)
        if (!weir_span_argument(&args, &out))
            return (struct weir_span){args.end, args.end};
    return out;
}

bool weir_call_flag(struct weir_span flags, const char *name)
{
    while (flags.at < flags.end) {
        struct weir_span one = weir_span_until(&flags, "|");
        if (weir_span_is(one, name))
            return true;
        flags.at += flags.at < flags.end;
    }
    return false;
}

/* Whether a name that strace tells is that of the open file which the table has. It may not be the
 * one it was opened by: the kernel follows links, and files are renamed and removed. */
static bool is_named(struct weir_call *call, struct weir_trace_open *open, const char *path)
{
    char own[WEIR_TRACE_PATH_MAX];
    uint64_t hash = weir_trace_path_hash(path);
    if (open->told == hash)
        return true;
    if (strcmp(weir_trace_file_path(open->file, own, sizeof own), path) && open->file->exists &&
        open->renames == call->trace->renames)
        return false;
    open->told = hash;
    open->renames = call->trace->renames;
    return true;
}

struct weir_trace_open *weir_call_file(struct weir_call *call, unsigned i)
{
    char path[WEIR_TRACE_PATH_MAX];
    int64_t fd;
    if (!weir_span_fd(weir_call_argument(call, i), &fd, path, sizeof path) || fd < 0)
        return NULL;
    struct weir_trace_open *open = weir_trace_fd_get(call->task, fd);
    if (!path[0] || (open && is_named(call, open, path)))
        return open;
    struct weir_trace_file *file = weir_trace_file_get(&call->trace->files, path);
    open = file ? weir_alloc(sizeof *open) : NULL;
    if (!open)
        return NULL;
    file->exists = true;
    open->file = file;
    open->told = weir_trace_path_hash(path);
    open->renames = call->trace->renames;
    open->pid = call->task->pid;
    open->is_thread = call->task->is_thread;
    open->opened_ns = call->begin_ns;
    weir_trace_fd_set(&call->trace->tasks, call->task, fd, open, false);
    return weir_trace_fd_get(call->task, fd);
}

bool weir_call_path(struct weir_call *call, int dir, unsigned path, char *out)
{
    char name[WEIR_TRACE_PATH_MAX], base[WEIR_TRACE_PATH_MAX] = "";
    int64_t fd = WEIR_TRACE_CWD;
    if (weir_span_quoted(weir_call_argument(call, path), name, sizeof name) <= 0)
        return false;
    if (dir >= 0 && !weir_span_fd(weir_call_argument(call, (unsigned)dir), &fd, base, sizeof base))
        return false;
    if (!base[0] && fd == WEIR_TRACE_CWD && call->task->cwd->path)
        return weir_trace_path_join(out, call->task->cwd->path, name);
    struct weir_trace_open *open = base[0] ? NULL : weir_trace_fd_get(call->task, fd);
    if (open)
        weir_trace_file_path(open->file, base, sizeof base);
    return weir_trace_path_join(out, base, name);
}

/* ---- accounts ---- */

void weir_call_note(struct weir_call *call, struct weir_trace_file *file, enum weir_trace_kind kind)
{
    file->calls++;
    file->ns += call->took_ns;
    file->finds += kind == WEIR_TRACE_OPEN || kind == WEIR_TRACE_NAMES;
    if (kind == WEIR_TRACE_OPEN)
        file->open_ns += call->took_ns;
    else if (kind == WEIR_TRACE_READ)
        file->read_ns += call->took_ns;
    else if (kind == WEIR_TRACE_WRITE || kind == WEIR_TRACE_SYNC)
        file->write_ns += call->took_ns;
    if (!file->is_program)
        weir_hist_add(&call->trace->times[kind], call->took_ns);
}

static void count_ring(struct weir_call *call)
{
    call->trace->rings++;
}

static void count_ring_wait(struct weir_call *call)
{
    call->trace->ring_waits++;
}

static void count_aio(struct weir_call *call)
{
    call->trace->aio_calls++;
}

/* ---- the table, by name ---- */

struct known {
    const char *name;
    void (*take)(struct weir_call *call);
};
static const struct known known[] = {
    {"chdir", weir_call_chdir},
    {"clone", weir_call_clone},
    {"clone3", weir_call_clone},
    {"close", weir_call_close},
    {"close_range", weir_call_close_range},
    {"copy_file_range", weir_call_copy_range},
    {"creat", weir_call_open},
    {"dup", weir_call_dup},
    {"dup2", weir_call_dup},
    {"dup3", weir_call_dup},
    {"execve", weir_call_exec},
    {"execveat", weir_call_exec},
    {"fallocate", weir_call_allocate},
    {"fchdir", weir_call_chdir},
    {"fcntl", weir_call_fcntl},
    {"fdatasync", weir_call_sync},
    {"fork", weir_call_clone},
    {"fstat", weir_call_stat},
    {"fsync", weir_call_sync},
    {"ftruncate", weir_call_truncate},
    {"getdents", weir_call_list},
    {"getdents64", weir_call_list},
    {"io_submit", count_aio},
    {"io_uring_enter", count_ring_wait},
    {"io_uring_setup", count_ring},
    {"lseek", weir_call_seek},
    {"lstat", weir_call_stat},
    {"mmap", weir_call_map},
    {"newfstatat", weir_call_stat},
    {"open", weir_call_open},
    {"openat", weir_call_open},
    {"openat2", weir_call_open},
    {"pread64", weir_call_pread},
    {"preadv", weir_call_pread},
    {"preadv2", weir_call_pread},
    {"pwrite64", weir_call_pwrite},
    {"pwritev", weir_call_pwrite},
    {"pwritev2", weir_call_pwrite},
    {"read", weir_call_read},
    {"readv", weir_call_read},
    {"rename", weir_call_rename},
    {"renameat", weir_call_rename},
    {"renameat2", weir_call_rename},
    {"sendfile", weir_call_sendfile},
    {"splice", weir_call_copy_range},
    {"stat", weir_call_stat},
    {"statx", weir_call_stat},
    {"sync", weir_call_sync_all},
    {"sync_file_range", weir_call_sync},
    {"syncfs", weir_call_sync_all},
    {"truncate", weir_call_truncate},
    {"unlink", weir_call_remove},
    {"unlinkat", weir_call_remove},
    {"vfork", weir_call_clone},
    {"write", weir_call_write},
    {"writev", weir_call_write},
};

static int compare(const void *name, const void *row)
{
    const struct weir_span *span = name;
    const char *other = ((const struct known *)row)->name;
    size_t size = weir_span_size(*span), length = strlen(other);
    int order = memcmp(span->at, other, size < length ? size : length);
    return order ? order : size < length ? -1 : size > length;
}

void weir_call_take(struct weir_call *call)
{
    const struct known *row =
        bsearch(&call->line->name, known, sizeof known / sizeof known[0], sizeof known[0], compare);
    call->trace->calls++;
    if (row)
        row->take(call);
}
