/* walk.c - see walk.h. */
#include "io/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "io/fskind.h"
#include "util/err.h"
#include "util/key.h"
#include "util/sys.h"

enum {
    LINKS_MAX = 8, /* on one way */
    DIR_MODE = 0777,
    DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
};

/* One way: what it met, and what it looks for. */
struct walk {
    const struct weir_top *top;
    enum weir_dirs_mode mode;
    unsigned links;
    const struct weir_sys_stat *other; /* NULL, or a directory that must not be on it */
};

/* ---- plain directories ---- */

static int step_fail(const struct weir_top *top, int up, const char *part, const char *path,
                     int code)
{
    struct weir_sys_stat st;
    if ((code == -ENOTDIR || code == -ELOOP) && weir_sys->stat(up, part, &st) == 0) {
        if (st.is_link)
            return weir_fail(ELOOP,
                             "'%s/%s' is a symbolic link, behind which Weir writes nothing: move "
                             "what it points to here",
                             top->label, path);
        return weir_fail(ENOTDIR, "'%s/%s' is not a directory", top->label, path);
    }
    if (code == -ESTALE && weir_sys->fstat_now(top->fd, &st) == -ESTALE)
        return weir_fail(ESTALE,
                         "the directory '%s' was removed, or its server does not know it any more: "
                         "see that it is mounted, and open the store again",
                         top->label);
    return weir_fail(-code, "cannot open directory '%s/%s': %s", top->label, path,
                     weir_errno_text(code));
}

/* Opens the directory `part` of `up`; one that is missing only as far as is remembered here is
 * found. Where it would be made next, making it tells as well. */
static int open_part(const struct walk *walk, int up, const char *part)
{
    struct weir_sys_stat st;
    int fd = weir_sys->open(up, part, DIR_FLAGS, 0);
    if (fd == -ENOENT && !weir_walk_makes(walk->mode) && walk->top->kind->is_shared &&
        !weir_sys->fstat_now(up, &st))
        fd = weir_sys->open(up, part, DIR_FLAGS, 0);
    return fd;
}

/* One step down, without a link. Returns a new descriptor or -errno with a text. */
static int step(const struct walk *walk, int up, const char *part, const char *path)
{
    const struct weir_top *top = walk->top;
    int fd = open_part(walk, up, part);
    if (fd == -ENOENT && weir_walk_makes(walk->mode)) {
        int code = weir_sys->mkdir(up, part, DIR_MODE);
        if (code && code != -EEXIST)
            return weir_fail(-code, "cannot make directory '%s/%s': %s", top->label, path,
                             weir_errno_text(code));
        fd = weir_sys->open(up, part, DIR_FLAGS, 0);
    }
    if (fd < 0)
        return step_fail(top, up, part, path, fd);
    if (walk->mode == WEIR_DIRS_DURABLE) {
        int code = weir_sys->fsync(up);
        if (code) {
            weir_sys->close(fd);
            return weir_fail(-code, "cannot sync the directory above '%s/%s': %s", top->label, path,
                             weir_errno_text(code));
        }
    }
    return fd;
}

/* ---- links ---- */

/* Is a part of it named ".weir"? */
static bool is_in_own(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/.weir")); at++)
        if (!at[6] || at[6] == '/')
            return true;
    return false;
}

static int link_fail(const struct weir_top *top, const char *path, int code)
{
    const char *what = code == -ELOOP ? "is a symbolic link that leads to itself"
                                      : "is a symbolic link, and there is nothing where it leads";
    if (code == -ENOENT || code == -ENOTDIR || code == -ESTALE || code == -ELOOP)
        return weir_fail(ELOOP, "'%s/%s' %s", top->label, path, what);
    return weir_fail(-code, "cannot follow the symbolic link '%s/%s': %s", top->label, path,
                     weir_errno_text(code));
}

/* Where what is open is, without links. */
static int path_of(const struct weir_top *top, int fd, const char *path, char out[PATH_MAX])
{
    int code = weir_sys->path_of(fd, out, PATH_MAX);
    if (!code)
        return 0;
    return weir_fail(ENOTSUP,
                     "cannot tell where the symbolic link '%s/%s' leads: %s (is /proc mounted?)",
                     top->label, path, weir_errno_text(code));
}

