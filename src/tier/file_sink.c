/* file_sink.c - writing to the file tier: a file is written under no name, or a passing one, with
 * its space allocated ahead, and gets its name when it is whole and synced. A sink has one owner,
 * on whose thread its writes are submitted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "io/publish.h"
#include "tier/file.h"
#include "util/err.h"
#include "util/sys.h"

enum {
    ALLOCATE_BYTES_MIN = 64 << 20, /* streams of unknown length are preallocated in such steps, */
    ALLOCATE_BYTES_MAX = 1 << 30,  /* doubling up to this, */
    ALLOCATE_SHARE = 4,            /* and never more than this part of what is free */
    SMALL_ROOM_BYTES = 16 << 20,   /* with less than this, spares go for a small object */
};

struct file_sink {
    struct file_blob blob; /* its file.fd belongs to tmp */
    struct weir_tmp tmp;
    uint64_t allocated;
    bool no_fallocate, no_ahead, ragged, synced; /* ragged: it may have bytes nobody wrote */
    char name[];
};

static void sink_close(struct weir_handle *handle)
{
    struct file_sink *sink = (struct file_sink *)handle;
    struct file_tier *t = sink->blob.tier;
    sink->blob.file.fd = -1;
    weir_io_file_close(t->io, &sink->blob.file);
    weir_tmp_close(&sink->tmp, t->dirs);
    free(sink);
}

/* Then what is kept for speed goes, and it is tried again. */
static bool is_full(int code)
{
    return code == -ENOSPC || code == -EDQUOT;
}

/* Space for the bytes up to `end`, taken early: it fails early when the disk is full, and writes
 * into allocated space do not wait for each other. */
static int sink_allocate(struct file_sink *sink, uint64_t end)
{
    if (sink->no_fallocate || end <= sink->allocated)
        return 0;
    int fd = sink->blob.file.fd;
    int code = weir_sys->fallocate(fd, sink->allocated, end - sink->allocated);
    if (is_full(code) && weir_spares_drop(sink->blob.tier->spares, false))
        code = weir_sys->fallocate(fd, sink->allocated, end - sink->allocated);
    if (code == -EOPNOTSUPP || code == -ENOSYS || code == -EINTR) {
        sink->no_fallocate = true;
        return 0;
    }
    if (code)
        return weir_fail(-code, "cannot allocate %llu bytes for '%s': %s",
                         (unsigned long long)(end - sink->allocated), sink->blob.file.label,
                         weir_errno_text(code));
    sink->allocated = end;
    return 0;
}

/* Takes space ahead of a stream of unknown length. Near the end of the space it does not: what is
 * needed is better than what would be faster, and an fallocate that fails may keep all it got
 * (ext4), which others need and which would make the file longer than it is. */
static void sink_allocate_ahead(struct file_sink *sink)
{
    int fd = sink->blob.file.fd;
    struct weir_sys_space space;
    uint64_t step = sink->allocated;
    if (sink->no_fallocate || sink->no_ahead)
        return;
    if (step < ALLOCATE_BYTES_MIN)
        step = ALLOCATE_BYTES_MIN;
    if (step > ALLOCATE_BYTES_MAX)
        step = ALLOCATE_BYTES_MAX;
    sink->no_ahead = weir_sys->space(fd, &space) || step > space.free_bytes / ALLOCATE_SHARE;
    if (sink->no_ahead)
        return;
    if (weir_sys->fallocate(fd, sink->allocated, step) == 0) {
        sink->allocated += step;
        return;
    }
    weir_sys->ftruncate(fd, sink->allocated); /* the commit does it again, and looks */
    sink->no_ahead = sink->ragged = true;
}

/* The file is read-only from the beginning, and once it is there only root may open such a file for
 * writing: for anybody else it is writable for a moment. */
