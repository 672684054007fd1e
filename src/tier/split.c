/* split.c - a store on two tiers (commit=URL): data on the first, records on the second. Records
 * are what visibility rests on: seals, logs, sets, leases, the store's marker; all of ".weir/" but
 * ".weir/data/". So a store's bytes can be where there is no put-if-absent. Any thread.
 *
 * Both sides hold a note with the same number, written when the store is made: whoever opens the
 * data side alone would see data without seals, and collect all of it. Times are of the data
 * side's clock; those of records are told in it, as far as the two were seen to differ.
 *
 * Requests go to one side and come back through one function here, which puts the handle back that
 * its owner knows. Only two need both sides, and wait for one after the other: the thread that asks
 * and waits does that itself, else a thread of ours does.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tier/tier.h"
#include "util/err.h"
#include "util/hash.h"
#include "util/key.h"
#include "util/sys.h"
#include "util/thread.h"

#define NAME_NOTE                                                                                  \
    ".weir/split" /* on the side of the records; the other's is in place of a marker */
#define CLOCK_SLACK_NS 1000000000 /* less than that is how long the two answers took */

enum { ID_BYTES = 16, NOTE_BYTES = 8 + 2 * ID_BYTES + 1 };
static const char note_magic[9] = "WEIRPART";

struct split_tier {
    struct weir_tier tier; /* below: the side of the data */
    struct weir_tier *records;
    atomic_int_fast64_t offset_ns; /* of the data's clock to the records' */
    pthread_mutex_t lock;          /* guards has_thread */
    bool has_thread;
    pthread_t thread;
    struct weir_queue queue; /* of the thread; a request without a frame ends it */
};

/* What a side handed out, and which one. */
struct split_handle {
    struct weir_handle handle;
    struct weir_tier *side;
    struct weir_handle *inner;
};

static void handle_close(struct weir_handle *handle)
{
    struct split_handle *h = (struct split_handle *)handle;
    weir_handle_close(h->inner);
    free(h);
}

static struct weir_tier *side_of(struct split_tier *t, const char *name)
{
    bool is_data = !weir_name_is_own(name) || !strncmp(name, WEIR_DIR_DATA, strlen(WEIR_DIR_DATA));
    return is_data ? t->tier.below : t->records;
}

static void refuse(struct weir_req *req, int code, const char *why)
{
    weir_req_fail(req, code, "%s", why);
    req->doubt = WEIR_SURE;
    weir_req_done(req);
}

/* ---- requests to one side ---- */

static bool makes_handle(const struct weir_req *req)
{
    return req->op == WEIR_OP_OPEN || req->op == WEIR_OP_CREATE || req->op == WEIR_OP_LEASE ||
           (req->op == WEIR_OP_LIST && !req->handle);
}

static void passed(struct weir_req *req, void *arg)
{
    struct split_handle *h = (struct split_handle *)(uintptr_t)weir_req_aux(req);
    (void)arg;
    if (h && !h->inner && (h->inner = req->handle) == NULL) {
        free(h); /* which was made for what did not come */
        h = NULL;
    }
    req->handle = h ? &h->handle : NULL;
    weir_req_done(req);
}

/* Of the records, for whom it is another time. */
static void passed_record(struct weir_req *req, void *arg)
{
    struct split_tier *t = arg;
    if (!req->code &&
        (req->op == WEIR_OP_STAT || req->op == WEIR_OP_OPEN || req->op == WEIR_OP_LOAD))
        req->stat.time_ns += atomic_load_explicit(&t->offset_ns, memory_order_relaxed);
    weir_req_done(req);
}

