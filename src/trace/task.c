/* task.c - see task.h. */
#include "trace/task.h"

#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"

enum { HASH_SLOTS = 1 << 12 };

int weir_trace_tasks_init(struct weir_trace_tasks *tasks)
{
    tasks->by_hash = weir_alloc(HASH_SLOTS * sizeof(void *));
    return tasks->by_hash ? 0 : weir_fail_memory();
}

static struct weir_trace_task **slot_of(struct weir_trace_tasks *tasks, uint32_t pid)
{
    struct weir_trace_task **at = &tasks->by_hash[pid & (HASH_SLOTS - 1)];
    while (*at && (*at)->pid != pid)
        at = &(*at)->next;
    return at;
}

struct weir_trace_task *weir_trace_task_find(struct weir_trace_tasks *tasks, uint32_t pid)
{
    return *slot_of(tasks, pid);
}

/* ---- open files and their tables ---- */

static void open_drop(struct weir_trace_tasks *tasks, struct weir_trace_open *open)
{
    if (--open->refs)
        return;
    if (tasks->closed)
        tasks->closed(tasks->arg, open);
    free(open);
}

static void fds_drop(struct weir_trace_tasks *tasks, struct weir_trace_fds *fds)
{
    if (!fds || --fds->refs)
        return;
    for (uint32_t i = 0; i < fds->count; i++)
        open_drop(tasks, fds->fd[i].open);
    tasks->fds -= fds->count;
    free(fds->fd);
    free(fds);
}

/* A table of its own with the same open files; empty if there is no room for it. */
static struct weir_trace_fds *fds_copy(struct weir_trace_tasks *tasks,
                                       const struct weir_trace_fds *from)
{
    struct weir_trace_fds *fds = weir_alloc(sizeof *fds);
    if (!fds)
        return NULL;
    fds->refs = 1;
    if (!from || !from->count)
        return fds;
    if (tasks->fds + from->count <= WEIR_TRACE_FDS_ALL_MAX)
        fds->fd = weir_alloc(from->count * sizeof *fds->fd);
    if (!fds->fd) {
        tasks->lost++;
        return fds;
    }
    memcpy(fds->fd, from->fd, from->count * sizeof *fds->fd);
    fds->count = fds->room = from->count;
    for (uint32_t i = 0; i < fds->count; i++)
        fds->fd[i].open->refs++;
    tasks->fds += fds->count;
    return fds;
}

/* The place of fd in the table, or of the first one behind it. */
static uint32_t place_of(const struct weir_trace_fds *fds, int64_t fd)
{
    uint32_t low = 0, high = fds->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fds->fd[middle].fd < fd)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct weir_trace_fd *entry_of(struct weir_trace_task *task, int64_t fd)
{
    uint32_t at = place_of(task->fds, fd);
    return at < task->fds->count && task->fds->fd[at].fd == fd ? &task->fds->fd[at] : NULL;
}

struct weir_trace_open *weir_trace_fd_get(struct weir_trace_task *task, int64_t fd)
{
    struct weir_trace_fd *entry = entry_of(task, fd);
    return entry ? entry->open : NULL;
}

static bool make_room(struct weir_trace_tasks *tasks, struct weir_trace_fds *fds)
{
    if (fds->count < fds->room)
        return true;
    if (fds->count >= WEIR_TRACE_FDS_MAX || tasks->fds >= WEIR_TRACE_FDS_ALL_MAX)
        return false;
    uint32_t room = fds->room ? 2 * fds->room : 16;
    struct weir_trace_fd *bigger = weir_realloc(fds->fd, room * sizeof *bigger);
    if (!bigger)
        return false;
    fds->fd = bigger;
    fds->room = room;
    return true;
}

void weir_trace_fd_set(struct weir_trace_tasks *tasks, struct weir_trace_task *task, int64_t fd,
                       struct weir_trace_open *open, bool cloexec)
{
    struct weir_trace_fds *fds = task->fds;
    open->refs++;
    struct weir_trace_fd *old = entry_of(task, fd);
    if (old) {
        open_drop(tasks, old->open);
        *old = (struct weir_trace_fd){(int)fd, cloexec, open};
        return;
    }
    if (fd < 0 || fd > INT32_MAX || !make_room(tasks, fds)) {
        tasks->lost++;
        open_drop(tasks, open);
        return;
    }
    uint32_t at = place_of(fds, fd);
    memmove(fds->fd + at + 1, fds->fd + at, (fds->count - at) * sizeof *fds->fd);
    fds->fd[at] = (struct weir_trace_fd){(int)fd, cloexec, open};
    fds->count++;
    tasks->fds++;
}

/* Removes those of [first, last] that which says (NULL: all). */
static void remove_range(struct weir_trace_tasks *tasks, struct weir_trace_fds *fds, int64_t first,
                         int64_t last, bool only_cloexec)
{
    uint32_t kept = place_of(fds, first), at = kept;
    for (; at < fds->count; at++) {
        struct weir_trace_fd entry = fds->fd[at];
        if (entry.fd <= last && (!only_cloexec || entry.cloexec)) {
            open_drop(tasks, entry.open);
            tasks->fds--;
        } else
            fds->fd[kept++] = entry;
    }
    fds->count = kept;
}

void weir_trace_fd_close(struct weir_trace_tasks *tasks, struct weir_trace_task *task, int64_t fd)
{
    remove_range(tasks, task->fds, fd, fd, false);
}

