/* scan.c - the one get path: any spans of objects, verified on arrival.
 *
 * The blocks that the spans touch are read in units of at most 1 MiB that begin and end at block
 * boundaries, several in flight, in the order of the object; where one object ends, the next one's
 * units follow. A unit that lies within one row of a span can land in the caller's memory if that
 * is aligned (then no byte is copied), and does unless that is the slower way here (landing.h); any
 * other lands in a pool buffer. Every block of it is checked before the caller may see it; a unit
 * that fails is wiped. Foreign objects take the same way; what is not yet known of them is learned
 * instead of checked.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "store/object.h"
#include "util/err.h"
#include "util/min.h"
#include "util/sys.h"

enum {
    GAP_BYTES_MAX = 65536, /* reading over a smaller gap costs less than a second request */
    PLUG_SLOTS = 32,       /* small files that go to the device together */
};

/* A request, and what of the objects it is for. */
struct slot {
    struct weir_req req;
    struct slot *next;
    weir_object *obj;
    const struct weir_span *spans, *spans_end; /* those that may want some of it */
    bool pooled;                               /* it lands in a pool buffer */
};
_Static_assert(offsetof(struct slot, req) == 0, "a request's slot is where the request is");

/* One read call: what was asked for, what is under way. */
struct scan {
    weir_store *store;
    const struct weir_readings *sources;
    weir_object *obj;                          /* the one that is being sent */
    const struct weir_span *spans, *spans_end; /* those still to be sent, at least in part */
    uint64_t next;                             /* everything before it was sent */
    uint64_t obj_bytes;                        /* asked for of this object */
    uint64_t bytes_left;                       /* asked for and not yet here */
    weir_progress_fn progress;                 /* or NULL */
    void *progress_arg;
    struct weir_queue done;
    struct slot *idle;
    struct weir_trial trial;
    struct weir_plug plug; /* what of it is not under way yet */
    unsigned in_flight;
    const struct weir_span *bad; /* one that a failure is about, or NULL */
    int code;
    char text[WEIR_TEXT_MAX];
};

static void scan_failed(struct scan *scan, int code, const struct weir_span *bad)
{
    if (!scan->code) {
        scan->code = code;
        scan->bad = bad;
        memcpy(scan->text, weir_fail_last(), sizeof scan->text);
    }
}

/* ---- units ---- */

struct unit {
    struct weir_range range;
    const struct weir_span *spans; /* the first that may want some of it */
    char *place;                   /* where it can land in the caller's memory, or NULL, */
    size_t room;                   /* and so much may be written there */
};

/* All of an object that is too small to be read around the page cache: it may land anywhere, and
 * no buffer is worth its copy. */
static bool is_small(const weir_object *obj, const struct weir_range *unit)
{
    uint64_t size = unit->end - unit->begin;
    return size < WEIR_IO_DIRECT_BYTES_MIN && size == obj->info.size_bytes;
}

static char *place_of(const struct scan *scan, const struct weir_span *span,
                      const struct weir_range *wanted, const struct weir_range *unit)
{
    if (!span->to || wanted->begin != unit->begin || wanted->end < unit->end)
        return NULL;
    char *place = weir_span_place(span, unit->begin);
    bool aligned = !((uintptr_t)place % WEIR_IO_ALIGN || (unit->end - unit->begin) % WEIR_IO_ALIGN);
    return aligned || is_small(scan->obj, unit) ? place : NULL;
}

/* How far a unit may go when so much of the row is left: a buffer; but of the last two each has
 * half, as the last might be too small to be read around the page cache. */
static uint64_t unit_bytes_max(uint64_t rest, uint64_t block_bytes)
{
    if (rest <= WEIR_BUFFER_BYTES || rest >= 2 * WEIR_BUFFER_BYTES)
        return WEIR_BUFFER_BYTES;
    uint64_t blocks = (rest + block_bytes - 1) / block_bytes;
    return (blocks + 1) / 2 * block_bytes;
}

/* From the block of the next byte that is wanted as far as wanted blocks follow closely; false if
 * nothing is left. */
static bool next_unit(const struct scan *scan, struct unit *out)
{
    uint64_t block_bytes = scan->obj->check_bytes;
    const struct weir_span *look = scan->spans;
    struct weir_range wanted;
    const struct weir_span *span = weir_spans_find(&look, scan->spans_end, scan->next, &wanted);
    if (!span)
        return false;
    uint64_t begin = wanted.begin / block_bytes * block_bytes, end;
    uint64_t limit = begin + unit_bytes_max(wanted.end - begin, block_bytes);
    limit = weir_min(limit, scan->obj->info.size_bytes);
    *out = (struct unit){.spans = look};
    struct weir_range first = wanted;
    do
        end = weir_min((wanted.end + block_bytes - 1) / block_bytes * block_bytes, limit);
    while (end < limit && weir_spans_find(&look, scan->spans_end, end, &wanted) &&
           wanted.begin < limit && wanted.begin - end <= GAP_BYTES_MAX);
    out->range = (struct weir_range){begin, end};
    out->place = place_of(scan, span, &first, &out->range);
    out->room = end - begin;
    if (span->is_padded)
        out->room = (out->room + WEIR_IO_ALIGN - 1) & ~(size_t)(WEIR_IO_ALIGN - 1);
    return true;
}

