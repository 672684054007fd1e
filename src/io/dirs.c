/* dirs.c - see dirs.h. */
#include "io/dirs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/key.h"
#include "util/sys.h"

enum {
    DIRS_MAX = 64,     /* kept open; more would strain a process's limit of descriptors */
    LEVELS_MAX = 2048, /* above a root: PATH_MAX has no room for more */
    TRIES_MAX = 100,   /* a directory that removers prune meanwhile is found or made again */
    DIR_MODE = 0777,
    DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
};

struct weir_dirs {
    pthread_mutex_t lock;
    struct weir_dir root; /* never in the cache, never closed before the end */
    struct weir_top top;
    char *label; /* the root's path, for people */
    unsigned long clock;
    unsigned count;
    struct weir_dir *cached[DIRS_MAX];
};

/* Opens the root; makes it, and what leads to it, if it is not there. Links are followed here:
 * where a store is, its owner decides. */
static int open_root(const char *root, bool create)
{
    char path[PATH_MAX];
    int code = 0, fd = weir_sys->open(AT_FDCWD, root, O_RDONLY | O_DIRECTORY, 0);
    if (fd != -ENOENT || !create)
        return fd;
    if ((size_t)snprintf(path, sizeof path, "%s", root) >= sizeof path)
        return -ENAMETOOLONG;
    for (size_t at = 1; path[at - 1]; at++) {
        char was = path[at];
        if (was && was != '/')
            continue;
        path[at] = 0;
        int made = weir_sys->mkdir(AT_FDCWD, path, DIR_MODE);
        code = code || made == -EEXIST ? code : made; /* the first to fail says why */
        path[at] = was;
    }
    fd = weir_sys->open(AT_FDCWD, root, O_RDONLY | O_DIRECTORY, 0);
    return fd == -ENOENT && code ? code : fd;
}

/* Not every file system can sync its directories. */
static bool cannot_sync(int code)
{
    return code == -EINVAL || code == -EROFS || code == -EOPNOTSUPP || code == -ENOSYS;
}

/* Makes the root and all that leads to it durable. Whoever made a part of it (we, another process
 * on the way to do the same, mkdir -p) need not have synced that. Where the marker is, its maker
 * came through here. What we may not read is not ours, nor what is above it. */
static int sync_above(int root_fd)
{
    struct weir_sys_stat st, above;
    int code = weir_sys->stat(root_fd, WEIR_NAME_STORE, &st);
    int fd = root_fd;
    if (!code)
        return 0;
    code = weir_sys->fstat(fd, &st);
    for (int levels = 0; !code && levels < LEVELS_MAX; levels++) {
        int up = weir_sys->open(fd, "..", O_RDONLY | O_DIRECTORY, 0);
        if (fd != root_fd)
            weir_sys->close(fd);
        fd = up;
        if (up < 0)
            return up == -EACCES ? 0 : up;
        code = weir_sys->fstat(up, &above);
        if (!code && above.ino == st.ino && above.dev == st.dev)
            break; /* the top */
        st = above;
        int synced = code ? 0 : weir_sys->fsync(up);
        code = synced && !cannot_sync(synced) ? synced : code;
    }
    if (fd != root_fd)
        weir_sys->close(fd);
    return code;
}

int weir_dirs_open(struct weir_dirs **out, const char *root, bool create)
{
    struct weir_dirs *dirs = weir_alloc(sizeof *dirs);
    char *copy = dirs ? weir_strdup(root) : NULL;
    if (!copy) {
        free(dirs);
        return weir_fail_memory();
    }
    int fd = open_root(root, create), code = fd >= 0 && create ? sync_above(fd) : 0;
    if (fd < 0 || code) {
        weir_fail(code ? -code : -fd, "cannot %s '%s': %s",
                  code ? "sync the directories above" : "open directory", root,
                  weir_errno_text(code ? code : fd));
        if (fd >= 0)
            weir_sys->close(fd);
        free(copy);
        free(dirs);
        return code ? code : fd;
    }
    dirs->label = copy;
    dirs->top = (struct weir_top){fd, copy, weir_fskind_at(fd)};
    dirs->root = (struct weir_dir){.fd = fd, .path = "", .durable = true};
    pthread_mutex_init(&dirs->lock, NULL);
    *out = dirs;
    return 0;
}