void weir_trace_fd_close_range(struct weir_trace_tasks *tasks, struct weir_trace_task *task,
                               int64_t first, int64_t last, bool only_mark)
{
    if (!only_mark)
        remove_range(tasks, task->fds, first, last, false);
    for (uint32_t i = place_of(task->fds, first); only_mark && i < task->fds->count; i++)
        if (task->fds->fd[i].fd <= last)
            task->fds->fd[i].cloexec = true;
}

void weir_trace_fd_mark(struct weir_trace_task *task, int64_t fd, bool cloexec)
{
    struct weir_trace_fd *entry = entry_of(task, fd);
    if (entry)
        entry->cloexec = cloexec;
}

/* ---- tasks ---- */

static void cwd_drop(struct weir_trace_cwd *cwd)
{
    if (!cwd || --cwd->refs)
        return;
    free(cwd->path);
    free(cwd);
}

/* path NULL: not known. */
static struct weir_trace_cwd *cwd_make(const char *path)
{
    struct weir_trace_cwd *cwd = weir_alloc(sizeof *cwd);
    if (!cwd)
        return NULL;
    cwd->refs = 1;
    cwd->path = path ? weir_strdup(path) : NULL;
    return cwd;
}

static void task_let_go(struct weir_trace_tasks *tasks, struct weir_trace_task *task)
{
    fds_drop(tasks, task->fds);
    cwd_drop(task->cwd);
    free(task->begun);
    task->fds = NULL;
    task->cwd = NULL;
    task->begun = NULL;
}

/* What a task begins with; nothing has changed if there is no memory for it. */
static bool inherit(struct weir_trace_tasks *tasks, struct weir_trace_task *task,
                    struct weir_trace_task *parent, struct weir_trace_birth birth)
{
    struct weir_trace_fds *fds = parent && birth.shares_fds ? parent->fds : NULL;
    struct weir_trace_cwd *cwd = parent && birth.shares_cwd ? parent->cwd : NULL;
    if (fds)
        fds->refs++;
    else
        fds = fds_copy(tasks, parent ? parent->fds : NULL);
    if (cwd)
        cwd->refs++;
    else
        cwd = cwd_make(parent ? parent->cwd->path : NULL);
    if (!fds || !cwd) {
        fds_drop(tasks, fds);
        cwd_drop(cwd);
        return false;
    }
    fds_drop(tasks, task->fds);
    cwd_drop(task->cwd);
    task->fds = fds;
    task->cwd = cwd;
    task->is_thread = birth.is_thread;
    return true;
}

struct weir_trace_task *weir_trace_task_make(struct weir_trace_tasks *tasks, uint32_t pid,
                                             struct weir_trace_task *parent,
                                             struct weir_trace_birth birth)
{
    struct weir_trace_task *task = NULL;
    if (tasks->count < WEIR_TRACE_TASKS_MAX)
        task = weir_alloc(sizeof *task);
    if (!task) {
        tasks->lost++;
        return NULL;
    }
    task->pid = pid;
    if (!inherit(tasks, task, parent, birth)) {
        free(task);
        return NULL;
    }
    struct weir_trace_task **slot = &tasks->by_hash[pid & (HASH_SLOTS - 1)];
    task->next = *slot;
    *slot = task;
    tasks->count++;
    tasks->total++;
    tasks->threads += birth.is_thread;
    return task;
}

static void adopt(struct weir_trace_tasks *tasks, struct weir_trace_task *task,
                  struct weir_trace_task *parent, struct weir_trace_birth birth)
{
    bool was_thread = task->is_thread;
    if (task == parent || !inherit(tasks, task, parent, birth))
        return;
    tasks->threads += birth.is_thread;
    tasks->threads -= was_thread;
}

static void forget(struct weir_trace_tasks *tasks, struct weir_trace_task *task)
{
    *slot_of(tasks, task->pid) = task->next;
    tasks->count--;
    task_let_go(tasks, task);
    free(task);
}

void weir_trace_task_born(struct weir_trace_tasks *tasks, uint32_t pid,
                          struct weir_trace_task *parent, struct weir_trace_birth birth)
{
    struct weir_trace_task *child = weir_trace_task_find(tasks, pid);
    if (!child) {
        weir_trace_task_make(tasks, pid, parent, birth);
        return;
    }
    if (child->is_guess && child->guess_pid != parent->pid)
        adopt(tasks, child, parent, birth);
    child->is_guess = child->awaits_clone = false;
    if (child->is_gone)
        forget(tasks, child);
}

void weir_trace_task_end(struct weir_trace_tasks *tasks, struct weir_trace_task *task)
{
    if (!task->awaits_clone || task->is_gone) {
        forget(tasks, task);
        return;
    }
    task_let_go(tasks, task);
    task->is_gone = true;
}

void weir_trace_tasks_free(struct weir_trace_tasks *tasks)
{
    for (size_t i = 0; tasks->by_hash && i < HASH_SLOTS; i++)
        while (tasks->by_hash[i])
            forget(tasks, tasks->by_hash[i]);
    free(tasks->by_hash);
    tasks->by_hash = NULL;
}

void weir_trace_task_exec(struct weir_trace_tasks *tasks, struct weir_trace_task *task)
{
    task->is_thread = false;
    task->is_guess = false; /* what it has by now is its own */
    if (task->fds->refs > 1) {
        struct weir_trace_fds *own = fds_copy(tasks, task->fds);
        if (!own)
            return;
        fds_drop(tasks, task->fds);
        task->fds = own;
    }
    remove_range(tasks, task->fds, 0, INT32_MAX, true);
}

void weir_trace_task_chdir(struct weir_trace_task *task, const char *path)
{
    char *copy = weir_strdup(path);
    if (!copy)
        return;
    free(task->cwd->path);
    task->cwd->path = copy;
}
