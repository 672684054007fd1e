/* s3_site.h - where a store lies: which server, which bucket, what stands in front of its names;
 * and how requests to it are addressed. Never changes once it is made, but for the region, which a
 * server may correct once. Any thread.
 */
#ifndef WEIR_TIER_S3_SITE_H
#define WEIR_TIER_S3_SITE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "util/key.h"

enum {
    WEIR_S3_BUCKET_MAX = 256,
    WEIR_S3_REGION_MAX = 64,
    WEIR_S3_KEY_MAX = 1024, /* bytes: S3's own limit, of prefix and name together */
    /* "/bucket/" and a key of which more may be asked than a server will take. */
    WEIR_S3_PATH_MAX = WEIR_S3_BUCKET_MAX + 2 * WEIR_NAME_BYTES_MAX,
};

/* What of a site can change. */
struct weir_s3_address {
    char base[512]; /* "https://s3.eu-west-1.amazonaws.com" */
    char host[512]; /* as the Host header says it */
    char region[WEIR_S3_REGION_MAX];
};

struct weir_s3_site {
    char bucket[WEIR_S3_BUCKET_MAX];
    char prefix[WEIR_NAME_BYTES_MAX]; /* "" or ends with '/' */
    char shown[512];                  /* the server, for texts */
    bool is_https, is_virtual;        /* virtual: the bucket is part of the host */
    bool is_aws, is_implied;          /* implied: the host is the region's */
    pthread_mutex_t lock;             /* of what follows */
    struct weir_s3_address address;
    bool corrected;
};

/* path: "bucket/prefix" of the URL. endpoint and region NULL: AWS and us-east-1. style: auto, path
 * or virtual. */
int weir_s3_site_init(struct weir_s3_site *out, const char *path, const char *endpoint,
                      const char *region, const char *style);
void weir_s3_site_destroy(struct weir_s3_site *site);
/* The path of a request for `name`; NULL: for the bucket itself. -ENAMETOOLONG with a text. */
int weir_s3_site_path(const struct weir_s3_site *site, const char *name,
                      char out[WEIR_S3_PATH_MAX]);
void weir_s3_site_address(struct weir_s3_site *site, struct weir_s3_address *out);
/* A server that was asked as one of region `used` says that it is of another: true if that is
 * news, and worth another try. */
bool weir_s3_site_correct(struct weir_s3_site *site, const char *used, const char *region);

#endif
