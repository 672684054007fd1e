/* trace_top.c - the busiest directories and files; see trace_report.h. */
#include "cli/trace_report.h"

static uint64_t dir_weight(const struct weir_trace_dir *dir)
{
    return dir->own.read_bytes + dir->own.write_bytes + dir->own.mapped_bytes;
}

static uint64_t file_weight(const struct weir_trace_file *file)
{
    if (file->is_program || file->is_dir)
        return 0;
    return file->read_bytes + file->write_bytes + file->mapped_bytes;
}

/* Puts one into a short list that is sorted by weight; the lightest falls out. */
static void insert(const void **top, uint64_t *weights, size_t *count, const void *item,
                   uint64_t weight)
{
    size_t at = *count;
    if (!weight || (at == TRACE_TOP && weight <= weights[at - 1]))
        return;
    if (at == TRACE_TOP)
        at--;
    else
        ++*count;
    for (; at && weights[at - 1] < weight; at--) {
        top[at] = top[at - 1];
        weights[at] = weights[at - 1];
    }
    top[at] = item;
    weights[at] = weight;
}

size_t trace_top_dirs(const struct weir_trace *trace, const struct weir_trace_dir *top[TRACE_TOP])
{
    uint64_t weights[TRACE_TOP];
    size_t count = 0;
    for (size_t i = 0; i < trace->files.dir_count; i++)
        insert((const void **)top, weights, &count, trace->files.dirs[i],
               dir_weight(trace->files.dirs[i]));
    return count;
}

size_t trace_top_files(const struct weir_trace *trace, const struct weir_trace_file *top[TRACE_TOP])
{
    uint64_t weights[TRACE_TOP];
    size_t count = 0;
    for (size_t i = 0; i < trace->files.file_count; i++)
        insert((const void **)top, weights, &count, trace->files.files[i],
               file_weight(trace->files.files[i]));
    return count;
}
