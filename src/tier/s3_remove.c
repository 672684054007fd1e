/* s3_remove.c - REMOVE and REMOVE_IF. A record goes by a tombstone that takes just its place; data,
 * whose name nobody uses again, by a DELETE. Removals that ask for no more go together
 * (s3_delete.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tier/s3.h"
#include "tier/s3_retry.h"
#include "util/err.h"
#include "util/sys.h"

enum { LOOKS_MAX = 100 };
#define TOMB_MAGIC "weir: what was here is gone "
_Static_assert(sizeof TOMB_MAGIC - 1 + WEIR_S3_ID_HEX - 1 == WEIR_S3_TOMB_BYTES,
               "a tombstone has one size");

/* One removal on its way. */
struct removal {
    struct weir_s3_tier *t;
    const char *name;
    const struct weir_req *only;   /* remove just this content, or NULL */
    char id[WEIR_S3_ID_HEX + 1];   /* of the tombstone */
    char over[WEIR_S3_ID_HEX + 1]; /* of what it shall take the place of; "": it has none */
    uint64_t start_ns;
    bool doubtful;
};

/* What is there: 0 (and *trip, with its ETag), 1: our tombstone, or why it is not to be removed. */
static int look(struct removal *r, struct weir_s3_trip *trip)
{
    const struct weir_req *only = r->only;
    weir_s3_trip_begin(trip, only ? "GET" : "HEAD", r->name);
    if (only) /* a tombstone must fit, too */
        trip->text_max = only->len > WEIR_S3_TOMB_BYTES ? only->len : WEIR_S3_TOMB_BYTES;
    trip->timeout_ns = weir_s3_left_ns(r->t, r->start_ns);
    bool ok = weir_s3_net_run(r->t->net, trip);
    bool too_long = trip->code == -EFBIG;
    bool differs = only && (trip->text_bytes != only->len ||
                            (only->len && memcmp(trip->text, only->buf, only->len)));
    weir_s3_trip_end(trip);
    if (r->doubtful && r->over[0]) {
        enum weir_s3_tale tale = weir_s3_meta_tells(&trip->meta, r->id, r->over);
        if (tale == WEIR_S3_TALE_DONE)
            return 1;
        if (tale == WEIR_S3_TALE_NOT_DONE)
            r->doubtful = false;
    }
    if (trip->meta.is_gone)
        return weir_fail(ENOENT, "'%s' was removed", r->name);
    if (too_long || (ok && differs))
        return weir_fail(ESTALE, "'%s' has changed meanwhile", r->name);
    if (!ok)
        return weir_s3_trip_fail(trip, &r->t->site, "look at");
    return trip->etag[0]
               ? 0
               : weir_fail(EIO, "cannot remove '%s': the server does not say its ETag", r->name);
}

/* Puts the tombstone over what was seen. 0: done; 1: look again; else a failure. */
static int bury(struct removal *r, const struct weir_s3_trip *seen, bool quoted)
{
    char match[WEIR_S3_ETAG_MAX + 2], text[WEIR_S3_META_MAX], body[WEIR_S3_TOMB_BYTES + 1];
    struct weir_s3_meta meta;
    struct weir_s3_trip trip;
    strcpy(r->over, seen->meta.id[0]);
    weir_s3_meta_after(&meta, r->id, &seen->meta);
    meta.is_gone = true;
    weir_s3_meta_write(text, &meta);
    snprintf(body, sizeof body, "%s%s", TOMB_MAGIC, r->id + 1);
    weir_s3_match(match, seen->etag, quoted);
    weir_s3_trip_begin(&trip, "PUT", r->name);
    weir_s3_trip_header(&trip, "if-match", match);
    weir_s3_trip_header(&trip, WEIR_S3_META, text);
    weir_s3_trip_body(&trip, body, WEIR_S3_TOMB_BYTES, true);
    trip.timeout_ns = weir_s3_left_ns(r->t, r->start_ns) * 3 / 4;
    bool ok = weir_s3_net_run(r->t->net, &trip);
    weir_s3_trip_end(&trip);
    r->doubtful |= trip.doubtful;
    if (ok)
        return 0;
    if (!trip.code && trip.status == 409)
        weir_sys->sleep_ns(weir_s3_retry_pause_ns(1));
    if (!trip.code && (trip.status == 412 || trip.status == 409 || trip.status == 404))
        return 1;
    return weir_s3_trip_fail(&trip, &r->t->site, "remove");
}

