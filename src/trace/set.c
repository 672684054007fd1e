/* set.c - which directories are datasets; see advice.h. */
#include <string.h>

#include "trace/advice.h"

enum { SMALL_FILES_MIN = 64 };     /* fewer are no dataset */
static const double most = 0.9;    /* of what is below a directory is below one child: go there */
static const double a_part = 0.02; /* less is left to the others */

static const char *name_of(const struct weir_trace_dir *dir)
{
    const char *slash = strrchr(dir->path, '/');
    return slash ? slash + 1 : dir->path;
}

/* Halves of a dataset that are read apart. */
static bool is_split(const struct weir_trace_dir *dir)
{
    static const char *const names[] = {"train",      "training", "val",  "valid",
                                        "validation", "test",     "eval", "dev"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name_of(dir), names[i]))
            return true;
    return false;
}

static bool is_small(const struct weir_trace_sum *sum)
{
    return sum->small_files >= SMALL_FILES_MIN && 2 * sum->small_files > sum->files &&
           sum->read_bytes / (sum->opens ? sum->opens : 1) < WEIR_TRACE_SMALL_BYTES;
}

/* What a dataset weighs: its bytes, and an open as much as so many. */
static double weight_of(const struct weir_trace_sum *sum)
{
    enum { OPEN_BYTES = 1 << 16 };
    return sum->reads ? (double)sum->read_bytes + (double)OPEN_BYTES * (double)sum->opens : 0;
}

static void add(struct weir_trace_set *sets, size_t *count, const struct weir_trace_dir *dir)
{
    if (*count < WEIR_TRACE_SETS_MAX)
        sets[(*count)++] = (struct weir_trace_set){dir, is_small(&dir->all)};
}

/* The heaviest child, and whether any that counts is a split. */
static const struct weir_trace_dir *heaviest(const struct weir_trace *trace,
                                             const struct weir_trace_dir *dir, bool *has_splits)
{
    const struct weir_trace_dir *best = NULL;
    *has_splits = false;
    for (size_t i = 0; i < trace->files.dir_count; i++) {
        const struct weir_trace_dir *child = trace->files.dirs[i];
        if (child->parent != dir || weight_of(&child->all) < a_part * weight_of(&dir->all))
            continue;
        *has_splits |= is_split(child);
        if (!best || weight_of(&child->all) > weight_of(&best->all))
            best = child;
    }
    return best;
}

static void find_below(const struct weir_trace *trace, const struct weir_trace_dir *dir,
                       struct weir_trace_set *sets, size_t *count)
{
    bool has_splits;
    for (;;) {
        const struct weir_trace_dir *child = heaviest(trace, dir, &has_splits);
        double own = child ? weight_of(&child->all) : 0;
        if (!child || has_splits || own < most * weight_of(&dir->all))
            break;
        dir = child;
    }
    if (!has_splits || !dir->path[0]) {
        add(sets, count, dir);
        return;
    }
    for (size_t i = 0; i < trace->files.dir_count; i++) {
        const struct weir_trace_dir *child = trace->files.dirs[i];
        if (child->parent == dir && weight_of(&child->all) >= a_part * weight_of(&dir->all))
            add(sets, count, child);
    }
}

size_t weir_trace_sets(const struct weir_trace *trace,
                       struct weir_trace_set sets[WEIR_TRACE_SETS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < trace->files.dir_count; i++) {
        const struct weir_trace_dir *dir = trace->files.dirs[i];
        if (!dir->parent && weight_of(&dir->all) > 0)
            find_below(trace, dir, sets, &count);
    }
    return count;
}
