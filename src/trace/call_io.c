/* call_io.c - the calls that move bytes; see call.h. */
#include "trace/call.h"
#include "trace/path.h"

/* Linux moves no more in one call. */
enum { CALL_BYTES_MAX = 0x7ffff000 };
static const uint64_t at_position = UINT64_MAX;

static bool moved(const struct weir_call *call, uint64_t *bytes)
{
    if (!call->line->has_result || call->line->result < 0 ||
        call->line->result > (int64_t)CALL_BYTES_MAX)
        return false;
    *bytes = (uint64_t)call->line->result;
    return true;
}

/* The offset an argument says; without one, the position. */
static uint64_t offset_of(const struct weir_call *call, unsigned i)
{
    int64_t offset;
    return weir_span_int(weir_call_argument(call, i), &offset) && offset >= 0 ? (uint64_t)offset
                                                                              : at_position;
}

/* Where the transfer begins and ends; the position goes on if it was that. False: beyond any file.
 */
static bool place(struct weir_trace_open *open, uint64_t *offset, uint64_t bytes)
{
    bool moves = *offset == at_position;
    uint64_t end;
    if (moves)
        *offset = open->at;
    if (__builtin_add_overflow(*offset, bytes, &end) || end > INT64_MAX)
        return false;
    if (moves)
        open->at = end;
    if (end > open->file->size_bytes)
        open->file->size_bytes = end;
    return true;
}

static void note_order(struct weir_trace *trace, struct weir_trace_open *open, uint64_t offset,
                       uint64_t bytes)
{
    bool is_next = open->has_read && offset == open->read_end;
    bool is_first = !open->has_read && !offset;
    trace->reads_first += is_first;
    trace->reads_next += is_next;
    trace->reads_jump += !is_first && !is_next;
    open->file->jumps += !is_first && !is_next;
    open->has_read = true;
    open->read_end = offset + bytes;
}

/* Who reads much is a reader; who reads a little counts if nobody does. */
static void note_reader(struct weir_trace *trace, struct weir_trace_task *task, uint64_t bytes)
{
    enum { MUCH = 1 << 20 };
    trace->readers_all += !task->has_read;
    task->has_read = true;
    trace->readers_much += task->read_bytes < MUCH && task->read_bytes + bytes >= MUCH;
    task->read_bytes += bytes;
}

static void note_read(struct weir_call *call, struct weir_trace_open *open, uint64_t offset,
                      uint64_t bytes)
{
    struct weir_trace *trace = call->trace;
    struct weir_trace_file *file = open->file;
    if (file->is_dir || !place(open, &offset, bytes))
        return;
    weir_call_note(call, file, WEIR_TRACE_READ);
    file->reads += bytes > 0;
    file->reads_empty += !bytes;
    file->read_bytes += bytes;
    if (file->is_program)
        return;
    if (!bytes) {
        trace->reads_empty++;
        return;
    }
    note_order(trace, open, offset, bytes);
    weir_sizes_add(&trace->read_sizes, bytes);
    weir_pages_read(&trace->pages, file->number, offset, bytes);
    weir_timeline_spread(&trace->timeline, WEIR_ROW_READ_BYTES, call->begin_ns, call->end_ns,
                         bytes);
    trace->direct_read_bytes += open->is_direct ? bytes : 0;
    if (bytes >= WEIR_TRACE_LARGE_BYTES) {
        trace->large_reads++;
        trace->large_read_bytes += bytes;
        trace->large_read_ns += call->took_ns;
    }
    note_reader(trace, call->task, bytes);
    if (!trace->read_begin_ns || call->begin_ns < trace->read_begin_ns)
        trace->read_begin_ns = call->begin_ns;
    trace->read_end_ns = call->end_ns > trace->read_end_ns ? call->end_ns : trace->read_end_ns;
}

static void note_write(struct weir_call *call, struct weir_trace_open *open, uint64_t offset,
                       uint64_t bytes)
{
    struct weir_trace *trace = call->trace;
    struct weir_trace_file *file = open->file;
    if (open->is_append && offset == at_position)
        open->at = file->size_bytes;
    if (!place(open, &offset, bytes))
        return;
    weir_call_note(call, file, WEIR_TRACE_WRITE);
    file->writes++;
    file->write_bytes += bytes;
    if (!open->is_sync)
        file->dirty = trace->whole_syncs + 1;
    if (!open->written_bytes) {
        open->pid = call->task->pid;
        open->is_thread = call->task->is_thread;
        open->first_write_ns = call->begin_ns;
    }
    open->is_synced = open->is_sync;
    open->written_bytes += bytes;
    open->written_ns += call->took_ns;
    open->end_ns = call->end_ns;
    if (file->is_program)
        return;
    weir_sizes_add(&trace->write_sizes, bytes);
    weir_timeline_spread(&trace->timeline, WEIR_ROW_WRITE_BYTES, call->begin_ns, call->end_ns,
                         bytes);
    trace->direct_write_bytes += open->is_direct ? bytes : 0;
    trace->writers += !call->task->has_written;
    call->task->has_written = true;
}

typedef void note_fn(struct weir_call *call, struct weir_trace_open *open, uint64_t offset,
                     uint64_t bytes);

