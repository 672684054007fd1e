/* s3_record.c - PUT: an object appears whole, if nothing stands there. Any number of writers may
 * race, answers may be lost, and a tombstone may stand in the place: what is there then carries an
 * id, and tells.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tier/s3.h"
#include "tier/s3_retry.h"
#include "util/crc32c.h"
#include "util/err.h"
#include "util/sys.h"

enum { LOOKS_MAX = 100 }; /* others may take turns at a name; its time ends it, too */

/* One put on its way. */
struct put {
    struct weir_s3_tier *t;
    const struct weir_s3_new *object;
    char etag[WEIR_S3_ETAG_MAX];   /* of the tombstone to be replaced; "": nothing must be there */
    bool quoted;                   /* how that was asked for */
    char over[WEIR_S3_ID_HEX + 1]; /* its id */
    struct weir_s3_meta meta;      /* ours */
    uint64_t start_ns;
    bool doubtful; /* a try of ours may have been done */
};

/* One PUT, and its answer. */
static bool try_put(struct put *put, struct weir_s3_trip *trip)
{
    const struct weir_s3_new *object = put->object;
    char match[WEIR_S3_ETAG_MAX + 2], crc[WEIR_S3_CRC_MAX], meta[WEIR_S3_META_MAX];
    put->quoted = !put->t->unquoted;
    weir_s3_match(match, put->etag, put->quoted);
    weir_s3_trip_begin(trip, "PUT", object->name);
    weir_s3_trip_header(trip, put->etag[0] ? "if-match" : "if-none-match",
                        put->etag[0] ? match : "*");
    weir_s3_meta_write(meta, &put->meta);
    weir_s3_trip_header(trip, WEIR_S3_META, meta);
    weir_s3_crc(crc, weir_crc32c(0, object->data, object->size));
    weir_s3_trip_header(trip, "x-amz-checksum-crc32c", crc);
    weir_s3_trip_body(trip, object->data, object->size,
                      !put->t->site.is_https || object->size < WEIR_BUFFER_BYTES);
    trip->until_ns = object->until_ns;
    /* Some of the time is for looking, should the answer be lost. */
    trip->timeout_ns = weir_s3_left_ns(put->t, put->start_ns) * 3 / 4;
    bool ok = weir_s3_net_run(put->t->net, trip);
    weir_s3_trip_end(trip);
    put->doubtful |= trip->doubtful;
    return ok;
}

/* The condition was not met, or the answer is lost: what is there? 0: it is ours; 1: try again. */
static int look(struct put *put, enum weir_doubt *doubt)
{
    const struct weir_s3_new *object = put->object;
    struct weir_s3_trip trip;
    weir_s3_trip_begin(&trip, "HEAD", object->name);
    trip.timeout_ns = weir_s3_left_ns(put->t, put->start_ns);
    bool ok = weir_s3_net_run(put->t->net, &trip);
    weir_s3_trip_end(&trip);
    if (!ok && !trip.code && trip.status == 404) {
        put->etag[0] = put->over[0] = 0;
        weir_s3_meta_after(&put->meta, object->id, NULL);
        return 1;
    }
    if (!ok) {
        *doubt = put->doubtful ? WEIR_DOUBT_LOST : WEIR_SURE;
        return weir_s3_trip_fail(&trip, &put->t->site, "look at");
    }
    enum weir_s3_tale tale = weir_s3_meta_tells(&trip.meta, object->id, put->over);
    if (tale == WEIR_S3_TALE_DONE)
        return 0; /* even if somebody has removed it since */
    if (tale == WEIR_S3_TALE_NOT_DONE)
        put->doubtful = false;
    if (trip.meta.is_gone) {
        if (!strcmp(put->etag, trip.etag)) /* it is what we asked for: the other way, then */
            put->t->unquoted = put->quoted;
        strcpy(put->etag, trip.etag);
        strcpy(put->over, trip.meta.id[0]);
        weir_s3_meta_after(&put->meta, object->id, &trip.meta);
        return 1;
    }
    *doubt = put->doubtful ? WEIR_DOUBT_LOST : WEIR_SURE;
    return weir_fail(EEXIST, "'%s' exists already", object->name);
}

/* What the answer to a PUT means. 0: it is done; 1: look; else a failure. */
static int judge(struct put *put, const struct weir_s3_trip *trip, bool ok)
{
    if (ok)
        return 0;
    if (!trip->code && (trip->status == 412 || trip->status == 409 || trip->status == 404)) {
        if (weir_s3_trip_is(trip, "NoSuchBucket"))
            return weir_s3_trip_fail(trip, &put->t->site, "write");
        return 1;
    }
    if (trip->code == -ESTALE && !put->doubtful)
        return weir_fail(ESTALE, "it is too late to make '%s'", put->object->name);
    return weir_s3_trip_fail(trip, &put->t->site, "write");
}

/* A try failed and may have been done all the same: one look, then it stays open. */
static int settle(struct put *put, int code, enum weir_doubt *doubt)
{
    char text[WEIR_TEXT_MAX];
    snprintf(text, sizeof text, "%s", weir_fail_last());
    int found = look(put, doubt);
    if (found <= 0)
        return found;
    *doubt = WEIR_DOUBT_LOST; /* it may still come */
    return weir_fail_text(code, text);
}

int weir_s3_put_new(struct weir_s3_tier *t, const struct weir_s3_new *object,
                    enum weir_doubt *doubt)
{
    struct put put = {.t = t, .object = object, .start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO)};
    weir_s3_meta_after(&put.meta, object->id, NULL);
    *doubt = WEIR_SURE;
    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        struct weir_s3_trip trip;
        int code = judge(&put, &trip, try_put(&put, &trip));
        if (code < 0 && put.doubtful)
            return settle(&put, code, doubt);
        if (code == 1)
            code = look(&put, doubt);
        if (code <= 0)
            return code;
        if (weir_sys->now_ns(WEIR_CLOCK_MONO) - put.start_ns > t->timeout_ns)
            break;
        if (trip.status == 409) /* a conflict of writers: not all at once again */
            weir_sys->sleep_ns(weir_s3_retry_pause_ns(1));
    }
    *doubt = put.doubtful ? WEIR_DOUBT_LOST : WEIR_SURE;
    return weir_fail(EBUSY, "'%s' keeps being written and removed by others", object->name);
}

int weir_s3_put(struct weir_s3_tier *t, struct weir_req *req)
{
    enum weir_s3_habit habit;
    char id[WEIR_S3_ID_HEX + 1];
    int code = weir_s3_probe_put(t, &habit);
    if (!code && habit != WEIR_S3_HONOURS)
        return weir_fail(ENOTSUP,
                         "the server at %s %s If-None-Match, without which two writers could both "
                         "think that they committed: nothing is committed there. Keep the records "
                         "elsewhere (commit=URL, for example a directory or a rados: store), or "
                         "use a server that has conditional PUT",
                         t->site.shown, habit == WEIR_S3_REFUSES ? "refuses" : "does not keep to");
    if (!code)
        code = weir_s3_id_make(id);
    if (code)
        return code;
    const struct weir_s3_new object = {
        .name = req->name, .id = id, .data = req->buf, .size = req->len, .until_ns = req->off};
    return weir_s3_put_new(t, &object, &req->doubt);
}
