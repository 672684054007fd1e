/* file_read.c - OPEN, LOAD, STAT and MAP of the file tier. See file.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "tier/file.h"
#include "util/err.h"
#include "util/key.h"
#include "util/sys.h"

static void blob_close(struct weir_handle *handle)
{
    struct file_blob *blob = (struct file_blob *)handle;
    weir_io_file_close(blob->tier->io, &blob->file);
    free(blob);
}

/* Opens a plain file for reading; a pipe or a directory is not one. */
static int open_plain(struct file_tier *t, struct weir_dir *dir, const char *base, const char *name,
                      bool follows, struct weir_sys_stat *st)
{
    int fd = weir_sys->open(dir->fd, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd == -ELOOP && follows) {
        fd = weir_dirs_open_link(t->dirs, dir->fd, base, name, O_RDONLY | O_NONBLOCK, st);
        if (fd < 0)
            return fd;
    }
    if (fd == -ELOOP)
        return weir_fail(ELOOP,
                         "'%s/%s' is a symbolic link, and none of the engine's own files is one: "
                         "put the file itself there",
                         weir_dirs_root(t->dirs), name);
    if (fd < 0)
        return weir_file_fail_at(t, fd, "open", name);
    int code = weir_sys->fstat(fd, st);
    if (code)
        code = weir_file_fail_at(t, code, "stat", name);
    else if (!st->is_file)
        code = weir_fail(ENOENT, "'%s/%s' is not a plain file", weir_dirs_root(t->dirs), name);
    if (code) {
        weir_sys->close(fd);
        return code;
    }
    return fd;
}

int weir_file_open_direct(struct weir_dir *dir, const char *base, const struct weir_sys_stat *same,
                          int flags)
{
    struct weir_sys_stat st;
    int waits = flags & O_NOFOLLOW ? 0 : O_NONBLOCK; /* what a link leads to now may be a pipe */
    int fd = weir_sys->open(dir->fd, base, flags | O_DIRECT | waits, 0);
    if (fd < 0)
        return fd;
    if (weir_sys->fstat(fd, &st) || st.ino != same->ino || st.dev != same->dev) {
        weir_sys->close(fd);
        return -ESTALE;
    }
    return fd;
}

/* What is read once does not belong into the page cache, unless it is there; a second descriptor
 * for that would be most of what a small file costs. */
static bool opens_around(int fd, const struct weir_sys_stat *st)
{
    return st->size && st->size < WEIR_IO_DIRECT_BYTES_MIN &&
           weir_sys->resident(fd, 0, st->size) != 1 && !weir_sys->set_direct(fd, true);
}

static int open_in(struct file_tier *t, struct weir_dir *dir, const char *base,
                   struct weir_req *req)
{
    struct weir_sys_stat st;
    bool follows = !weir_name_is_own(req->name);
    int fd = open_plain(t, dir, base, req->name, follows, &st);
    if (fd < 0)
        return fd;
    struct file_blob *blob = weir_alloc(sizeof *blob);
    char *label = blob ? weir_file_label_of(t, req->name) : NULL;
    if (!label) {
        free(blob);
        weir_sys->close(fd);
        return weir_fail_memory();
    }
    *blob = (struct file_blob){{blob_close}, t, {.fd = fd, .dfd = -1, .label = label}};
    req->around = req->once && opens_around(fd, &st);
    if (req->around)
        blob->file.dfd = fd;
    else if (st.size >= WEIR_IO_DIRECT_BYTES_MIN) /* else it is not worth a second descriptor */
        blob->file.dfd =
            weir_file_open_direct(dir, base, &st, O_RDONLY | (follows ? 0 : O_NOFOLLOW));
    req->handle = &blob->handle;
    req->stat = (struct weir_blob_stat){st.size, st.mtime_ns};
    return 0;
}

