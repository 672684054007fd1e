/* s3_sink.c - CREATE, WRITE, COMMIT. See s3_sink.h. */
#include "tier/s3_sink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/s3_retry.h"
#include "util/crc32c.h"
#include "util/err.h"
#include "util/sys.h"

enum { COPY_BYTES = 65536 };

static void drop_parts(struct weir_s3_sink *sink)
{
    while (sink->open) {
        struct weir_s3_part *part = sink->open;
        sink->open = part->next;
        weir_s3_part_free(part);
    }
}

/* Without a commit, nothing stays. */
static void sink_close(struct weir_handle *handle)
{
    struct weir_s3_sink *sink = (struct weir_s3_sink *)handle;
    pthread_mutex_lock(&sink->lock);
    weir_s3_sink_wait(sink);
    pthread_mutex_unlock(&sink->lock);
    drop_parts(sink);
    if (sink->has_upload)
        weir_s3_sink_abort(sink);
    weir_s3_memory_leave(&sink->blob.tier->memory);
    pthread_mutex_destroy(&sink->lock);
    pthread_cond_destroy(&sink->changed);
    free(sink->parted);
    free(sink->blob.name);
    free(sink);
}

int weir_s3_create(struct weir_s3_tier *t, struct weir_req *req)
{
    struct weir_s3_sink *sink = weir_alloc(sizeof *sink);
    char *name = sink ? weir_strdup(req->name) : NULL;
    int code = name ? weir_s3_id_make(sink->blob.id) : weir_fail_memory();
    if (code) {
        free(name);
        free(sink);
        return code;
    }
    sink->blob.handle.close = sink_close;
    sink->blob.tier = t;
    sink->blob.name = name;
    sink->hint = req->off;
    weir_s3_parts_plan(&sink->parts, req->off, t->part_bytes, t->memory.bytes_max);
    weir_s3_memory_join(&t->memory);
    pthread_mutex_init(&sink->lock, NULL);
    pthread_cond_init(&sink->changed, NULL);
    req->handle = &sink->blob.handle;
    return 0;
}

/* ---- writing ---- */

static struct weir_s3_part *find_part(struct weir_s3_sink *sink,
                                      const struct weir_s3_part_place *place)
{
    struct weir_s3_part **at = &sink->open;
    while (*at && (*at)->place.number < place->number)
        at = &(*at)->next;
    if (*at && (*at)->place.number == place->number)
        return *at;
    struct weir_s3_part *part = weir_alloc(sizeof *part);
    if (!part)
        return NULL;
    part->sink = sink;
    part->place = *place;
    part->next = *at;
    *at = part;
    return part;
}

/* What comes in order is summed piece by piece, while the processor's cache has it. */
static void copy_in(struct weir_s3_part *part, uint64_t at, const char *data, size_t size)
{
    if (at < part->summed) { /* it was there already */
        part->summed = 0;
        part->crc = 0;
    }
    for (size_t done = 0; done < size;) {
        size_t piece = size - done < COPY_BYTES ? size - done : COPY_BYTES;
        char *to = part->data + at + done;
        memcpy(to, data + done, piece);
        if (part->summed == at + done) {
            part->crc = weir_crc32c(part->crc, to, piece);
            part->summed += piece;
        }
        done += piece;
    }
}

/* Copies what of the piece lies in one part. Under the lock, which is let go while it waits for
 * memory; two that write to one part at once find what the other made. */
static int fill_part(struct weir_s3_sink *sink, const char *data, size_t size, uint64_t off,
                     size_t *took)
{
    struct weir_s3_part_place place;
    int code = weir_s3_parts_at(&sink->parts, off, &place);
    struct weir_s3_part *part = code ? NULL : find_part(sink, &place);
    if (!part)
        return code ? code : weir_fail_memory();
    uint64_t at = off - place.begin, left = place.bytes - at;
    *took = size < left ? size : (size_t)left;
    code = weir_s3_part_room(part, at + *took);
    if (code)
        return code;
    if (*took > part->place.bytes - part->filled)
        return weir_fail(EINVAL, "bytes of '%s' from %llu on were written twice", sink->blob.name,
                         (unsigned long long)off);
    copy_in(part, at, data, *took);
    part->filled += *took;
    return 0;
}

/* Is it clear that one PUT will not do? */
static bool needs_upload(const struct weir_s3_sink *sink)
{
    return sink->asked || sink->end > sink->parts.first_bytes;
}

static bool has_full(const struct weir_s3_sink *sink)
{
    for (const struct weir_s3_part *part = sink->open; part; part = part->next)
        if (part->filled == part->place.bytes)
            return true;
    return false;
}