int weir_walk_link(const struct weir_top *top, int up, const char *part, const char *path,
                   int flags, struct weir_sys_stat *st)
{
    char real[PATH_MAX];
    int fd = weir_sys->open(up, part, flags, 0);
    if (fd == -ENOTDIR && flags & O_DIRECTORY)
        return weir_fail(ENOTDIR, "'%s/%s' is a symbolic link, but not to a directory", top->label,
                         path);
    if (fd < 0)
        return link_fail(top, path, fd);
    int code = weir_sys->fstat(fd, st);
    code = code ? link_fail(top, path, code) : path_of(top, fd, path, real);
    if (!code && is_in_own(real))
        code = weir_fail(ELOOP,
                         "'%s/%s' is a symbolic link into a directory .weir, which is a store's "
                         "own: link to the object's plain name",
                         top->label, path);
    if (!code)
        return fd;
    weir_sys->close(fd);
    return code;
}

static int too_many(const struct weir_top *top, const char *path)
{
    return weir_fail(ELOOP, "there are more than %d symbolic links on the way to '%s/%s'",
                     LINKS_MAX, top->label, path);
}

/* The directory that a link stands for; path ends with the link. */
static int step_by_link(struct walk *walk, int up, const char *part, const char *path)
{
    char above[WEIR_NAME_BYTES_MAX];
    struct weir_sys_stat st;
    if (++walk->links > LINKS_MAX)
        return too_many(walk->top, path);
    int fd = weir_walk_link(walk->top, up, part, path, O_RDONLY | O_DIRECTORY, &st);
    if (fd < 0 || walk->other) /* then who looks for that has been here */
        return fd;
    const char *slash = strrchr(path, '/');
    snprintf(above, sizeof above, "%.*s", slash ? (int)(slash - path) : 0, path);
    int code = weir_walk_is_above(walk->top, above, fd);
    if (!code)
        return fd;
    weir_sys->close(fd);
    return code < 0 ? code
                    : weir_fail(ELOOP, "'%s/%s' is a symbolic link to a directory above it",
                                walk->top->label, path);
}

static bool is_link(int up, const char *part)
{
    struct weir_sys_stat st;
    return !weir_sys->stat(up, part, &st) && st.is_link;
}

/* ---- the way ---- */

/* One part further; path ends with it. */
static int go(struct walk *walk, int up, const char *part, const char *path)
{
    if (walk->links && weir_name_is_own(part))
        return weir_fail(ELOOP, "'%s/%s' is another store's own, and behind a symbolic link",
                         walk->top->label, path);
    int fd = step(walk, up, part, path);
    if (walk->mode != WEIR_DIRS_FOLLOW || (fd != -ELOOP && fd != -ENOTDIR) ||
        weir_name_is_own(path) || !is_link(up, part))
        return fd;
    return step_by_link(walk, up, part, path);
}

/* Is that the other? */
static bool is_same(int fd, const struct weir_sys_stat *other)
{
    struct weir_sys_stat st;
    return other && !weir_sys->fstat(fd, &st) && st.ino == other->ino && st.dev == other->dev;
}

/* -EDEADLK, without a text: the other directory is on the way. */
static int walk_to(struct walk *walk, const char *path)
{
    char copy[WEIR_NAME_BYTES_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = walk->top->fd;
    for (char *part = copy; *part && fd >= 0;) {
        size_t n = strcspn(part, "/");
        bool last = !part[n];
        part[n] = 0;
        int down = go(walk, fd, part, copy);
        if (fd != walk->top->fd)
            weir_sys->close(fd);
        fd = down;
        if (fd >= 0 && is_same(fd, walk->other)) {
            weir_sys->close(fd);
            return -EDEADLK;
        }
        if (!last)
            part[n] = '/';
        part += n + !last;
    }
    return fd;
}

int weir_walk(const struct weir_top *top, const char *path, enum weir_dirs_mode mode, bool *by_link)
{
    struct walk walk = {.top = top, .mode = mode};
    int fd = walk_to(&walk, path);
    *by_link = walk.links != 0;
    return fd;
}

int weir_walk_is_above(const struct weir_top *top, const char *path, int fd)
{
    char there[PATH_MAX], root[PATH_MAX];
    struct weir_sys_stat st;
    int code = weir_sys->fstat(fd, &st);
    code = code ? link_fail(top, path, code) : path_of(top, fd, path, there);
    if (!code)
        code = path_of(top, top->fd, path, root);
    if (code)
        return code;
    size_t size = strlen(there);
    if (!strncmp(root, there, size) && (size == 1 || !root[size] || root[size] == '/'))
        return 1;
    /* By links it may be above in another way. */
    struct walk walk = {.top = top, .mode = WEIR_DIRS_FOLLOW, .other = &st};
    fd = walk_to(&walk, path);
    if (fd >= 0 && fd != top->fd)
        weir_sys->close(fd);
    if (fd < 0)
        return fd == -EDEADLK ? 1 : fd;
    return walk.links < LINKS_MAX ? 0 : too_many(top, path);
}
