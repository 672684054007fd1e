/* s3_fail.c - what answers of S3 mean: an errno, and a text that says what to do. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tier/s3_trip.h"

bool weir_s3_trip_is(const struct weir_s3_trip *trip, const char *error_code)
{
    return !strcmp(trip->error.code, error_code);
}

bool weir_s3_trip_is_gone(const struct weir_s3_trip *trip)
{
    return !trip->code && trip->status == 404 && !weir_s3_trip_is(trip, "NoSuchBucket");
}

int64_t weir_s3_trip_time_ns(const struct weir_s3_trip *trip)
{
    return trip->modified_s * 1000000000;
}

static const struct {
    const char *code;
    int number;
    const char *text;
} errors[] = {
    {"NoSuchBucket", ENODEV, "there is no such bucket (weir init makes it)"},
    {"NoSuchUpload", ESTALE, "the upload was given up (by gc, or a rule of the bucket)"},
    {"InvalidAccessKeyId", EACCES, "the server does not know this access key"},
    {"SignatureDoesNotMatch", EACCES,
     "the secret key is not the one of this access key (or a proxy changes requests)"},
    {"AccessDenied", EACCES, "access denied: the credentials do not allow it"},
    {"AllAccessDisabled", EACCES, "access denied: the bucket is disabled"},
    {"AccountProblem", EACCES, "access denied: there is a problem with the account"},
    {"ExpiredToken", EACCES, "the credentials have expired, and there are no newer ones"},
    {"InvalidToken", EACCES, "the session token of the credentials is not valid"},
    {"RequestTimeTooSkewed", EACCES,
     "the clocks of this machine and of the server differ by too much: set this machine's"},
    {"AuthorizationHeaderMalformed", EINVAL, "the region is wrong: name it with region="},
    {"PermanentRedirect", EINVAL, "the bucket is elsewhere: name its region= or endpoint="},
    {"IllegalLocationConstraintException", EINVAL, "the bucket is elsewhere: name its region="},
    {"QuotaExceeded", EDQUOT, "the quota is used up"},
    {"InsufficientCapacity", ENOSPC, "the server is full"},
    {"EntityTooLarge", EFBIG, "it is larger than the server takes"},
    {"KeyTooLongError", ENAMETOOLONG, "the server does not take names as long as this"},
    {"NotImplemented", ENOTSUP, "the server cannot do that"},
    {"BadDigest", EIO, "the bytes were changed on their way"},
    {"XAmzContentSHA256Mismatch", EIO, "the bytes were changed on their way"},
    {"InvalidObjectState", EACCES, "it is archived: restore it first"},
};

/* By the status alone: answers to a HEAD say no more. */
static int errno_of_status(long status, const char **text)
{
    switch (status) {
    case 401:
    case 403:
        *text = "access denied: check the credentials and what they allow";
        return EACCES;
    case 404:
        *text = "it is not there";
        return ENOENT;
    case 301:
    case 307:
        *text = "the bucket is elsewhere: name its region= or endpoint=";
        return EINVAL;
    case 411:
    case 501:
        *text = "the server cannot do that";
        return ENOTSUP;
    case 507:
        *text = "the server is full";
        return ENOSPC;
    default:
        *text = status >= 500 ? "the server fails" : "the server refuses it";
        return status == 503 ? EBUSY : EIO;
    }
}

static int fail_without_answer(const struct weir_s3_trip *trip, const char *target,
                               const char *doing)
{
    const char *remedy = "";
    if (trip->code == -EHOSTUNREACH)
        remedy = " (is endpoint= right, and is the network up?)";
    else if (strstr(trip->fail, "certificate") || strstr(trip->fail, "SSL"))
        remedy = " (name the CA that signed its certificate with ca=FILE)";
    return weir_fail(-trip->code, "cannot %s %s: %s%s", doing, target, trip->fail, remedy);
}

int weir_s3_trip_fail(const struct weir_s3_trip *trip, const struct weir_s3_site *site,
                      const char *doing)
{
    const char *text, *said = trip->error.message;
    char target[WEIR_S3_PATH_MAX + 600];
    snprintf(target, sizeof target, "'s3://%s/%s%s' at %s", site->bucket,
             trip->name ? site->prefix : "", trip->name ? trip->name : "", site->shown);
    if (trip->code)
        return fail_without_answer(trip, target, doing);
    int number = errno_of_status(trip->status, &text);
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (weir_s3_trip_is(trip, errors[i].code)) {
            number = errors[i].number;
            text = errors[i].text;
        }
    return weir_fail(number, "cannot %s %s: %s (%ld%s%s%s%s)", doing, target, text, trip->status,
                     trip->error.code[0] ? " " : "", trip->error.code, said[0] ? ": " : "", said);
}
