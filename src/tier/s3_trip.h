/* s3_trip.h - one HTTP request to S3 and its answer: what is asked, what came back. It is made and
 * read by whoever asks; in between it belongs to the net (s3_net.h), which tries it as often as
 * that makes sense.
 */
#ifndef WEIR_TIER_S3_TRIP_H
#define WEIR_TIER_S3_TRIP_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tier/s3_answer.h"
#include "tier/s3_creds.h"
#include "tier/s3_site.h"
#include "tier/s3_sign.h"
#include "tier/s3_time.h"
#include "util/err.h"
#include "util/req.h"

enum {
    WEIR_S3_TRIP_PAIRS = 8,
    WEIR_S3_ERROR_BYTES_MAX = 16384, /* of an answer that says what went wrong */
    WEIR_S3_ID_HEX = 32,             /* what tells objects of equal bytes apart */
};

/* What objects of ours say of themselves, as metadata: an id that nothing else ever has, and those
 * of what stood there before, records and tombstones in turn, newest first. So who lost an answer
 * can tell from what is there whether his own was. "ID-ID-…", or of a tombstone "gone-ID-…". */
#define WEIR_S3_META "x-amz-meta-weir"
enum {
    WEIR_S3_IDS_MAX = 16, /* older ones are forgotten */
    WEIR_S3_META_MAX = 8 + WEIR_S3_IDS_MAX * (WEIR_S3_ID_HEX + 1),
};
struct weir_s3_meta {
    bool is_gone;                                 /* a tombstone: as good as nothing */
    unsigned count;                               /* of ids; 0: somebody else put it there */
    char id[WEIR_S3_IDS_MAX][WEIR_S3_ID_HEX + 1]; /* the first is its own */
};
void weir_s3_meta_read(struct weir_s3_meta *out, const char *text, size_t size);
void weir_s3_meta_write(char out[WEIR_S3_META_MAX], const struct weir_s3_meta *meta);
/* That of an object with this id that takes the place of another (NULL: of nothing). */
void weir_s3_meta_after(struct weir_s3_meta *out, const char *id, const struct weir_s3_meta *seen);
/* Ours wanted to take the place of `over` ("": of nothing), and the answer was lost; this is there.
 */
enum weir_s3_tale { WEIR_S3_TALE_NONE, WEIR_S3_TALE_DONE, WEIR_S3_TALE_NOT_DONE };
enum weir_s3_tale weir_s3_meta_tells(const struct weir_s3_meta *there, const char *ours,
                                     const char *over);

struct weir_s3_trip {
    /* Asked. Texts are borrowed. */
    const char *method;
    const char *name; /* below the prefix; NULL: the bucket itself */
    size_t queries, headers;
    struct weir_s3_pair query[WEIR_S3_TRIP_PAIRS], header[WEIR_S3_TRIP_PAIRS];
    const void *body; /* of a PUT or POST */
    size_t body_bytes;
    char payload[2 * WEIR_SHA256_BYTES + 1]; /* for the signature; "": there is no body */
    size_t text_max;     /* how long an answer's body may be; 0: none is expected */
    uint64_t timeout_ns; /* from when it is submitted, and more for large bodies; 0: the net's */
    uint64_t until_ns;   /* not sent after this instant of the boot-time clock; 0: whenever */
    bool patient;        /* the server may be silent for long: it has much to do */

    /* Reads: one range that lands in several requests' memory, in order. */
    /* Chained by next; each wants io.done bytes, and is done as soon as they are there. */
    struct weir_req *reads;
    uint64_t range_begin, range_end, blob_bytes;

    /* Answered. */
    int code; /* 0: there is a status; else -errno, and fail says why */
    char fail[512];
    long status; /* 200 */
    struct weir_s3_error error;
    bool doubtful; /* a try before the last one, or the last, may have been done */
    bool slow;     /* the last answer was one of a server that has too much to do */
    char etag[WEIR_S3_ETAG_MAX], region[WEIR_S3_REGION_MAX];
    struct weir_s3_meta meta;
    bool has_length, has_crc; /* has_crc: it gave the checksum of what it got */
    bool has_range;           /* a Content-Range, of just what was asked for */
    uint64_t length;          /* Content-Length */
    int64_t modified_s, date_s;
    char *text; /* the body, with a NUL behind it; freed by weir_s3_trip_end() */
    size_t text_bytes, text_room;
    void (*done)(struct weir_s3_trip *trip); /* on a thread of the net; must not wait */
    void *owner;

    /* The net's, while it is with it. */
    struct weir_s3_trip *next;
    unsigned tries;
    unsigned sent; /* in this try: libcurl sends again when a connection it reused ends at once */
    uint64_t due_ns, deadline_ns, moved_bytes;
    unsigned keys_tried;
    bool clock_tried, in_range, broken; /* broken: the answer itself is wrong; fail says how */
    char signed_region[WEIR_S3_REGION_MAX];
    int64_t signed_s; /* when, by the clock that it was signed with */
    const struct weir_s3_keys *keys;
    struct weir_s3_signed sign;
    struct curl_slist *lines;
    CURL *easy;
    char curl_text[CURL_ERROR_SIZE];
};

/* Readies a trip: everything zero but these. */
void weir_s3_trip_begin(struct weir_s3_trip *trip, const char *method, const char *name);
void weir_s3_trip_query(struct weir_s3_trip *trip, const char *name, const char *value);
void weir_s3_trip_header(struct weir_s3_trip *trip, const char *name, const char *value);
/* The body; hash: sign it, too (it must be over plain HTTP, where nothing else protects it). */
void weir_s3_trip_body(struct weir_s3_trip *trip, const void *body, size_t bytes, bool hash);
/* The base64 of a CRC-32C, for x-amz-checksum-crc32c. */
enum { WEIR_S3_CRC_MAX = 12 };
void weir_s3_crc(char out[WEIR_S3_CRC_MAX], uint32_t crc);
/* Frees what the answer left. */
void weir_s3_trip_end(struct weir_s3_trip *trip);

static inline bool weir_s3_trip_ok(const struct weir_s3_trip *trip)
{
    return !trip->code && trip->status >= 200 && trip->status < 300;
}
bool weir_s3_trip_is(const struct weir_s3_trip *trip, const char *error_code);
/* What was to be deleted is not there, but the bucket is. */
bool weir_s3_trip_is_gone(const struct weir_s3_trip *trip);
/* What a trip that was not ok means: a negative errno and this thread's text, that says what was
 * being done ("read", "write") to what. */
int weir_s3_trip_fail(const struct weir_s3_trip *trip, const struct weir_s3_site *site,
                      const char *doing);
/* The time of what was answered, for a stat. */
int64_t weir_s3_trip_time_ns(const struct weir_s3_trip *trip);

/* ---- for the net ---- */

/* Signs the request and readies trip->easy for it. */
int weir_s3_trip_arm(struct weir_s3_trip *trip, struct weir_s3_site *site, int64_t now_s,
                     const char *ca_file);
/* After the transfer: wipes the signature, and takes what the answer says. */
void weir_s3_trip_disarm(struct weir_s3_trip *trip, CURLcode result);

#endif
