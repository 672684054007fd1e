/* rados.c - the RADOS tier: blobs and records as objects of one namespace of a Ceph pool. How they
 * are laid out is in rados.h. Transfers are asynchronous and many at once; what takes several steps
 * runs on the io layer's workers, or on the submitter's thread if it would only wait.
 */
#include "tier/rados.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"
#include "util/thread.h"

/* Buffers of a MiB that keep 8 objects of the usual size in transfer. */
enum { STREAM_DEPTH = 32, LOOKERS = 32 };
/* How often a name may change while it is being removed: then something is wrong. */
enum { TRIES_MAX = 1000 };
/* Of a record that come with the look at it: the seal of a packed shard of 64 MiB is smaller. */
enum { LOAD_BYTES = 128 << 10 };

/* ---- reading ---- */

static void blob_close(struct weir_handle *handle)
{
    struct rados_blob *blob = (struct rados_blob *)handle;
    free(blob->name);
    free(blob);
}

static int do_open(struct rados_tier *t, struct weir_req *req)
{
    struct head head;
    int code = weir_rados_look(t, req->name, &head, NULL, 0);
    if (code)
        return code;
    struct rados_blob *blob = weir_alloc(sizeof *blob);
    char *name = blob ? weir_strdup(req->name) : NULL;
    if (!name) {
        free(blob);
        return weir_fail_memory();
    }
    *blob = (struct rados_blob){{blob_close}, t, name, head};
    req->handle = &blob->handle;
    req->stat = (struct weir_blob_stat){head.size, head.time_ns};
    return 0;
}

/* Straight into the caller's memory. */
static void start_read(struct rados_tier *t, struct weir_req *req)
{
    struct rados_blob *blob = (struct rados_blob *)req->handle;
    const struct head *head = &blob->head;
    uint64_t left = req->off < head->size ? head->size - req->off : 0;
    req->result = req->len < left ? req->len : left;
    weir_io_read_count(t->io, req->result);
    if (head->in_parts) {
        weir_rados_pieces_of(t, req, FLIGHT_READ, head->nonce, head->part_bytes, req->result);
        return;
    }
    weir_rados_pieces_begin(req);
    if (req->result)
        weir_rados_piece(t, req, FLIGHT_READ_HEAD, blob->name, req->buf, req->result, req->off,
                         head->version);
    weir_rados_pieces_end(t, req);
}

static int read_whole(struct rados_tier *t, const char *name, const struct head *head, void *buf)
{
    struct rados_blob blob = {.tier = t, .name = (char *)name, .head = *head};
    struct weir_queue queue;
    struct weir_req req;
    weir_queue_init(&queue);
    weir_req_init(&req, WEIR_OP_READ);
    weir_req_push(&req, weir_queue_done, &queue);
    req.handle = &blob.handle;
    req.buf = buf;
    req.len = req.cap = head->size;
    start_read(t, &req);
    weir_queue_get(&queue);
    weir_queue_destroy(&queue);
    return req.code ? weir_fail_text(req.code, req.text) : 0;
}

/* Reads a whole record; a small one with the look at it. *out is the caller's. */
static int load(struct rados_tier *t, const char *name, size_t limit, struct head *head, void **out)
{
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        char *buf = weir_alloc(LOAD_BYTES);
        if (!buf)
            return weir_fail_memory();
        int code = weir_rados_look(t, name, head, buf, LOAD_BYTES);
        if (!code && head->size > limit)
            code = weir_fail(EFBIG, "'%s' is %llu bytes, the limit is %zu", name,
                             (unsigned long long)head->size, limit);
        if (!code && (head->in_parts || head->size > LOAD_BYTES)) {
            free(buf);
            buf = weir_alloc(head->size);
            code = buf ? read_whole(t, name, head, buf) : weir_fail_memory();
            if (code == -ESTALE) { /* replaced meanwhile */
                free(buf);
                continue;
            }
        }
        if (!code)
            *out = buf;
        else
            free(buf);
        return code;
    }
    return weir_fail(EBUSY, "'%s' in %s changes all the time", name, t->label);
}

