/* file.c - the file tier: any directory of any mounted file system. A name is a file; the engine's
 * own files are below .weir. Transfers go through the io engine, everything else is a task of a few
 * system calls. No symbolic link is followed below the root.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/dents.h"
#include "io/lockfile.h"
#include "io/publish.h"
#include "tier/file.h"
#include "util/err.h"
#include "util/key.h"
#include "util/profile.h"
#include "util/sys.h"

enum {
    LOCK_TRIES_MAX = 30000,     /* the store's lock: half a minute for a removal, */
    NAME_LOCK_TRIES_MAX = 1000, /* a second for the plain name of a new object, */
    GC_LOCK_TRIES_MAX = 50,     /* a moment for gc */
};

#define LOCK_NAME ".weir/lock"

struct file_cursor {
    struct weir_handle handle;
    struct weir_dents dents;
};

typedef int (*in_dir_fn)(struct file_tier *t, struct weir_dir *dir, const char *base,
                         struct weir_req *req);
struct in_dir {
    struct weir_req *req;
    in_dir_fn fn;
};

static int in_dir_call(void *arg, struct weir_dir *dir, const char *base)
{
    const struct in_dir *in = arg;
    return in->fn(weir_file_tier_of(in->req), dir, base, in->req);
}

/* Runs fn in the directory of name. */
static int in_dir(struct weir_req *req, const char *name, enum weir_dirs_mode mode, in_dir_fn fn)
{
    struct in_dir in = {req, fn};
    int code = weir_dirs_in(weir_file_tier_of(req)->dirs, name, mode, in_dir_call, &in);
    /* Below a file there is nothing, as on a tier without directories. */
    if (code == -ENOTDIR && mode == WEIR_DIRS_FIND)
        code = -ENOENT;
    return code;
}

int weir_file_fail_at(struct file_tier *t, int code, const char *what, const char *name)
{
    return weir_fail(-code, "cannot %s '%s/%s': %s", what, weir_dirs_root(t->dirs), name,
                     weir_errno_text(code));
}

char *weir_file_label_of(struct file_tier *t, const char *name)
{
    const char *root = weir_dirs_root(t->dirs);
    size_t size = strlen(root) + strlen(name) + 2;
    char *label = weir_alloc(size);
    if (label)
        snprintf(label, size, "%s/%s", root, name);
    return label;
}

/* ---- reading ---- */

static void blob_close(struct weir_handle *handle)
{
    struct file_blob *blob = (struct file_blob *)handle;
    weir_io_file_close(blob->tier->io, &blob->file);
    free(blob);
}