static int write_all(struct weir_s3_sink *sink, const char *data, size_t size, uint64_t off)
{
    if (size && sink->hint > sink->parts.first_bytes)
        weir_s3_sink_begin(sink); /* its answer comes while the first part is filled */
    int code = sink->code ? weir_fail_text(sink->code, sink->text) : 0;
    while (!code && size) {
        size_t took = 0;
        code = fill_part(sink, data, size, off, &took);
        if (code)
            break;
        data += took, off += took, size -= took;
        sink->bytes += took;
        if (off > sink->end)
            sink->end = off;
        if (needs_upload(sink) && has_full(sink))
            code = weir_s3_sink_send(sink, false);
    }
    return code;
}

void weir_s3_write(struct weir_s3_tier *t, struct weir_req *req)
{
    struct weir_s3_sink *sink = (struct weir_s3_sink *)req->handle;
    (void)t;
    pthread_mutex_lock(&sink->lock);
    int code = write_all(sink, req->buf, req->len, req->off);
    if (code)
        weir_s3_sink_failed(sink, code);
    pthread_mutex_unlock(&sink->lock);
    weir_req_take(req, code);
    weir_req_done(req);
}

/* ---- the commit ---- */

/* Where nobody keeps to If-None-Match, a look must do: names of data belong to one writer. */
static int check_free(struct weir_s3_sink *sink)
{
    struct weir_s3_trip trip;
    int code = weir_s3_head(sink->blob.tier, &trip, sink->blob.name, "look at");
    if (code == -ENOENT)
        return 0;
    return code ? code : weir_fail(EEXIST, "'%s' exists already", sink->blob.name);
}

static int put_plain(struct weir_s3_sink *sink, const struct weir_s3_new *object,
                     enum weir_doubt *doubt)
{
    struct weir_s3_tier *t = sink->blob.tier;
    struct weir_s3_trip trip;
    char crc[WEIR_S3_CRC_MAX];
    int code = check_free(sink);
    if (code)
        return code;
    weir_s3_crc(crc, weir_crc32c(0, object->data, object->size));
    weir_s3_trip_begin(&trip, "PUT", object->name);
    weir_s3_trip_header(&trip, WEIR_S3_META, object->id);
    weir_s3_trip_header(&trip, "x-amz-checksum-crc32c", crc);
    weir_s3_trip_body(&trip, object->data, object->size, !t->site.is_https);
    if (!weir_s3_net_run(t->net, &trip)) {
        *doubt = trip.doubtful ? WEIR_DOUBT_LOST : WEIR_SURE;
        code = weir_s3_trip_fail(&trip, &t->site, "write");
    }
    weir_s3_trip_end(&trip);
    return code;
}

static int commit_small(struct weir_s3_sink *sink, uint64_t size, enum weir_doubt *doubt)
{
    struct weir_s3_tier *t = sink->blob.tier;
    const struct weir_s3_new object = {
        .name = sink->blob.name,
        .id = sink->blob.id,
        .data = sink->open ? sink->open->data : NULL,
        .size = (size_t)size,
    };
    enum weir_s3_habit habit;
    int code = weir_s3_probe_put(t, &habit);
    if (code)
        return code;
    return habit == WEIR_S3_HONOURS ? weir_s3_put_new(t, &object, doubt)
                                    : put_plain(sink, &object, doubt);
}

/* The list of parts, in XML. */
static char *list_parts(const struct weir_s3_sink *sink, size_t *size)
{
    enum { ROW_MAX = 256 + WEIR_S3_ETAG_MAX };
    size_t room = 128 + (size_t)sink->parted_end * ROW_MAX, used;
    char *text = weir_alloc(room);
    if (!text)
        return NULL;
    used = (size_t)snprintf(text, room,
                            "<CompleteMultipartUpload "
                            "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (uint32_t i = 0; i < sink->parted_end; i++) {
        const struct weir_s3_parted *part = &sink->parted[i];
        used += (size_t)snprintf(text + used, room - used,
                                 "<Part><PartNumber>%u</PartNumber><ETag>\"%s\"</ETag>", i + 1,
                                 part->etag);
        if (part->crc[0]) /* a server that knows of none may refuse it */
            used += (size_t)snprintf(text + used, room - used,
                                     "<ChecksumCRC32C>%s</ChecksumCRC32C>", part->crc);
        used += (size_t)snprintf(text + used, room - used, "</Part>");
    }
    used += (size_t)snprintf(text + used, room - used, "</CompleteMultipartUpload>");
    *size = used;
    return text;
}

