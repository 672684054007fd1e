/* s3_retry.c - see s3_retry.h. */
#include "tier/s3_retry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/sys.h"

#define PAUSE_NS_MIN 50000000ull
#define PAUSE_NS_MAX 5000000000ull

uint64_t weir_s3_retry_pause_ns(unsigned tries)
{
    uint64_t span = PAUSE_NS_MIN, chance = 0;
    while (tries-- > 1 && span < PAUSE_NS_MAX)
        span *= 2;
    if (span > PAUSE_NS_MAX)
        span = PAUSE_NS_MAX;
    weir_sys->random(&chance, sizeof chance); /* without chance, all come at once: still right */
    return span / 2 + chance % (span / 2);
}

/* A text for what libcurl says, and the errno. */
static void note_failure(struct weir_s3_trip *trip, CURLcode result)
{
    const char *said = trip->curl_text[0] ? trip->curl_text : curl_easy_strerror(result);
    int code = EIO;
    if (result == CURLE_COULDNT_RESOLVE_HOST || result == CURLE_COULDNT_CONNECT)
        code = EHOSTUNREACH;
    else if (result == CURLE_OPERATION_TIMEDOUT)
        code = ETIMEDOUT;
    else if (result == CURLE_OUT_OF_MEMORY)
        code = ENOMEM;
    trip->code = -code;
    snprintf(trip->fail, sizeof trip->fail, "%s", said);
}

static bool is_hopeless(CURLcode result)
{
    switch (result) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return true;
    default:
        return false;
    }
}

static enum weir_s3_verdict judge_failure(struct weir_s3_trip *trip, CURLcode result)
{
    bool was_sent = result != CURLE_COULDNT_RESOLVE_HOST && result != CURLE_COULDNT_CONNECT &&
                    !is_hopeless(result);
    if (!trip->broken)
        note_failure(trip, result);
    trip->doubtful |= was_sent;
    if (trip->broken && trip->code != -EIO) /* too long, no memory, no ranges: it stays so */
        return WEIR_S3_DONE;
    return is_hopeless(result) ? WEIR_S3_DONE : WEIR_S3_LATER;
}

/* The server got other bytes than were sent: the next try may fare better, the tenth will not. */
static bool is_garbled(const struct weir_s3_trip *trip)
{
    enum { TRIES_MAX = 4 };
    return trip->tries < TRIES_MAX &&
           (weir_s3_trip_is(trip, "XAmzContentSHA256Mismatch") ||
            weir_s3_trip_is(trip, "BadDigest") || weir_s3_trip_is(trip, "IncompleteBody"));
}

/* An answer to HEAD cannot say so, but its Date tells: servers allow a quarter of an hour. */
static bool is_skewed(const struct weir_s3_trip *trip)
{
    const int64_t much_s = 300;
    int64_t ahead_s = trip->date_s - trip->signed_s;
    return weir_s3_trip_is(trip, "RequestTimeTooSkewed") ||
           (trip->status == 403 && !trip->error.code[0] && trip->date_s &&
            (ahead_s > much_s || ahead_s < -much_s));
}

static bool is_busy(const struct weir_s3_trip *trip)
{
    return trip->status == 503 || trip->status == 429 || weir_s3_trip_is(trip, "SlowDown") ||
           weir_s3_trip_is(trip, "RequestLimitExceeded") || weir_s3_trip_is(trip, "Throttling");
}

enum weir_s3_verdict weir_s3_retry_judge(struct weir_s3_trip *trip, CURLcode result,
                                         struct weir_s3_site *site, struct weir_s3_creds *creds,
                                         const struct weir_s3_keys *keys)
{
    if (trip->range_end && !trip->reads)
        return WEIR_S3_DONE; /* all that was asked for came, and its readers may be gone */
    if (result != CURLE_OK || trip->broken)
        return judge_failure(trip, result);
    trip->slow = is_busy(trip);
    if (trip->status >= 500 && trip->status != 501)
        trip->doubtful = true;
    if (trip->slow || is_garbled(trip) || weir_s3_trip_is(trip, "RequestTimeout") ||
        (trip->status >= 500 && trip->status != 501 && trip->status != 507))
        return WEIR_S3_LATER;
    if (trip->status < 300)
        return WEIR_S3_DONE;
    const char *region = trip->error.region[0] ? trip->error.region : trip->region;
    if (trip->status != 404 && weir_s3_site_correct(site, trip->signed_region, region))
        return WEIR_S3_AT_ONCE;
    if (is_skewed(trip) && !trip->clock_tried) {
        trip->clock_tried = true; /* the answer's Date has set our clock */
        return WEIR_S3_AT_ONCE;
    }
    bool refused = weir_s3_trip_is(trip, "ExpiredToken") || weir_s3_trip_is(trip, "InvalidToken") ||
                   weir_s3_trip_is(trip, "InvalidAccessKeyId") ||
                   weir_s3_trip_is(trip, "TokenRefreshRequired");
    if (refused && keys && trip->keys_tried < 3 && weir_s3_creds_refused(creds, keys)) {
        trip->keys_tried++;
        return WEIR_S3_LATER;
    }
    return WEIR_S3_DONE;
}