static void pass(struct split_tier *t, struct weir_tier *side, struct weir_req *req)
{
    struct split_handle *h = (struct split_handle *)req->handle;
    if (makes_handle(req)) {
        h = weir_alloc(sizeof *h);
        if (!h) {
            refuse(req, ENOMEM, "out of memory");
            return;
        }
        *h = (struct split_handle){{handle_close}, side, NULL};
    }
    *weir_req_push(req, passed, t) = (uintptr_t)h;
    req->handle = h ? h->inner : NULL;
    if (side == t->records) {
        weir_req_push(req, passed_record, t);
        req->look = false; /* times in a page would be of another clock */
        if (req->op == WEIR_OP_REMOVE) /* of a directory, which has an age */
            req->stat.time_ns -= atomic_load_explicit(&t->offset_ns, memory_order_relaxed);
    }
    weir_tier_submit(side, req);
}

/* ---- requests to both ---- */

/* Is the record just that? */
static int check_guard(struct split_tier *t, const struct weir_req *req)
{
    struct weir_req load;
    weir_req_init(&load, WEIR_OP_LOAD);
    load.name = req->guard;
    load.len = req->len;
    int code = weir_tier_call(side_of(t, req->guard), &load);
    if (code && code != -EFBIG)
        return code;
    bool same = !code && load.result == req->len && !memcmp(load.buf, req->buf, req->len);
    if (!code)
        free(load.buf);
    return same ? 0 : weir_fail(ESTALE, "'%s' has changed meanwhile", req->guard);
}

/* There is no way to do both at once on two tiers. What may come between is the record's removal:
 * then nothing keeps the data's writer from sealing it but its own age, which the store sees to
 * (a writer gives up after half of the grace, data is debris after all of it). */
static int remove_guarded(struct split_tier *t, struct weir_req *req)
{
    struct weir_req remove;
    struct split_handle *h = (struct split_handle *)req->handle;
    int code = check_guard(t, req);
    if (code)
        return code;
    weir_req_init(&remove, WEIR_OP_REMOVE);
    remove.name = req->name;
    remove.handle = h ? h->inner : NULL;
    remove.sync = req->sync;
    remove.reuse = req->reuse;
    remove.off = req->off;
    remove.stat = req->stat;
    code = weir_tier_call(side_of(t, req->name), &remove);
    req->doubt = remove.doubt;
    return code;
}

static int sweep_side(struct weir_tier *side, struct weir_req *req, struct weir_req *sum)
{
    weir_req_init(req, WEIR_OP_SWEEP);
    req->off = sum->off;
    req->dry = sum->dry;
    int code = weir_tier_call(side, req);
    sum->result += req->result;
    sum->len += req->len;
    sum->stat.size += req->stat.size;
    return code;
}

/* The records first: so the time of one of them is not told as earlier than it was. */
static int sweep(struct split_tier *t, struct weir_req *req)
{
    struct weir_req records, data;
    req->result = req->len = req->stat.size = 0;
    int code = sweep_side(t->records, &records, req);
    if (!code)
        code = sweep_side(t->tier.below, &data, req);
    if (code)
        return code;
    int64_t offset_ns = data.stat.time_ns - records.stat.time_ns;
    if (offset_ns > -CLOCK_SLACK_NS && offset_ns < CLOCK_SLACK_NS)
        offset_ns = 0;
    atomic_store_explicit(&t->offset_ns, offset_ns, memory_order_relaxed);
    req->stat.time_ns = data.stat.time_ns;
    return 0;
}

static void do_both(struct split_tier *t, struct weir_req *req)
{
    req->doubt = WEIR_SURE;
    weir_req_take(req, req->op == WEIR_OP_SWEEP ? sweep(t, req) : remove_guarded(t, req));
    weir_req_done(req);
}

static void *work(void *arg)
{
    struct split_tier *t = arg;
    for (struct weir_req *req; (req = weir_queue_get(&t->queue))->depth;)
        do_both(t, req);
    return NULL;
}

static void submit_both(struct split_tier *t, struct weir_req *req)
{
    int code = 0;
    if (req->blocking) {
        do_both(t, req);
        return;
    }
    pthread_mutex_lock(&t->lock);
    if (!t->has_thread)
        code = weir_thread_start(&t->thread, "weir-split", work, t);
    t->has_thread = !code;
    pthread_mutex_unlock(&t->lock);
    if (code)
        refuse(req, -code, weir_fail_last());
    else
        weir_queue_put(&t->queue, req);
}

