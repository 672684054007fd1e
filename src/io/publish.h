/* publish.h - how names come to be on a file system: a temporary file is written and synced, then
 * linked under its name without replacing anything, then the directory is synced.
 *
 * link(2) is the one primitive that creates exactly once everywhere, NFS included (where a lost
 * answer makes a second try say EEXIST: the link count tells whether the name is ours). A failed
 * sync is never repeated: the kernel has dropped the pages, a second one would lie.
 */
#ifndef WEIR_IO_PUBLISH_H
#define WEIR_IO_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/dirs.h"
#include "util/req.h"

/* A file being written: .weir/tmp/<32 hex digits>. */
struct weir_tmp {
    struct weir_dir *dir;
    char base[40];
    int fd;
};

/* -errno with a text; nothing is left behind on failure. */
int weir_tmp_open(struct weir_tmp *tmp, struct weir_dirs *dirs);
/* Links the file (synced by the caller) as `name`, durably. -EEXIST if the name is taken, -ESTALE
 * if the temporary file is gone (a gc took the writer for dead). *doubt: whether the name may
 * stand there, or be lost again, although this failed. */
int weir_tmp_publish(struct weir_tmp *tmp, struct weir_dirs *dirs, const char *name,
                     enum weir_doubt *doubt);
/* Removes the temporary name (the published one stays) and closes. */
void weir_tmp_close(struct weir_tmp *tmp, struct weir_dirs *dirs);

/* The whole of it for a small record. until_ns: -ESTALE if the boot-time clock is past that when
 * the file is written and synced, and about to be linked; 0: never. A writer that stands still
 * between that look and the link has a file that is older than the look: gc takes it away. */
int weir_publish(struct weir_dirs *dirs, const char *name, const void *data, size_t size,
                 uint64_t until_ns, enum weir_doubt *doubt);

/* Does this file system link as all of this needs it: into another directory, counting, and only
 * once? 0, or -ENOTSUP with a text that says what to do. */
int weir_publish_probe(struct weir_dirs *dirs);

/* Whether this errno (negative) of link(2) or unlink(2) says for certain that nothing happened. A
 * time-out or an input/output error does not: on NFS the answer may have been lost. */
bool weir_is_refusal(int code);

#endif
