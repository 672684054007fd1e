/* rados_flight.c - transfers of one request to many objects at once. There are so many flights as
 * may be in the air (`depth`), made when the tier is opened; who wants one more waits. librados
 * calls back on a thread of its own, which only notes the answer and completes the request.
 *
 * While a request is in pieces, req->io.pending (guarded by the tier's lock) counts them, and one
 * more until all are sent.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/rados.h"
#include "util/err.h"
#include "util/hash.h"
#include "util/sys.h"

struct flight {
    struct flight *next;
    struct rados_tier *tier;
    struct weir_req *req;
    enum flight_kind kind;
    char *buf;
    size_t size, got;
    int read_code;
    rados_read_op_t op;
    rados_completion_t done;
};

int weir_rados_flights_open(struct rados_tier *t)
{
    t->flights = weir_alloc(t->opts.depth * sizeof *t->flights);
    if (!t->flights)
        return weir_fail_memory();
    for (uint64_t i = 0; i < t->opts.depth; i++) {
        t->flights[i].tier = t;
        t->flights[i].next = t->idle;
        t->idle = &t->flights[i];
    }
    return 0;
}

void weir_rados_flights_close(struct rados_tier *t)
{
    pthread_mutex_lock(&t->lock);
    while (t->in_flight)
        pthread_cond_wait(&t->landed, &t->lock);
    pthread_mutex_unlock(&t->lock);
    free(t->flights);
}

static struct flight *take_off(struct rados_tier *t)
{
    pthread_mutex_lock(&t->lock);
    while (!t->idle)
        pthread_cond_wait(&t->landed, &t->lock);
    struct flight *flight = t->idle;
    t->idle = flight->next;
    t->in_flight++;
    pthread_mutex_unlock(&t->lock);
    return flight;
}

/* What an answer means for the request. Returns 0 or -errno. */
static int judge(struct flight *f, int answer)
{
    if (answer < 0) {
        bool is_gone = answer == -ENOENT || answer == -ERANGE || answer == -EOVERFLOW;
        if (is_gone && f->kind == FLIGHT_REMOVE)
            return 0;
        return is_gone ? -ESTALE : answer;
    }
    size_t got = f->kind == FLIGHT_READ_HEAD ? f->got : (size_t)answer;
    if (f->kind == FLIGHT_READ && got < f->size)
        memset(f->buf + got, 0, f->size - got); /* what was never written */
    if (f->kind == FLIGHT_READ_HEAD && got < f->size)
        return -ESTALE;
    return 0;
}

/* The tier's lock is held. */
static void note(struct rados_tier *t, struct weir_req *req, enum flight_kind kind, int code)
{
    static const char *const what[] = {"read", "read", "write to", "remove"};
    if (!code || req->code)
        return;
    const char *name = req->name ? req->name : ((struct rados_blob *)req->handle)->name;
    if (code == -ESTALE)
        weir_req_fail(req, ESTALE, "'%s' was removed while it was open", name);
    else
        weir_req_take(req, weir_rados_fail(t, code, what[kind], name));
}

/* One piece less; the last one completes the request. */
static void land(struct rados_tier *t, struct weir_req *req, enum flight_kind kind, int code,
                 struct flight *flight)
{
    pthread_mutex_lock(&t->lock);
    note(t, req, kind, code);
    bool last = --req->io.pending == 0;
    if (flight) {
        flight->next = t->idle;
        t->idle = flight;
        t->in_flight--;
        pthread_cond_broadcast(&t->landed);
    }
    pthread_mutex_unlock(&t->lock);
    if (last)
        weir_req_done(req);
}

static void answered(rados_completion_t done, void *arg)
{
    struct flight *f = arg;
    struct rados_tier *t = f->tier;
    int answer = t->lib->aio_get_return_value(done);
    if (f->op)
        t->lib->release_read_op(f->op);
    t->lib->aio_release(done);
    land(t, f->req, f->kind, judge(f, answer), f);
}

void weir_rados_pieces_begin(struct weir_req *req)
{
    req->io.pending = 1;
    req->code = 0;
}