/* ---- which is which ---- */

static void submit_remove(struct split_tier *t, struct weir_req *req)
{
    struct weir_tier *side = side_of(t, req->name);
    struct split_handle *h = (struct split_handle *)req->handle;
    if (h && h->side != side && req->op == WEIR_OP_REMOVE_IF) {
        /* A record, and its data, whose plain name should go with it: there are none here. */
        req->reuse = false;
        *weir_req_push(req, passed, t) = (uintptr_t)h;
        req->handle = NULL;
        weir_tier_submit(side, req);
    } else if (h && h->side != side) {
        refuse(req, ESTALE, "the name is on another tier than what is open");
    } else if (req->guard && side_of(t, req->guard) != side) {
        submit_both(t, req);
    } else {
        pass(t, side, req);
    }
}

static void split_submit(struct weir_tier *tier, struct weir_req *req)
{
    struct split_tier *t = (struct split_tier *)tier;
    struct split_handle *h = (struct split_handle *)req->handle;
    switch (req->op) {
    case WEIR_OP_READ:
    case WEIR_OP_MAP:
    case WEIR_OP_WRITE:
    case WEIR_OP_COMMIT:
        pass(t, h->side, req);
        return;
    case WEIR_OP_STAT:
    case WEIR_OP_REMOVE:
    case WEIR_OP_REMOVE_IF:
        submit_remove(t, req);
        return;
    case WEIR_OP_LIST:
        pass(t, h ? h->side : side_of(t, req->name), req);
        return;
    case WEIR_OP_OPEN:
    case WEIR_OP_CREATE:
    case WEIR_OP_LEASE:
    case WEIR_OP_LOAD:
    case WEIR_OP_PUT:
        pass(t, side_of(t, req->name), req);
        return;
    case WEIR_OP_SPACE:
        pass(t, tier->below, req);
        return;
    case WEIR_OP_SWEEP:
        submit_both(t, req);
        return;
    case WEIR_OP_ALIAS:
        refuse(req, ENOTSUP, "a store on two tiers (commit=) has no plain names");
        return;
    case WEIR_OPS:
        break;
    }
    assert(!"an unknown request");
}

static void split_close(struct weir_tier *tier)
{
    struct split_tier *t = (struct split_tier *)tier;
    struct weir_req end = {0};
    if (t->has_thread) {
        weir_queue_put(&t->queue, &end);
        pthread_join(t->thread, NULL);
    }
    weir_queue_destroy(&t->queue);
    pthread_mutex_destroy(&t->lock);
    weir_tier_close(t->records);
    weir_tier_close(tier->below);
    free(t);
}

static const struct weir_tier_ops split_ops = {"split", split_submit, split_close};

/* ---- the two notes ---- */

struct note {
    bool there;
    char text[NOTE_BYTES + 1];
};

/* What is no note is a store of its own, or damaged. */
static int note_load(struct note *out, struct weir_tier *side, const char *name, const char *which)
{
    struct weir_req load;
    *out = (struct note){0};
    weir_req_init(&load, WEIR_OP_LOAD);
    load.name = name;
    load.len = 4096;
    int code = weir_tier_call(side, &load);
    if (code == -ENOENT)
        return 0;
    if (code)
        return weir_fail_in(code, "cannot read '%s' on the side of the %s", name, which);
    out->there = load.result == NOTE_BYTES && !memcmp(load.buf, note_magic, 8);
    if (out->there)
        memcpy(out->text, load.buf, NOTE_BYTES);
    free(load.buf);
    return out->there ? 0
                      : weir_fail(EEXIST,
                                  "'%s' on the side of the %s is another store's: one that "
                                  "has its records with its data is opened without commit=",
                                  name, which);
}

