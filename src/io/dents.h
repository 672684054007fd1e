/* dents.h - the entries of a directory, one after the other, in no order. One thread at a time. */
#ifndef WEIR_IO_DENTS_H
#define WEIR_IO_DENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "io/dirs.h"

enum { WEIR_DENTS_BYTES = 32768 };

struct weir_dents {
    int fd; /* of its own: the position in a directory belongs to the open file */
    size_t used, size;
    char buf[WEIR_DENTS_BYTES] __attribute__((aligned(8)));
};

/* 0 or -errno. */
int weir_dents_open(struct weir_dents *dents, const struct weir_dir *dir);
void weir_dents_close(struct weir_dents *dents);
/* Whether the next look asks the kernel. */
bool weir_dents_is_empty(const struct weir_dents *dents);
/* The entry that comes next, once more until weir_dents_skip(): its type, 'f', 'd', 'l' (a symbolic
 * link) or '?' for what is none of these (pipes, "." and ".."); 0 at the end; -errno. */
int weir_dents_look(struct weir_dents *dents, const char **name);
void weir_dents_skip(struct weir_dents *dents);

/* Is that what a network file system calls a file that was removed while it was open on the machine
 * that removed it (".nfs" and 24 digits, ".fuse_hidden" and 16)? It goes when it is closed; where
 * that machine died, it stays. */
bool weir_dents_is_silly(const char *name);

#endif
