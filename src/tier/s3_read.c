/* s3_read.c - READ. Ranges that follow each other closely in one blob are asked for together: a
 * request costs the server and the way there much more than a megabyte. They wait in a queue, and
 * when there is room for a request as many go as make a large one; each is done as soon as its own
 * bytes are there. The bytes go from libcurl's buffer to where the caller wants them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/s3.h"
#include "util/err.h"
#include "util/sys.h"

enum {
    BATCH_BYTES_MIN = 4 << 20,  /* if there is as much */
    BATCH_BYTES_MAX = 32 << 20, /* a stream's, where few requests are the fastest way */
};
/* Whoever just asked for one range may be about to ask for the next. */
#define LINGER_NS 300000ull

struct batch {
    struct weir_s3_trip trip;
    struct weir_s3_tier *tier;
    char match[WEIR_S3_ETAG_MAX + 2];
    uint64_t begin;
};

static void fail_read(struct batch *batch, struct weir_req *req)
{
    const struct weir_s3_trip *trip = &batch->trip;
    if (!trip->code && (trip->status == 412 || trip->status == 404 || trip->status == 416))
        weir_req_fail(req, ESTALE, "'%s' was removed or replaced while it was read", trip->name);
    else
        weir_req_take(req, weir_s3_trip_fail(trip, &batch->tier->site, "read"));
}

static void batch_done(struct weir_s3_trip *trip)
{
    struct batch *batch = (struct batch *)trip;
    while (trip->reads) {
        struct weir_req *req = trip->reads;
        trip->reads = req->next;
        fail_read(batch, req);
        weir_req_done(req);
    }
    weir_io_read_count(batch->tier->io, trip->range_begin - batch->begin);
    weir_s3_trip_end(trip);
    free(batch);
}

static struct weir_s3_trip *make_batch(struct weir_s3_tier *t, struct weir_req *reads,
                                       uint64_t bytes)
{
    const struct weir_s3_blob *blob = (struct weir_s3_blob *)reads->handle;
    struct batch *batch = weir_alloc(sizeof *batch);
    if (!batch) {
        for (struct weir_req *next; reads; reads = next) {
            next = reads->next;
            weir_req_take(reads, weir_fail_memory());
            weir_req_done(reads);
        }
        return NULL;
    }
    struct weir_s3_trip *trip = &batch->trip;
    batch->tier = t;
    weir_s3_match(batch->match, blob->etag, true);
    weir_s3_trip_begin(trip, "GET", blob->name);
    weir_s3_trip_header(trip, "if-match", batch->match);
    trip->reads = reads;
    trip->range_begin = batch->begin = reads->off;
    trip->range_end = reads->off + bytes;
    trip->blob_bytes = blob->size;
    trip->done = batch_done;
    return trip;
}

struct weir_s3_trip *weir_s3_reads_feed(void *tier, unsigned spare, uint64_t *wait_ns)
{
    struct weir_s3_tier *t = tier;
    struct weir_s3_reads *q = &t->reads;
    pthread_mutex_lock(&q->lock);
    struct weir_req *head = q->head, *last = head;
    if (!head) {
        pthread_mutex_unlock(&q->lock);
        return NULL;
    }
    uint64_t most = q->bytes / spare, bytes = head->io.done;
    most = most < BATCH_BYTES_MIN   ? BATCH_BYTES_MIN
           : most > BATCH_BYTES_MAX ? BATCH_BYTES_MAX
                                    : most;
    while (last->next && last->next->handle == head->handle &&
           last->next->off == head->off + bytes && bytes + last->next->io.done <= most) {
        last = last->next;
        bytes += last->io.done;
    }
    uint64_t ago_ns = weir_sys->now_ns(WEIR_CLOCK_MONO) - q->last_ns;
    if (!last->next && !last->blocking && bytes < most && ago_ns < LINGER_NS) {
        *wait_ns = LINGER_NS - ago_ns;
        pthread_mutex_unlock(&q->lock);
        return NULL;
    }
    q->bytes -= bytes;
    q->head = last->next;
    if (!q->head)
        q->end = &q->head;
    last->next = NULL;
    pthread_mutex_unlock(&q->lock);
    return make_batch(t, head, bytes);
}

void weir_s3_read(struct weir_s3_tier *t, struct weir_req *req)
{
    const struct weir_s3_blob *blob = (struct weir_s3_blob *)req->handle;
    struct weir_s3_reads *q = &t->reads;
    req->result = 0;
    req->code = 0;
    uint64_t there = req->off < blob->size ? blob->size - req->off : 0;
    req->io.done = req->len < there ? req->len : (size_t)there;
    if (!req->io.done) {
        weir_req_done(req);
        return;
    }
    if (!weir_s3_net_start(t->net)) { /* before anything waits for its threads */
        weir_req_take(req, -EAGAIN);
        weir_req_done(req);
        return;
    }
    req->next = NULL;
    pthread_mutex_lock(&q->lock);
    *q->end = req;
    q->end = &req->next;
    q->bytes += req->io.done;
    q->last_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    pthread_mutex_unlock(&q->lock);
    weir_s3_net_wake(t->net);
}
