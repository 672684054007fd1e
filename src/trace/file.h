/* file.h - the files that were seen and the directories they are in, each with its account. At most
 * WEIR_TRACE_FILES_MAX of them have one of their own; those that come later share one.
 */
#ifndef WEIR_TRACE_FILE_H
#define WEIR_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"

enum { WEIR_TRACE_FILES_MAX = 1 << 20, WEIR_TRACE_DIRS_MAX = 1 << 18 };

/* What time is spent in. */
enum weir_trace_kind {
    WEIR_TRACE_OPEN,  /* and close */
    WEIR_TRACE_NAMES, /* stat, listing, rename, unlink */
    WEIR_TRACE_READ,
    WEIR_TRACE_WRITE,
    WEIR_TRACE_SYNC,
    WEIR_TRACE_MAP,
    WEIR_TRACE_KINDS,
};
const char *weir_trace_kind_name(enum weir_trace_kind kind);

/* Sums over files. */
struct weir_trace_sum {
    uint64_t files, small_files, opens, reads, reads_empty, writes, finds, calls;
    uint64_t read_bytes, write_bytes, size_bytes, mapped_bytes;
    uint64_t jumps; /* reads that did not begin where the one before ended */
    uint64_t ns, open_ns, read_ns, write_ns;
};

struct weir_trace_dir {
    struct weir_trace_dir *parent; /* NULL: of "/", and of relative names */
    struct weir_trace_dir *next;   /* with the same hash */
    bool is_program;
    struct weir_trace_sum own, all; /* of its files, and of all below: after weir_trace_files_sum */
    char path[];
};

struct weir_trace_file {
    struct weir_trace_dir *dir;
    struct weir_trace_file *next;
    uint64_t number;     /* of what is in it: another one when a new file has its name */
    uint64_t size_bytes; /* the largest that was seen: told by stat, or read or written up to; and
                          * as it was truncated */
    uint64_t read_bytes, write_bytes, mapped_bytes, ns, open_ns, read_ns, write_ns;
    uint32_t opens, reads, writes, jumps, calls;
    uint32_t finds;               /* calls that only find, open or close it */
    uint32_t opens_direct, burst; /* burst: the last one's number + 1 */
    uint64_t dirty;               /* the number of whole syncs at its last write + 1; 0: synced */
    uint32_t reads_empty;         /* found the end; not among reads */
    bool is_program, is_dir, exists; /* exists: as far as it was seen */
    char name[];
};

/* Below this a file is small: opening it costs as much as reading it, on most storage. */
enum { WEIR_TRACE_SMALL_BYTES = 1 << 20 };

struct weir_trace_files {
    struct weir_arena *memory;
    struct weir_trace_dir **dir_by_hash, **dirs; /* in the order they were seen: parents first */
    struct weir_trace_file **file_by_hash, **files;
    size_t dir_count, file_count, dir_room, file_room;
    struct weir_trace_file *rest; /* the one account of those beyond the limit */
    uint64_t beyond;              /* how often that was used */
    uint64_t numbers;             /* given so far */
};

int weir_trace_files_init(struct weir_trace_files *files);
void weir_trace_files_free(struct weir_trace_files *files);
/* The account of that path, made if there is none; NULL only without memory. */
struct weir_trace_file *weir_trace_file_get(struct weir_trace_files *files, const char *path);
/* The same, or NULL if there is none. */
struct weir_trace_file *weir_trace_file_find(struct weir_trace_files *files, const char *path);
/* There is something else in it now: nothing of that was read before. */
void weir_trace_file_renew(struct weir_trace_files *files, struct weir_trace_file *file);
/* Fills the sums of all directories, and of all that is data, or program. */
void weir_trace_files_sum(struct weir_trace_files *files, struct weir_trace_sum *data,
                          struct weir_trace_sum *program);
void weir_trace_sum_add(struct weir_trace_sum *sum, const struct weir_trace_sum *more);
/* "/data/a.jpg", cut to size. */
const char *weir_trace_file_path(const struct weir_trace_file *file, char *out, size_t size);

#endif
