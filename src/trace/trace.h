/* trace.h - what a program did with files, from a log of its system calls that is fed in pieces of
 * any size. One thread; memory is bounded whatever the log says (see the limits of file.h, task.h
 * and pages.h).
 */
#ifndef WEIR_TRACE_TRACE_H
#define WEIR_TRACE_TRACE_H

#include "trace/file.h"
#include "trace/line.h"
#include "trace/pages.h"
#include "trace/sizes.h"
#include "trace/task.h"
#include "trace/timeline.h"
#include "util/hist.h"

enum {
    WEIR_TRACE_LINE_MAX = 1 << 16,    /* bytes; what is longer is cut */
    WEIR_TRACE_BURSTS_MAX = 1 << 12,  /* kept one by one; the sums have all */
    WEIR_TRACE_LARGE_BYTES = 1 << 18, /* a request that runs at the storage's rate */
    WEIR_TRACE_BURST_BYTES = 1 << 20, /* written to one file: less is no checkpoint */
};

/* A file that was written as a checkpoint is: much at once, then perhaps synced and renamed. */
struct weir_trace_burst {
    struct weir_trace_file *file, *final; /* as it was written, and as it was called at last */
    uint64_t begin_ns, end_ns;            /* from opening it to closing or renaming it */
    uint64_t bytes, call_ns, sync_ns;     /* call_ns: in all calls, sync_ns included */
    uint32_t pid;
    bool is_thread; /* written by a thread beside the main one: nobody may be waiting */
    bool is_synced, is_renamed, is_direct;
    bool is_unsafe;   /* renamed while not synced: a crash may leave an empty file */
    bool is_in_place; /* over the one before: a crash leaves neither */
};

struct weir_trace {
    struct weir_trace_files files;
    struct weir_trace_tasks tasks;
    struct weir_pages pages;
    struct weir_timeline timeline;
    struct weir_hist times[WEIR_TRACE_KINDS]; /* of calls on data */
    struct weir_hist floor; /* of calls that do nothing: what watching a call costs */
    struct weir_sizes read_sizes, write_sizes; /* of requests on data, by what was moved */
    struct weir_sizes file_sizes;              /* of data files that were read: after the end */
    struct weir_trace_burst *bursts;
    size_t burst_count;

    struct weir_trace_sum data, program; /* after the end */
    uint64_t lines, calls, strange, cut; /* strange: lines not understood */
    uint64_t reads_first, reads_next, reads_jump, reads_empty, opens_failed;
    uint64_t direct_read_bytes, direct_write_bytes;
    uint64_t large_read_bytes, large_read_ns, large_reads; /* of WEIR_TRACE_LARGE_BYTES and more */
    uint64_t lists, stats, renames, renames_unsynced, syncs, whole_syncs, bursts_total;
    uint64_t rings, ring_waits, aio_calls;
    uint64_t readers_all, readers_much, writers; /* threads and processes of data */
    uint64_t readers;                            /* after the end: one of these two */
    uint64_t read_begin_ns, read_end_ns;
    uint32_t root_pid, cloning_pid;
    bool has_time, has_took;

    char *line;
    size_t line_size;
    bool line_is_cut;
    char *joined; /* a call whose two halves came apart */
    char *cwd;    /* the first task's, or NULL */
    uint64_t now_ns, day_ns;
    struct weir_line current;
    int code;
};

/* cwd: where the first process begins, or NULL if that is not known. */
int weir_trace_make(struct weir_trace **out, const char *cwd);
void weir_trace_free(struct weir_trace *trace);
int weir_trace_feed(struct weir_trace *trace, const void *data, size_t size);
/* The log is at its end: what is still open is closed, and the sums are made. */
int weir_trace_end(struct weir_trace *trace);

/* What watching added to so many calls, as far as it is known. */
uint64_t weir_trace_floor_ns(const struct weir_trace *trace);
/* Time in calls of that kind, without what watching added. */
uint64_t weir_trace_net_ns(const struct weir_trace *trace, enum weir_trace_kind kind);
/* Seconds in which at least one burst of a main thread was under way; after the end, when bursts
 * are sorted by their beginning. */
double weir_trace_burst_s(const struct weir_trace *trace);

#endif
