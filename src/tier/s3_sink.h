/* s3_sink.h - a blob on its way to S3, inside: its bytes are gathered in the memory of parts; a
 * part that is full is uploaded while others fill. What is no longer than one part, and was not
 * announced longer, is one PUT at the commit; of what was, the upload begins with the first byte.
 * Parts are filled by whoever writes; uploads end on threads of the net.
 */
#ifndef WEIR_TIER_S3_SINK_H
#define WEIR_TIER_S3_SINK_H

#include "tier/s3.h"
#include "tier/s3_parts.h"

struct weir_s3_sink;

/* Bytes in memory, in the order of their places. */
struct weir_s3_part {
    struct weir_s3_trip trip;
    struct weir_s3_sink *sink;
    struct weir_s3_part *next;
    struct weir_s3_part_place place;
    char *data;
    uint64_t room, filled;
    uint64_t summed; /* of its bytes, from the first on: their CRC-32C is crc */
    uint32_t crc;
    char number_text[16], crc_text[WEIR_S3_CRC_MAX];
};

/* What the server said of an uploaded part. */
struct weir_s3_parted {
    char etag[WEIR_S3_ETAG_MAX], crc[WEIR_S3_CRC_MAX];
};

struct weir_s3_sink {
    struct weir_s3_blob blob; /* first: a sink is a handle that knows what it committed */
    struct weir_s3_parts parts;
    uint64_t hint;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    struct weir_s3_part *open;  /* being filled */
    struct weir_s3_part *ready; /* waiting for the upload to begin */
    uint64_t bytes, end;        /* written; behind the last byte */
    unsigned under_way;         /* trips of this sink */
    bool asked, has_upload;     /* asked: the upload is being begun, or has been */
    char upload[WEIR_S3_UPLOAD_ID_MAX];
    struct weir_s3_parted *parted; /* by number */
    uint32_t parted_room, parted_end;
    struct weir_s3_trip begin;
    int code; /* the first failure: nothing works after it */
    char text[WEIR_TEXT_MAX];
};

/* Remembers the first failure, which is this thread's text. Under the lock. */
int weir_s3_sink_failed(struct weir_s3_sink *sink, int code);
/* Makes sure that the part has room for its first `bytes`; may wait for memory, with the sink's
 * lock let go. */
int weir_s3_part_room(struct weir_s3_part *part, uint64_t bytes);
void weir_s3_part_free(struct weir_s3_part *part);
/* Begins the upload if it was not. Under the lock, which is let go, as it is in the next. */
void weir_s3_sink_begin(struct weir_s3_sink *sink);
/* The same, and sends the parts that are full (all: every one), now or as soon as it has begun. */
int weir_s3_sink_send(struct weir_s3_sink *sink, bool all);
/* Waits until nothing is under way. Under the lock. */
void weir_s3_sink_wait(struct weir_s3_sink *sink);
/* Gives the upload up. */
void weir_s3_sink_abort(struct weir_s3_sink *sink);

#endif
