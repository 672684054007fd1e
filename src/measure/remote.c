/* remote.c - a tier that is no directory (a bucket, a pool, memory) as a place to be measured. The
 * data are blobs of one size below a prefix of our own; jobs read ranges of them, or write blobs of
 * that size, whole and durable, as a store does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/crew.h"
#include "measure/remote.h"
#include "tier/tier.h"
#include "util/sys.h"

enum {
    NAME_BYTES = WEIR_REMOTE_PREFIX_BYTES + 48,
    BLOB_BYTES = 64 << 20,
    BLOBS_MAX = 4096,
    WRITE_BLOCK_BYTES = 1 << 20,
    DATA_DEPTH = 8,
    DATA_WRITERS = 4,
};

struct remote_place {
    struct weir_place place;
    struct weir_tier *tier;
    char prefix[WEIR_REMOTE_PREFIX_BYTES];
    uint64_t blob_bytes; /* of each; the last may be shorter */
    unsigned blobs;
    struct weir_handle *handles[BLOBS_MAX];
};

/* One request of a worker, and the buffer of its slot. */
struct piece {
    struct weir_req req;
    uint64_t begun_ns;
};

struct remote_flow {
    struct weir_worker *worker;
    struct remote_place *place;
    struct weir_queue done;
    struct piece *pieces;
    unsigned under_way;
    struct weir_handle *sink;
};

static void send(struct remote_flow *flow, unsigned slot, enum weir_op op,
                 struct weir_handle *handle, uint64_t off)
{
    struct piece *piece = &flow->pieces[slot];
    struct weir_req *req = &piece->req;
    weir_req_init(req, op);
    req->handle = handle;
    req->buf = weir_worker_buffer(flow->worker, slot);
    req->len = req->cap = flow->worker->job->block_bytes;
    req->off = off;
    req->tag = slot;
    req->blocking = flow->worker->depth == 1;
    weir_req_push(req, weir_queue_done, &flow->done);
    piece->begun_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    flow->under_way++;
    weir_tier_submit(flow->place->tier, req);
}

/* Waits for one; its slot, or -errno with a text. */
static int collect(struct remote_flow *flow)
{
    struct weir_req *req = weir_queue_get(&flow->done);
    flow->under_way--;
    if (req->code)
        return weir_fail_text(req->code, req->text);
    if (req->op == WEIR_OP_READ && req->result != req->len)
        return weir_fail(EIO, "a read of %zu bytes at %llu got %llu", req->len,
                         (unsigned long long)req->off, (unsigned long long)req->result);
    weir_worker_count(flow->worker, flow->pieces[req->tag].begun_ns, req->len);
    return (int)req->tag;
}

/* ---- reading ---- */

/* A range of the data as a range of one blob; one that would cross its end begins earlier. */
static void send_read(struct remote_flow *flow, unsigned slot)
{
    struct remote_place *r = flow->place;
    uint64_t off, size = flow->worker->job->block_bytes;
    if (!weir_worker_next(flow->worker, NULL, &off))
        return;
    uint64_t blob = off / r->blob_bytes, at = off % r->blob_bytes;
    if (at + size > r->blob_bytes)
        at = r->blob_bytes - size;
    send(flow, slot, WEIR_OP_READ, r->handles[blob], at);
}

static int read_all(struct remote_flow *flow)
{
    int code = 0;
    for (unsigned slot = 0; slot < flow->worker->depth; slot++)
        send_read(flow, slot);
    while (flow->under_way) {
        int slot = collect(flow);
        if (slot < 0)
            code = code ? code : slot;
        else if (!code)
            send_read(flow, (unsigned)slot);
    }
    return code;
}

/* ---- writing ---- */

static int call(struct remote_place *r, enum weir_op op, const char *name,
                struct weir_handle **handle, uint64_t off)
{
    struct weir_req req;
    weir_req_init(&req, op);
    req.name = name;
    req.handle = handle ? *handle : NULL;
    req.off = off;
    int code = weir_tier_call(r->tier, &req);
    if (!code && handle)
        *handle = req.handle;
    return code;
}

static void name_of(char out[NAME_BYTES], const struct remote_place *r, const char *kind,
                    unsigned worker, unsigned number)
{
    snprintf(out, NAME_BYTES, "%s/%s-%u-%u", r->prefix, kind, worker, number);
}