static void transfer(struct weir_call *call, note_fn *note, unsigned fd, uint64_t offset)
{
    uint64_t bytes;
    struct weir_trace_open *open = weir_call_file(call, fd);
    if (open && moved(call, &bytes))
        note(call, open, offset, bytes);
}

void weir_call_read(struct weir_call *call)
{
    transfer(call, note_read, 0, at_position);
}

void weir_call_pread(struct weir_call *call)
{
    transfer(call, note_read, 0, offset_of(call, 3));
}

void weir_call_write(struct weir_call *call)
{
    transfer(call, note_write, 0, at_position);
}

void weir_call_pwrite(struct weir_call *call)
{
    transfer(call, note_write, 0, offset_of(call, 3));
}

/* sendfile(out, in, [offset] => [after], count): the offset stands in brackets. */
void weir_call_sendfile(struct weir_call *call)
{
    struct weir_span offset = weir_call_argument(call, 2);
    int64_t at;
    bool told = weir_span_skip(&offset, "[") && weir_span_int(offset, &at) && at >= 0;
    transfer(call, note_read, 1, told ? (uint64_t)at : at_position);
    call->took_ns = 0; /* it is on the account of the read */
    transfer(call, note_write, 0, at_position);
}

/* copy_file_range(in, [offset], out, [offset], …), and splice the same. */
void weir_call_copy_range(struct weir_call *call)
{
    uint64_t offset[2] = {at_position, at_position};
    for (unsigned i = 0; i < 2; i++) {
        struct weir_span arg = weir_call_argument(call, 2 * i + 1);
        int64_t at;
        if (weir_span_skip(&arg, "[") && weir_span_int(arg, &at) && at >= 0)
            offset[i] = (uint64_t)at;
    }
    transfer(call, note_read, 0, offset[0]);
    call->took_ns = 0;
    transfer(call, note_write, 2, offset[1]);
}

void weir_call_seek(struct weir_call *call)
{
    struct weir_trace_open *open = weir_call_file(call, 0);
    if (open && call->line->has_result && call->line->result >= 0)
        open->at = (uint64_t)call->line->result;
    weir_hist_add(&call->trace->floor, call->took_ns);
}

void weir_call_map(struct weir_call *call)
{
    struct weir_trace_open *open = weir_call_file(call, 4);
    int64_t bytes;
    if (!open || !weir_span_int(weir_call_argument(call, 1), &bytes) || bytes < 0 ||
        !call->line->has_result || call->line->result == -1)
        return;
    weir_call_note(call, open->file, WEIR_TRACE_MAP);
    open->file->mapped_bytes += (uint64_t)bytes;
}

void weir_call_sync(struct weir_call *call)
{
    struct weir_trace_open *open = weir_call_file(call, 0);
    if (!open || !call->line->has_result || call->line->result)
        return;
    call->trace->syncs++;
    weir_call_note(call, open->file, WEIR_TRACE_SYNC);
    if (weir_span_is(call->line->name, "sync_file_range"))
        return; /* it writes, but does not make safe: sizes and places are not written */
    open->file->dirty = 0;
    open->is_synced = true;
    open->sync_ns += call->took_ns;
    open->end_ns = call->end_ns;
    weir_burst_synced(call, open->file);
}

void weir_call_sync_all(struct weir_call *call)
{
    call->trace->syncs++;
    call->trace->whole_syncs++;
    weir_hist_add(&call->trace->times[WEIR_TRACE_SYNC], call->took_ns);
}

/* ftruncate(fd, size), truncate(path, size) */
void weir_call_truncate(struct weir_call *call)
{
    char path[WEIR_TRACE_PATH_MAX];
    int64_t size;
    struct weir_trace_file *file = NULL;
    if (weir_span_is(call->line->name, "ftruncate")) {
        struct weir_trace_open *open = weir_call_file(call, 0);
        file = open ? open->file : NULL;
    } else if (weir_call_path(call, -1, 0, path))
        file = weir_trace_file_find(&call->trace->files, path);
    if (!file)
        return;
    weir_call_note(call, file, WEIR_TRACE_NAMES);
    if (!call->line->has_result || call->line->result ||
        !weir_span_int(weir_call_argument(call, 1), &size) || size < 0)
        return;
    file->size_bytes = (uint64_t)size;
    if (!size)
        weir_trace_file_renew(&call->trace->files, file);
}

/* fallocate(fd, mode, offset, size): only with no mode at all the file grows for certain. */
void weir_call_allocate(struct weir_call *call)
{
    struct weir_trace_open *open = weir_call_file(call, 0);
    int64_t mode, offset, size, end;
    if (!open)
        return;
    weir_call_note(call, open->file, WEIR_TRACE_NAMES);
    if (call->line->has_result && !call->line->result &&
        weir_span_int(weir_call_argument(call, 1), &mode) && !mode &&
        weir_span_int(weir_call_argument(call, 2), &offset) && offset >= 0 &&
        weir_span_int(weir_call_argument(call, 3), &size) && size >= 0 &&
        !__builtin_add_overflow(offset, size, &end) && (uint64_t)end > open->file->size_bytes)
        open->file->size_bytes = (uint64_t)end;
}
