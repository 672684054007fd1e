/* publish.c - see publish.h. */
#include "io/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "util/err.h"
#include "util/hash.h"
#include "util/key.h"
#include "util/sys.h"

enum {
    FILE_MODE = 0444, /* immutable: a careless write is refused before it does harm */
    TRIES_MAX = 8,    /* a directory removed under us is made again this often */
};

int weir_tmp_open(struct weir_tmp *tmp, struct weir_dirs *dirs)
{
    struct weir_tmp made = {.fd = -1};
    bool again = true;
    for (int tries = 0; again && tries < TRIES_MAX; tries++) {
        uint8_t nonce[WEIR_NONCE_BYTES];
        int code = weir_sys->random(nonce, sizeof nonce);
        if (code)
            return weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
        weir_hex(made.base, nonce, sizeof nonce);
        code = weir_dirs_get(dirs, WEIR_DIR_TMP, WEIR_DIRS_MAKE, &made.dir, NULL);
        if (code)
            return code;
        made.fd = weir_sys->open(made.dir->fd, made.base, O_RDWR | O_CREAT | O_EXCL, FILE_MODE);
        if (made.fd >= 0) {
            *tmp = made;
            return 0;
        }
        /* Nobody else has such a name: where it is taken, an answer to us was lost. */
        if (made.fd == -EEXIST)
            weir_sys->unlink(made.dir->fd, made.base, false);
        again = made.fd == -EEXIST ||
                ((made.fd == -ENOENT || made.fd == -ESTALE) && weir_dirs_dead(dirs, made.dir));
        weir_dirs_put(dirs, made.dir);
    }
    return weir_fail(-made.fd, "cannot create a file in '%s/%s': %s", weir_dirs_root(dirs),
                     WEIR_DIR_TMP, weir_errno_text(made.fd));
}

/* Did the link happen, although its answer was an error? Links of a file nobody else knows are
 * counted: one is the temporary name. That may have been collected meanwhile; then the name itself
 * tells. What is remembered of the file from before does not count. 1, 0, or -errno if that cannot
 * be known. */
static int link_happened(const struct weir_tmp *tmp, const struct weir_dir *dir, const char *base)
{
    struct weir_sys_stat st, named;
    int code = weir_sys->fstat_now(tmp->fd, &st);
    if (code || st.nlink >= 2)
        return code ? code : 1;
    return !weir_sys->stat(dir->fd, base, &named) && named.ino == st.ino && named.dev == st.dev;
}

bool weir_is_refusal(int code)
{
    static const int refusals[] = {EEXIST, ENOENT,       ENOSPC, EDQUOT, EACCES,  EPERM, EROFS,
                                   EMLINK, ENAMETOOLONG, EXDEV,  ELOOP,  ENOTDIR, EISDIR};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (code == -refusals[i])
            return true;
    return false;
}

static int link_once(struct weir_tmp *tmp, struct weir_dirs *dirs, struct weir_dir *dir,
                     const char *base, const char *name, enum weir_doubt *doubt)
{
    int code = weir_sys->link(tmp->dir->fd, tmp->base, dir->fd, base);
    int happened = code ? link_happened(tmp, dir, base) : 1;
    /* What may have happened is synced, too: whoever finds the name there takes it for durable. So
     * is what somebody else linked there: he may not have lived to do it. */
    bool taken = !happened && code == -EEXIST;
    int synced = happened || taken ? weir_sys->fsync(dir->fd) : 0;
    bool lost = happened < 0 || (!happened && !weir_is_refusal(code));
    *doubt = synced && !taken ? WEIR_DOUBT_SYNC : lost ? WEIR_DOUBT_LOST : WEIR_SURE;
    if (synced)
        return weir_fail(EIO, "cannot sync the directory of '%s/%s': %s", weir_dirs_root(dirs),
                         name, weir_errno_text(synced));
    if (happened != 1)
        return weir_fail(-code, "cannot link '%s/%s': %s", weir_dirs_root(dirs), name,
                         weir_errno_text(code));
    return 0;
}

/* Did a gc remove the temporary file? On NFS nothing is left of it then, not even for us. */
static bool is_collected(const struct weir_tmp *tmp)
{
    struct weir_sys_stat st;
    int code = weir_sys->fstat_now(tmp->fd, &st);
    if (code == -ESTALE || (!code && !st.nlink))
        return true;
    return !code && st.nlink == 1 && weir_sys->stat(tmp->dir->fd, tmp->base, &st) == -ENOENT;
}