/* Writes up to blob_bytes to the sink; *size is how much. */
static int fill_sink(struct remote_flow *flow, uint64_t *size)
{
    uint64_t block = flow->worker->job->block_bytes, most = flow->place->blob_bytes / block, off;
    int code = 0;
    unsigned begun = 0;
    while (!code && begun < most) {
        unsigned slot = begun;
        if (begun >= flow->worker->depth) {
            int done = collect(flow);
            if (done < 0) {
                code = done;
                break;
            }
            slot = (unsigned)done;
        }
        if (!weir_worker_next(flow->worker, weir_worker_buffer(flow->worker, slot), &off))
            break;
        send(flow, slot, WEIR_OP_WRITE, flow->sink, begun++ * block);
    }
    while (flow->under_way) {
        int done = collect(flow);
        code = code || done >= 0 ? code : done;
    }
    *size = begun * block;
    return code;
}

static int write_blob(struct remote_flow *flow, const char *name, uint64_t *size)
{
    flow->sink = NULL;
    int code = call(flow->place, WEIR_OP_CREATE, name, &flow->sink, flow->place->blob_bytes);
    if (code)
        return code;
    code = fill_sink(flow, size);
    if (!code && *size) {
        uint64_t begun_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
        code = call(flow->place, WEIR_OP_COMMIT, NULL, &flow->sink, *size);
        flow->worker->sync_ns = weir_sys->now_ns(WEIR_CLOCK_MONO) - begun_ns;
    }
    weir_handle_close(flow->sink);
    return code;
}

/* Blob after blob, until the bounds of the job; then they go, outside of the time. */
static int write_all(struct remote_flow *flow)
{
    struct weir_worker *worker = flow->worker;
    char name[NAME_BYTES];
    unsigned count = 0;
    uint64_t size = 1;
    int code = 0;
    while (!code && size && count < BLOBS_MAX) {
        name_of(name, flow->place, "new", worker->index, count++);
        code = write_blob(flow, name, &size);
    }
    worker->end_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    char text[WEIR_TEXT_MAX]; /* why it ended: tidying up may have failures of its own */
    if (code)
        snprintf(text, sizeof text, "%s", weir_fail_last());
    for (unsigned i = 0; i < count; i++) {
        name_of(name, flow->place, "new", worker->index, i);
        int gone = call(flow->place, WEIR_OP_REMOVE, name, NULL, 0);
        if (gone && gone != -ENOENT && !code) {
            code = gone;
            snprintf(text, sizeof text, "%s", weir_fail_last());
        }
    }
    return code ? weir_fail_text(code, text) : 0;
}

static int work(struct weir_worker *worker)
{
    struct remote_flow flow = {.worker = worker, .place = (struct remote_place *)worker->place};
    flow.pieces = weir_alloc(worker->depth * sizeof *flow.pieces);
    if (!flow.pieces)
        return weir_fail_memory();
    weir_queue_init(&flow.done);
    int code = 0;
    if (weir_worker_begin(worker)) {
        code = worker->job->is_write ? write_all(&flow) : read_all(&flow);
        if (!worker->job->is_write)
            worker->end_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    }
    weir_queue_destroy(&flow.done);
    free(flow.pieces);
    return code;
}

static int remote_run(struct weir_place *place, const struct weir_job *job,
                      struct weir_job_result *result)
{
    if (job->is_write && (job->is_random || !job->is_fresh))
        return weir_fail(ENOTSUP, "blobs are written whole, not here and there");
    if (job->block_bytes > ((struct remote_place *)place)->blob_bytes)
        return weir_fail(EINVAL, "blocks of %zu bytes are larger than the blobs", job->block_bytes);
    return weir_crew_run(place, job, true, work, result);
}

/* ---- the data ---- */

static int prepare_work(struct weir_worker *worker)
{
    struct remote_place *r = (struct remote_place *)worker->place;
    struct remote_flow flow = {.worker = worker, .place = r};
    char name[NAME_BYTES];
    uint64_t size = 0;
    int code = 0;
    flow.pieces = weir_alloc(worker->depth * sizeof *flow.pieces);
    if (!flow.pieces)
        return weir_fail_memory();
    weir_queue_init(&flow.done);
    if (weir_worker_begin(worker))
        for (unsigned i = worker->index; i < r->blobs && !code; i += worker->crew->count) {
            name_of(name, r, "data", 0, i);
            code = write_blob(&flow, name, &size);
            if (!code && size != r->blob_bytes)
                break;
        }
    weir_queue_destroy(&flow.done);
    free(flow.pieces);
    return code;
}