static void dir_free(struct weir_dir *dir)
{
    weir_sys->close(dir->fd);
    free(dir->path);
    free(dir);
}

void weir_dirs_close(struct weir_dirs *dirs)
{
    if (!dirs)
        return;
    for (unsigned i = 0; i < dirs->count; i++) {
        assert(dirs->cached[i]->refs == 0);
        dir_free(dirs->cached[i]);
    }
    weir_sys->close(dirs->root.fd);
    pthread_mutex_destroy(&dirs->lock);
    free(dirs->label);
    free(dirs);
}

const char *weir_dirs_root(const struct weir_dirs *dirs)
{
    return dirs->label;
}

int weir_dirs_root_fd(const struct weir_dirs *dirs)
{
    return dirs->root.fd;
}

const struct weir_fskind *weir_dirs_kind(const struct weir_dirs *dirs)
{
    return dirs->top.kind;
}

void weir_dirs_refresh(const struct weir_dirs *dirs, const struct weir_dir *dir)
{
    struct weir_sys_stat st;
    if (dirs->top.kind->is_shared)
        weir_sys->fstat_now(dir->fd, &st);
}

int weir_dirs_open_link(const struct weir_dirs *dirs, int up, const char *part, const char *path,
                        int flags, struct weir_sys_stat *st)
{
    return weir_walk_link(&dirs->top, up, part, path, flags, st);
}

int weir_dirs_is_above(const struct weir_dirs *dirs, const char *path, int fd)
{
    return weir_walk_is_above(&dirs->top, path, fd);
}

static struct weir_dir *find_cached(struct weir_dirs *dirs, const char *path)
{
    if (!*path)
        return &dirs->root;
    for (unsigned i = 0; i < dirs->count; i++)
        if (!strcmp(dirs->cached[i]->path, path))
            return dirs->cached[i];
    return NULL;
}

/* Makes room by closing the one not used for longest; false if all are in use. */
static bool make_room(struct weir_dirs *dirs)
{
    if (dirs->count < DIRS_MAX)
        return true;
    unsigned oldest = DIRS_MAX;
    for (unsigned i = 0; i < dirs->count; i++)
        if (!dirs->cached[i]->refs &&
            (oldest == DIRS_MAX || dirs->cached[i]->used < dirs->cached[oldest]->used))
            oldest = i;
    if (oldest == DIRS_MAX)
        return false;
    dir_free(dirs->cached[oldest]);
    dirs->cached[oldest] = dirs->cached[--dirs->count];
    return true;
}

/* Takes a reference to a cached directory that is good enough for mode, or returns NULL. */
static struct weir_dir *get_cached(struct weir_dirs *dirs, const char *path,
                                   enum weir_dirs_mode mode)
{
    pthread_mutex_lock(&dirs->lock);
    struct weir_dir *dir = find_cached(dirs, path);
    if (dir && mode == WEIR_DIRS_DURABLE && !dir->durable)
        dir = NULL;
    if (dir) {
        dir->refs++;
        dir->used = ++dirs->clock;
    }
    pthread_mutex_unlock(&dirs->lock);
    return dir;
}

/* Only the engine's own directories are kept: people may move theirs about. */
static void keep(struct weir_dirs *dirs, struct weir_dir *dir)
{
    pthread_mutex_lock(&dirs->lock);
    struct weir_dir *old = find_cached(dirs, dir->path);
    dir->used = ++dirs->clock;
    dir->loose = true; /* until it is in the cache: its last reference closes it */
    if (weir_name_is_own(dir->path) && !old && make_room(dirs)) {
        dirs->cached[dirs->count++] = dir;
        dir->loose = false;
    } else if (old && dir->durable) {
        old->durable = true;
    }
    pthread_mutex_unlock(&dirs->lock);
}