/* Where the next unit lands: *buf, and whether that is its place. Units under way hold buffers that
 * only this thread gives back, so it waits for one only while it has none: else readers would wait
 * for each other. A unit that can do without a buffer waits for none. */
static int unit_buffer(struct scan *scan, const struct unit *unit, void **buf, bool *in_place)
{
    weir_store *store = scan->store;
    struct weir_pool *pool = weir_io_pool(store->io);
    *in_place = unit->place;
    if (!*in_place)
        return scan->in_flight ? weir_pool_try(pool, buf) : weir_pool_get(pool, buf);
    *buf = unit->place;
    if (is_small(scan->obj, &unit->range))
        return 0;
    enum weir_way way =
        weir_landing_choose(&store->landing, &scan->trial, unit->range.end - unit->range.begin,
                            scan->bytes_left / WEIR_BUFFER_BYTES, store->depth);
    *in_place = way != WEIR_WAY_POOL || weir_pool_try(pool, buf);
    if (*in_place)
        *buf = unit->place;
    return 0;
}

static struct slot *slot_take(struct scan *scan)
{
    struct slot *slot = scan->idle;
    scan->idle = slot->next;
    scan->in_flight++;
    return slot;
}

static void slot_give_back(struct scan *scan, struct slot *slot)
{
    slot->next = scan->idle;
    scan->idle = slot;
}

/* Sends a unit off; false if it cannot go now. */
static bool send_unit(struct scan *scan, const struct unit *unit, bool only)
{
    bool in_place;
    void *buf;
    int code = unit_buffer(scan, unit, &buf, &in_place);
    if (code && code != -EAGAIN)
        scan_failed(scan, code, NULL);
    if (code)
        return false;
    struct slot *slot = slot_take(scan);
    struct weir_req *req = &slot->req;
    scan->next = unit->range.end;
    scan->spans = unit->spans;
    slot->obj = scan->obj;
    slot->spans = unit->spans;
    slot->spans_end = scan->spans_end;
    slot->pooled = !in_place;
    weir_req_init(req, WEIR_OP_READ);
    req->handle = scan->obj->blob;
    req->buf = buf;
    req->len = unit->range.end - unit->range.begin;
    req->cap = in_place ? unit->room : WEIR_BUFFER_BYTES;
    req->off = unit->range.begin;
    req->keep = scan->store->keeps;
    req->blocking = only; /* nothing else is under way: no thread need be woken */
    req->plug = scan->obj->is_around ? &scan->plug : NULL;
    weir_req_push(req, weir_queue_done, &scan->done);
    weir_tier_submit(scan->store->tier, req);
    return true;
}

/* Checks the blocks that somebody wants: one that was only read over may be as it likes. */
static int check_unit(const struct slot *slot, const struct weir_span **bad)
{
    weir_object *obj = slot->obj;
    const struct weir_req *req = &slot->req;
    const struct weir_span *look = slot->spans;
    uint64_t end = req->off + req->len;
    struct weir_range block, wanted;
    *bad = weir_spans_find(&look, slot->spans_end, req->off, &wanted);
    if (req->code)
        return weir_fail_text(req->code, req->text);
    if (req->result < req->len)
        return weir_fail(EBADMSG, "'%s' is damaged: its data ends at byte %" PRIu64 " of %" PRIu64,
                         obj->key, req->off + req->result, obj->info.size_bytes);
    if (!weir_object_is_checked(obj))
        return 0;
    for (block.begin = req->off; block.begin < end; block.begin = block.end) {
        block.end = weir_min(block.begin + obj->check_bytes, end);
        *bad = weir_spans_find(&look, slot->spans_end, block.begin, &wanted);
        if (!*bad || wanted.begin >= block.end)
            continue;
        int code = weir_object_check(obj, (char *)req->buf + (block.begin - req->off), &block);
        if (code)
            return code;
    }
    return 0;
}

/* A unit has come. When one has failed, those still under way are only taken back: what of them is
 * in the caller's memory was not checked, and is wiped. */
static void take_unit(struct scan *scan)
{
    struct slot *slot = (struct slot *)weir_queue_get(&scan->done);
    const struct weir_req *req = &slot->req;
    struct weir_range range = {req->off, req->off + req->len};
    const struct weir_span *bad;
    scan->in_flight--;
    int code = scan->code ? 0 : check_unit(slot, &bad);
    if (code)
        scan_failed(scan, code, bad);
    if (!scan->code) {
        uint64_t bytes = weir_spans_copy(slot->spans, slot->spans_end, req->buf, &range);
        scan->bytes_left -= bytes;
        if (scan->progress && scan->progress(scan->progress_arg, bytes))
            scan_failed(scan, weir_fail(ECANCELED, "reading '%s' was stopped", slot->obj->key),
                        NULL);
    } else if (!slot->pooled) {
        memset(req->buf, 0, req->len); /* nobody shall mistake it for data */
    }
    if (slot->pooled)
        weir_pool_put(weir_io_pool(scan->store->io), req->buf);
    weir_landing_count(&scan->store->landing, &scan->trial, scan->store->depth);
    slot_give_back(scan, slot);
}