/* Opens those that are whole, from the first to the last. */
static int open_data(struct remote_place *r)
{
    unsigned wanted = r->blobs;
    for (r->blobs = 0; r->blobs < wanted; r->blobs++) {
        struct weir_req req;
        char name[NAME_BYTES];
        name_of(name, r, "data", 0, r->blobs);
        weir_req_init(&req, WEIR_OP_OPEN);
        req.name = name;
        int code = weir_tier_call(r->tier, &req);
        if (code == -ENOENT)
            break;
        if (code)
            return code;
        r->handles[r->blobs] = req.handle;
        if (req.stat.size != r->blob_bytes) {
            weir_handle_close(req.handle);
            break;
        }
    }
    return 0;
}

static int remote_prepare(struct weir_place *place, uint64_t bytes, uint64_t time_ns)
{
    struct remote_place *r = (struct remote_place *)place;
    uint64_t each = bytes / DATA_WRITERS < BLOB_BYTES ? bytes / DATA_WRITERS : BLOB_BYTES;
    r->blob_bytes = each / WRITE_BLOCK_BYTES * WRITE_BLOCK_BYTES;
    if (!r->blob_bytes)
        return weir_fail(EINVAL, "at least 4 MiB are written: --size is less");
    r->blobs = bytes / r->blob_bytes < BLOBS_MAX ? (unsigned)(bytes / r->blob_bytes) : BLOBS_MAX;
    const struct weir_job job = {.is_write = true,
                                 .is_fresh = true,
                                 .block_bytes = WRITE_BLOCK_BYTES,
                                 .depth = DATA_DEPTH,
                                 .threads = DATA_WRITERS,
                                 .time_ns = time_ns,
                                 .bytes = UINT64_MAX / 2};
    struct weir_job_result *result = weir_alloc(sizeof *result);
    if (!result)
        return weir_fail_memory();
    int code = weir_crew_run(place, &job, true, prepare_work, result);
    free(result);
    if (!code)
        code = open_data(r);
    if (!code && !r->blobs)
        code = weir_fail(ETIMEDOUT, "not even one blob of %llu bytes could be written in time",
                         (unsigned long long)r->blob_bytes);
    place->data_bytes = code ? 0 : r->blobs * r->blob_bytes;
    return code;
}

/* ---- opening and closing ---- */

static int remote_close(struct weir_place *place)
{
    struct remote_place *r = (struct remote_place *)place;
    int code = 0;
    for (unsigned i = 0; i < r->blobs; i++)
        weir_handle_close(r->handles[i]);
    if (r->tier && r->prefix[0]) {
        uint64_t count = 0;
        code = weir_remote_sweep(r->tier, r->prefix, &count);
    }
    weir_tier_close(r->tier);
    free(r);
    return code;
}

static const struct weir_place_ops ops = {remote_prepare, remote_run, remote_close};

int weir_place_open_tier(struct weir_place **out, const struct weir_url *url, struct weir_io *io,
                         const struct weir_place_options *opts)
{
    struct remote_place *r = weir_alloc(sizeof *r);
    uint64_t nonce;
    if (!r)
        return weir_fail_memory();
    r->place = (struct weir_place){.ops = &ops,
                                   .is_remote = true,
                                   .has_rings = true,
                                   .free_bytes = UINT64_MAX,
                                   .is_stopped = opts->is_stopped};
    int code = weir_tier_open(&r->tier, url, io, false);
    if (!code && (code = weir_sys->random(&nonce, sizeof nonce)))
        code = weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
    if (!code) {
        struct weir_req req;
        r->place.kind = weir_tier_kind(r->tier);
        r->place.is_memory = !strcmp(r->place.kind, "mem") || !strcmp(r->place.kind, "null");
        snprintf(r->prefix, sizeof r->prefix, WEIR_REMOTE_PREFIX "%016llx",
                 (unsigned long long)nonce);
        weir_req_init(&req, WEIR_OP_SPACE);
        if (weir_tier_call(r->tier, &req) == 0 && req.space.total_bytes)
            r->place.free_bytes = req.space.free_bytes;
        *out = &r->place;
    } else {
        remote_close(&r->place);
    }
    return code;
}