static int do_load(struct rados_tier *t, struct weir_req *req)
{
    struct head head;
    int code = load(t, req->name, req->len, &head, &req->buf);
    if (code)
        return code;
    req->result = head.size;
    req->stat = (struct weir_blob_stat){head.size, head.time_ns};
    return 0;
}

/* Does the name stand for what the handle has? Versions are of one name. */
static int check_same(const struct weir_req *req, const struct head *head)
{
    const struct rados_blob *blob = (struct rados_blob *)req->handle;
    if (blob && (strcmp(blob->name, req->name) || blob->head.version != head->version))
        return weir_fail(ESTALE, "'%s' is not the same blob", req->name);
    return 0;
}

static int do_stat(struct rados_tier *t, struct weir_req *req)
{
    struct head head;
    int code = weir_rados_look(t, req->name, &head, NULL, 0);
    if (!code)
        code = check_same(req, &head);
    req->stat = (struct weir_blob_stat){head.size, head.time_ns};
    return code;
}

/* ---- changing ---- */

static int do_put(struct rados_tier *t, struct weir_req *req)
{
    struct head head = {.size = req->len};
    if (req->off && weir_sys->now_ns(WEIR_CLOCK_BOOT) > req->off)
        return weir_fail(ESTALE, "it is too late to make '%s'", req->name);
    return weir_rados_head_make(t, req->name, &head, req->buf, req->len, &req->doubt);
}

/* The record is just that: 0, -ESTALE, -ENOENT. */
static int check_record(struct rados_tier *t, const char *name, const void *data, size_t size,
                        struct head *head)
{
    void *there = NULL;
    int code = load(t, name, size, head, &there);
    if (code == -EFBIG || (!code && (head->size != size || memcmp(there, data, size))))
        code = weir_fail(ESTALE, "'%s' has changed meanwhile", name);
    free(there);
    return code;
}

static int do_remove(struct rados_tier *t, struct weir_req *req)
{
    struct head head;
    int code = req->guard ? check_record(t, req->guard, req->buf, req->len, &head) : 0;
    for (int tries = 0; !code; tries++) {
        code = weir_rados_look(t, req->name, &head, NULL, 0);
        if (!code)
            code = check_same(req, &head);
        if (code)
            return code;
        code = weir_rados_head_drop(t, req->name, &head, &req->doubt);
        if (code != -ESTALE || req->handle || tries == TRIES_MAX)
            break;
        code = 0; /* another one stands there now: whatever it is, it goes */
    }
    /* Parts that cannot be removed now are what SWEEP is for. */
    if (!code && head.in_parts)
        weir_rados_parts_remove(t, head.nonce, head.size / head.part_bytes + 1);
    return code;
}

static int do_remove_if(struct rados_tier *t, struct weir_req *req)
{
    struct head head;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        int code = check_record(t, req->name, req->buf, req->len, &head);
        if (code)
            return code;
        code = weir_rados_head_drop(t, req->name, &head, &req->doubt);
        if (code != -ESTALE)
            return code; /* else somebody else's came: look whether it is the same */
    }
    return weir_fail(EBUSY, "'%s' in %s changes all the time", req->name, t->label);
}

/* ---- requests ---- */

