/* burst.c - files written as checkpoints are; see struct weir_trace_burst. */
#include <stdlib.h>
#include <string.h>

#include "trace/call.h"
#include "util/sys.h"

/* Nothing refers to the open file any more. */
void weir_burst_closed(void *arg, struct weir_trace_open *open)
{
    struct weir_trace *trace = arg;
    if (open->written_bytes < WEIR_TRACE_BURST_BYTES || open->file->is_program)
        return;
    trace->bursts_total++;
    if (trace->burst_count == WEIR_TRACE_BURSTS_MAX)
        return;
    open->file->burst = (uint32_t)trace->burst_count + 1;
    trace->bursts[trace->burst_count++] = (struct weir_trace_burst){
        .file = open->file,
        .final = open->file,
        .begin_ns = open->opened_ns < open->first_write_ns ? open->opened_ns : open->first_write_ns,
        .end_ns = open->end_ns,
        .bytes = open->written_bytes,
        .call_ns = open->written_ns + open->sync_ns,
        .sync_ns = open->sync_ns,
        .pid = open->pid,
        .is_thread = open->is_thread,
        .is_synced = open->is_synced,
        .is_direct = open->is_direct,
        .is_in_place = open->is_in_place,
    };
}

static struct weir_trace_burst *burst_of(struct weir_trace *trace,
                                         const struct weir_trace_file *file)
{
    return file && file->burst ? &trace->bursts[file->burst - 1] : NULL;
}

static bool is_dirty(const struct weir_trace *trace, const struct weir_trace_file *file)
{
    return file->dirty && file->dirty == trace->whole_syncs + 1;
}

static void publish(struct weir_call *call, struct weir_trace_burst *burst)
{
    burst->is_renamed = true;
    burst->is_unsafe |= is_dirty(call->trace, burst->file);
    burst->end_ns = call->end_ns > burst->end_ns ? call->end_ns : burst->end_ns;
    burst->call_ns += call->took_ns;
}

/* A directory that was renamed takes along what was written in it. */
static void publish_below(struct weir_call *call, const char *dir)
{
    struct weir_trace *trace = call->trace;
    size_t size = strlen(dir);
    for (size_t i = 0; i < trace->burst_count; i++) {
        struct weir_trace_burst *burst = &trace->bursts[i];
        const char *place = burst->file->dir->path;
        if (!burst->is_renamed && !strncmp(place, dir, size) && strchr("/", place[size]))
            publish(call, burst);
    }
}

void weir_burst_renamed(struct weir_call *call, struct weir_trace_file *from,
                        struct weir_trace_file *to, const char *from_path)
{
    struct weir_trace_burst *burst = burst_of(call->trace, from);
    if (from && is_dirty(call->trace, from))
        call->trace->renames_unsynced++;
    if (burst) {
        publish(call, burst);
        burst->final = to ? to : from;
        if (to)
            to->burst = from->burst;
        from->burst = 0;
    } else if (!from || from->is_dir)
        publish_below(call, from_path);
    if (to && from) {
        to->dirty = from->dirty;
        from->dirty = 0;
    }
}

/* Which of two names is the lasting one is not told: what was written last is what is published. */
void weir_burst_swapped(struct weir_call *call, struct weir_trace_file *one,
                        struct weir_trace_file *other, const char *one_path, const char *other_path)
{
    bool is_first = one && one->burst > other->burst; /* they are numbered as they begin */
    struct weir_trace_burst *burst = burst_of(call->trace, is_first ? one : other);
    if (burst && !burst->is_renamed) {
        publish(call, burst);
        burst->final = is_first ? other : one;
    }
    if (!one || one->is_dir)
        publish_below(call, one_path);
    if (!other || other->is_dir)
        publish_below(call, other_path);
    if (!one || !other)
        return;
    call->trace->renames_unsynced += is_dirty(call->trace, one) || is_dirty(call->trace, other);
    uint32_t number = one->burst;
    uint64_t dirty = one->dirty;
    one->burst = other->burst;
    other->burst = number;
    one->dirty = other->dirty;
    other->dirty = dirty;
}

/* Also through another descriptor, after the first was closed. */
void weir_burst_synced(struct weir_call *call, struct weir_trace_file *file)
{
    struct weir_trace_burst *burst = burst_of(call->trace, file);
    if (!burst || burst->is_synced)
        return;
    burst->is_synced = true;
    burst->sync_ns += call->took_ns;
    burst->call_ns += call->took_ns;
    burst->end_ns = call->end_ns > burst->end_ns ? call->end_ns : burst->end_ns;
}

static int by_begin(const void *a, const void *b)
{
    const struct weir_trace_burst *one = a, *other = b;
    return one->begin_ns < other->begin_ns ? -1 : one->begin_ns > other->begin_ns;
}

double weir_trace_burst_s(const struct weir_trace *trace)
{
    uint64_t until = 0, sum = 0;
    qsort(trace->bursts, trace->burst_count, sizeof *trace->bursts, by_begin);
    for (size_t i = 0; i < trace->burst_count; i++) {
        const struct weir_trace_burst *burst = &trace->bursts[i];
        uint64_t begin = burst->begin_ns > until ? burst->begin_ns : until;
        if (burst->is_thread || burst->end_ns <= begin)
            continue;
        sum += burst->end_ns - begin;
        until = burst->end_ns;
    }
    return (double)sum / 1e9;
}
