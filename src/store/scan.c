/* scan.c - the one get path: any spans of an object, verified on arrival.
 *
 * The blocks that the spans touch are read in units of at most 1 MiB that begin and end at block
 * boundaries, several in flight, in the order of the object. A unit that lies within one row of a
 * span can land in the caller's memory if that is aligned (then no byte is copied), and does unless
 * that is the slower way here (landing.h); any other lands in a pool buffer. Every block of it is
 * checked before the caller may see it; a unit that fails is wiped. Foreign objects take the same
 * way; what is not yet known of them is learned instead of checked.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "store/object.h"
#include "util/err.h"
#include "util/sys.h"

enum { GAP_BYTES_MAX = 65536 }; /* reading over a smaller gap costs less than a second request */

/* One read call: what was asked for, what is under way. */
struct scan {
    weir_object *obj;
    const struct weir_span *spans, *spans_end; /* those still to be sent, at least in part */
    uint64_t next;                             /* everything before it was sent */
    uint64_t bytes_left;                       /* asked for and not yet here */
    weir_progress_fn progress;                 /* or NULL */
    void *progress_arg;
    struct weir_queue done;
    struct weir_req *idle;
    struct weir_trial trial;
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

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- units ---- */

struct unit {
    struct weir_range range;
    const struct weir_span *spans; /* the first that may want some of it */
    char *place;                   /* where it can land in the caller's memory, or NULL */
};

static char *place_of(const struct weir_span *span, const struct weir_range *wanted,
                      const struct weir_range *unit)
{
    if (!span->to || wanted->begin != unit->begin || wanted->end < unit->end)
        return NULL;
    char *place = weir_span_place(span, unit->begin);
    bool aligned = !((uintptr_t)place % WEIR_IO_ALIGN || (unit->end - unit->begin) % WEIR_IO_ALIGN);
    return aligned ? place : NULL;
}

/* From the block of the next byte that is wanted as far as wanted blocks follow closely, within an
 * aligned 1 MiB; false if nothing is left. */
static bool next_unit(const struct scan *scan, struct unit *out)
{
    uint64_t block_bytes = scan->obj->info.block_bytes;
    const struct weir_span *look = scan->spans;
    struct weir_range wanted;
    const struct weir_span *span = weir_spans_find(&look, scan->spans_end, scan->next, &wanted);
    if (!span)
        return false;
    uint64_t begin = wanted.begin / block_bytes * block_bytes, end;
    uint64_t limit = (begin / WEIR_BUFFER_BYTES + 1) * WEIR_BUFFER_BYTES;
    limit = min_u64(limit, scan->obj->info.size_bytes);
    *out = (struct unit){.spans = look};
    struct weir_range first = wanted;
    do
        end = min_u64((wanted.end + block_bytes - 1) / block_bytes * block_bytes, limit);
    while (end < limit && weir_spans_find(&look, scan->spans_end, end, &wanted) &&
           wanted.begin < limit && wanted.begin - end <= GAP_BYTES_MAX);
    out->range = (struct weir_range){begin, end};
    out->place = place_of(span, &first, &out->range);
    return true;
}

/* Where the next unit lands: *buf, and whether that is its place. Units under way hold buffers that
 * only this thread gives back, so it waits for one only while it has none: else readers would wait
 * for each other. A unit that can do without a buffer waits for none. */
static int unit_buffer(struct scan *scan, const struct unit *unit, void **buf, bool *in_place)
{
    weir_store *store = scan->obj->store;
    struct weir_pool *pool = weir_io_pool(store->io);
    *in_place = unit->place;
    if (!*in_place)
        return scan->in_flight ? weir_pool_try(pool, buf) : weir_pool_get(pool, buf);
    enum weir_way way =
        weir_landing_choose(&store->landing, &scan->trial, unit->range.end - unit->range.begin,
                            scan->bytes_left / WEIR_BUFFER_BYTES, store->depth);
    *in_place = way != WEIR_WAY_POOL || weir_pool_try(pool, buf);
    if (*in_place)
        *buf = unit->place;
    return 0;
}

/* Sends a unit off; false if it cannot go now. tag is 1 if it lands in a pool buffer. */
static bool send_unit(struct scan *scan, const struct unit *unit, bool only)
{
    weir_object *obj = scan->obj;
    bool in_place;
    void *buf;
    int code = unit_buffer(scan, unit, &buf, &in_place);
    if (code && code != -EAGAIN)
        scan_failed(scan, code, NULL);
    if (code)
        return false;
    struct weir_req *req = scan->idle;
    scan->idle = req->next;
    scan->in_flight++;
    scan->next = unit->range.end;
    scan->spans = unit->spans;
    weir_req_init(req, WEIR_OP_READ);
    req->handle = obj->blob;
    req->buf = buf;
    req->len = unit->range.end - unit->range.begin;
    req->cap = in_place ? req->len : WEIR_BUFFER_BYTES;
    req->off = unit->range.begin;
    req->tag = !in_place;
    req->owner = (void *)unit->spans;
    req->blocking = only; /* nothing else is under way: no thread need be woken */
    weir_req_push(req, weir_queue_done, &scan->done);
    weir_tier_submit(obj->store->tier, req);
    return true;
}

/* Checks the blocks that somebody wants: one that was only read over may be as it likes. */
static int check_unit(struct scan *scan, const struct weir_req *req, const struct weir_span **bad)
{
    weir_object *obj = scan->obj;
    const struct weir_span *look = req->owner;
    uint64_t end = req->off + req->len;
    struct weir_range block, wanted;
    *bad = weir_spans_find(&look, scan->spans_end, req->off, &wanted);
    if (req->code)
        return weir_fail_text(req->code, req->text);
    if (req->result < req->len)
        return weir_fail(EBADMSG, "'%s' is damaged: its data ends at byte %" PRIu64 " of %" PRIu64,
                         obj->key, req->off + req->result, obj->info.size_bytes);
    for (block.begin = req->off; block.begin < end; block.begin = block.end) {
        block.end = min_u64(block.begin + obj->info.block_bytes, end);
        *bad = weir_spans_find(&look, scan->spans_end, block.begin, &wanted);
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
    weir_object *obj = scan->obj;
    struct weir_req *req = weir_queue_get(&scan->done);
    struct weir_range range = {req->off, req->off + req->len};
    const struct weir_span *bad;
    scan->in_flight--;
    int code = scan->code ? 0 : check_unit(scan, req, &bad);
    if (code)
        scan_failed(scan, code, bad);
    if (!scan->code) {
        uint64_t bytes = weir_spans_copy(req->owner, scan->spans_end, req->buf, &range);
        scan->bytes_left -= bytes;
        if (scan->progress && scan->progress(scan->progress_arg, bytes))
            scan_failed(scan, weir_fail(ECANCELED, "reading '%s' was stopped", obj->key), NULL);
    } else if (!req->tag) {
        memset(req->buf, 0, req->len); /* nobody shall mistake it for data */
    }
    if (req->tag)
        weir_pool_put(weir_io_pool(obj->store->io), req->buf);
    weir_landing_count(&obj->store->landing, &scan->trial, obj->store->depth);
    req->next = scan->idle;
    scan->idle = req;
}

/* ---- the pipeline ---- */

/* Nothing would be under way beside its first unit. */
static bool is_one_unit(const struct scan *scan)
{
    struct unit unit;
    struct weir_range more;
    if (!next_unit(scan, &unit))
        return true;
    return !weir_spans_find(&unit.spans, scan->spans_end, unit.range.end, &more);
}

static void run_pipeline(struct scan *scan)
{
    bool only = is_one_unit(scan), more = true;
    struct unit unit;
    while (scan->in_flight || (more && !scan->code)) {
        while (!scan->code && scan->idle && (more = next_unit(scan, &unit)) &&
               send_unit(scan, &unit, only))
            ;
        if (scan->in_flight)
            take_unit(scan);
    }
}

static int run_scan(struct scan *scan)
{
    weir_object *obj = scan->obj;
    unsigned depth = obj->store->depth;
    if (!obj->reqs && !(obj->reqs = weir_alloc(depth * sizeof *obj->reqs)))
        return weir_fail_memory();
    for (unsigned i = 0; i < depth; i++) {
        obj->reqs[i].next = scan->idle;
        scan->idle = &obj->reqs[i];
    }
    weir_queue_init(&scan->done);
    run_pipeline(scan);
    weir_queue_destroy(&scan->done);
    weir_landing_end(&obj->store->landing, &scan->trial);
    return scan->code ? weir_fail_text(scan->code, scan->text) : 0;
}

int weir_object_read_spans(weir_object *obj, const struct weir_span *spans, size_t count,
                           weir_progress_fn progress, void *arg, const struct weir_span **bad)
{
    struct scan scan = {
        .obj = obj,
        .spans = spans,
        .spans_end = spans + count,
        .progress = progress,
        .progress_arg = arg,
    };
    int code = weir_store_check(obj->store);
    for (size_t i = 0; i < count; i++) {
        assert(!i || spans[i - 1].off <= spans[i].off);
        assert(spans[i].rows <= 1 || spans[i].off_step >= spans[i].size);
        assert(weir_span_end(&spans[i]) <= obj->info.size_bytes);
        scan.bytes_left += weir_span_bytes(&spans[i]);
    }
    if (!code && scan.bytes_left)
        code = run_scan(&scan);
    if (bad)
        *bad = scan.bad;
    return code;
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
