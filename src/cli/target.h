/* target.h - a local file, or standard output, that takes the bytes of an object. A plain file
 * appears whole or not at all: it is written under another name beside it, synced, and renamed.
 * What is there and is no plain file (a pipe, /dev/null) is written to as it is.
 */
#ifndef WEIR_CLI_TARGET_H
#define WEIR_CLI_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct target {
    const char *path; /* borrowed; "-" is standard output */
    char *tmp;        /* the name it is written under, or NULL */
    int fd;
    uint64_t offset; /* bytes written */
    bool force, direct, no_direct;
};

/* Makes missing directories. -EEXIST if there is such a file and force is not set. */
int target_open(struct target *target, const char *path, bool force);
/* -EINTR when asked to stop, or when the reader of a pipe is gone. */
int target_write(struct target *target, const void *data, size_t size);
int target_commit(struct target *target);
/* Writes what draw() writes to a stream in memory, and commits it. */
int target_draw(struct target *target, void (*draw)(FILE *out, const void *arg), const void *arg);
/* The same to a file of that name, which is replaced. */
int target_draw_file(const char *path, void (*draw)(FILE *out, const void *arg), const void *arg);
/* Ends the handle; before a commit, removes what was written. */
void target_close(struct target *target);

#endif
