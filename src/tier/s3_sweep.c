/* s3_sweep.c - SWEEP: gives up uploads that nobody completed, by the server's clock, and deletes
 * old tombstones where a DELETE can be of just what was seen. It also tells the server's time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/s3.h"
#include "util/err.h"
#include "util/sys.h"

#define SECOND_NS 1000000000ll

static void note_time(struct weir_s3_tier *t, const struct weir_s3_trip *trip, struct weir_req *req)
{
    int64_t now_s = trip->date_s ? trip->date_s : weir_s3_net_now_s(t->net);
    req->stat.time_ns = now_s * SECOND_NS;
}

/* Only the time: the answer to any question has it. */
static int ask_time(struct weir_s3_tier *t, struct weir_req *req)
{
    struct weir_s3_trip trip;
    weir_s3_trip_begin(&trip, "HEAD", WEIR_NAME_STORE);
    bool ok = weir_s3_net_run(t->net, &trip);
    weir_s3_trip_end(&trip);
    if (!ok && (trip.code || trip.status != 404))
        return weir_s3_trip_fail(&trip, &t->site, "look at");
    note_time(t, &trip, req);
    return 0;
}

/* The server's time is of whole seconds: what began in this one is not of the future. */
static bool is_old(const struct weir_req *req, int64_t time_ns)
{
    int64_t age_ns = req->stat.time_ns + SECOND_NS - time_ns;
    return age_ns >= 0 && (uint64_t)age_ns >= req->off;
}

/* ---- uploads ---- */

static int abort_upload(struct weir_s3_tier *t, const struct weir_s3_pending *pending)
{
    struct weir_s3_trip trip;
    weir_s3_trip_begin(&trip, "DELETE", pending->key + strlen(t->site.prefix));
    weir_s3_trip_query(&trip, "uploadId", pending->id);
    bool ok = weir_s3_net_run(t->net, &trip);
    int code = ok || (!trip.code && trip.status == 404)
                   ? 0
                   : weir_s3_trip_fail(&trip, &t->site, "give up the upload of");
    weir_s3_trip_end(&trip);
    return code;
}

static int take_uploads(struct weir_s3_tier *t, struct weir_req *req,
                        const struct weir_s3_uploads *uploads)
{
    size_t size = strlen(t->site.prefix);
    int code = 0;
    for (size_t i = 0; !code && i < uploads->count; i++) {
        const struct weir_s3_pending *pending = &uploads->pending[i];
        const char *name = pending->key + size;
        if (strncmp(pending->key, t->site.prefix, size) || !weir_name_is_own(name))
            continue; /* somebody else's */
        if (!is_old(req, pending->time_ns)) {
            req->len++;
            continue;
        }
        if (!req->dry)
            code = abort_upload(t, pending);
        if (!code)
            req->result++;
    }
    return code;
}

static int sweep_uploads(struct weir_s3_tier *t, struct weir_req *req)
{
    struct weir_s3_uploads uploads = {0};
    struct weir_s3_turns turns = {0};
    int code = 0;
    do {
        struct weir_s3_trip trip;
        struct weir_s3_uploads page;
        char prefix[2 * WEIR_NAME_BYTES_MAX];
        snprintf(prefix, sizeof prefix, "%s%s", t->site.prefix, WEIR_NAME_OWN);
        weir_s3_trip_begin(&trip, "GET", NULL);
        weir_s3_trip_query(&trip, "uploads", NULL);
        weir_s3_trip_query(&trip, "prefix", prefix);
        if (uploads.more_key) {
            weir_s3_trip_query(&trip, "key-marker", uploads.more_key);
            weir_s3_trip_query(&trip, "upload-id-marker", uploads.more_id);
        }
        trip.text_max = WEIR_S3_ANSWER_BYTES_MAX;
        bool ok = weir_s3_net_run(t->net, &trip);
        code = ok ? weir_s3_answer_uploads(&page, trip.text ? trip.text : "", trip.text_bytes)
                  : weir_s3_trip_fail(&trip, &t->site, "list uploads of");
        weir_s3_trip_end(&trip);
        weir_s3_uploads_free(&uploads);
        uploads = (struct weir_s3_uploads){0};
        if (code)
            return code == -EBADMSG ? weir_fail_in(-EIO, "cannot list uploads") : code;
        uploads = page;
        note_time(t, &trip, req);
        code = take_uploads(t, req, &uploads);
        if (!code && uploads.more_id && weir_s3_turns_repeat(&turns, uploads.more_id))
            code = weir_fail(EIO, "cannot list uploads: the server lists the same again and again");
    } while (!code && uploads.more_key);
    weir_s3_uploads_free(&uploads);
    return code;
}

/* ---- tombstones ---- */

/* Deletes it if it is one, and still the same. What fails is left to the next gc. */
static void delete_tomb(struct weir_s3_tier *t, const char *name)
{
    struct weir_s3_trip trip;
    char match[WEIR_S3_ETAG_MAX + 2];
    weir_s3_trip_begin(&trip, "HEAD", name);
    bool is_tomb = weir_s3_net_run(t->net, &trip) && trip.meta.is_gone;
    weir_s3_match(match, trip.etag, true);
    weir_s3_trip_end(&trip);
    if (!is_tomb)
        return;
    weir_s3_trip_begin(&trip, "DELETE", name);
    weir_s3_trip_header(&trip, "if-match", match);
    weir_s3_net_run(t->net, &trip);
    weir_s3_trip_end(&trip);
}

static int sweep_tombs_below(struct weir_s3_tier *t, const struct weir_req *req, const char *dir)
{
    struct weir_s3_page page = {0};
    struct weir_s3_turns turns = {0};
    char prefix[2 * WEIR_NAME_BYTES_MAX];
    int code = 0;
    snprintf(prefix, sizeof prefix, "%s%s", t->site.prefix, dir);
    do {
        struct weir_s3_page next;
        code = weir_s3_page(t, prefix, true, page.more, &next);
        weir_s3_page_free(&page);
        page = (struct weir_s3_page){0};
        if (code)
            break;
        page = next;
        for (size_t i = 0; i < page.count; i++) {
            const struct weir_s3_entry *entry = &page.entries[i];
            if (entry->size == WEIR_S3_TOMB_BYTES && is_old(req, entry->time_ns) &&
                !strncmp(entry->key, prefix, strlen(prefix)))
                delete_tomb(t, entry->key + strlen(t->site.prefix));
        }
    } while (page.more && !weir_s3_turns_repeat(&turns, page.more));
    weir_s3_page_free(&page);
    return code;
}

static int sweep_tombs(struct weir_s3_tier *t, const struct weir_req *req)
{
    static const char *const dirs[] = {WEIR_DIR_SEAL, WEIR_DIR_SET, WEIR_DIR_LEARN, WEIR_DIR_LOG};
    enum weir_s3_habit habit;
    int code = weir_s3_probe_delete(t, &habit);
    for (size_t i = 0; !code && habit == WEIR_S3_HONOURS && i < sizeof dirs / sizeof dirs[0]; i++)
        code = sweep_tombs_below(t, req, dirs[i]);
    return code;
}

int weir_s3_sweep(struct weir_s3_tier *t, struct weir_req *req)
{
    req->result = req->len = 0;
    req->stat.size = 0;
    if (req->dry && req->off == UINT64_MAX)
        return ask_time(t, req);
    int code = sweep_uploads(t, req);
    return code || req->dry ? code : sweep_tombs(t, req);
}
