/* rados_sink.c - blobs being written. What fits into a head is gathered in memory and written with
 * it, at the commit. The first write beyond that makes part 0, with what was gathered; from then
 * on every write goes to the parts it is for, in any order and many at once.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tier/rados.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/thread.h"

enum sink_state { GATHERING, SPILLING, IN_PARTS };

struct sink {
    struct rados_blob blob;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t spilled;
    enum sink_state state;
    bool is_committed, is_in_doubt;
    char *small;    /* RADOS_INLINE_BYTES, while gathering */
    uint64_t end;   /* of what was written */
    uint8_t *begun; /* one bit for each part that was written to */
    uint64_t begun_parts;
    int code; /* of the first write that failed; then all of them do, and the commit */
    char text[WEIR_TEXT_MAX];
};

static uint64_t parts_of(const struct sink *sink, uint64_t size)
{
    uint64_t part = sink->blob.head.part_bytes;
    return size ? (size - 1) / part + 1 : 1;
}

static void sink_close(struct weir_handle *handle)
{
    struct sink *sink = (struct sink *)handle;
    struct rados_tier *t = sink->blob.tier;
    bool is_ours = t->generation == weir_fork_generation();
    /* Where the cluster did not answer before, SWEEP will do this. */
    if (is_ours && sink->state == IN_PARTS && !sink->is_committed && !sink->is_in_doubt)
        weir_rados_parts_remove(t, sink->blob.head.nonce, parts_of(sink, sink->end));
    pthread_mutex_destroy(&sink->lock);
    pthread_cond_destroy(&sink->spilled);
    free(sink->blob.name);
    free(sink->small);
    free(sink->begun);
    free(sink);
}

int weir_rados_create(struct rados_tier *t, struct weir_req *req)
{
    struct sink *sink = weir_alloc(sizeof *sink);
    char *name = sink ? weir_strdup(req->name) : NULL;
    if (!name) {
        free(sink);
        return weir_fail_memory();
    }
    sink->blob = (struct rados_blob){{sink_close}, t, name, {.part_bytes = t->opts.object_bytes}};
    pthread_mutex_init(&sink->lock, NULL);
    pthread_cond_init(&sink->spilled, NULL);
    req->handle = &sink->blob.handle;
    return 0;
}

/* Notes which parts the bytes will be in. The lock is held. */
static int begin_parts(struct sink *sink, uint64_t off, size_t size)
{
    uint64_t part = sink->blob.head.part_bytes;
    uint64_t last = (off + size - 1) / part;
    if (last >= RADOS_PARTS_MAX)
        return weir_fail(EFBIG, "'%s' has more than %d parts of %llu bytes (object_size=)",
                         sink->blob.name, RADOS_PARTS_MAX, (unsigned long long)part);
    if (last >= sink->begun_parts) {
        uint64_t room = (last + 1) * 2 < 512 ? 512 : (last + 1) * 2;
        uint8_t *more = weir_realloc(sink->begun, (room + 7) / 8);
        if (!more)
            return weir_fail_memory();
        memset(more + sink->begun_parts / 8, 0, (room + 7) / 8 - sink->begun_parts / 8);
        sink->begun = more;
        sink->begun_parts = room / 8 * 8;
    }
    for (uint64_t i = off / part; i <= last; i++)
        sink->begun[i / 8] |= (uint8_t)(1u << i % 8);
    if (off + size > sink->end)
        sink->end = off + size;
    return 0;
}

/* Takes the bytes, if they fit into what is gathered. The lock is held. 1: they do not. */
static int gather(struct sink *sink, const void *buf, size_t size, uint64_t off)
{
    if (size > RADOS_INLINE_BYTES || off > RADOS_INLINE_BYTES - size)
        return 1;
    if (!sink->small && !(sink->small = weir_alloc(RADOS_INLINE_BYTES)))
        return weir_fail_memory();
    memcpy(sink->small + off, buf, size);
    if (off + size > sink->end)
        sink->end = off + size;
    return 0;
}

