/* call.h - what a system call does to the accounts. */
#ifndef WEIR_TRACE_CALL_H
#define WEIR_TRACE_CALL_H

#include "trace/trace.h"

/* One whole call of one task. */
struct weir_call {
    struct weir_trace *trace;
    struct weir_trace_task *task;
    const struct weir_line *line;
    uint64_t begin_ns, end_ns, took_ns;
};

/* Takes a call that is known; others do nothing. */
void weir_call_take(struct weir_call *call);
/* Its i-th argument; an empty one if there are not so many. */
struct weir_span weir_call_argument(const struct weir_call *call, unsigned i);
/* The open file of that argument. One that is not known but told by -y is taken up, also where
 * another was thought to be; NULL: no file. */
struct weir_trace_open *weir_call_file(struct weir_call *call, unsigned i);
/* Whether a set of flags (A|B|C) has that one. */
bool weir_call_flag(struct weir_span flags, const char *name);
/* The path of argument `path`, seen from the descriptor of argument `dir` (-1: from where the task
 * is); false if there is none. */
bool weir_call_path(struct weir_call *call, int dir, unsigned path, char *out);

/* Puts a call on the accounts of a file. */
void weir_call_note(struct weir_call *call, struct weir_trace_file *file,
                    enum weir_trace_kind kind);

/* Those that move bytes: call_io.c. */
void weir_call_read(struct weir_call *call);
void weir_call_pread(struct weir_call *call);
void weir_call_write(struct weir_call *call);
void weir_call_pwrite(struct weir_call *call);
void weir_call_sendfile(struct weir_call *call);
void weir_call_copy_range(struct weir_call *call);
void weir_call_seek(struct weir_call *call);
void weir_call_map(struct weir_call *call);
void weir_call_sync(struct weir_call *call);
void weir_call_sync_all(struct weir_call *call);
void weir_call_truncate(struct weir_call *call);
void weir_call_allocate(struct weir_call *call);
/* Those that name files: call_name.c. */
void weir_call_open(struct weir_call *call);
void weir_call_stat(struct weir_call *call);
void weir_call_list(struct weir_call *call);
void weir_call_rename(struct weir_call *call);
void weir_call_remove(struct weir_call *call);
/* Those of processes and descriptors: call_task.c. */
void weir_call_close(struct weir_call *call);
void weir_call_close_range(struct weir_call *call);
void weir_call_dup(struct weir_call *call);
void weir_call_fcntl(struct weir_call *call);
void weir_call_clone(struct weir_call *call);
void weir_call_exec(struct weir_call *call);
void weir_call_chdir(struct weir_call *call);

/* bursts: burst.c */
void weir_burst_closed(void *trace, struct weir_trace_open *open);
void weir_burst_renamed(struct weir_call *call, struct weir_trace_file *from,
                        struct weir_trace_file *to, const char *from_path);
/* Either both files are known, or neither. */
void weir_burst_swapped(struct weir_call *call, struct weir_trace_file *one,
                        struct weir_trace_file *other, const char *one_path,
                        const char *other_path);
void weir_burst_synced(struct weir_call *call, struct weir_trace_file *file);

#endif