int weir_dirs_get(struct weir_dirs *dirs, const char *name, enum weir_dirs_mode mode,
                  struct weir_dir **out, const char **base)
{
    const char *slash = strrchr(name, '/');
    char path[WEIR_NAME_BYTES_MAX] = "";
    if (slash)
        snprintf(path, sizeof path, "%.*s", (int)(slash - name), name);
    if (base)
        *base = slash ? slash + 1 : name;
    struct weir_dir *dir = get_cached(dirs, path, mode);
    if (dir) {
        *out = dir;
        return 0;
    }
    dir = weir_alloc(sizeof *dir);
    char *copy = dir ? weir_strdup(path) : NULL;
    if (!copy) {
        free(dir);
        return weir_fail_memory();
    }
    int fd, tries = 0;
    bool by_link;
    do
        fd = weir_walk(&dirs->top, path, mode, &by_link);
    while (((fd == -ENOENT && weir_walk_makes(mode)) || fd == -ESTALE) && ++tries < TRIES_MAX);
    if (fd < 0) {
        free(copy);
        free(dir);
        return fd;
    }
    *dir = (struct weir_dir){.fd = fd,
                             .path = copy,
                             .refs = 1,
                             .durable = mode == WEIR_DIRS_DURABLE,
                             .by_link = by_link};
    keep(dirs, dir);
    *out = dir;
    return 0;
}

void weir_dirs_put(struct weir_dirs *dirs, struct weir_dir *dir)
{
    if (!dir)
        return;
    pthread_mutex_lock(&dirs->lock);
    bool last = --dir->refs == 0 && dir->loose;
    pthread_mutex_unlock(&dirs->lock);
    if (last)
        dir_free(dir);
}

/* Some (GlusterFS) show a directory that was removed as if it were there, but do not open it. */
static bool is_removed(const struct weir_dirs *dirs, const struct weir_dir *dir)
{
    struct weir_sys_stat st;
    int code = weir_sys->fstat_now(dir->fd, &st);
    if (!code && !st.nlink)
        return true;
    if (!code && dirs->top.kind->is_shared && !dirs->top.kind->forgets) {
        int fd = weir_sys->open(dir->fd, ".", DIR_FLAGS, 0);
        code = fd < 0 ? fd : 0;
        if (fd >= 0)
            weir_sys->close(fd);
    }
    return code == -ESTALE || code == -ENOENT;
}

bool weir_dirs_dead(struct weir_dirs *dirs, struct weir_dir *dir)
{
    if (!is_removed(dirs, dir))
        return false;
    pthread_mutex_lock(&dirs->lock);
    for (unsigned i = 0; i < dirs->count; i++)
        if (dirs->cached[i] == dir)
            dirs->cached[i] = dirs->cached[--dirs->count];
    dir->loose = dir != &dirs->root; /* there is no other to be found */
    pthread_mutex_unlock(&dirs->lock);
    return true;
}

int weir_dirs_in(struct weir_dirs *dirs, const char *name, enum weir_dirs_mode mode,
                 weir_dirs_fn fn, void *arg)
{
    int code = -EBUSY;
    bool is_old =
        dirs->top.kind->is_shared; /* what is known of names: looking for the dead asks anew */
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        struct weir_dir *dir;
        const char *base;
        code = weir_dirs_get(dirs, name, mode, &dir, &base);
        if (code)
            break;
        code = fn(arg, dir, base);
        bool again = false;
        if (code == -ENOENT || code == -ESTALE) {
            again = weir_dirs_dead(dirs, dir) || is_old;
            is_old = false;
        }
        weir_dirs_put(dirs, dir);
        if (!again)
            break;
    }
    return code;
}

void weir_dirs_prune(struct weir_dirs *dirs, const char *name, const char *keep_name)
{
    char path[WEIR_NAME_BYTES_MAX];
    snprintf(path, sizeof path, "%s", name);
    size_t keep_size = strlen(keep_name);
    for (;;) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return;
        *slash = 0; /* path is now the directory to remove */
        if (strlen(path) < keep_size)
            return;
        struct weir_dir *up = NULL; /* gcc 12 at -O3 does not see that it is set */
        const char *base;
        if (weir_dirs_get(dirs, path, WEIR_DIRS_FIND, &up, &base))
            return;
        int code = weir_sys->unlink(up->fd, base, true);
        weir_dirs_put(dirs, up);
        if (code)
            return;
    }
}
