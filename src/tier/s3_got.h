/* s3_got.h - one set of credentials as it was found, and the two forms in which services hand them
 * out: JSON (containers, instances, processes) and XML (STS). The readers are pure functions; they
 * take any bytes. A set has a fixed size, so that wiping it leaves nothing behind.
 */
#ifndef WEIR_TIER_S3_GOT_H
#define WEIR_TIER_S3_GOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tier/s3_sign.h"

enum { WEIR_S3_GOT_BYTES_MAX = 64 << 10 }; /* of an answer with one set in it */

struct weir_s3_got {
    char id[WEIR_S3_ID_MAX], secret[WEIR_S3_SECRET_MAX];
    char token[WEIR_S3_TOKEN_MAX]; /* "": none */
    int64_t until_ns;              /* Unix time; 0: for ever */
};

void weir_s3_got_wipe(struct weir_s3_got *got);
/* Takes one text over, checking its length and that it is one word; -EACCES with a text that does
 * not show it. field: one of the arrays above. */
int weir_s3_got_take(char *field, size_t room, const char *what, const char *text, size_t size);
/* {"AccessKeyId": …, "SecretAccessKey": …, "Token" or "SessionToken": …, "Expiration": …}.
 * versioned: it must say "Version": 1. -EACCES with a text that shows nothing of it but, of a
 * refusal, its code. */
int weir_s3_got_json(struct weir_s3_got *out, const char *text, size_t size, bool versioned);
/* <AssumeRole…Response>, or an <ErrorResponse>. */
int weir_s3_got_xml(struct weir_s3_got *out, const char *text, size_t size);

#endif
