/* s3_upload.c - the parts of a sink (s3_sink.h) and their way to the server. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/s3_sink.h"
#include "util/crc32c.h"
#include "util/err.h"
#include "util/sys.h"

enum { ROOM_MIN = 65536 };

/* ---- memory ---- */

/* Small blobs of unknown size get as much as they need, doubled each time. */
static uint64_t room_for(const struct weir_s3_part *part, uint64_t bytes)
{
    const struct weir_s3_sink *sink = part->sink;
    uint64_t room = part->room ? 2 * part->room : ROOM_MIN;
    if (part->place.number)
        room = part->place.bytes;
    else if (!part->room && sink->hint)
        room = sink->hint;
    if (room < bytes)
        room = bytes;
    return room < part->place.bytes ? room : part->place.bytes;
}

int weir_s3_part_room(struct weir_s3_part *part, uint64_t bytes)
{
    struct weir_s3_sink *sink = part->sink;
    struct weir_s3_memory *memory = &sink->blob.tier->memory;
    while (bytes > part->room) {
        uint64_t before = part->room, room = room_for(part, bytes);
        pthread_mutex_unlock(&sink->lock);
        char *data = weir_s3_memory_take(memory, room - before, !before);
        pthread_mutex_lock(&sink->lock);
        if (part->room != before) { /* somebody else made room meanwhile */
            if (data)
                weir_s3_memory_keep(memory, data, room);
            else
                weir_s3_memory_give(memory, room - before);
            continue;
        }
        if (!data)
            data = weir_realloc(part->data, room);
        if (!data) {
            weir_s3_memory_give(memory, room - before);
            return weir_fail_memory();
        }
        part->data = data;
        part->room = room;
    }
    return 0;
}

void weir_s3_part_free(struct weir_s3_part *part)
{
    struct weir_s3_memory *memory = &part->sink->blob.tier->memory;
    if (part->room >= part->sink->blob.tier->part_bytes) {
        weir_s3_memory_keep(memory, part->data, part->room);
    } else {
        free(part->data);
        weir_s3_memory_give(memory, part->room);
    }
    free(part);
}

/* ---- parts ---- */

int weir_s3_sink_failed(struct weir_s3_sink *sink, int code)
{
    if (!sink->code) {
        sink->code = code;
        snprintf(sink->text, sizeof sink->text, "%s", weir_fail_last());
    }
    return weir_fail_text(sink->code, sink->text);
}

void weir_s3_sink_wait(struct weir_s3_sink *sink)
{
    while (sink->under_way)
        pthread_cond_wait(&sink->changed, &sink->lock);
}

/* A trip of the sink is over: the sink may be gone as soon as the lock is. */
static void trip_over(struct weir_s3_sink *sink)
{
    sink->under_way--;
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
}

static int note_part(struct weir_s3_sink *sink, const struct weir_s3_part *part)
{
    uint32_t number = part->place.number;
    if (!part->trip.etag[0])
        return weir_fail(EIO, "cannot write '%s': the server gives a part no ETag",
                         sink->blob.name);
    if (number >= sink->parted_room) {
        uint32_t room = sink->parted_room ? 2 * sink->parted_room : 16;
        while (room <= number)
            room *= 2;
        struct weir_s3_parted *more = weir_realloc(sink->parted, room * sizeof *more);
        if (!more)
            return weir_fail_memory();
        memset(more + sink->parted_room, 0, (room - sink->parted_room) * sizeof *more);
        sink->parted = more;
        sink->parted_room = room;
    }
    strcpy(sink->parted[number].etag, part->trip.etag);
    if (part->trip.has_crc)
        strcpy(sink->parted[number].crc, part->crc_text);
    if (number >= sink->parted_end)
        sink->parted_end = number + 1;
    return 0;
}

/* A part is over, as its code says. Its sink may be gone afterwards. */
static void end_part(struct weir_s3_part *part, int code)
{
    struct weir_s3_sink *sink = part->sink;
    struct weir_s3_memory *memory = &sink->blob.tier->memory;
    pthread_mutex_lock(&sink->lock);
    if (!code)
        code = note_part(sink, part);
    if (code)
        weir_s3_sink_failed(sink, code);
    weir_s3_trip_end(&part->trip);
    weir_s3_part_free(part);
    weir_s3_memory_uploads(memory, -1);
    trip_over(sink);
}

static void part_done(struct weir_s3_trip *trip)
{
    struct weir_s3_part *part = (struct weir_s3_part *)trip;
    const struct weir_s3_site *site = &part->sink->blob.tier->site;
    end_part(part, weir_s3_trip_ok(trip) ? 0 : weir_s3_trip_fail(trip, site, "write"));
}

/* Makes a request of a part, which is out of the list and counted, all but the upload's id: it may
 * not be known yet, and hashing takes its time. */
