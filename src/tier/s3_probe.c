/* s3_probe.c - what a server keeps to, found out by trying, once and not before it matters: a
 * reader never asks. Commits need a PUT that fails if something is there; removals of records one
 * that fails if it is not what was seen. A server that takes such a request and does not keep to it
 * would lose records silently, so it is tried, and not believed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tier/s3.h"
#include "util/err.h"

#define PROBE_NAME        ".weir/probe"
#define PROBE_TEXT        "weir probe\n"
#define PROBE_DELETE_NAME ".weir/probe-delete"
#define WRONG_MATCH       "\"00000000000000000000000000000000\""

enum { TRIES = 2 };

static bool is_unmet(const struct weir_s3_trip *trip)
{
    return !trip->code && (trip->status == 412 || trip->status == 409);
}

/* A 400 may also mean keys that have expired, and the like. */
static bool is_refusal(const struct weir_s3_trip *trip)
{
    return !trip->code && (trip->status == 501 || trip->status == 405 ||
                           (trip->status == 400 && (weir_s3_trip_is(trip, "NotImplemented") ||
                                                    weir_s3_trip_is(trip, "InvalidRequest") ||
                                                    weir_s3_trip_is(trip, "InvalidArgument"))));
}

/* Sends the request with a condition that is not met, unless nothing is there yet. */
static int try_put(struct weir_s3_tier *t, const char *name, const char *header, const char *value,
                   enum weir_s3_habit *out)
{
    struct weir_s3_trip trip;
    weir_s3_trip_begin(&trip, "PUT", name);
    if (header)
        weir_s3_trip_header(&trip, header, value);
    weir_s3_trip_body(&trip, PROBE_TEXT, strlen(PROBE_TEXT), true);
    trip.timeout_ns = t->timeout_ns;
    bool ok = weir_s3_net_run(t->net, &trip);
    int code = 0;
    *out = ok                  ? WEIR_S3_IGNORES
           : is_unmet(&trip)   ? WEIR_S3_HONOURS
           : is_refusal(&trip) ? WEIR_S3_REFUSES
                               : WEIR_S3_UNKNOWN;
    if (*out == WEIR_S3_UNKNOWN)
        code = weir_s3_trip_fail(&trip, &t->site, "write");
    weir_s3_trip_end(&trip);
    return code;
}

/* The first may be the one that makes it; the second must not. */
static int find_put(struct weir_s3_tier *t)
{
    enum weir_s3_habit habit = WEIR_S3_UNKNOWN;
    int code = 0;
    for (int i = 0; !code && i < TRIES && habit != WEIR_S3_HONOURS && habit != WEIR_S3_REFUSES; i++)
        code = try_put(t, PROBE_NAME, "if-none-match", "*", &habit);
    if (!code)
        t->put_habit = habit;
    return code;
}

/* Whoever waited while somebody else failed has failed: else many would wait one after another. */
int weir_s3_probe_put(struct weir_s3_tier *t, enum weir_s3_habit *out)
{
    unsigned seen = t->probe_failures;
    int code = 0;
    pthread_mutex_lock(&t->probe_lock);
    if (!t->put_habit && seen != t->probe_failures) {
        code = weir_fail_text(t->probe_code, t->probe_text);
    } else if (!t->put_habit && (code = find_put(t))) {
        t->probe_failures++;
        t->probe_code = code;
        snprintf(t->probe_text, sizeof t->probe_text, "%s", weir_fail_last());
    }
    *out = t->put_habit;
    pthread_mutex_unlock(&t->probe_lock);
    return code;
}

int weir_s3_probe_swap(struct weir_s3_tier *t, enum weir_s3_habit *out)
{
    enum weir_s3_habit put;
    int code = weir_s3_probe_put(t, &put); /* which leaves the object that this one is tried on */
    if (code)
        return code;
    pthread_mutex_lock(&t->probe_lock);
    if (!t->swap_habit)
        code = try_put(t, PROBE_NAME, "if-match", WRONG_MATCH, &t->swap_habit);
    *out = t->swap_habit;
    pthread_mutex_unlock(&t->probe_lock);
    return code;
}

/* On an object of its own: a server that does not keep to it deletes that. */
int weir_s3_probe_delete(struct weir_s3_tier *t, enum weir_s3_habit *out)
{
    enum weir_s3_habit put;
    int code = 0;
    pthread_mutex_lock(&t->probe_lock);
    if (!t->delete_habit)
        code = try_put(t, PROBE_DELETE_NAME, NULL, NULL, &put);
    if (!t->delete_habit && !code) {
        struct weir_s3_trip trip;
        weir_s3_trip_begin(&trip, "DELETE", PROBE_DELETE_NAME);
        weir_s3_trip_header(&trip, "if-match", WRONG_MATCH);
        bool ok = weir_s3_net_run(t->net, &trip);
        if (ok || is_unmet(&trip) || is_refusal(&trip))
            t->delete_habit = is_unmet(&trip) ? WEIR_S3_HONOURS : WEIR_S3_IGNORES;
        else
            code = weir_s3_trip_fail(&trip, &t->site, "delete");
        weir_s3_trip_end(&trip);
    }
    *out = t->delete_habit;
    pthread_mutex_unlock(&t->probe_lock);
    return code;
}

int weir_s3_bucket_make(struct weir_s3_tier *t)
{
    static const char shape[] =
        "<CreateBucketConfiguration><LocationConstraint>%s</LocationConstraint>"
        "</CreateBucketConfiguration>";
    char body[256] = "";
    struct weir_s3_trip trip;
    weir_s3_trip_begin(&trip, "HEAD", NULL);
    bool there = weir_s3_net_run(t->net, &trip);
    int code = there || trip.status == 404 ? 0 : weir_s3_trip_fail(&trip, &t->site, "look at");
    weir_s3_trip_end(&trip);
    if (there || code)
        return code;
    struct weir_s3_address address;
    weir_s3_site_address(&t->site, &address);
    if (t->site.is_aws && strcmp(address.region, "us-east-1")) /* which is not to be said */
        snprintf(body, sizeof body, shape, address.region);
    weir_s3_trip_begin(&trip, "PUT", NULL);
    weir_s3_trip_body(&trip, body, strlen(body), true);
    if (!weir_s3_net_run(t->net, &trip) && !weir_s3_trip_is(&trip, "BucketAlreadyOwnedByYou"))
        code = weir_s3_trip_fail(&trip, &t->site, "make the bucket of");
    weir_s3_trip_end(&trip);
    return code;
}
