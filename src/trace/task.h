/* task.h - processes and threads, the descriptors they hold or share, and what is open behind
 * those. dup and fork share an open file (and its position), threads share a whole table, exec
 * closes what is marked for it.
 */
#ifndef WEIR_TRACE_TASK_H
#define WEIR_TRACE_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/file.h"

/* Bounds, all far above what one machine runs; beyond them a log is not believed. */
enum {
    WEIR_TRACE_TASKS_MAX = 1 << 16,
    WEIR_TRACE_FDS_MAX = 1 << 16,     /* of a table */
    WEIR_TRACE_FDS_ALL_MAX = 1 << 21, /* of all tables together */
    WEIR_TRACE_BEGUN_MAX = 1 << 16,   /* bytes of a call whose end is still to come */
};

/* One open file: what the kernel calls an open file description. */
struct weir_trace_open {
    uint32_t refs, pid;
    struct weir_trace_file *file;
    uint64_t told;     /* weir_trace_path_hash of the kernel's name for it, links followed; or 0 */
    uint64_t renames;  /* how many there had been when that was told */
    uint64_t at;       /* the position */
    uint64_t read_end; /* where the last read ended */
    bool has_read, is_direct, is_sync, is_append, is_thread, is_in_place;
    /* Of what was written through it: a checkpoint is large and comes at once. */
    uint64_t opened_ns, first_write_ns, end_ns, written_bytes, written_ns, sync_ns;
    bool is_synced;
};

struct weir_trace_fd {
    int fd;
    bool cloexec;
    struct weir_trace_open *open;
};

struct weir_trace_fds {
    uint32_t refs;
    uint32_t count, room;
    struct weir_trace_fd *fd; /* by number */
};

/* Shared by threads: when one moves, all do. */
struct weir_trace_cwd {
    uint32_t refs;
    char *path; /* NULL: not known */
};

struct weir_trace_task {
    struct weir_trace_task *next; /* with the same hash */
    uint32_t pid;
    bool is_thread, has_read, has_written; /* data, that is */
    bool is_guess;                         /* whose child it is, until its clone returns, */
    uint32_t guess_pid;                    /* and this is the guess (0: none) */
    bool awaits_clone, is_gone;            /* gone before that returned: nothing but its number */
    uint64_t read_bytes;
    struct weir_trace_fds *fds;
    struct weir_trace_cwd *cwd;
    char *begun; /* "name(args" of a call whose end is still to come, or NULL */
    size_t begun_size;
    uint64_t begun_ns;
};

struct weir_trace_tasks {
    struct weir_trace_task **by_hash;
    size_t count, fds;             /* fds: in all tables */
    uint64_t total, threads, lost; /* ever; lost: for the bounds above */
    /* A descriptor that nothing refers to any more: its account is closed. */
    void (*closed)(void *arg, struct weir_trace_open *open);
    void *arg;
};

int weir_trace_tasks_init(struct weir_trace_tasks *tasks);
void weir_trace_tasks_free(struct weir_trace_tasks *tasks);

struct weir_trace_task *weir_trace_task_find(struct weir_trace_tasks *tasks, uint32_t pid);
/* How a new task begins: from its parent (NULL: with nothing). */
struct weir_trace_birth {
    bool is_thread, shares_fds, shares_cwd;
};
/* NULL: no memory, or too many. */
struct weir_trace_task *weir_trace_task_make(struct weir_trace_tasks *tasks, uint32_t pid,
                                             struct weir_trace_task *parent,
                                             struct weir_trace_birth birth);
/* A clone of parent's has returned with this number: a new task, or one that was heard of before,
 * which begins again from there if it was taken for another's child. */
void weir_trace_task_born(struct weir_trace_tasks *tasks, uint32_t pid,
                          struct weir_trace_task *parent, struct weir_trace_birth birth);
/* The task is gone. Its number is kept while its clone has still to return: it is counted once. */
void weir_trace_task_end(struct weir_trace_tasks *tasks, struct weir_trace_task *task);
/* The task runs another program now. */
void weir_trace_task_exec(struct weir_trace_tasks *tasks, struct weir_trace_task *task);
void weir_trace_task_chdir(struct weir_trace_task *task, const char *path);

struct weir_trace_open *weir_trace_fd_get(struct weir_trace_task *task, int64_t fd);
/* fd now is open, one more reference to it; what it was before is closed. */
void weir_trace_fd_set(struct weir_trace_tasks *tasks, struct weir_trace_task *task, int64_t fd,
                       struct weir_trace_open *open, bool cloexec);
void weir_trace_fd_close(struct weir_trace_tasks *tasks, struct weir_trace_task *task, int64_t fd);
void weir_trace_fd_close_range(struct weir_trace_tasks *tasks, struct weir_trace_task *task,
                               int64_t first, int64_t last, bool only_mark);
void weir_trace_fd_mark(struct weir_trace_task *task, int64_t fd, bool cloexec);

#endif
