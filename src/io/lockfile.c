/* lockfile.c - see lockfile.h. */
#include "io/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "util/err.h"
#include "util/key.h"
#include "util/sys.h"
#include "util/thread.h"

enum {
    PAUSE_NS = 1000000,     /* between two tries */
    LEASE_TRIES_MAX = 1000, /* a second */
    NAME_TRIES_MAX = 8,     /* a lease whose name went to another file is tried again */
};

/* Reading is enough to lock another user's file, but on NFS. */
static int open_lock(struct weir_dir *dir, const char *base)
{
    int fd = weir_sys->open(dir->fd, base, O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
    if (fd != -EACCES)
        return fd;
    fd = weir_sys->open(dir->fd, base, O_RDONLY | O_NOFOLLOW, 0);
    return fd == -ENOENT ? -EACCES : fd; /* there is none, and it may not be made */
}

/* Says why there is no lock, and what to do where that is known. */
static int lock_fail(int code, const char *what, const char *root, const char *name)
{
    if (code == -ENOLCK || code == -ENOSYS || code == -EOPNOTSUPP)
        return weir_fail(-code,
                         "cannot %s '%s/%s': this file system has no locks here (%s): mount NFS "
                         "with version 4 (or start rpc.statd for version 3), Lustre with 'flock'",
                         what, root, name, weir_errno_text(code));
    if (code == -EBADF)
        return weir_fail(EACCES,
                         "cannot %s '%s/%s': NFS locks only what may be written: give its users "
                         "write permission (chmod g+w)",
                         what, root, name);
    return weir_fail(-code, "cannot %s '%s/%s': %s", what, root, name, weir_errno_text(code));
}

void weir_lockfile_release(int fd)
{
    /* Closing alone would not unlock while a forked child has the descriptor, too. */
    weir_sys->flock(fd, LOCK_UN);
    weir_sys->close(fd);
}

/* ---- the lock ---- */

struct taking {
    const char *root, *name;
    int tries_max;
};

static int take_in(void *arg, struct weir_dir *dir, const char *base)
{
    const struct taking *taking = arg;
    int fd = open_lock(dir, base);
    if (fd < 0)
        return weir_fail(-fd, "cannot open '%s/%s': %s", taking->root, taking->name,
                         weir_errno_text(fd));
    int code = weir_sys->flock(fd, LOCK_EX | LOCK_NB);
    for (int tries = 1; code == -EWOULDBLOCK && tries < taking->tries_max; tries++) {
        weir_sys->sleep_ns(PAUSE_NS);
        code = weir_sys->flock(fd, LOCK_EX | LOCK_NB);
    }
    if (!code)
        return fd;
    weir_sys->close(fd);
    return lock_fail(code == -EWOULDBLOCK ? -EBUSY : code, "lock", taking->root, taking->name);
}

int weir_lockfile_take(struct weir_dirs *dirs, const char *name, int tries_max)
{
    struct taking taking = {weir_dirs_root(dirs), name, tries_max};
    return weir_dirs_in(dirs, name, WEIR_DIRS_MAKE, take_in, &taking);
}

/* ---- leases ---- */

struct lease {
    struct weir_handle handle;
    struct weir_dirs *dirs;
    int fd;
    bool alone;
    unsigned generation; /* of fork() */
    char name[];
};

static int unlink_in(void *arg, struct weir_dir *dir, const char *base)
{
    (void)arg;
    return weir_sys->unlink(dir->fd, base, false);
}

/* Whoever opened the file meanwhile finds its name gone, and makes another. A forked child shares
 * its parent's lock, and must not give that back. */
static void lease_close(struct weir_handle *handle)
{
    struct lease *lease = (struct lease *)handle;
    bool ours = lease->generation == weir_fork_generation(), gone = false;
    char text[WEIR_TEXT_MAX]; /* why the caller gives it back: a failure here is none of his */
    snprintf(text, sizeof text, "%s", weir_fail_last());
    if (ours && lease->alone)
        gone = !weir_dirs_in(lease->dirs, lease->name, WEIR_DIRS_FIND, unlink_in, NULL);
    if (ours)
        weir_lockfile_release(lease->fd);
    else
        weir_sys->close(lease->fd);
    /* Only now: on NFS what is removed and still open is in its directory. */
    if (gone)
        weir_dirs_prune(lease->dirs, lease->name, weir_name_kept(lease->name));
    weir_fail_text(0, text);
    free(lease);
}

/* A descriptor that holds the lock on the file of that name, -EAGAIN if the name is another's by
 * then, -EBUSY. */
static int lock_name(struct weir_dirs *dirs, struct weir_dir *dir, const char *base, bool alone)
{
    struct weir_sys_stat a, b;
    int fd = open_lock(dir, base);
    if (fd < 0)
        return fd;
    int code = weir_sys->flock(fd, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB);
    if (code == -EWOULDBLOCK)
        code = -EBUSY;
    if (!code)
        code = weir_sys->fstat(fd, &a);
    if (!code) {
        weir_dirs_refresh(dirs, dir);
        code = weir_sys->stat(dir->fd, base, &b);
        if (code == -ENOENT || code == -ESTALE || (!code && (a.ino != b.ino || a.dev != b.dev)))
            code = -EAGAIN;
    }
    if (!code)
        return fd;
    weir_lockfile_release(fd);
    return code;
}

static int lease_in(void *arg, struct weir_dir *dir, const char *base)
{
    struct lease *lease = arg;
    int fd = -EAGAIN;
    for (int tries = 0; fd == -EAGAIN && tries < NAME_TRIES_MAX; tries++)
        fd = lock_name(lease->dirs, dir, base, lease->alone);
    if (fd >= 0) {
        lease->fd = fd;
        return 0;
    }
    bool none = fd == -ENOSYS || fd == -EOPNOTSUPP || fd == -ENOLCK;
    int code =
        lock_fail(fd == -EAGAIN ? -EBUSY : fd, "lease", weir_dirs_root(lease->dirs), lease->name);
    return none ? -ENOTSUP : code;
}

int weir_lockfile_lease(struct weir_handle **out, struct weir_dirs *dirs, const char *name,
                        bool alone)
{
    size_t size = strlen(name) + 1;
    struct lease *lease = weir_alloc(sizeof *lease + size);
    if (!lease)
        return weir_fail_memory();
    *lease = (struct lease){{lease_close}, dirs, -1, alone, weir_fork_generation()};
    memcpy(lease->name, name, size);
    int code = weir_dirs_in(dirs, name, WEIR_DIRS_MAKE, lease_in, lease);
    for (int tries = 1; code == -EBUSY && !alone && tries < LEASE_TRIES_MAX; tries++) {
        weir_sys->sleep_ns(PAUSE_NS);
        code = weir_dirs_in(dirs, name, WEIR_DIRS_MAKE, lease_in, lease);
    }
    if (code)
        free(lease);
    else
        *out = &lease->handle;
    return code;
}