void weir_rados_pieces_end(struct rados_tier *t, struct weir_req *req)
{
    land(t, req, FLIGHT_READ, 0, NULL);
}

static int launch(struct flight *f, const char *name, uint64_t off, uint64_t version)
{
    struct rados_tier *t = f->tier;
    switch (f->kind) {
    case FLIGHT_READ:
        return t->lib->aio_read(t->pool, name, f->done, f->buf, f->size, off);
    case FLIGHT_WRITE:
        return t->lib->aio_write(t->pool, name, f->done, f->buf, f->size, off);
    case FLIGHT_REMOVE:
        return t->lib->aio_remove(t->pool, name, f->done);
    case FLIGHT_READ_HEAD:
        break;
    }
    f->op = t->lib->create_read_op();
    t->lib->read_op_assert_version(f->op, version);
    t->lib->read_op_read(f->op, off, f->size, f->buf, &f->got, &f->read_code);
    return t->lib->aio_read_op_operate(f->op, t->pool, f->done, name, 0);
}

void weir_rados_piece(struct rados_tier *t, struct weir_req *req, enum flight_kind kind,
                      const char *name, void *buf, size_t size, uint64_t off, uint64_t version)
{
    struct flight *f = take_off(t);
    pthread_mutex_lock(&t->lock);
    req->io.pending++;
    pthread_mutex_unlock(&t->lock);
    f->req = req;
    f->kind = kind;
    f->buf = buf;
    f->size = size;
    f->got = 0;
    f->op = NULL;
    int code = t->lib->aio_create_completion2(f, answered, &f->done);
    if (!code) {
        code = launch(f, name, off, version);
        if (code) /* then it is never called back */
            t->lib->aio_release(f->done);
        if (code && f->op)
            t->lib->release_read_op(f->op);
    }
    if (code)
        land(t, req, kind, code, f);
}

void weir_rados_part_name(char out[RADOS_PART_NAME], const uint8_t nonce[WEIR_NONCE_BYTES],
                          uint64_t index)
{
    char hex[2 * WEIR_NONCE_BYTES + 1];
    weir_hex(hex, nonce, WEIR_NONCE_BYTES);
    snprintf(out, RADOS_PART_NAME, "%s%s.%06x", WEIR_RADOS_PARTS, hex, (unsigned)index);
}

void weir_rados_pieces_of(struct rados_tier *t, struct weir_req *req, enum flight_kind kind,
                          const uint8_t nonce[WEIR_NONCE_BYTES], uint64_t part_bytes, size_t size)
{
    char name[RADOS_PART_NAME];
    weir_rados_pieces_begin(req);
    for (size_t done = 0, n; done < size; done += n) {
        uint64_t at = req->off + done, within = at % part_bytes;
        n = part_bytes - within < size - done ? (size_t)(part_bytes - within) : size - done;
        weir_rados_part_name(name, nonce, at / part_bytes);
        weir_rados_piece(t, req, kind, name, (char *)req->buf + done, n, within, 0);
    }
    weir_rados_pieces_end(t, req);
}

int weir_rados_parts_remove(struct rados_tier *t, const uint8_t nonce[WEIR_NONCE_BYTES],
                            uint64_t count)
{
    char name[RADOS_PART_NAME];
    for (int is_first = 0; is_first < 2; is_first++) {
        struct weir_queue queue;
        struct weir_req req;
        weir_queue_init(&queue);
        weir_req_init(&req, WEIR_OP_REMOVE);
        weir_req_push(&req, weir_queue_done, &queue);
        req.name = WEIR_RADOS_PARTS;
        weir_rados_pieces_begin(&req);
        for (uint64_t i = is_first ? 0 : 1; i < (is_first ? 1 : count); i++) {
            weir_rados_part_name(name, nonce, i);
            weir_rados_piece(t, &req, FLIGHT_REMOVE, name, NULL, 0, 0, 0);
        }
        weir_rados_pieces_end(t, &req);
        weir_queue_get(&queue);
        weir_queue_destroy(&queue);
        if (req.code)
            return weir_fail_text(req.code, req.text);
    }
    return 0;
}
