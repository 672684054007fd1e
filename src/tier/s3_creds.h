/* s3_creds.h - credentials as every AWS tool finds them, kept fresh.
 *
 * Looked for in this order: what the options name (a profile, files), the environment
 * (AWS_ACCESS_KEY_ID …), a web identity (AWS_WEB_IDENTITY_TOKEN_FILE), the profile (AWS_PROFILE or
 * "default") in ~/.aws/credentials and ~/.aws/config: keys, a process, a role; the container's
 * credentials, the instance's (IMDSv2). The first place that is there counts: what is wrong with it
 * is an error, and no other place is tried.
 *
 * Any thread may call everything. Keys are counted references to one set that never changes; when
 * it nears its end, one thread of ours fetches the next set while everybody goes on with this one.
 * Secrets are wiped when they are freed, and are in no text.
 */
#ifndef WEIR_TIER_S3_CREDS_H
#define WEIR_TIER_S3_CREDS_H

#include <stdbool.h>
#include <stdint.h>

#include "tier/s3_sign.h"

struct weir_s3_creds;

struct weir_s3_creds_options {
    const char *profile;          /* NULL: AWS_PROFILE, else "default" */
    const char *credentials_file; /* NULL: AWS_SHARED_CREDENTIALS_FILE, else ~/.aws/credentials */
    const char *config_file;      /* NULL: AWS_CONFIG_FILE, else ~/.aws/config */
    const char *sts_endpoint;     /* NULL: AWS_ENDPOINT_URL_STS, else the region's at AWS */
    const char *region;           /* for STS; NULL: what weir_s3_creds_region() says */
    const char *ca_file;          /* for https; NULL: AWS_CA_BUNDLE, else the system's */
    bool anonymous;               /* no keys at all */
    uint64_t timeout_ns;          /* of one fetch; 0: 30 s */
};

/* Finds the place and gets the first keys. -EACCES with a text that names what was tried and what
 * to do if there are none. */
int weir_s3_creds_open(struct weir_s3_creds **out, const struct weir_s3_creds_options *opts);
void weir_s3_creds_close(struct weir_s3_creds *creds);

/* Takes a reference to the keys that count now; *out is NULL where access is anonymous. Returns at
 * once while there are valid ones. If there are none, waits for the fetch under way (at most the
 * timeout) or, without `wait`, answers -EAGAIN while one is under way; its failure is -EACCES or
 * -ETIMEDOUT, with a text. */
int weir_s3_creds_get(struct weir_s3_creds *creds, bool wait, const struct weir_s3_keys **out);
void weir_s3_keys_release(const struct weir_s3_keys *keys);
/* A server refused these (ExpiredToken, InvalidToken, InvalidAccessKeyId): true if it is worth
 * another try, since others are there or are being fetched; false if they are all there is. */
bool weir_s3_creds_refused(struct weir_s3_creds *creds, const struct weir_s3_keys *keys);

/* AWS_REGION, AWS_DEFAULT_REGION, or the profile's; NULL if none says. Borrowed. */
const char *weir_s3_creds_region(const struct weir_s3_creds *creds);
/* AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or the profile's endpoint_url; NULL if none says. */
const char *weir_s3_creds_endpoint(const struct weir_s3_creds *creds);
/* The options' file of certificates, or AWS_CA_BUNDLE; NULL: the system's. */
const char *weir_s3_creds_ca_file(const struct weir_s3_creds *creds);
/* Where they come from, for people: "the environment", "profile 'x' (…/credentials)". Borrowed. */
const char *weir_s3_creds_source(const struct weir_s3_creds *creds);

#endif
