/* source.h - the files of a foreign checkpoint, read in pieces: nothing is mapped, so a file that
 * is cut short meanwhile is an error and not a signal. At most SOURCE_OPEN_MAX of them are open at
 * once (a checkpoint of a thousand ranks has thousands). One thread at a time.
 */
#ifndef WEIR_CKPT_SOURCE_H
#define WEIR_CKPT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_SOURCE_OPEN_MAX = 64 };

struct weir_source;
struct weir_source_file {
    struct weir_source *source;
    char *path;
    uint64_t size;
    int64_t mtime_ns;
    uint64_t dev, ino;
    int fd;               /* -1: not open now */
    const uint8_t *bytes; /* for tests: instead of a file */
};

struct weir_source {
    struct weir_source_file **files;
    size_t count, room;
    size_t open, turn; /* how many are open; which is to be closed next */
    uint64_t bytes;    /* of all of them */
};

/* Opens a file, or finds it if it is there already; borrowed. -ENOENT, -EISDIR, … */
int weir_source_add(struct weir_source *source, const char *path, struct weir_source_file **out);
/* Bytes in memory, which the caller keeps. */
int weir_source_add_bytes(struct weir_source *source, const void *bytes, size_t size,
                          struct weir_source_file **out);
/* All `size` bytes, or -EBADMSG if the file ends before. */
int weir_source_read(struct weir_source_file *file, uint64_t at, void *buf, size_t size);
/* -ESTALE if a file is not what it was when it was added. */
int weir_source_check(struct weir_source *source);
void weir_source_close(struct weir_source *source);

/* A part of a file. */
struct weir_extent {
    struct weir_source_file *file;
    uint64_t begin, size;
};
int weir_extent_read(const struct weir_extent *span, uint64_t at, void *buf, size_t size);

#endif
