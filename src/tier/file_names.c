/* file_names.c - ALIAS, REMOVE, REMOVE_IF and LEASE of the file tier. See file.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/dents.h"
#include "io/lockfile.h"
#include "tier/file.h"
#include "util/err.h"
#include "util/key.h"
#include "util/sys.h"

enum {
    LOCK_TRIES_MAX = 30000,     /* the store's lock: half a minute for a removal, */
    NAME_LOCK_TRIES_MAX = 1000, /* a second for the plain name of a new object, */
    GC_LOCK_TRIES_MAX = 50,     /* a moment for gc */
};

#define LOCK_NAME ".weir/lock"

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

int weir_file_remove_in(struct file_tier *t, struct weir_dir *dir, const char *base,
                        struct weir_req *req)
{
    int code = req->handle ? weir_file_same(t, dir, base, req) : 0;
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
    return weir_file_load_in(t, dir, base, req);
}

/* Is the record just that? 0 or -ESTALE. */
static int record_is(struct file_tier *t, const char *name, const void *content, size_t size)
{
    struct weir_req load;
    weir_req_init(&load, WEIR_OP_LOAD);
    load.name = name;
    load.len = WEIR_RECORD_BYTES_MAX;
    load.io.context = t;
    int code = weir_file_in_dir(&load, name, WEIR_DIRS_FIND, load_now_in);
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
        code = weir_file_in_dir(req, req->guard, WEIR_DIRS_FIND, sync_in);
    return code ? code : weir_file_in_dir(req, req->name, WEIR_DIRS_MAKE, alias_to);
}

/* Whoever has just written an object waits for its name; one that is put back (sync) may wait for
 * the next gc. */
void weir_file_alias(struct weir_req *req)
{
    int tries_max = req->sync ? GC_LOCK_TRIES_MAX : NAME_LOCK_TRIES_MAX;
    weir_req_take(req, req->guard ? locked(req, alias_guarded, tries_max)
                                  : weir_file_in_dir(req, req->name, WEIR_DIRS_MAKE, alias_to));
}

static int remove_guarded(struct weir_req *req)
{
    int code = record_is(weir_file_tier_of(req), req->guard, req->buf, req->len);
    return code ? code : weir_file_in_dir(req, req->name, WEIR_DIRS_FIND, weir_file_remove_in);
}

void weir_file_remove(struct weir_req *req)
{
    size_t size = strlen(req->name);
    bool is_dir = size && req->name[size - 1] == '/';
    int code = req->guard ? locked(req, remove_guarded, GC_LOCK_TRIES_MAX)
                          : weir_file_in_dir(req, req->name, WEIR_DIRS_FIND,
                                             is_dir ? dir_is_old : weir_file_remove_in);
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
    code = weir_file_in_dir(&alias, alias.name, WEIR_DIRS_FIND, weir_file_remove_in);
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
    code = weir_file_in_dir(req, req->name, WEIR_DIRS_FIND, weir_file_remove_in);
    req->handle = handle;
    req->reuse = reuse;
    /* It was there, and nobody else may remove it now: over a network the answer to a first try
     * was lost, and the second found nothing. */
    return code == -ENOENT && weir_dirs_kind(weir_file_tier_of(req)->dirs)->is_shared ? 0 : code;
}

void weir_file_remove_if(struct weir_req *req)
{
    struct weir_dirs *dirs = weir_file_tier_of(req)->dirs;
    if (weir_req_take(req, locked(req, remove_if, LOCK_TRIES_MAX)))
        return;
    weir_dirs_prune(dirs, req->name, weir_name_kept(req->name));
    if (req->name2)
        weir_dirs_prune(dirs, req->name2, weir_name_kept(req->name2));
}

void weir_file_lease(struct weir_req *req)
{
    weir_req_take(req, weir_lockfile_lease(&req->handle, weir_file_tier_of(req)->dirs, req->name,
                                           req->alone));
}