/* Makes part 0, which belongs to the sink's name and is open. */
static int make_part_0(struct sink *sink)
{
    struct rados_tier *t = sink->blob.tier;
    uint8_t owner[8 + WEIR_NAME_BYTES_MAX];
    char name[RADOS_PART_NAME];
    size_t size = strnlen(sink->blob.name, WEIR_NAME_BYTES_MAX - 1);
    int code = weir_sys->random(sink->blob.head.nonce, WEIR_NONCE_BYTES);
    if (code)
        return weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
    sink->blob.head.in_parts = true;
    weir_rados_part_name(name, sink->blob.head.nonce, 0);
    weir_store_le(owner, (uint64_t)weir_rados_now(t), 8);
    memcpy(owner + 8, sink->blob.name, size);
    rados_write_op_t op = t->lib->create_write_op();
    t->lib->write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    t->lib->write_op_setxattr(op, WEIR_RADOS_OWNER, (const char *)owner, 8 + size);
    t->lib->write_op_setxattr(op, WEIR_RADOS_STATE, WEIR_RADOS_OPEN, strlen(WEIR_RADOS_OPEN));
    if (sink->end)
        t->lib->write_op_write(op, sink->small, sink->end, 0);
    code = weir_rados_write_now(t, op, name, NULL);
    return code ? weir_rados_fail(t, code, "begin", sink->blob.name) : 0;
}

/* Notes a failure. The lock is held. */
static void sink_fails(struct sink *sink, int code, const char *text)
{
    if (code == -ETIMEDOUT)
        sink->is_in_doubt = true;
    if (sink->code)
        return;
    sink->code = code;
    memcpy(sink->text, text, strnlen(text, sizeof sink->text - 1) + 1);
}

/* From memory to parts, by the first who needs it; others wait for him. */
static int spill(struct sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    while (sink->state == SPILLING)
        pthread_cond_wait(&sink->spilled, &sink->lock);
    if (sink->state == GATHERING && !sink->code) {
        sink->state = SPILLING;
        pthread_mutex_unlock(&sink->lock);
        int code = make_part_0(sink);
        pthread_mutex_lock(&sink->lock);
        if (!code)
            code = begin_parts(sink, 0, 1);
        if (code)
            sink_fails(sink, code, weir_fail_last());
        sink->state = IN_PARTS;
        free(sink->small);
        sink->small = NULL;
        pthread_cond_broadcast(&sink->spilled);
    }
    int code = sink->code ? weir_fail_text(sink->code, sink->text) : 0;
    pthread_mutex_unlock(&sink->lock);
    return code;
}

static void written(struct weir_req *req, void *arg)
{
    struct sink *sink = arg;
    if (req->code) {
        pthread_mutex_lock(&sink->lock);
        sink_fails(sink, req->code, req->text);
        pthread_mutex_unlock(&sink->lock);
    }
    weir_req_done(req);
}

static void write_parts(struct sink *sink, struct weir_req *req)
{
    const struct head *head = &sink->blob.head;
    weir_req_push(req, written, sink);
    weir_rados_pieces_of(sink->blob.tier, req, FLIGHT_WRITE, head->nonce, head->part_bytes,
                         req->len);
}

/* The write that makes the parts, on a thread that may wait. */
static void spill_and_write(struct weir_req *req)
{
    struct sink *sink = (struct sink *)req->handle;
    int code = spill(sink);
    pthread_mutex_lock(&sink->lock);
    if (!code)
        code = begin_parts(sink, req->off, req->len);
    pthread_mutex_unlock(&sink->lock);
    if (code) {
        weir_req_take(req, code);
        return;
    }
    struct weir_queue queue;
    struct weir_req parts;
    weir_queue_init(&queue);
    weir_req_init(&parts, WEIR_OP_WRITE);
    weir_req_push(&parts, weir_queue_done, &queue);
    parts.handle = req->handle;
    parts.buf = req->buf;
    parts.len = req->len;
    parts.off = req->off;
    write_parts(sink, &parts);
    weir_queue_get(&queue);
    weir_queue_destroy(&queue);
    if (parts.code)
        weir_req_take(req, weir_fail_text(parts.code, parts.text));
    else
        req->code = 0;
}

