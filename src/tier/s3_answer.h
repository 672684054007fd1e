/* s3_answer.h - what S3 answers, out of its XML. Pure functions; they take any bytes. Every one
 * answers 0, or -EBADMSG with a text that says what is wrong with the answer, or -ENOMEM; *out is
 * then as it was. Answers that end early, or are another one, are wrong ones: a proxy's page of
 * HTML is no empty list.
 */
#ifndef WEIR_TIER_S3_ANSWER_H
#define WEIR_TIER_S3_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tier/s3_time.h"
#include "util/arena.h"
#include "util/hash.h"

enum {
    WEIR_S3_PAGE_MAX = 1000,            /* entries of one answer, as S3's own limit */
    WEIR_S3_ANSWER_BYTES_MAX = 8 << 20, /* 1,000 keys of 1,024 bytes, escaped, and all around */
    WEIR_S3_UPLOAD_ID_MAX = 2048,
};

/* An error's text, cut to what fits; "" where there is none. Only printable ASCII and UTF-8. */
struct weir_s3_error {
    char code[64];     /* "NoSuchKey" */
    char message[256]; /* in the server's words */
    char region[64];   /* of AuthorizationHeaderMalformed, PermanentRedirect */
};
/* <Error>. */
int weir_s3_answer_error(struct weir_s3_error *out, const char *text, size_t size);

struct weir_s3_entry {
    const char *key; /* the whole key, decoded; of a prefix with its '/' */
    bool is_prefix;
    uint64_t size;
    int64_t time_ns;
    const char *etag; /* without quotes; "" of a prefix */
};
struct weir_s3_page {
    struct weir_arena *arena; /* owns the texts */
    size_t count;
    struct weir_s3_entry *entries;
    const char *more; /* the continuation token of the next page; NULL: this is the last */
};
/* <ListBucketResult>, of list-type=2 and encoding-type=url (either is seen in the answer). An
 * answer that is truncated but has no token is a wrong one. */
int weir_s3_answer_list(struct weir_s3_page *out, const char *text, size_t size);
void weir_s3_page_free(struct weir_s3_page *page);

/* <InitiateMultipartUploadResult>. */
int weir_s3_answer_upload(char out[WEIR_S3_UPLOAD_ID_MAX], const char *text, size_t size);
/* <CompleteMultipartUploadResult>; etag "" where the server says none (RGW 16.2). With an <Error>
 * instead, which comes with a 200, *error is filled and the answer -EREMOTEIO. */
int weir_s3_answer_complete(char etag[WEIR_S3_ETAG_MAX], struct weir_s3_error *error,
                            const char *text, size_t size);

/* A key that was to be deleted and was not. */
struct weir_s3_undeleted {
    const char *key;
    struct weir_s3_error error;
};
struct weir_s3_undone {
    struct weir_arena *arena;
    size_t count;
    struct weir_s3_undeleted *keys;
};
/* <DeleteResult>: what it says of keys that were deleted is not kept. */
int weir_s3_answer_delete(struct weir_s3_undone *out, const char *text, size_t size);
void weir_s3_undone_free(struct weir_s3_undone *undone);

struct weir_s3_pending {
    const char *key, *id;
    int64_t time_ns; /* initiated */
};
struct weir_s3_uploads {
    struct weir_arena *arena;
    size_t count;
    struct weir_s3_pending *pending;
    const char *more_key, *more_id; /* markers of the next page; NULL: this is the last */
};
/* <ListMultipartUploadsResult>. */
int weir_s3_answer_uploads(struct weir_s3_uploads *out, const char *text, size_t size);
void weir_s3_uploads_free(struct weir_s3_uploads *uploads);

/* Pages of a listing that come again: of any number of tokens that go round, one is soon met that
 * was kept as a mark. Zeros to begin with. */
struct weir_s3_turns {
    uint64_t pages, mark_at;
    uint8_t mark[WEIR_SUM_BYTES];
};
/* Notes what the next page is asked for with; true: that was met before. */
bool weir_s3_turns_repeat(struct weir_s3_turns *turns, const char *token);

#endif