static void ready_part(struct weir_s3_sink *sink, struct weir_s3_part *part)
{
    struct weir_s3_tier *t = sink->blob.tier;
    struct weir_s3_trip *trip = &part->trip;
    weir_s3_memory_uploads(&t->memory, 1);
    weir_s3_trip_begin(trip, "PUT", sink->blob.name);
    snprintf(part->number_text, sizeof part->number_text, "%u", part->place.number + 1);
    weir_s3_crc(part->crc_text,
                weir_crc32c(part->crc, part->data + part->summed, part->filled - part->summed));
    weir_s3_trip_query(trip, "partNumber", part->number_text);
    weir_s3_trip_header(trip, "x-amz-checksum-crc32c", part->crc_text);
    weir_s3_trip_body(trip, part->data, part->filled, !t->site.is_https);
    trip->done = part_done;
}

static void send_part(struct weir_s3_sink *sink, struct weir_s3_part *part)
{
    weir_s3_trip_query(&part->trip, "uploadId", sink->upload);
    weir_s3_net_submit(sink->blob.tier->net, &part->trip);
}

/* Sends a part that is ready, now or when the upload has begun. Under the lock, which is let go:
 * it may complete at once. */
static void pass_on(struct weir_s3_sink *sink, struct weir_s3_part *part)
{
    int code = sink->code;
    if (!sink->has_upload && !code) {
        struct weir_s3_part **at = &sink->ready;
        while (*at)
            at = &(*at)->next;
        *at = part;
        part->next = NULL;
        return;
    }
    pthread_mutex_unlock(&sink->lock);
    if (code)
        end_part(part, code);
    else
        send_part(sink, part);
    pthread_mutex_lock(&sink->lock);
}

/* Under the lock, which is let go. */
static void send_parts(struct weir_s3_sink *sink, bool all)
{
    for (struct weir_s3_part **at = &sink->open; *at && !sink->code;) {
        struct weir_s3_part *part = *at;
        if (!all && part->filled < part->place.bytes) {
            at = &part->next;
            continue;
        }
        *at = part->next;
        sink->under_way += 2; /* the part; and so that the sink stays */
        pthread_mutex_unlock(&sink->lock);
        ready_part(sink, part);
        pthread_mutex_lock(&sink->lock);
        pass_on(sink, part);
        sink->under_way--;
        at = &sink->open;
    }
    pthread_cond_broadcast(&sink->changed);
}

/* ---- the upload ---- */

static void begin_done(struct weir_s3_trip *trip)
{
    struct weir_s3_sink *sink = trip->owner;
    int code = 0;
    if (!weir_s3_trip_ok(trip))
        code = weir_s3_trip_fail(trip, &sink->blob.tier->site, "write");
    else
        code = weir_s3_answer_upload(sink->upload, trip->text ? trip->text : "", trip->text_bytes);
    weir_s3_trip_end(trip);
    pthread_mutex_lock(&sink->lock);
    if (code)
        weir_s3_sink_failed(sink, code);
    else
        sink->has_upload = true;
    while (sink->ready) {
        struct weir_s3_part *part = sink->ready;
        sink->ready = part->next;
        pass_on(sink, part);
    }
    trip_over(sink);
}

void weir_s3_sink_begin(struct weir_s3_sink *sink)
{
    struct weir_s3_trip *trip = &sink->begin;
    if (sink->asked)
        return;
    sink->asked = true;
    weir_s3_trip_begin(trip, "POST", sink->blob.name);
    weir_s3_trip_query(trip, "uploads", NULL);
    weir_s3_trip_header(trip, WEIR_S3_META, sink->blob.id);
    weir_s3_trip_header(trip, "x-amz-checksum-algorithm", "CRC32C");
    weir_s3_trip_body(trip, "", 0, true);
    trip->text_max = WEIR_S3_ERROR_BYTES_MAX;
    trip->owner = sink;
    trip->done = begin_done;
    sink->under_way++;
    pthread_mutex_unlock(&sink->lock);
    weir_s3_net_submit(sink->blob.tier->net, trip);
    pthread_mutex_lock(&sink->lock);
}

int weir_s3_sink_send(struct weir_s3_sink *sink, bool all)
{
    weir_s3_sink_begin(sink);
    send_parts(sink, all);
    return sink->code ? weir_fail_text(sink->code, sink->text) : 0;
}

void weir_s3_sink_abort(struct weir_s3_sink *sink)
{
    struct weir_s3_tier *t = sink->blob.tier;
    struct weir_s3_trip trip;
    weir_s3_trip_begin(&trip, "DELETE", sink->blob.name);
    weir_s3_trip_query(&trip, "uploadId", sink->upload);
    trip.timeout_ns = t->timeout_ns / 4; /* what stays, gc takes */
    weir_s3_net_run(t->net, &trip);
    weir_s3_trip_end(&trip);
    sink->has_upload = false;
}