void weir_rados_write(struct rados_tier *t, struct weir_req *req)
{
    struct sink *sink = (struct sink *)req->handle;
    enum { HERE, PARTS, SPILL } way = HERE;
    pthread_mutex_lock(&sink->lock);
    int code = sink->code ? weir_fail_text(sink->code, sink->text) : 0;
    if (!code && sink->state == IN_PARTS && req->len) {
        code = begin_parts(sink, req->off, req->len);
        way = code ? HERE : PARTS;
    } else if (!code && sink->state == GATHERING) {
        code = gather(sink, req->buf, req->len, req->off);
    }
    if (code > 0 || (!code && sink->state == SPILLING))
        way = SPILL;
    pthread_mutex_unlock(&sink->lock);
    if (way == PARTS) {
        write_parts(sink, req);
    } else if (way == SPILL) {
        weir_io_task(t->io, req, spill_and_write);
    } else {
        weir_req_take(req, code);
        weir_req_done(req);
    }
}

/* Parts that nobody wrote to are made, so that one that is missing was removed. */
static int fill_holes(struct sink *sink, uint64_t count)
{
    struct rados_tier *t = sink->blob.tier;
    char name[RADOS_PART_NAME];
    for (uint64_t i = 0; i < count; i++) {
        if (i < sink->begun_parts && sink->begun[i / 8] & 1u << i % 8)
            continue;
        rados_write_op_t op = t->lib->create_write_op();
        t->lib->write_op_create(op, LIBRADOS_CREATE_IDEMPOTENT, NULL);
        weir_rados_part_name(name, sink->blob.head.nonce, i);
        int code = weir_rados_write_now(t, op, name, NULL);
        if (code)
            return weir_rados_fail(t, code, "write to", sink->blob.name);
    }
    return 0;
}

/* The head stands: the parts are done, unless SWEEP took them. */
static int close_parts(struct sink *sink, enum weir_doubt *doubt)
{
    struct rados_tier *t = sink->blob.tier;
    char name[RADOS_PART_NAME];
    weir_rados_part_name(name, sink->blob.head.nonce, 0);
    rados_write_op_t op = t->lib->create_write_op();
    t->lib->write_op_assert_exists(op);
    t->lib->write_op_cmpxattr(op, WEIR_RADOS_STATE, LIBRADOS_CMPXATTR_OP_EQ, WEIR_RADOS_OPEN,
                              strlen(WEIR_RADOS_OPEN));
    t->lib->write_op_setxattr(op, WEIR_RADOS_STATE, WEIR_RADOS_DONE, strlen(WEIR_RADOS_DONE));
    int code = weir_rados_write_now(t, op, name, NULL);
    if (!code)
        return 0;
    if (code == -ENOENT || code == -ECANCELED) {
        enum weir_doubt unused = WEIR_SURE;
        weir_rados_head_drop(t, sink->blob.name, &sink->blob.head, &unused);
        return weir_fail(ESTALE, "'%s' took too long: a gc has removed its parts", sink->blob.name);
    }
    *doubt = WEIR_DOUBT_LOST;
    return weir_rados_fail(t, code, "commit", sink->blob.name);
}

int weir_rados_commit(struct rados_tier *t, struct weir_req *req)
{
    struct sink *sink = (struct sink *)req->handle;
    struct head *head = &sink->blob.head;
    assert(req->off == sink->end && !sink->is_committed);
    head->size = req->off;
    int code = 0;
    if (sink->code)
        code = weir_fail_text(sink->code, sink->text);
    else if (sink->state == IN_PARTS)
        code = fill_holes(sink, parts_of(sink, req->off));
    if (!code)
        code = weir_rados_head_make(t, sink->blob.name, head, sink->small,
                                    head->in_parts ? 0 : req->off, &req->doubt);
    if (!code && head->in_parts)
        code = close_parts(sink, &req->doubt);
    sink->is_committed = !code;
    if (req->doubt != WEIR_SURE)
        sink->is_in_doubt = true;
    return code;
}