/* As a blob: the side of the data may be without put-if-absent. */
static int note_write(struct weir_tier *side, const struct note *note)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_CREATE);
    req.name = WEIR_NAME_STORE;
    req.off = NOTE_BYTES;
    req.small = true;
    int code = weir_tier_call(side, &req);
    if (code)
        return code;
    struct weir_handle *sink = req.handle;
    weir_req_init(&req, WEIR_OP_WRITE);
    req.handle = sink;
    req.buf = (void *)note->text;
    req.len = NOTE_BYTES;
    req.sync = true;
    code = weir_tier_call(side, &req);
    if (!code) {
        weir_req_init(&req, WEIR_OP_COMMIT);
        req.handle = sink;
        req.off = NOTE_BYTES;
        code = weir_tier_call(side, &req);
    }
    weir_handle_close(sink);
    return code;
}

/* The record side's note is the first thing there is: among several that make the store, one
 * number wins. */
static int note_make(struct weir_tier *records, struct note *out)
{
    struct weir_req put;
    uint8_t id[ID_BYTES];
    int code = weir_sys->random(id, sizeof id);
    if (code)
        return weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
    memcpy(out->text, note_magic, 8);
    weir_hex(out->text + 8, id, sizeof id);
    out->text[NOTE_BYTES - 1] = '\n';
    out->there = true;
    weir_req_init(&put, WEIR_OP_PUT);
    put.name = NAME_NOTE;
    put.buf = out->text;
    put.len = NOTE_BYTES;
    code = weir_tier_call(records, &put);
    return code == -EEXIST ? note_load(out, records, NAME_NOTE, "records") : code;
}

static int pair(struct weir_tier *data, struct weir_tier *records, bool create)
{
    struct note first, second;
    int code = note_load(&first, data, WEIR_NAME_STORE, "data");
    if (!code)
        code = note_load(&second, records, NAME_NOTE, "records");
    if (!code && first.there && !second.there)
        code = weir_fail(ENXIO, "commit= names a place without the records of this store: name the "
                                "one that it was made with");
    if (!code && !first.there && !create)
        code = weir_fail(ENOENT, "there is no store");
    if (!code && !second.there)
        code = note_make(records, &second);
    if (!code && !first.there) {
        code = note_write(data, &second);
        if (code == -EEXIST)
            code = note_load(&first, data, WEIR_NAME_STORE, "data");
        else
            first = second;
    }
    if (!code && strcmp(first.text, second.text))
        code = weir_fail(ENXIO, "commit= names the records of another store: name the place that "
                                "this one was made with");
    return code;
}

/* ---- opening ---- */

static int open_records(struct weir_tier **out, const char *text, struct weir_io *io, bool create)
{
    struct weir_url url;
    int code = weir_url_parse(&url, text);
    if (code)
        return weir_fail_in(code, "commit=");
    for (size_t i = 0; !code && i < url.options; i++)
        if (!strcmp(url.option[i].name, "commit"))
            code = weir_fail(EINVAL, "a URL of commit= has none itself");
    if (!code)
        code = weir_tier_open(out, &url, io, create);
    weir_url_free(&url);
    return code ? weir_fail_in(code, "commit=") : 0;
}

int weir_tier_split_open(struct weir_tier **out, struct weir_tier *below, const char *records,
                         struct weir_io *io, bool create)
{
    struct weir_tier *other = NULL;
    struct split_tier *t = weir_alloc(sizeof *t);
    int code = t ? open_records(&other, records, io, create) : weir_fail_memory();
    if (!code)
        code = pair(below, other, create);
    if (code) {
        weir_tier_close(other);
        weir_tier_close(below);
        free(t);
        return code;
    }
    weir_level level = other->level < below->level ? other->level : below->level;
    t->tier = (struct weir_tier){&split_ops, below, level, below->depth, below->lookers, false};
    t->records = other;
    pthread_mutex_init(&t->lock, NULL);
    weir_queue_init(&t->queue);
    *out = &t->tier;
    return 0;
}