static int do_op(struct rados_tier *t, struct weir_req *req)
{
    switch (req->op) {
    case WEIR_OP_OPEN:
        return do_open(t, req);
    case WEIR_OP_CREATE:
        return weir_rados_create(t, req);
    case WEIR_OP_COMMIT:
        return weir_rados_commit(t, req);
    case WEIR_OP_LOAD:
        return do_load(t, req);
    case WEIR_OP_PUT:
        return do_put(t, req);
    case WEIR_OP_STAT:
        return do_stat(t, req);
    case WEIR_OP_REMOVE:
        return do_remove(t, req);
    case WEIR_OP_REMOVE_IF:
        return do_remove_if(t, req);
    case WEIR_OP_LIST:
        return weir_rados_list(t, req);
    case WEIR_OP_SWEEP:
        return weir_rados_sweep(t, req);
    case WEIR_OP_SPACE:
        return weir_rados_space(t, req);
    case WEIR_OP_MAP:
        return weir_fail(ENOTSUP, "RADOS has no files to map");
    case WEIR_OP_ALIAS:
        return weir_fail(ENOTSUP, "RADOS has no plain names");
    case WEIR_OP_LEASE:
        return weir_fail(ENOTSUP, "RADOS has no locks that die with their holder");
    case WEIR_OP_READ:
    case WEIR_OP_WRITE:
    case WEIR_OPS:
        break;
    }
    assert(!"an unknown request");
    return -EINVAL;
}

static void run_op(struct weir_req *req)
{
    weir_req_take(req, do_op(req->io.context, req));
}

static void rados_submit(struct weir_tier *tier, struct weir_req *req)
{
    struct rados_tier *t = (struct rados_tier *)tier;
    req->doubt = WEIR_SURE;
    if (t->generation != weir_fork_generation()) {
        weir_req_fail(req, ECHILD, "%s was opened before fork(): open it again in the child",
                      t->label);
        weir_req_done(req);
        return;
    }
    req->io.context = t;
    if (req->op == WEIR_OP_READ)
        start_read(t, req);
    else if (req->op == WEIR_OP_WRITE)
        weir_rados_write(t, req);
    else
        weir_io_task(t->io, req, run_op);
}

static void rados_close(struct weir_tier *tier)
{
    struct rados_tier *t = (struct rados_tier *)tier;
    if (t->flights)
        weir_rados_flights_close(t);
    weir_rados_disconnect(t);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->landed);
    free((char *)t->opts.user);
    free(t->label);
    free(t->pool_name);
    free(t->name_space);
    free(t);
}

static const struct weir_tier_ops rados_ops = {"rados", rados_submit, rados_close};

/* "pool/namespace", or "pool" for the namespace without a name. */
static int split_path(struct rados_tier *t, const char *path)
{
    const char *slash = strchr(path, '/');
    size_t size = slash ? (size_t)(slash - path) : strlen(path);
    const char *space = slash ? slash + 1 : "";
    if (!size || strchr(space, '/'))
        return weir_fail(EINVAL, "'rados://%s' is not of the form rados://POOL/NAMESPACE", path);
    t->pool_name = weir_alloc(size + 1);
    t->name_space = weir_strdup(space);
    t->label = weir_alloc(strlen(path) + sizeof "rados://");
    if (!t->pool_name || !t->name_space || !t->label)
        return weir_fail_memory();
    memcpy(t->pool_name, path, size);
    sprintf(t->label, "rados://%s", path);
    return 0;
}

int weir_tier_rados_open(struct weir_tier **out, const char *path, struct weir_io *io,
                         const struct weir_rados_options *opts)
{
    struct rados_tier *t = weir_alloc(sizeof *t);
    if (!t)
        return weir_fail_memory();
    t->tier = (struct weir_tier){&rados_ops, NULL, WEIR_LEVEL_HOME, STREAM_DEPTH, LOOKERS, false};
    t->io = io;
    t->generation = weir_fork_generation();
    t->opts = *opts;
    t->opts.conf = NULL; /* the URL's, and needed only here */
    t->opts.user = weir_strdup(strncmp(opts->user, "client.", 7) ? opts->user : opts->user + 7);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->landed, NULL);
    int code = t->opts.user ? weir_rados_lib_load(&t->lib) : weir_fail_memory();
    if (!code)
        code = split_path(t, path);
    if (!code)
        code = weir_rados_flights_open(t);
    if (!code)
        code = weir_rados_connect(t, opts->conf);
    if (code)
        rados_close(&t->tier);
    else
        *out = &t->tier;
    return code;
}