/* The failure of the last try stands, unless a look shows that it was done. */
static int settle(struct removal *r, int code, enum weir_doubt *doubt)
{
    char text[WEIR_TEXT_MAX];
    struct weir_s3_trip trip;
    snprintf(text, sizeof text, "%s", weir_fail_last());
    if (look(r, &trip) == 1)
        return 0;
    *doubt = WEIR_DOUBT_LOST;
    return weir_fail_text(code, text);
}

static int remove_record(struct removal *r, enum weir_doubt *doubt)
{
    char before[WEIR_S3_ETAG_MAX] = "";
    bool before_quoted = false;
    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        struct weir_s3_trip seen;
        int code = look(r, &seen);
        if (code == 1)
            return 0;
        if (code) {
            /* If a try of ours was done, others may have put and removed theirs since. */
            *doubt = r->doubtful ? WEIR_DOUBT_LOST : WEIR_SURE;
            return code;
        }
        if (!strcmp(before, seen.etag)) /* it is what we asked for: the other way, then */
            r->t->unquoted = before_quoted;
        strcpy(before, seen.etag);
        before_quoted = !r->t->unquoted;
        code = bury(r, &seen, before_quoted);
        if (code < 0 && r->doubtful)
            return settle(r, code, doubt);
        if (code <= 0)
            return code;
        if (weir_sys->now_ns(WEIR_CLOCK_MONO) - r->start_ns > r->t->timeout_ns)
            break;
    }
    *doubt = r->doubtful ? WEIR_DOUBT_LOST : WEIR_SURE;
    return weir_fail(EBUSY, "'%s' keeps being written and removed by others", r->name);
}

static int begin_removal(struct removal *r, struct weir_s3_tier *t, const char *name,
                         const struct weir_req *only)
{
    enum weir_s3_habit habit;
    *r = (struct removal){
        .t = t, .name = name, .only = only, .start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO)};
    int code = weir_s3_probe_swap(t, &habit);
    if (!code && habit != WEIR_S3_HONOURS)
        return weir_fail(ENOTSUP,
                         "the server at %s %s If-Match of a PUT, without which a record that was "
                         "just written could be removed instead of the one that was seen: records "
                         "cannot be removed there. Keep them elsewhere (commit=URL)",
                         t->site.shown, habit == WEIR_S3_REFUSES ? "refuses" : "does not keep to");
    return code ? code : weir_s3_id_make(r->id);
}

int weir_s3_remove_if(struct weir_s3_tier *t, struct weir_req *req)
{
    struct removal r;
    int code = begin_removal(&r, t, req->name, req);
    return code ? code : remove_record(&r, &req->doubt);
}

/* Deleting twice is deleting once: no answer is worth a doubt. It does not wait for others to go
 * with: what was looked at shall not change meanwhile. */
static int delete_data(struct weir_s3_tier *t, const char *name)
{
    struct weir_s3_trip trip;
    weir_s3_trip_begin(&trip, "DELETE", name);
    bool ok = weir_s3_net_run(t->net, &trip);
    int code = ok || weir_s3_trip_is_gone(&trip) ? 0 : weir_s3_trip_fail(&trip, &t->site, "delete");
    weir_s3_trip_end(&trip);
    return code;
}

/* The record that must stand; who removes it meanwhile has waited for longer than this takes. */
static int check_guard(struct weir_s3_tier *t, const struct weir_req *req)
{
    struct weir_s3_trip trip;
    struct removal r = {
        .t = t, .name = req->guard, .only = req, .start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO)};
    return look(&r, &trip);
}

static bool is_directory(const char *name)
{
    size_t size = strlen(name);
    return !size || name[size - 1] == '/';
}

static bool is_record(const char *name)
{
    return weir_name_is_own(name) && strncmp(name, WEIR_DIR_DATA, strlen(WEIR_DIR_DATA));
}

bool weir_s3_is_plain(const struct weir_req *req)
{
    return req->blind && !req->guard && !req->handle && !is_directory(req->name) &&
           !is_record(req->name);
}

int weir_s3_remove(struct weir_s3_tier *t, struct weir_req *req)
{
    struct weir_s3_trip trip;
    struct removal r;
    if (is_directory(req->name))
        return 0; /* there are none to be removed */
    bool record = is_record(req->name);
    int code = req->handle || !record ? weir_s3_head(t, &trip, req->name, "remove") : 0;
    if (!code && req->handle && !weir_s3_same(&trip, (struct weir_s3_blob *)req->handle, req->name))
        code = weir_fail(ESTALE, "'%s' has changed meanwhile", req->name);
    if (!code && req->guard) /* last: the less lies between it and the removal */
        code = check_guard(t, req);
    if (code)
        return code;
    if (!record)
        return delete_data(t, req->name);
    code = begin_removal(&r, t, req->name, NULL);
    return code ? code : remove_record(&r, &req->doubt);
}
