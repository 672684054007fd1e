/* s3_delete.c - data is deleted, many keys with one request (DeleteObjects) where the server can.
 *
 * Removals that come while enough requests are under way gather, and go with the next one as soon
 * as one of those ends: nobody waits for company. Deleting twice is deleting once, so what a server
 * does not do together within half of the time, or does not answer rightly, is deleted again key by
 * key: that also says of each what is wrong with it. A server that has no DeleteObjects, or fails
 * at it again and again, is not asked for it any more.
 *
 * A removal's time begins when it comes (req->off): one that has waited for all of it fails.
 *
 * Answers come on threads of the net, where nothing waits.
 */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/s3.h"
#include "tier/s3_xml.h"
#include "util/err.h"
#include "util/hash.h"
#include "util/sys.h"

enum {
    KEYS_MAX = 1000,      /* of one request, as S3's own limit */
    BODY_MAX = 900 << 10, /* RGW reads no more than 1 MiB */
    MD5_TEXT_MAX = 4 * ((WEIR_MD5_BYTES + 2) / 3) + 1,
    /* Under way at once: RGW deletes the keys of a request one after another, others not. */
    BATCHES_MAX = 8,
    FAILURES_MAX = 3, /* one after the other, and bulk is given up */
};

#define BODY_BEGIN "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>"
#define BODY_END   "</Delete>"
#define KEY_BEGIN  "<Object><Key>"
#define KEY_END    "</Key></Object>"

struct batch {
    struct weir_s3_trip trip;
    struct weir_s3_tier *t;
    struct weir_req *reqs; /* chained by next */
    uint64_t start_ns;
    char *body; /* NULL: it is one key */
    char md5[MD5_TEXT_MAX];
};

static void pump(struct weir_s3_tier *t);
static void send_alone(struct weir_s3_tier *t, struct weir_req *reqs, uint64_t start_ns,
                       unsigned held);

/* So many requests more, or less, are under way. */
static void count_active(struct weir_s3_tier *t, int change)
{
    pthread_mutex_lock(&t->deletes.lock);
    t->deletes.active += (size_t)change;
    pthread_mutex_unlock(&t->deletes.lock);
}

static void complete(struct weir_req *req, int code)
{
    req->next = NULL;
    weir_req_take(req, code);
    weir_req_done(req);
}

/* Of how many bytes the key is in a body; 0: XML cannot say it, or a server may trim it. */
static size_t key_bytes(const struct weir_s3_tier *t, const char *name)
{
    size_t prefix = weir_s3_xml_escape(NULL, t->site.prefix);
    size_t rest = weir_s3_xml_escape(NULL, name);
    bool can = (prefix || !t->site.prefix[0]) && rest && t->site.prefix[0] != ' ';
    return can ? strlen(KEY_BEGIN) + prefix + rest + strlen(KEY_END) : 0;
}

/* ---- answers ---- */

