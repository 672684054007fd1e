/* walk.h - the way from a root to a directory below it, one part at a time.
 *
 * Symbolic links are followed only by who looks at what others put there (WEIR_DIRS_FOLLOW): never
 * in the engine's own directories, never into anybody's .weir, never up to a directory above, and
 * no more than eight on one way. Any thread may call.
 */
#ifndef WEIR_IO_WALK_H
#define WEIR_IO_WALK_H

#include <stdbool.h>

struct weir_fskind;
struct weir_sys_stat;

/* Where every way begins. */
struct weir_top {
    int fd;
    const char *label; /* its path, for people */
    const struct weir_fskind *kind;
};

enum weir_dirs_mode {
    WEIR_DIRS_FIND,    /* -ENOENT if it is not there */
    WEIR_DIRS_MAKE,    /* make what is missing */
    WEIR_DIRS_DURABLE, /* and sync: names in it survive once it is synced itself */
    WEIR_DIRS_FOLLOW   /* as FIND; links that are not the engine's own are followed */
};

static inline bool weir_walk_makes(enum weir_dirs_mode mode)
{
    return mode == WEIR_DIRS_MAKE || mode == WEIR_DIRS_DURABLE;
}

/* Goes to `path` ("a/b", or "" for the root) and returns a descriptor: the root's own, or a new
 * one. *by_link: there was a link on the way. */
int weir_walk(const struct weir_top *top, const char *path, enum weir_dirs_mode mode,
              bool *by_link);
/* Opens what the symbolic link `part` in `up` stands for, and fills *st; path is the link's, for
 * texts. -ELOOP: it leads nowhere, or into a directory .weir. */
int weir_walk_link(const struct weir_top *top, int up, const char *part, const char *path,
                   int flags, struct weir_sys_stat *st);
/* Is the directory fd, which a link in the directory `path` leads to, that one itself or above it?
 * Who goes there comes back for ever. 1, 0, -errno; -ELOOP: it is one link too many. */
int weir_walk_is_above(const struct weir_top *top, const char *path, int fd);

#endif