/* Whatever the answer was: what is there, with our id and of the right size, is ours. */
static int check_done(struct weir_s3_sink *sink, uint64_t size, int code, bool doubtful,
                      enum weir_doubt *doubt)
{
    struct weir_s3_trip trip;
    char text[WEIR_TEXT_MAX];
    snprintf(text, sizeof text, "%s", weir_fail_last());
    int found = weir_s3_head(sink->blob.tier, &trip, sink->blob.name, "look at");
    bool ours = !found && !strcmp(trip.meta.id[0], sink->blob.id);
    if (ours && trip.length == size) {
        sink->has_upload = false;
        strcpy(sink->blob.etag, trip.etag);
        return 0;
    }
    *doubt = found && found != -ENOENT ? WEIR_DOUBT_LOST
             : !code || doubtful       ? WEIR_DOUBT_LOST
                                       : WEIR_SURE;
    if (code)
        return weir_fail_text(code, text);
    if (ours)
        return weir_fail(EIO, "'%s' was written with %llu bytes, and has %llu", sink->blob.name,
                         (unsigned long long)size, (unsigned long long)trip.length);
    return found ? found : weir_fail(EEXIST, "'%s' exists already", sink->blob.name);
}

/* One POST and its answer; 1: the server began to say that it is done, and then that it failed. */
static int try_complete(struct weir_s3_sink *sink, struct weir_s3_trip *trip, const char *body,
                        size_t body_bytes)
{
    struct weir_s3_tier *t = sink->blob.tier;
    char etag[WEIR_S3_ETAG_MAX];
    weir_s3_trip_begin(trip, "POST", sink->blob.name);
    weir_s3_trip_query(trip, "uploadId", sink->upload);
    if (t->put_habit == WEIR_S3_HONOURS) /* of a PUT, maybe not of this: check_free() looked */
        weir_s3_trip_header(trip, "if-none-match", "*");
    weir_s3_trip_body(trip, body, body_bytes, true);
    trip->patient = true;
    trip->text_max = WEIR_S3_ERROR_BYTES_MAX;
    bool ok = weir_s3_net_run(t->net, trip);
    int code = ok ? weir_s3_answer_complete(etag, &trip->error, trip->text ? trip->text : "",
                                            trip->text_bytes)
                  : weir_s3_trip_fail(trip, &t->site, "complete");
    if (ok && code == -EREMOTEIO) {
        trip->status = 500;
        weir_s3_trip_fail(trip, &t->site, "complete");
        code = 1;
    }
    weir_s3_trip_end(trip);
    return code;
}

static int complete(struct weir_s3_sink *sink, uint64_t size, enum weir_doubt *doubt)
{
    enum { TRIES_MAX = 5 };
    struct weir_s3_trip trip;
    size_t body_bytes;
    char *body = list_parts(sink, &body_bytes);
    if (!body)
        return weir_fail_memory();
    int code = 1;
    bool doubtful = false;
    for (unsigned i = 1; code == 1 && i <= TRIES_MAX; i++) {
        code = try_complete(sink, &trip, body, body_bytes);
        doubtful |= trip.doubtful || code == 1;
        if (code == 1 && i < TRIES_MAX)
            weir_sys->sleep_ns(weir_s3_retry_pause_ns(i));
    }
    free(body);
    if (!doubtful && !trip.code && trip.status == 412)
        return weir_fail(EEXIST, "'%s' exists already", sink->blob.name);
    return check_done(sink, size, code == 1 ? -EIO : code, doubtful, doubt);
}

static int commit_large(struct weir_s3_sink *sink, uint64_t size, enum weir_doubt *doubt)
{
    pthread_mutex_lock(&sink->lock);
    int code = weir_s3_sink_send(sink, true);
    weir_s3_sink_wait(sink);
    if (!code && sink->code)
        code = weir_fail_text(sink->code, sink->text);
    pthread_mutex_unlock(&sink->lock);
    enum weir_s3_habit habit;
    if (!code)
        code = weir_s3_probe_put(sink->blob.tier, &habit);
    if (!code)
        code = check_free(sink);
    return code ? code : complete(sink, size, doubt);
}

int weir_s3_commit(struct weir_s3_tier *t, struct weir_req *req)
{
    struct weir_s3_sink *sink = (struct weir_s3_sink *)req->handle;
    (void)t;
    pthread_mutex_lock(&sink->lock);
    int code = sink->code ? weir_fail_text(sink->code, sink->text) : 0;
    if (!code && (sink->bytes != req->off || sink->end != req->off))
        code = weir_fail(EINVAL, "'%s' has gaps: %llu bytes of %llu were written", sink->blob.name,
                         (unsigned long long)sink->bytes, (unsigned long long)req->off);
    bool large = needs_upload(sink);
    pthread_mutex_unlock(&sink->lock);
    if (!code)
        code = large ? commit_large(sink, req->off, &req->doubt)
                     : commit_small(sink, req->off, &req->doubt);
    if (!code)
        drop_parts(sink);
    return code;
}
