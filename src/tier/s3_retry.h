/* s3_retry.h - what an answer, or the lack of one, means for the next try. Pure but for chance. */
#ifndef WEIR_TIER_S3_RETRY_H
#define WEIR_TIER_S3_RETRY_H

#include "tier/s3_creds.h"
#include "tier/s3_trip.h"

enum weir_s3_verdict {
    WEIR_S3_DONE,    /* whatever it says, it is the answer */
    WEIR_S3_AT_ONCE, /* another try can only be better, and needs no pause */
    WEIR_S3_LATER    /* after a pause */
};

/* Looks at the try that just ended; keys: those that it was signed with. Fills trip->code and fail
 * where there is no answer, and doubtful. */
enum weir_s3_verdict weir_s3_retry_judge(struct weir_s3_trip *trip, CURLcode result,
                                         struct weir_s3_site *site, struct weir_s3_creds *creds,
                                         const struct weir_s3_keys *keys);
/* How long to wait before the next try: between half and all of a span that doubles each time. */
uint64_t weir_s3_retry_pause_ns(unsigned tries);

#endif