static int open_direct_sink(struct file_sink *sink, const struct weir_sys_stat *st)
{
    const struct weir_tmp *tmp = &sink->tmp;
    int fd = weir_file_open_direct(tmp->dir, tmp->base, st, O_WRONLY | O_NOFOLLOW);
    if (fd != -EACCES || weir_sys->fchmod(tmp->fd, st->mode | 0200))
        return fd;
    fd = weir_file_open_direct(tmp->dir, tmp->base, st, O_WRONLY | O_NOFOLLOW);
    weir_sys->fchmod(tmp->fd, st->mode);
    return fd;
}

static int sink_prepare(struct file_sink *sink, const struct weir_req *req)
{
    struct weir_sys_stat st;
    int code = weir_sys->fstat(sink->blob.file.fd, &st);
    if (code)
        return weir_file_fail_at(sink->blob.tier, code, "stat", req->name);
    if (req->small)
        return 0;
    sink->blob.file.dfd = open_direct_sink(sink, &st);
    return sink_allocate(sink, req->off);
}

static int create(struct file_tier *t, struct weir_req *req)
{
    size_t size = strlen(req->name) + 1;
    struct file_sink *sink = weir_alloc(sizeof *sink + size);
    char *label = sink ? weir_file_label_of(t, req->name) : NULL;
    if (!label) {
        free(sink);
        return weir_fail_memory();
    }
    sink->blob.handle.close = sink_close;
    sink->blob.tier = t;
    memcpy(sink->name, req->name, size);
    if (req->small)
        weir_spares_make_room(t->spares, SMALL_ROOM_BYTES);
    int code = req->small ? weir_tmp_open(&sink->tmp, t->dirs)
                          : weir_stripe_open(&sink->tmp, t->dirs, &t->stripes, req->off);
    if (is_full(code) && weir_spares_drop(t->spares, false))
        code = weir_tmp_open(&sink->tmp, t->dirs);
    if (code) {
        free(label);
        free(sink);
        return code;
    }
    sink->allocated = weir_spares_take(t->spares, &sink->tmp, req->off);
    sink->blob.file = (struct weir_file){.fd = sink->tmp.fd, .dfd = -1, .label = label};
    code = sink_prepare(sink, req);
    if (code)
        sink_close(&sink->blob.handle);
    else
        req->handle = &sink->blob.handle;
    return code;
}

void weir_file_create(struct weir_req *req)
{
    weir_req_take(req, create(weir_file_tier_of(req), req));
}

void weir_file_write(struct file_tier *t, struct weir_req *req)
{
    struct file_sink *sink = (struct file_sink *)req->handle;
    uint64_t end = req->off + req->len;
    if (sink->blob.file.dfd >= 0 && end > sink->allocated) {
        int code = sink_allocate(sink, end);
        if (code) {
            weir_req_take(req, code);
            weir_req_done(req);
            return;
        }
        sink_allocate_ahead(sink);
    }
    sink->synced = req->sync;
    weir_io_submit(t->io, req, &sink->blob.file);
}

static int commit(struct file_tier *t, struct weir_req *req)
{
    struct file_sink *sink = (struct file_sink *)req->handle;
    int code = 0;
    if (sink->allocated > req->off || sink->ragged) {
        code = weir_sys->ftruncate(sink->blob.file.fd, req->off);
        sink->synced = false;
    }
    if (!code && !sink->synced)
        code = weir_sys->fdatasync(sink->blob.file.fd);
    if (code)
        return weir_fail(-code, "cannot sync '%s': %s", sink->blob.file.label,
                         weir_errno_text(code));
    return weir_tmp_publish(&sink->tmp, t->dirs, sink->name, &req->doubt);
}

void weir_file_commit(struct weir_req *req)
{
    weir_req_take(req, commit(weir_file_tier_of(req), req));
}

void weir_file_put(struct weir_req *req)
{
    struct file_tier *t = weir_file_tier_of(req);
    int code = weir_publish(t->dirs, req->name, req->buf, req->len, req->off, &req->doubt);
    if (is_full(code) && req->doubt == WEIR_SURE && weir_spares_drop(t->spares, false))
        code = weir_publish(t->dirs, req->name, req->buf, req->len, req->off, &req->doubt);
    weir_req_take(req, code);
}
