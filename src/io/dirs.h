/* dirs.h - the directories below one root: found, made durably, and kept open so that each costs
 * its walk and its syncs once.
 *
 * A directory is durable when its parent was synced after it was there; one that another process
 * made may not be, so the first use by this process syncs the whole chain. Names in a directory
 * are made durable by syncing it (weir_sys->fsync(dir->fd)). A directory may be removed by anyone
 * when it is empty: an operation in a dead one fails with ENOENT, and weir_dirs_dead() tells.
 *
 * On a file system that other machines share, what this one remembers of names may be old: that
 * there is none (NFS, for up to a minute), or a handle of a directory that was removed and made
 * again (-ESTALE). What is missing is therefore asked for anew before it is believed.
 * Any thread may call.
 */
#ifndef WEIR_IO_DIRS_H
#define WEIR_IO_DIRS_H

#include <stdbool.h>

#include "io/fskind.h"
#include "io/walk.h"

struct weir_dirs;

struct weir_dir {
    int fd;
    char *path; /* relative to the root, "" for the root itself */
    unsigned refs;
    bool durable; /* it and what leads to it is synced */
    bool loose;   /* not in the cache: closed with its last reference */
    bool by_link; /* a link is on the way to it: nothing is written there */
    unsigned long used;
};

/* create: also make the root and what leads to it. */
int weir_dirs_open(struct weir_dirs **out, const char *root, bool create);
void weir_dirs_close(struct weir_dirs *dirs);
const char *weir_dirs_root(const struct weir_dirs *dirs);
int weir_dirs_root_fd(const struct weir_dirs *dirs);
const struct weir_fskind *weir_dirs_kind(const struct weir_dirs *dirs);

/* The directory that `name` stands in; *base is its last part, within name. */
int weir_dirs_get(struct weir_dirs *dirs, const char *name, enum weir_dirs_mode mode,
                  struct weir_dir **out, const char **base);
void weir_dirs_put(struct weir_dirs *dirs, struct weir_dir *dir);
/* Runs fn in the directory of name, and again if that directory was removed meanwhile, or if what
 * is missing may only be remembered to be so. */
typedef int (*weir_dirs_fn)(void *arg, struct weir_dir *dir, const char *base);
int weir_dirs_in(struct weir_dirs *dirs, const char *name, enum weir_dirs_mode mode,
                 weir_dirs_fn fn, void *arg);
/* Of the way to them: weir_walk_link() and weir_walk_is_above(). */
int weir_dirs_open_link(const struct weir_dirs *dirs, int up, const char *part, const char *path,
                        int flags, struct weir_sys_stat *st);
int weir_dirs_is_above(const struct weir_dirs *dirs, const char *path, int fd);
/* Forgets what is remembered of names in dir, if others share it: so that a look at what is there
 * is a look at what is there now. */
void weir_dirs_refresh(const struct weir_dirs *dirs, const struct weir_dir *dir);
/* After -ENOENT or -ESTALE from an operation in dir: was it removed under us? Then it is dropped
 * from the cache, and getting it again finds or makes a new one. */
bool weir_dirs_dead(struct weir_dirs *dirs, struct weir_dir *dir);
/* Removes the directory that name stands in if it is empty, and its parents likewise, down to
 * `keep` (a leading part of name) or the root. */
void weir_dirs_prune(struct weir_dirs *dirs, const char *name, const char *keep);

#endif
