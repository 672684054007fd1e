/* s3_sign.h - AWS Signature Version 4, and the encoding of paths and queries that goes with it.
 * Pure functions; any thread. What is signed is exactly what is sent: the caller gives the request
 * unencoded, and sends the target and the header lines that come back as they are, besides the
 * headers it gave itself. (Nothing that a proxy or libcurl adds or rewrites is signed.)
 */
#ifndef WEIR_TIER_S3_SIGN_H
#define WEIR_TIER_S3_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/hash.h"

/* Texts of credentials. Sessions of AWS are 1 to 4 KiB, of others up to 12; beyond that servers
 * refuse the headers. */
enum {
    WEIR_S3_ID_MAX = 256,
    WEIR_S3_SECRET_MAX = 512,
    WEIR_S3_TOKEN_MAX = 16384,
    WEIR_S3_HEADERS_MAX = 24, /* of one request, ours included */
    WEIR_S3_QUERIES_MAX = 16,
};

struct weir_s3_keys {
    const char *id, *secret;
    const char *token; /* of a session, or NULL */
};

struct weir_s3_pair {
    const char *name, *value; /* value NULL is "" */
};

/* Payloads that are no digest. */
#define WEIR_S3_UNSIGNED "UNSIGNED-PAYLOAD" /* over TLS only: nothing else protects the body */
#define WEIR_S3_EMPTY    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct weir_s3_call {
    const char *method; /* "GET" */
    const char *host;   /* as the Host header will say it: "127.0.0.1:7480" */
    const char *path;   /* begins with '/', not encoded: "/bucket/a key" */
    size_t queries, headers;
    const struct weir_s3_pair *query;  /* not encoded, in any order */
    const struct weir_s3_pair *header; /* in any order; all of them are signed. Without Host and
                                          those of `lines` below */
    const char *payload;               /* hex SHA-256 of the body, or one of the above */
    const char *region, *service;      /* "us-east-1", "s3" */
    int64_t time_s;                    /* Unix time, of the server's clock */
};

/* Holds the signature and the session token: wiped by weir_s3_signed_free(). */
struct weir_s3_signed {
    char *text; /* owns what is below */
    size_t size;
    const char *target;  /* path and query, encoded, for the request line (and the URL) */
    size_t count;        /* of lines */
    const char *line[5]; /* "Name: value": x-amz-date, x-amz-content-sha256, Authorization and,
                            of a session, x-amz-security-token */
};

/* keys NULL: anonymous; then there is no line but the target is made. 0; -E2BIG with a text if
 * it has more or longer parts than above, -EINVAL if a header holds a line break, or -ENOMEM. */
int weir_s3_sign(struct weir_s3_signed *out, const struct weir_s3_call *call,
                 const struct weir_s3_keys *keys);
void weir_s3_signed_free(struct weir_s3_signed *out);

/* RFC 3986 as S3 wants it: all but A-Z a-z 0-9 - . _ ~ become %XX, and '/' where it is no
 * separator. Returns the length; out has room for 3 * strlen(text) + 1. */
size_t weir_s3_encode(char *out, const char *text, bool keep_slash);
/* The reverse, in place, '+' staying as it is; -EINVAL without a text if a %XX is none or a NUL. */
int weir_s3_decode(char *text);

#endif