int weir_file_load_in(struct file_tier *t, struct weir_dir *dir, const char *base,
                      struct weir_req *req)
{
    struct weir_sys_stat st;
    int fd = open_plain(t, dir, base, req->name, false, &st);
    if (fd < 0)
        return fd;
    int code = 0;
    char *buf = NULL;
    size_t done = 0;
    if (st.size > req->len)
        code = weir_fail(EFBIG, "'%s/%s' is %llu bytes, the limit is %zu", weir_dirs_root(t->dirs),
                         req->name, (unsigned long long)st.size, req->len);
    else if (!(buf = weir_alloc(st.size)))
        code = weir_fail_memory();
    while (!code && done < st.size) {
        ssize_t n = weir_sys->pread(fd, buf + done, st.size - done, done);
        if (n == -EINTR)
            continue;
        if (n < 0)
            code = weir_file_fail_at(t, (int)n, "read", req->name);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    weir_sys->close(fd);
    if (code) {
        free(buf);
        return code;
    }
    req->buf = buf;
    req->result = done;
    req->stat = (struct weir_blob_stat){st.size, st.mtime_ns};
    return 0;
}

int weir_file_same(struct file_tier *t, struct weir_dir *dir, const char *base,
                   const struct weir_req *req)
{
    struct weir_sys_stat a, b;
    int code = weir_sys->stat(dir->fd, base, &a);
    if (!code)
        code = weir_sys->fstat(((struct file_blob *)req->handle)->file.fd, &b);
    if (code)
        return weir_file_fail_at(t, code, "stat", req->name);
    return a.ino == b.ino && a.dev == b.dev ? 0 : weir_fail(ESTALE, "not the same file");
}

/* What a link stands for, for one that is not the engine's own; a directory that listing does not
 * enter says why. */
static int look_behind(struct file_tier *t, struct weir_dir *dir, const char *base,
                       const char *name, struct weir_sys_stat *st)
{
    int fd = weir_dirs_open_link(t->dirs, dir->fd, base, name, O_PATH, st);
    if (fd < 0)
        return fd;
    int is_above = st->is_dir ? weir_dirs_is_above(t->dirs, dir->path, fd) : 0;
    weir_sys->close(fd);
    return is_above < 0 ? is_above : 0;
}

static int look_at(struct file_tier *t, struct weir_dir *dir, const char *base,
                   const struct weir_req *req, struct weir_sys_stat *st)
{
    int code = weir_sys->stat(dir->fd, base, st);
    if (code == -ENOENT && dir->by_link && req->fresh)
        return weir_fail(ELOOP,
                         "there is no '%s/%s', which would be behind a symbolic link, where Weir "
                         "writes nothing",
                         weir_dirs_root(t->dirs), req->name);
    if (code)
        return weir_file_fail_at(t, code, "stat", req->name);
    bool follows = st->is_link && !weir_name_is_own(req->name);
    return follows ? look_behind(t, dir, base, req->name, st) : 0;
}

int weir_file_stat_in(struct file_tier *t, struct weir_dir *dir, const char *base,
                      struct weir_req *req)
{
    struct weir_sys_stat st, held;
    if (req->sync)
        weir_dirs_refresh(t->dirs, dir);
    int code = look_at(t, dir, base, req, &st);
    if (code)
        return code;
    if (req->handle) {
        code = weir_sys->fstat(((struct file_blob *)req->handle)->file.fd, &held);
        if (code)
            return weir_file_fail_at(t, code, "stat", req->name);
        if (st.ino != held.ino || st.dev != held.dev)
            return weir_fail(ESTALE, "not the same file");
    }
    if (!st.is_file)
        return weir_fail(ENOENT, "'%s/%s' is not a plain file", weir_dirs_root(t->dirs), req->name);
    /* Its maker may not have lived to do this. */
    if (req->sync && (code = weir_sys->fsync(dir->fd)))
        return weir_file_fail_at(t, code, "sync the directory of", req->name);
    req->stat = (struct weir_blob_stat){st.size, st.mtime_ns};
    return 0;
}

void weir_file_open(struct weir_req *req)
{
    weir_req_take(req, weir_file_in_dir(req, req->name, WEIR_DIRS_FOLLOW, open_in));
}

void weir_file_load(struct weir_req *req)
{
    weir_req_take(req, weir_file_in_dir(req, req->name, WEIR_DIRS_FIND, weir_file_load_in));
}

void weir_file_stat(struct weir_req *req)
{
    weir_req_take(req, weir_file_in_dir(req, req->name, WEIR_DIRS_FOLLOW, weir_file_stat_in));
}

/* Touching a mapping of a file that its server has forgotten would kill the process (SIGBUS). */
void weir_file_map(struct weir_req *req)
{
    const struct weir_file *file = &((struct file_blob *)req->handle)->file;
    if (weir_dirs_kind(weir_file_tier_of(req)->dirs)->forgets) {
        weir_req_fail(req, ENOTSUP,
                      "'%s' is read, not mapped: another machine may remove it at any time",
                      file->label);
        return;
    }
    int code = weir_sys->map(file->fd, req->len, &req->buf);
    if (code)
        weir_req_fail(req, -code, "cannot map '%s': %s", file->label, weir_errno_text(code));
}