/* It may go well if it is asked again, which a request of its own does. */
static bool is_passing(const struct weir_s3_error *error)
{
    static const char *const codes[] = {"InternalError", "SlowDown", "ServiceUnavailable",
                                        "RequestTimeout", "OperationAborted"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (!strcmp(error->code, codes[i]))
            return true;
    return false;
}

static int fail_key(struct batch *b, const struct weir_req *req, const struct weir_s3_error *error)
{
    if (!strcmp(error->code, "NoSuchKey"))
        return 0;
    b->trip.name = req->name;
    b->trip.error = *error;
    return weir_s3_trip_fail(&b->trip, &b->t->site, "delete");
}

static const struct weir_s3_undeleted *
find_error(const struct batch *b, const struct weir_s3_undone *undone, const char *name)
{
    size_t size = strlen(b->t->site.prefix);
    for (size_t i = 0; i < undone->count; i++)
        if (!strncmp(undone->keys[i].key, b->t->site.prefix, size) &&
            !strcmp(undone->keys[i].key + size, name))
            return &undone->keys[i];
    return NULL;
}

/* Completes those that the answer tells of; the others are left in b->reqs. */
static void take_answer(struct batch *b, const struct weir_s3_undone *undone)
{
    struct weir_req *again = NULL, **end = &again;
    size_t known = 0;
    for (struct weir_req *req = b->reqs; req; req = req->next)
        known += find_error(b, undone, req->name) != NULL;
    if (known < undone->count)
        return; /* it tells of keys that were not asked for, or twice of one: of what else not? */
    for (struct weir_req *req = b->reqs, *next; req; req = next) {
        const struct weir_s3_undeleted *one = find_error(b, undone, req->name);
        next = req->next;
        if (one && is_passing(&one->error)) {
            req->next = NULL;
            *end = req;
            end = &req->next;
        } else {
            complete(req, one ? fail_key(b, req, &one->error) : 0);
        }
    }
    b->reqs = again;
}

static bool has_none(const struct weir_s3_trip *trip)
{
    static const char *const codes[] = {"NotImplemented",    "MethodNotAllowed", "InvalidRequest",
                                        "InvalidArgument",   "MalformedXML",     "InvalidDigest",
                                        "MissingContentMD5", "UnsupportedMethod"};
    if (trip->code)
        return false;
    for (size_t i = 0; trip->status == 400 && i < sizeof codes / sizeof codes[0]; i++)
        if (weir_s3_trip_is(trip, codes[i]))
            return true;
    return trip->status == 405 || trip->status == 411 || trip->status == 501;
}

static void many_answered(struct batch *b)
{
    struct weir_s3_trip *trip = &b->trip;
    struct weir_s3_deletes *d = &b->t->deletes;
    struct weir_s3_undone undone;
    if (weir_s3_trip_ok(trip) &&
        !weir_s3_answer_delete(&undone, trip->text ? trip->text : "", trip->text_bytes)) {
        d->failures = 0;
        take_answer(b, &undone);
        weir_s3_undone_free(&undone);
    } else if (++d->failures >= FAILURES_MAX) {
        d->refused = true;
    }
    if (b->reqs)
        send_alone(b->t, b->reqs, b->start_ns, 0);
}

static void one_answered(struct batch *b)
{
    struct weir_s3_trip *trip = &b->trip;
    bool ok = weir_s3_trip_ok(trip) || weir_s3_trip_is_gone(trip);
    complete(b->reqs, ok ? 0 : weir_s3_trip_fail(trip, &b->t->site, "delete"));
}

static void answered(struct weir_s3_trip *trip)
{
    struct batch *b = trip->owner;
    struct weir_s3_tier *t = b->t;
    if (b->body && has_none(trip))
        t->deletes.refused = true;
    count_active(t, -1);
    pump(t); /* the others' first: whoever waits for this one may close the tier then */
    if (b->body)
        many_answered(b);
    else
        one_answered(b);
    weir_s3_trip_end(trip);
    free(b->body);
    free(b);
}

/* ---- requests ---- */

/* What is to be deleted, for the server to read; false: it cannot be made. */
static bool write_body(struct batch *b)
{
    uint8_t sum[WEIR_MD5_BYTES];
    size_t size = strlen(BODY_BEGIN) + strlen(BODY_END) + 1;
    for (const struct weir_req *req = b->reqs; req; req = req->next)
        size += key_bytes(b->t, req->name);
    char *at = b->body = weir_alloc(size);
    if (!at)
        return false;
    at = stpcpy(at, BODY_BEGIN);
    for (const struct weir_req *req = b->reqs; req; req = req->next) {
        at = stpcpy(at, KEY_BEGIN);
        at += weir_s3_xml_escape(at, b->t->site.prefix);
        at += weir_s3_xml_escape(at, req->name);
        at = stpcpy(at, KEY_END);
    }
    stpcpy(at, BODY_END);
    if (!weir_md5(sum, b->body, size - 1)) { /* which servers insist on */
        b->t->deletes.refused = true;
        return false;
    }
    EVP_EncodeBlock((unsigned char *)b->md5, sum, sizeof sum);
    return true;
}

static void submit(struct batch *b)
{
    uint64_t left_ns = weir_s3_left_ns(b->t, b->start_ns);
    b->trip.owner = b;
    b->trip.done = answered;
    b->trip.timeout_ns = b->body ? left_ns / 2 : left_ns;
    weir_s3_net_submit(b->t->net, &b->trip);
}

static bool send_one(struct weir_s3_tier *t, struct weir_req *req, uint64_t start_ns)
{
    struct batch *b = weir_alloc(sizeof *b);
    if (!b)
        return false;
    *b = (struct batch){.t = t, .reqs = req, .start_ns = start_ns};
    weir_s3_trip_begin(&b->trip, "DELETE", req->name);
    submit(b);
    return true;
}

/* Each key with a request of its own; `held` of these requests are counted as under way already. */
static void send_alone(struct weir_s3_tier *t, struct weir_req *reqs, uint64_t start_ns,
                       unsigned held)
{
    struct weir_req *unsent = NULL;
    int count = 0;
    for (const struct weir_req *req = reqs; req; req = req->next)
        count++;
    count_active(t, count - (int)held);
    count = 0;
    for (struct weir_req *req = reqs, *next; req; req = next) {
        next = req->next;
        req->next = NULL;
        if (send_one(t, req, start_ns))
            continue;
        req->next = unsent;
        unsent = req;
        count++;
    }
    if (!unsent)
        return; /* whoever waits for them may have closed the tier */
    count_active(t, -count);
    pump(t); /* what waits for their end would wait in vain */
    for (struct weir_req *req = unsent, *next; req; req = next) {
        next = req->next;
        complete(req, weir_fail_memory());
    }
}

static void send_many(struct weir_s3_tier *t, struct weir_req *reqs, uint64_t start_ns)
{
    struct batch *b = weir_alloc(sizeof *b);
    if (b)
        *b = (struct batch){.t = t, .reqs = reqs, .start_ns = start_ns};
    if (!b || !write_body(b)) {
        free(b ? b->body : NULL);
        free(b);
        send_alone(t, reqs, start_ns, 1);
        return;
    }
    weir_s3_trip_begin(&b->trip, "POST", NULL);
    weir_s3_trip_query(&b->trip, "delete", NULL);
    weir_s3_trip_header(&b->trip, "content-md5", b->md5);
    weir_s3_trip_body(&b->trip, b->body, strlen(b->body), true);
    b->trip.text_max = WEIR_S3_ANSWER_BYTES_MAX;
    b->trip.patient = true; /* it may delete all of them before it says a word */
    submit(b);
}

/* ---- gathering ---- */

/* The next request's share of what waits, or NULL: none waits, or enough are under way. */
static struct weir_req *take_share(struct weir_s3_tier *t)
{
    struct weir_s3_deletes *d = &t->deletes;
    struct weir_req *reqs = NULL, **end = &reqs;
    size_t bytes = 0;
    pthread_mutex_lock(&d->lock);
    if (d->active < BATCHES_MAX) {
        size_t share = (d->waiting + BATCHES_MAX - 1) / BATCHES_MAX;
        size_t most = share < KEYS_MAX ? share : KEYS_MAX;
        for (size_t n = 0; d->head && n < most; n++) {
            struct weir_req *req = d->head;
            bytes += key_bytes(t, req->name);
            if (n && bytes > BODY_MAX)
                break;
            d->head = req->next;
            d->waiting--;
            req->next = NULL;
            *end = req;
            end = &req->next;
        }
        d->active += reqs != NULL;
        if (!d->head)
            d->end = &d->head;
    }
    pthread_mutex_unlock(&d->lock);
    return reqs;
}

/* Fails those whose time is up, which are the first, and returns the others. */
static struct weir_req *drop_late(struct weir_s3_tier *t, struct weir_req *reqs)
{
    uint64_t now_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    while (reqs && now_ns - reqs->off >= t->timeout_ns) {
        struct weir_req *late = reqs;
        reqs = late->next;
        complete(late, weir_fail(ETIMEDOUT, "cannot delete '%s': %s did not come to it in time",
                                 late->name, t->site.shown));
    }
    return reqs;
}

static void pump(struct weir_s3_tier *t)
{
    struct weir_req *reqs;
    while ((reqs = take_share(t))) {
        reqs = drop_late(t, reqs);
        if (!reqs)
            count_active(t, -1);
        else if (reqs->next && !t->deletes.refused)
            send_many(t, reqs, reqs->off);
        else
            send_alone(t, reqs, reqs->off, 1);
    }
}

void weir_s3_delete(struct weir_s3_tier *t, struct weir_req *req)
{
    struct weir_s3_deletes *d = &t->deletes;
    req->next = NULL;
    req->off = weir_sys->now_ns(WEIR_CLOCK_MONO);
    if (d->refused || !key_bytes(t, req->name)) {
        send_alone(t, req, req->off, 0);
        return;
    }
    pthread_mutex_lock(&d->lock);
    *d->end = req;
    d->end = &req->next;
    d->waiting++;
    pthread_mutex_unlock(&d->lock);
    pump(t);
}