/* ---- the pipeline ---- */

/* Goes on to the next object; false if there is none, or it failed. */
static bool next_source(struct scan *scan)
{
    struct weir_reading source;
    int got = scan->sources->next(scan->sources->arg, &source);
    if (got < 0)
        scan_failed(scan, got, NULL);
    if (got <= 0)
        return false;
    assert(source.obj->store == scan->store);
    scan->obj_bytes = 0;
    for (size_t i = 0; i < source.count; i++) {
        const struct weir_span *span = &source.spans[i];
        scan->obj_bytes += weir_span_bytes(span);
        assert(!i || span[-1].off <= span->off);
        assert(span->rows <= 1 || span->off_step >= span->size);
        assert(weir_span_end(span) <= source.obj->info.size_bytes);
    }
    scan->obj = source.obj;
    scan->spans = source.spans;
    scan->spans_end = source.spans + source.count;
    scan->next = 0;
    return true;
}

/* The next unit, of this object or of the next that has one. */
static bool find_unit(struct scan *scan, struct unit *unit)
{
    while (!next_unit(scan, unit))
        if (!next_source(scan))
            return false;
    return true;
}

/* Nothing would be under way beside this unit, the first. */
static bool is_only(const struct scan *scan, const struct unit *unit)
{
    const struct weir_span *look = unit->spans;
    struct weir_range more;
    return scan->obj_bytes == scan->bytes_left &&
           !weir_spans_find(&look, scan->spans_end, unit->range.end, &more);
}

static void run_pipeline(struct scan *scan)
{
    struct unit unit;
    bool more = find_unit(scan, &unit), only = more && is_only(scan, &unit);
    while (scan->in_flight || (more && !scan->code)) {
        while (more && !scan->code && scan->idle && send_unit(scan, &unit, only))
            more = find_unit(scan, &unit);
        weir_io_flush(scan->store->io, &scan->plug);
        if (scan->in_flight)
            take_unit(scan);
    }
}

static int run_scan(struct scan *scan)
{
    unsigned depth = scan->store->depth;
    if (!next_source(scan))
        return scan->code ? weir_fail_text(scan->code, scan->text) : 0;
    weir_object *first = scan->obj;
    if (first->is_around && depth < PLUG_SLOTS)
        depth = PLUG_SLOTS;
    if (!first->slots && !(first->slots = weir_alloc(depth * sizeof(struct slot))))
        return weir_fail_memory();
    for (unsigned i = 0; i < depth; i++)
        slot_give_back(scan, (struct slot *)first->slots + i);
    weir_queue_init(&scan->done);
    run_pipeline(scan);
    weir_queue_destroy(&scan->done);
    weir_landing_end(&scan->store->landing, &scan->trial);
    return scan->code ? weir_fail_text(scan->code, scan->text) : 0;
}

/* ---- the interface ---- */

int weir_readings_run(weir_store *store, const struct weir_readings *sources,
                      weir_progress_fn progress, void *arg, const struct weir_span **bad)
{
    struct scan scan = {
        .store = store,
        .sources = sources,
        .bytes_left = sources->bytes,
        .progress = progress,
        .progress_arg = arg,
    };
    int code = weir_store_check(store);
    if (!code)
        code = run_scan(&scan);
    if (bad)
        *bad = scan.bad;
    return code;
}

/* The one object there is. */
static int next_of_one(void *arg, struct weir_reading *out)
{
    struct weir_reading *one = arg;
    *out = *one;
    one->obj = NULL;
    return out->obj != NULL;
}

int weir_object_read_spans(weir_object *obj, const struct weir_span *spans, size_t count,
                           weir_progress_fn progress, void *arg, const struct weir_span **bad)
{
    struct weir_reading one = {obj, spans, count};
    struct weir_readings sources = {.next = next_of_one, .arg = &one};
    for (size_t i = 0; i < count; i++)
        sources.bytes += weir_span_bytes(&spans[i]);
    return weir_readings_run(obj->store, &sources, progress, arg, bad);
}

int weir_object_read(weir_object *obj, void *buf, size_t size, uint64_t off, size_t *got)
{
    assert(buf || !size);
    uint64_t end = obj->info.size_bytes;
    if (off < end && size < end - off)
        end = off + size;
    struct weir_span span = {.to = buf};
    if (off < end)
        span = (struct weir_span){.off = off, .size = end - off, .rows = 1, .to = buf};
    int code = weir_object_read_spans(obj, &span, 1, NULL, NULL, NULL);
    if (!code)
        *got = span.size;
    return code;
}

int weir_verify(weir_store *store, const char *key, weir_progress_fn progress, void *arg)
{
    weir_object *obj;
    int code = weir_object_open(&obj, store, key);
    if (code)
        return code;
    const struct weir_span all = {.size = obj->info.size_bytes, .rows = 1};
    code = weir_object_read_spans(obj, &all, 1, progress, arg, NULL);
    weir_object_close(obj);
    return code;
}
