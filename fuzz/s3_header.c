/* Values of HTTP headers: dates, entity tags, numbers, encoded names. What is taken is within its
 * range, and dates that are written back are the same. */
#include "target.h"
#include "tier/s3_sign.h"
#include "tier/s3_time.h"

static void dates(const char *text, size_t size)
{
    int64_t s = -1, ns = -1;
    char stamp[17];
    if (weir_s3_time_http(&s, text, size)) {
        PROMISE(s >= 0 && s <= 253402300800);
        if (s < 253402300800) { /* a leap second at the end of time is behind it */
            weir_s3_time_stamp(stamp, s);
            PROMISE(!memcmp(stamp, text + 12, 4) || !memcmp(text + 23, "60", 2));
        }
    }
    if (weir_s3_time_iso(&ns, text, size))
        PROMISE(ns >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = (char *)exact_copy(data, size), etag[WEIR_S3_ETAG_MAX];
    uint64_t number;
    dates(text, size);
    if (weir_s3_etag(etag, text, size)) {
        char again[WEIR_S3_ETAG_MAX];
        PROMISE(etag[0] && strlen(etag) < sizeof etag && !strchr(etag, '"'));
        if (strncmp(etag, "W/", 2)) /* which is cut off wherever it stands first */
            PROMISE(weir_s3_etag(again, etag, strlen(etag)) && !strcmp(again, etag));
    }
    if (weir_s3_number(&number, text, size))
        PROMISE(size);
    free(text);
    /* Encoding takes everything, and decoding gives it back. */
    char *plain = text_copy(data, size), *coded = malloc(3 * strlen(plain) + 1);
    size_t length = weir_s3_encode(coded, plain, size % 2);
    PROMISE(length == strlen(coded) && length <= 3 * strlen(plain));
    PROMISE(!weir_s3_decode(coded) && !strcmp(coded, plain));
    if (!weir_s3_decode(plain))
        PROMISE(strlen(plain) <= size);
    free(coded);
    free(plain);
    return 0;
}
