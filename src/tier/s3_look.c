/* s3_look.c - what stands at a name: OPEN, STAT, LOAD. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/s3.h"
#include "util/err.h"
#include "util/sys.h"

int weir_s3_id_make(char out[WEIR_S3_ID_HEX + 1])
{
    uint8_t bytes[WEIR_S3_ID_HEX / 2];
    int code = weir_sys->random(bytes, sizeof bytes);
    if (code)
        return weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
    weir_hex(out, bytes, sizeof bytes);
    return 0;
}

void weir_s3_match(char out[WEIR_S3_ETAG_MAX + 2], const char *etag, bool quoted)
{
    snprintf(out, WEIR_S3_ETAG_MAX + 2, "%s%s%s", quoted ? "\"" : "", etag, quoted ? "\"" : "");
}

uint64_t weir_s3_left_ns(const struct weir_s3_tier *t, uint64_t start_ns)
{
    const uint64_t least_ns = 1000000000;
    uint64_t took_ns = weir_sys->now_ns(WEIR_CLOCK_MONO) - start_ns;
    return took_ns + least_ns < t->timeout_ns ? t->timeout_ns - took_ns : least_ns;
}

/* Two versions of a foreign object may have one size and one second: its ETag becomes the rest of
 * the time, so that none is taken for the other. */
static int64_t nanoseconds_of(const char *etag)
{
    uint8_t sum[WEIR_SUM_BYTES];
    uint64_t number;
    weir_sum(sum, etag, strlen(etag));
    memcpy(&number, sum, sizeof number);
    return (int64_t)(number % 1000000000);
}

struct weir_blob_stat weir_s3_stat_of(const struct weir_s3_trip *trip)
{
    int64_t time_ns = weir_s3_trip_time_ns(trip);
    if (!trip->meta.count)
        time_ns += nanoseconds_of(trip->etag);
    return (struct weir_blob_stat){trip->length, time_ns};
}

int weir_s3_head(struct weir_s3_tier *t, struct weir_s3_trip *trip, const char *name,
                 const char *doing)
{
    weir_s3_trip_begin(trip, "HEAD", name);
    bool ok = weir_s3_net_run(t->net, trip);
    weir_s3_trip_end(trip);
    if (!ok)
        return weir_s3_trip_fail(trip, &t->site, doing);
    if (trip->meta.is_gone)
        return weir_fail(ENOENT, "'%s' was removed", name);
    if (!trip->has_length || !trip->etag[0])
        return weir_fail(EIO, "cannot %s '%s': the server does not say its size and ETag", doing,
                         name);
    return 0;
}

bool weir_s3_same(const struct weir_s3_trip *trip, const struct weir_s3_blob *blob,
                  const char *name)
{
    if (strcmp(name, blob->name))
        return false;
    if (blob->id[0] || trip->meta.count)
        return !strcmp(trip->meta.id[0], blob->id);
    return !strcmp(trip->etag, blob->etag) && trip->modified_s == blob->modified_s;
}

static void blob_close(struct weir_handle *handle)
{
    struct weir_s3_blob *blob = (struct weir_s3_blob *)handle;
    free(blob->name);
    free(blob);
}

int weir_s3_open_blob(struct weir_s3_tier *t, struct weir_req *req)
{
    struct weir_s3_trip trip;
    int code = weir_s3_head(t, &trip, req->name, "open");
    if (code)
        return code;
    struct weir_s3_blob *blob = weir_alloc(sizeof *blob);
    char *name = blob ? weir_strdup(req->name) : NULL;
    if (!name) {
        free(blob);
        return weir_fail_memory();
    }
    *blob = (struct weir_s3_blob){
        {blob_close}, t, name, .modified_s = trip.modified_s, .size = trip.length};
    strcpy(blob->etag, trip.etag);
    strcpy(blob->id, trip.meta.id[0]);
    req->handle = &blob->handle;
    req->stat = weir_s3_stat_of(&trip);
    return 0;
}

int weir_s3_stat(struct weir_s3_tier *t, struct weir_req *req)
{
    struct weir_s3_trip trip;
    int code = weir_s3_head(t, &trip, req->name, "look at");
    if (code)
        return code;
    const struct weir_s3_blob *blob = (struct weir_s3_blob *)req->handle;
    if (blob && !weir_s3_same(&trip, blob, req->name))
        return weir_fail(ESTALE, "'%s' is not the same blob", req->name);
    req->stat = weir_s3_stat_of(&trip);
    return 0;
}

/* The answer's body becomes the caller's. */
static int take_record(struct weir_s3_trip *trip, struct weir_req *req)
{
    if (!trip->text && !(trip->text = weir_alloc(1)))
        return weir_fail_memory();
    req->buf = trip->text;
    req->result = trip->text_bytes;
    trip->text = NULL;
    trip->length = trip->text_bytes;
    req->stat = weir_s3_stat_of(trip);
    return 0;
}

int weir_s3_load(struct weir_s3_tier *t, struct weir_req *req)
{
    struct weir_s3_trip trip;
    weir_s3_trip_begin(&trip, "GET", req->name);
    trip.text_max = req->len;
    bool ok = weir_s3_net_run(t->net, &trip);
    int code = 0;
    if (trip.meta.is_gone)
        code = weir_fail(ENOENT, "'%s' was removed", req->name);
    else if (trip.code == -EFBIG || (ok && trip.has_length && trip.length > req->len))
        code = weir_fail(EFBIG, "'%s' is %llu bytes, the limit is %zu", req->name,
                         (unsigned long long)trip.length, req->len);
    else if (!ok)
        code = weir_s3_trip_fail(&trip, &t->site, "read");
    else
        code = take_record(&trip, req);
    weir_s3_trip_end(&trip);
    return code;
}