/* Opens a plain file for reading; a link, a pipe or a directory is not one. */
static int open_plain(struct file_tier *t, struct weir_dir *dir, const char *base, const char *name,
                      struct weir_sys_stat *st)
{
    int fd = weir_sys->open(dir->fd, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd == -ELOOP)
        return weir_fail(ELOOP,
                         "'%s/%s' is a symbolic link, which Weir does not follow inside a store: "
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

int weir_file_open_direct(struct weir_dir *dir, const char *base, uint64_t ino, int flags)
{
    struct weir_sys_stat st;
    int fd = weir_sys->open(dir->fd, base, flags | O_DIRECT | O_NOFOLLOW, 0);
    if (fd < 0)
        return fd;
    if (weir_sys->fstat(fd, &st) || st.ino != ino) {
        weir_sys->close(fd);
        return -ESTALE;
    }
    return fd;
}

static int open_in(struct file_tier *t, struct weir_dir *dir, const char *base,
                   struct weir_req *req)
{
    struct weir_sys_stat st;
    int fd = open_plain(t, dir, base, req->name, &st);
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
    if (st.size >= WEIR_IO_DIRECT_BYTES_MIN) /* else it is not worth a second descriptor */
        blob->file.dfd = weir_file_open_direct(dir, base, st.ino, O_RDONLY);
    req->handle = &blob->handle;
    req->stat = (struct weir_blob_stat){st.size, st.mtime_ns};
    return 0;
}

static int load_in(struct file_tier *t, struct weir_dir *dir, const char *base,
                   struct weir_req *req)
{
    struct weir_sys_stat st;
    int fd = open_plain(t, dir, base, req->name, &st);
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

/* Does the name stand for the file that the request's handle holds open? 0 or -ESTALE. */
static int same_file(struct file_tier *t, struct weir_dir *dir, const char *base,
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

static int stat_in(struct file_tier *t, struct weir_dir *dir, const char *base,
                   struct weir_req *req)
{
    struct weir_sys_stat st;
    int code = req->handle ? same_file(t, dir, base, req) : 0;
    if (code)
        return code;
    if (req->sync)
        weir_dirs_refresh(t->dirs, dir);
    code = weir_sys->stat(dir->fd, base, &st);
    if (code)
        return weir_file_fail_at(t, code, "stat", req->name);
    if (!st.is_file)
        return weir_fail(ENOENT, "'%s/%s' is not a plain file", weir_dirs_root(t->dirs), req->name);
    /* Its maker may not have lived to do this. */
    if (req->sync && (code = weir_sys->fsync(dir->fd)))
        return weir_file_fail_at(t, code, "sync the directory of", req->name);
    req->stat = (struct weir_blob_stat){st.size, st.mtime_ns};
    return 0;
}

static void do_open(struct weir_req *req)
{
    weir_req_take(req, in_dir(req, req->name, WEIR_DIRS_FIND, open_in));
}

static void do_load(struct weir_req *req)
{
    weir_req_take(req, in_dir(req, req->name, WEIR_DIRS_FIND, load_in));
}

static void do_stat(struct weir_req *req)
{
    weir_req_take(req, in_dir(req, req->name, WEIR_DIRS_FIND, stat_in));
}

/* Touching a mapping of a file that its server has forgotten would kill the process (SIGBUS). */
static void do_map(struct weir_req *req)
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

/* ---- names ---- */

struct alias {
    const struct weir_dir *to;
    const char *base;
};

static int link_from(void *arg, struct weir_dir *from, const char *from_base)
{
    const struct alias *alias = arg;
    struct weir_sys_stat a, b;
    int code = weir_sys->link(from->fd, from_base, alias->to->fd, alias->base);
    if (code != -EEXIST)
        return code;
    /* It may be just that already: over a network, since the answer to a first try was lost. */
    bool same = !weir_sys->stat(from->fd, from_base, &a) &&
                !weir_sys->stat(alias->to->fd, alias->base, &b) && a.ino == b.ino && a.dev == b.dev;
    return same ? 0 : code;
}

/* Either directory may have been removed and made again since it was last used. */
static int alias_to(struct file_tier *t, struct weir_dir *dir, const char *base,
                    struct weir_req *req)
{
    struct alias alias = {dir, base};
    int code = weir_dirs_in(t->dirs, req->name2, WEIR_DIRS_FIND, link_from, &alias);
    return code ? weir_file_fail_at(t, code, "link", req->name) : 0;
}

static int remove_in(struct file_tier *t, struct weir_dir *dir, const char *base,
                     struct weir_req *req)
{
    int code = req->handle ? same_file(t, dir, base, req) : 0;
    if (req->reuse && !req->handle && !weir_spares_keep(t->spares, dir, base))
        return 0;
    if (!code && (code = weir_sys->unlink(dir->fd, base, false))) {
        req->doubt = weir_is_refusal(code) ? WEIR_SURE : WEIR_DOUBT_LOST;
        weir_file_fail_at(t, code, "remove", req->name);
    }
    /* Whoever removed a name that is not there need not have lived to sync that. */
    if (!req->sync || (code && code != -ENOENT))
        return code;
    int synced = weir_sys->fsync(dir->fd);
    if (!synced)
        return code;
    req->doubt = WEIR_DOUBT_SYNC;
    return weir_fail(EIO, "cannot sync the directory of '%s/%s': %s", weir_dirs_root(t->dirs),
                     req->name, weir_errno_text(synced));
}

/* What was removed while it was open stays below another name where its machine died. Nothing has
 * happened in this directory for long: whoever still reads it had his time. */
static void drop_silly(struct weir_dir *dir)
{
    struct weir_dents *dents = weir_alloc(sizeof *dents);
    const char *name;
    if (!dents || weir_dents_open(dents, dir)) {
        free(dents);
        return;
    }
    while (weir_dents_look(dents, &name) > 0) {
        if (weir_dents_is_silly(name))
            weir_sys->unlink(dir->fd, name, false);
        weir_dents_skip(dents);
    }
    weir_dents_close(dents);
    free(dents);
}

/* A directory that changed lately is about to be used. */
static int dir_is_old(struct file_tier *t, struct weir_dir *dir, const char *base,
                      struct weir_req *req)
{
    struct weir_sys_stat st;
    (void)base;
    int code = weir_sys->fstat(dir->fd, &st);
    if (code)
        return weir_file_fail_at(t, code, "stat", req->name);
    int64_t age_ns = req->stat.time_ns - st.mtime_ns;
    if (age_ns < 0 || (uint64_t)age_ns < req->off)
        return weir_fail(EBUSY, "a young directory");
    if (weir_name_is_own(req->name))
        drop_silly(dir);
    return 0;
}

/* Holds the store's lock, for moments. Whoever stands still with it (a stopped process) makes a
 * removal fail with -EBUSY in the end; a plain name is not worth that wait, and gc comes again. */
static int locked(struct weir_req *req, int (*fn)(struct weir_req *req), int tries_max)
{
    int fd = weir_lockfile_take(weir_file_tier_of(req)->dirs, LOCK_NAME, tries_max);
    if (fd < 0)
        return fd;
    int code = fn(req);
    weir_lockfile_release(fd);
    return code;
}

/* What others share may have changed since it was last looked at. */
static int load_now_in(struct file_tier *t, struct weir_dir *dir, const char *base,
                       struct weir_req *req)
{
    weir_dirs_refresh(t->dirs, dir);
    return load_in(t, dir, base, req);
}

/* Is the record just that? 0 or -ESTALE. */
static int record_is(struct file_tier *t, const char *name, const void *content, size_t size)
{
    struct weir_req load;
    weir_req_init(&load, WEIR_OP_LOAD);
    load.name = name;
    load.len = WEIR_RECORD_BYTES_MAX;
    load.io.context = t;
    int code = in_dir(&load, name, WEIR_DIRS_FIND, load_now_in);
    if (code)
        return code;
    bool same = load.result == size && !memcmp(load.buf, content, size);
    free(load.buf);
    return same ? 0
                : weir_fail(ESTALE, "'%s/%s' has changed meanwhile", weir_dirs_root(t->dirs), name);
}

static int sync_in(struct file_tier *t, struct weir_dir *dir, const char *base,
                   struct weir_req *req)
{
    (void)base;
    int code = weir_sys->fsync(dir->fd);
    return code ? weir_file_fail_at(t, code, "sync the directory of", req->guard) : 0;
}

static int alias_guarded(struct weir_req *req)
{
    int code = record_is(weir_file_tier_of(req), req->guard, req->buf, req->len);
    if (!code && req->sync)
        code = in_dir(req, req->guard, WEIR_DIRS_FIND, sync_in);
    return code ? code : in_dir(req, req->name, WEIR_DIRS_MAKE, alias_to);
}

/* Whoever has just written an object waits for its name; one that is put back (sync) may wait for
 * the next gc. */
static void do_alias(struct weir_req *req)
{
    int tries_max = req->sync ? GC_LOCK_TRIES_MAX : NAME_LOCK_TRIES_MAX;
    weir_req_take(req, req->guard ? locked(req, alias_guarded, tries_max)
                                  : in_dir(req, req->name, WEIR_DIRS_MAKE, alias_to));
}

static int remove_guarded(struct weir_req *req)
{
    int code = record_is(weir_file_tier_of(req), req->guard, req->buf, req->len);
    return code ? code : in_dir(req, req->name, WEIR_DIRS_FIND, remove_in);
}

static void do_remove(struct weir_req *req)
{
    size_t size = strlen(req->name);
    bool is_dir = size && req->name[size - 1] == '/';
    int code = req->guard ? locked(req, remove_guarded, GC_LOCK_TRIES_MAX)
                          : in_dir(req, req->name, WEIR_DIRS_FIND, is_dir ? dir_is_old : remove_in);
    weir_req_take(req, code);
    if (!code)
        weir_dirs_prune(weir_file_tier_of(req)->dirs, req->name, weir_name_kept(req->name));
}

/* The plain name of what the record stands for, if it is that. It goes for good before the record
 * does: after a power loss it must not be there without it. */
static int remove_alias(struct weir_req *req)
{
    struct weir_req alias;
    weir_req_init(&alias, WEIR_OP_REMOVE);
    alias.name = req->name2;
    alias.handle = req->handle;
    alias.sync = true;
    alias.io.context = weir_file_tier_of(req);
    struct weir_sys_stat st;
    int code = weir_sys->fstat(((struct file_blob *)req->handle)->file.fd, &st);
    if (code)
        return weir_file_fail_at(alias.io.context, code, "stat", req->name2);
    code = in_dir(&alias, alias.name, WEIR_DIRS_FIND, remove_in);
    /* The data's own name is all that is left. One that others removed may come back. */
    req->reuse = !code && st.nlink == 2;
    /* Behind a link that took a directory's place nobody finds it either. */
    return code == -ENOENT || code == -ESTALE || code == -ELOOP ? 0 : code;
}

/* Compares and removes while holding the store's lock, which everybody who removes so takes. */
static int remove_if(struct weir_req *req)
{
    int code = record_is(weir_file_tier_of(req), req->name, req->buf, req->len);
    req->reuse = false;
    if (!code && req->name2 && req->handle)
        code = remove_alias(req);
    if (code)
        return code;
    struct weir_handle *handle = req->handle;
    req->handle = NULL; /* it is not the record's */
    req->sync = true;
    bool reuse = req->reuse;
    req->reuse = false; /* nor is this */
    code = in_dir(req, req->name, WEIR_DIRS_FIND, remove_in);
    req->handle = handle;
    req->reuse = reuse;
    /* It was there, and nobody else may remove it now: over a network the answer to a first try
     * was lost, and the second found nothing. */
    return code == -ENOENT && weir_dirs_kind(weir_file_tier_of(req)->dirs)->is_shared ? 0 : code;
}

static void do_remove_if(struct weir_req *req)
{
    struct weir_dirs *dirs = weir_file_tier_of(req)->dirs;
    if (weir_req_take(req, locked(req, remove_if, LOCK_TRIES_MAX)))
        return;
    weir_dirs_prune(dirs, req->name, weir_name_kept(req->name));
    if (req->name2)
        weir_dirs_prune(dirs, req->name2, weir_name_kept(req->name2));
}

static void do_lease(struct weir_req *req)
{
    weir_req_take(req, weir_lockfile_lease(&req->handle, weir_file_tier_of(req)->dirs, req->name,
                                           req->alone));
}

/* ---- listing ---- */

static void cursor_close(struct weir_handle *handle)
{
    struct file_cursor *cursor = (struct file_cursor *)handle;
    weir_dents_close(&cursor->dents);
    free(cursor);
}

static int cursor_open(struct file_tier *t, struct weir_dir *dir, const char *base,
                       struct weir_req *req)
{
    (void)base;
    /* One that was removed and made again by others would look empty. */
    if (weir_dirs_dead(t->dirs, dir))
        return weir_file_fail_at(t, -ENOENT, "list", req->name);
    struct file_cursor *cursor = weir_alloc(sizeof *cursor);
    if (!cursor)
        return weir_fail_memory();
    int code = weir_dents_open(&cursor->dents, dir);
    if (code) {
        free(cursor);
        return weir_file_fail_at(t, code, "list", req->name);
    }
    cursor->handle.close = cursor_close;
    req->handle = &cursor->handle;
    return 0;
}

static int fill_page(struct file_tier *t, struct weir_req *req)
{
    struct weir_dents *dents = &((struct file_cursor *)req->handle)->dents;
    bool is_tmp = !strcmp(req->name, WEIR_DIR_TMP); /* whose sweep takes everything */
    size_t used = 0;
    const char *name;
    int type;
    /* What there is; the next page asks again. */
    while (!req->result || !weir_dents_is_empty(dents)) {
        type = weir_dents_look(dents, &name);
        if (type == -ENOENT || type == -ESTALE)
            return 0; /* it was removed meanwhile: that is its end */
        if (type < 0)
            return weir_file_fail_at(t, type, "list", req->name);
        bool shown = type && type != '?' && (is_tmp || !weir_dents_is_silly(name));
        if (!type || (shown && !weir_list_page_add(req, &used, type == 'd', name)))
            return 0;
        weir_dents_skip(dents);
    }
    return 0;
}

static void do_list(struct weir_req *req)
{
    int code = 0;
    req->result = 0;
    if (req->deep)
        code = weir_fail(ENOTSUP, "a directory is listed level by level");
    else if (!req->handle)
        code = in_dir(req, req->name, WEIR_DIRS_FIND, cursor_open);
    if (!code)
        code = fill_page(weir_file_tier_of(req), req);
    weir_req_take(req, code);
}

/* ---- the whole ---- */

static void do_space(struct weir_req *req)
{
    struct weir_sys_space space;
    struct file_tier *t = weir_file_tier_of(req);
    int code = weir_sys->space(weir_dirs_root_fd(t->dirs), &space);
    if (code)
        code = weir_file_fail_at(t, code, "ask the free space of", "");
    else if (!space.total_bytes) /* CephFS without a manager does not say */
        req->space = (struct weir_space){UINT64_MAX, UINT64_MAX};
    else
        req->space = (struct weir_space){space.free_bytes, space.total_bytes};
    weir_req_take(req, code);
}

/* What time it is here: the time stamp of a new file. */
static int probe_time(struct file_tier *t, int64_t *time_ns)
{
    struct weir_tmp tmp;
    struct weir_sys_stat st;
    int code = weir_tmp_open(&tmp, t->dirs);
    if (code)
        return code;
    code = weir_sys->fstat(tmp.fd, &st);
    weir_tmp_close(&tmp, t->dirs);
    if (code)
        return weir_file_fail_at(t, code, "stat", WEIR_DIR_TMP);
    *time_ns = st.mtime_ns;
    return 0;
}

static int sweep_page(struct file_tier *t, struct weir_req *sweep, const char *page, uint64_t count)
{
    for (; count; count--, page += strlen(page) + 1) {
        char name[WEIR_NAME_BYTES_MAX];
        struct weir_req req;
        if (page[0] != 'f')
            continue;
        snprintf(name, sizeof name, "%s%s", WEIR_DIR_TMP, page + 1);
        weir_req_init(&req, WEIR_OP_STAT);
        req.name = name;
        req.io.context = t;
        int code = in_dir(&req, name, WEIR_DIRS_FIND, stat_in);
        if (code == -ENOENT)
            continue; /* its owner was faster */
        if (code)
            return code;
        int64_t age_ns = sweep->stat.time_ns - req.stat.time_ns;
        if (age_ns < 0)
            age_ns = 0; /* GlusterFS dates a write when it gets to it */
        if ((uint64_t)age_ns < sweep->off) {
            sweep->len++; /* the young ones */
            continue;
        }
        code = sweep->dry ? 0 : in_dir(&req, name, WEIR_DIRS_FIND, remove_in);
        if (code == -EBUSY) {
            sweep->len++; /* removed by its owner, who still has it open: NFS keeps it so long */
            continue;
        }
        if (code && code != -ENOENT)
            return code;
        sweep->result++;
    }
    return 0;
}

static int sweep(struct file_tier *t, struct weir_req *req)
{
    char page[4096];
    struct weir_req list;
    req->result = req->len = 0;
    int code = probe_time(t, &req->stat.time_ns);
    if (code)
        return code;
    weir_req_init(&list, WEIR_OP_LIST);
    list.name = WEIR_DIR_TMP;
    list.buf = page;
    list.len = sizeof page;
    list.io.context = t;
    do {
        do_list(&list);
        code = list.code;
        if (!code)
            code = sweep_page(t, req, page, list.result);
    } while (!code && list.result);
    weir_handle_close(list.handle);
    req->stat.size = weir_spares_drop(t->spares, req->dry);
    return code == -ENOENT ? 0 : code;
}

static void do_sweep(struct weir_req *req)
{
    weir_req_take(req, sweep(weir_file_tier_of(req), req));
}

static void file_submit(struct weir_tier *tier, struct weir_req *req)
{
    static void (*const tasks[WEIR_OPS])(struct weir_req *) = {
        [WEIR_OP_OPEN] = do_open,
        [WEIR_OP_CREATE] = weir_file_create,
        [WEIR_OP_COMMIT] = weir_file_commit,
        [WEIR_OP_LOAD] = do_load,
        [WEIR_OP_PUT] = weir_file_put,
        [WEIR_OP_STAT] = do_stat,
        [WEIR_OP_REMOVE] = do_remove,
        [WEIR_OP_REMOVE_IF] = do_remove_if,
        [WEIR_OP_ALIAS] = do_alias,
        [WEIR_OP_LIST] = do_list,
        [WEIR_OP_LEASE] = do_lease,
        [WEIR_OP_SPACE] = do_space,
        [WEIR_OP_SWEEP] = do_sweep,
        [WEIR_OP_MAP] = do_map,
    };
    struct file_tier *t = (struct file_tier *)tier;
    req->io.context = t;
    req->doubt = WEIR_SURE;
    if (req->op == WEIR_OP_READ)
        weir_io_submit(t->io, req, &((struct file_blob *)req->handle)->file);
    else if (req->op == WEIR_OP_WRITE)
        weir_file_write(t, req);
    else
        weir_io_task(t->io, req, tasks[req->op]);
}

static void file_close(struct weir_tier *tier)
{
    struct file_tier *t = (struct file_tier *)tier;
    weir_spares_close(t->spares);
    weir_dirs_close(t->dirs);
    free(t);
}

int weir_tier_file_layout(struct weir_tier *tier, const char *name, char *out, size_t room)
{
    return weir_stripe_show(out, room, ((struct file_tier *)tier)->dirs, name);
}

static const struct weir_tier_ops file_ops = {"file", file_submit, file_close};

/* Where there is a store, this was asked when it was made. */
static int probe(struct weir_dirs *dirs, bool create)
{
    struct weir_sys_stat st;
    if (!create || !weir_dirs_kind(dirs)->is_shared ||
        !weir_sys->stat(weir_dirs_root_fd(dirs), WEIR_NAME_STORE, &st))
        return 0;
    return weir_publish_probe(dirs);
}

/* What was asked for, else what was measured to be enough; 0: neither. */
static int choose_depth(unsigned *out, const struct weir_file_options *opts)
{
    struct weir_profile profile;
    *out = (unsigned)opts->depth;
    if (!opts->profile || !*opts->profile)
        return 0;
    int code = weir_profile_load(&profile, opts->profile); /* a damaged one is told in any case */
    if (!code && !*out)
        *out = profile.best_depth < WEIR_FILE_DEPTH_MAX ? (unsigned)profile.best_depth
                                                        : WEIR_FILE_DEPTH_MAX;
    return code;
}

int weir_tier_file_open(struct weir_tier **out, const char *path, struct weir_io *io, bool create,
                        const struct weir_file_options *opts)
{
    struct file_tier *t = weir_alloc(sizeof *t);
    if (!t)
        return weir_fail_memory();
    unsigned depth = 0;
    int code = choose_depth(&depth, opts);
    if (!code)
        code = weir_dirs_open(&t->dirs, path, create);
    if (!code)
        code = probe(t->dirs, create);
    if (!code)
        code = weir_spares_open(&t->spares, t->dirs, opts->spare_bytes_max, opts->spare_bytes_min);
    if (code) {
        weir_dirs_close(t->dirs);
        free(t);
        return code;
    }
    t->tier = (struct weir_tier){&file_ops, NULL, WEIR_LEVEL_HOME, depth, 0};
    t->io = io;
    t->stripes.count = opts->stripe_count;
    t->stripes.bytes = opts->stripe_bytes;
    *out = &t->tier;
    return 0;
}