int weir_tmp_publish(struct weir_tmp *tmp, struct weir_dirs *dirs, const char *name,
                     enum weir_doubt *doubt)
{
    *doubt = WEIR_SURE;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        struct weir_dir *dir;
        const char *base;
        int code = weir_dirs_get(dirs, name, WEIR_DIRS_DURABLE, &dir, &base);
        if (code)
            return code;
        code = link_once(tmp, dirs, dir, base, name, doubt);
        bool again = (code == -ENOENT || code == -ESTALE) && weir_dirs_dead(dirs, dir);
        weir_dirs_put(dirs, dir);
        if ((code == -ENOENT || code == -ESTALE) && is_collected(tmp)) {
            *doubt = WEIR_SURE;
            return weir_fail(ESTALE,
                             "the temporary file of '%s' was collected: this writer was away for "
                             "longer than the store's grace; write it again",
                             name);
        }
        if (!again)
            return code;
    }
    return weir_fail(EBUSY, "the directory of '%s/%s' keeps being removed", weir_dirs_root(dirs),
                     name);
}

void weir_tmp_close(struct weir_tmp *tmp, struct weir_dirs *dirs)
{
    if (tmp->fd < 0)
        return;
    /* Closed first: NFS keeps what is removed while it is open under another name. */
    weir_sys->close(tmp->fd);
    weir_sys->unlink(tmp->dir->fd, tmp->base, false);
    weir_dirs_put(dirs, tmp->dir);
    tmp->fd = -1;
}

static int write_all(int fd, const char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = weir_sys->pwrite(fd, data + done, size - done, done);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return n ? (int)n : -EIO;
        done += (size_t)n;
    }
    return weir_sys->fdatasync(fd);
}

int weir_publish(struct weir_dirs *dirs, const char *name, const void *data, size_t size,
                 uint64_t until_ns, enum weir_doubt *doubt)
{
    struct weir_tmp tmp;
    *doubt = WEIR_SURE;
    int code = weir_tmp_open(&tmp, dirs);
    if (code)
        return code;
    code = write_all(tmp.fd, data, size);
    if (code)
        weir_fail(-code, "cannot write '%s/%s': %s", weir_dirs_root(dirs), name,
                  weir_errno_text(code));
    else if (until_ns && weir_sys->now_ns(WEIR_CLOCK_BOOT) > until_ns)
        code = weir_fail(ESTALE, "it is too late to make '%s/%s'", weir_dirs_root(dirs), name);
    else
        code = weir_tmp_publish(&tmp, dirs, name, doubt);
    weir_tmp_close(&tmp, dirs);
    return code;
}

/* ---- the probe ---- */

/* Links a, then b, as `base`: the first must succeed and show, the second must not. NULL, or what
 * is wrong. */
static const char *probe_links(const struct weir_tmp *a, const struct weir_tmp *b,
                               const struct weir_dir *dir, const char *base)
{
    struct weir_sys_stat st, named;
    int code = weir_sys->link(a->dir->fd, a->base, dir->fd, base);
    if (code)
        return weir_errno_text(code);
    if (weir_sys->fstat_now(a->fd, &st) || weir_sys->stat(dir->fd, base, &named))
        return "what was linked is not there";
    if (!named.is_file || named.ino != st.ino || st.nlink != 2)
        return "a link is another file, or is not counted";
    code = weir_sys->link(b->dir->fd, b->base, dir->fd, base);
    return code == -EEXIST ? NULL : "a name is linked twice";
}

/* *why is set if links do not do what they must. */
static int probe_once(struct weir_dirs *dirs, const char **why)
{
    struct weir_tmp a, b = {.fd = -1};
    struct weir_dir *dir = NULL;
    char base[sizeof a.base + 2];
    int code = weir_tmp_open(&a, dirs);
    if (code)
        return code;
    code = weir_tmp_open(&b, dirs);
    if (!code)
        code = weir_dirs_get(dirs, WEIR_DIR_SPARE, WEIR_DIRS_MAKE, &dir, NULL);
    if (!code) {
        /* Whatever ends this process, a gc takes it for a spare. */
        snprintf(base, sizeof base, "0-%s", a.base);
        *why = probe_links(&a, &b, dir, base);
    }
    weir_tmp_close(&b, dirs);
    weir_tmp_close(&a, dirs);
    if (dir)
        weir_sys->unlink(dir->fd, base, false);
    weir_dirs_put(dirs, dir);
    return code;
}

int weir_publish_probe(struct weir_dirs *dirs)
{
    const char *why = "";
    int code = 0;
    /* A gc may take any of this away, and is not there each time. */
    for (int tries = 0; !code && why && tries < TRIES_MAX; tries++)
        code = probe_once(dirs, &why);
    if (code || !why)
        return code;
    return weir_fail(ENOTSUP,
                     "the file system of '%s' (%s) cannot hold a store, which needs hard links "
                     "between directories: %s; use another one, or mount it with them",
                     weir_dirs_root(dirs), weir_dirs_kind(dirs)->name, why);
}
