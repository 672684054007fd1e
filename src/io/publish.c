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
    uint8_t nonce[WEIR_NONCE_BYTES];
    int code = weir_sys->random(nonce, sizeof nonce);
    if (code)
        return weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
    struct weir_tmp made = {.fd = -1};
    weir_hex(made.base, nonce, sizeof nonce);
    bool again = true;
    for (int tries = 0; again && tries < TRIES_MAX; tries++) {
        code = weir_dirs_get(dirs, WEIR_DIR_TMP, WEIR_DIRS_MAKE, &made.dir, NULL);
        if (code)
            return code;
        made.fd = weir_sys->open(made.dir->fd, made.base, O_RDWR | O_CREAT | O_EXCL, FILE_MODE);
        if (made.fd >= 0) {
            *tmp = made;
            return 0;
        }
        again = made.fd == -ENOENT && weir_dirs_dead(dirs, made.dir);
        weir_dirs_put(dirs, made.dir);
    }
    return weir_fail(-made.fd, "cannot create a file in '%s/%s': %s", weir_dirs_root(dirs),
                     WEIR_DIR_TMP, weir_errno_text(made.fd));
}

/* Did the link happen, although its answer was an error? Links of a file nobody else knows are
 * counted: one is the temporary name. 1, 0, or -errno if that cannot be known. */
static int link_happened(const struct weir_tmp *tmp)
{
    struct weir_sys_stat st;
    int code = weir_sys->fstat(tmp->fd, &st);
    return code ? code : st.nlink >= 2;
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
    int happened = code ? link_happened(tmp) : 1;
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
        struct weir_sys_stat st;
        if (code == -ENOENT && weir_sys->stat(tmp->dir->fd, tmp->base, &st) == -ENOENT)
            return weir_fail(ESTALE,
                             "the temporary file of '%s' was collected: this writer was away for "
                             "longer than the store's grace; write it again",
                             name);
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
    weir_sys->unlink(tmp->dir->fd, tmp->base, false);
    weir_sys->close(tmp->fd);
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
