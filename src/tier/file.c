/* file.c - the file tier: any directory of any mounted file system. A name is a file; the engine's
 * own files are below .weir. Transfers go through the io engine, everything else is a task of a few
 * system calls. Symbolic links that others made are followed to read, by OPEN, STAT and LIST; ones
 * below .weir, and into one, are not, and nothing is written or removed behind one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/dents.h"
#include "io/publish.h"
#include "tier/file.h"
#include "util/err.h"
#include "util/key.h"
#include "util/profile.h"
#include "util/sys.h"

struct file_cursor {
    struct weir_handle handle;
    struct weir_dents dents;
};

struct in_dir {
    struct weir_req *req;
    weir_file_in_dir_fn fn;
};

static int in_dir_call(void *arg, struct weir_dir *dir, const char *base)
{
    const struct in_dir *in = arg;
    return in->fn(weir_file_tier_of(in->req), dir, base, in->req);
}

int weir_file_in_dir(struct weir_req *req, const char *name, enum weir_dirs_mode mode,
                     weir_file_in_dir_fn fn)
{
    struct in_dir in = {req, fn};
    int code = weir_dirs_in(weir_file_tier_of(req)->dirs, name, mode, in_dir_call, &in);
    /* Below a file there is nothing, as on a tier without directories. */
    if (code == -ENOTDIR && (mode == WEIR_DIRS_FIND || mode == WEIR_DIRS_FOLLOW))
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

/* What a link stands for: 'd', 'f', '?' for one that leads back up and for what is neither, or
 * -errno. One that cannot be followed is told as a file, as the others beside it can be: who asks
 * for it alone is told why. */
static int link_type(struct file_tier *t, const struct weir_req *req, int dir, const char *name)
{
    char path[2 * WEIR_NAME_BYTES_MAX];
    struct weir_sys_stat st;
    if (weir_name_is_own(req->name))
        return '?';
    size_t size = (size_t)snprintf(path, sizeof path, "%s", req->name);
    snprintf(path + size, sizeof path - size, "%s", name);
    int fd = weir_dirs_open_link(t->dirs, dir, name, path, O_PATH, &st), is_above = 0;
    path[size ? size - 1 : 0] = 0; /* the directory, without its slash */
    if (fd >= 0 && st.is_dir)
        is_above = weir_dirs_is_above(t->dirs, path, fd);
    if (fd >= 0)
        weir_sys->close(fd);
    int code = fd < 0 ? fd : is_above;
    if (code == -ENOMEM || code == -EMFILE || code == -ENFILE)
        return code;
    return code < 0 || st.is_file ? 'f' : st.is_dir && !is_above ? 'd' : '?';
}

/* One that cannot be seen is told as it is: who asks for it alone is told why. */
static bool add_to_page(struct weir_req *req, size_t *used, int dir, char type, const char *name)
{
    struct weir_sys_stat st;
    if (type == 'd' || !req->look || weir_sys->stat(dir, name, &st) || !st.is_file)
        return weir_list_page_add(req, used, type == 'd', name);
    struct weir_blob_stat stat = {st.size, st.mtime_ns};
    return weir_list_page_add_seen(req, used, name, &stat);
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
        if (type == 'l' && (type = link_type(t, req, dents->fd, name)) < 0)
            return type;
        if (type < 0)
            return weir_file_fail_at(t, type, "list", req->name);
        bool shown = type && type != '?' && (is_tmp || !weir_dents_is_silly(name));
        if (!type || (shown && !add_to_page(req, &used, dents->fd, (char)type, name)))
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
        code = weir_file_in_dir(req, req->name, WEIR_DIRS_FOLLOW, cursor_open);
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
        int code = weir_file_in_dir(&req, name, WEIR_DIRS_FIND, weir_file_stat_in);
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
        code = sweep->dry ? 0 : weir_file_in_dir(&req, name, WEIR_DIRS_FIND, weir_file_remove_in);
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
        [WEIR_OP_OPEN] = weir_file_open,
        [WEIR_OP_CREATE] = weir_file_create,
        [WEIR_OP_COMMIT] = weir_file_commit,
        [WEIR_OP_LOAD] = weir_file_load,
        [WEIR_OP_PUT] = weir_file_put,
        [WEIR_OP_STAT] = weir_file_stat,
        [WEIR_OP_REMOVE] = weir_file_remove,
        [WEIR_OP_REMOVE_IF] = weir_file_remove_if,
        [WEIR_OP_ALIAS] = weir_file_alias,
        [WEIR_OP_LIST] = do_list,
        [WEIR_OP_LEASE] = weir_file_lease,
        [WEIR_OP_SPACE] = do_space,
        [WEIR_OP_SWEEP] = do_sweep,
        [WEIR_OP_MAP] = weir_file_map,
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
    t->tier = (struct weir_tier){&file_ops, NULL, WEIR_LEVEL_HOME, depth, 0, true};
    t->io = io;
    t->stripes.count = opts->stripe_count;
    t->stripes.bytes = opts->stripe_bytes;
    *out = &t->tier;
    return 0;
}
