/* s3_time.h - times and entity tags as HTTP and S3 write them, and the server's clock as far as we
 * know it. Pure functions but for the clock, which any thread may use.
 */
#ifndef WEIR_TIER_S3_TIME_H
#define WEIR_TIER_S3_TIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "Sun, 06 Nov 1994 08:49:37 GMT" (Date, Last-Modified): Unix time; false if it is none. */
bool weir_s3_time_http(int64_t *out_s, const char *text, size_t size);
/* "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123Z", "…+00:00" (LastModified, Expiration). */
bool weir_s3_time_iso(int64_t *out_ns, const char *text, size_t size);
/* "20260131T120000Z", of which the first eight are the date. Years 1970 to 9999. */
void weir_s3_time_stamp(char out[17], int64_t time_s);

/* Signatures count for a quarter of an hour around the server's time, so it is that which is
 * signed: ours plus what the last answers' Date headers differed by. */
struct weir_s3_clock {
    atomic_int_fast64_t offset_s;
};
int64_t weir_s3_clock_now(const struct weir_s3_clock *clock);
/* Of an answer's Date. Differences of a second or two are the way of the answer, not the clock's.
 */
void weir_s3_clock_learn(struct weir_s3_clock *clock, int64_t date_s);

/* An ETag without its quotes (and without W/). Those of servers are 32 to 64 characters. */
enum { WEIR_S3_ETAG_MAX = 128 };
/* false if it is empty, too long, or holds what cannot be in one. */
bool weir_s3_etag(char out[WEIR_S3_ETAG_MAX], const char *text, size_t size);

/* The value of a header "Content-Length: 123" or of the end of "Content-Range: bytes 1-2/3" etc.:
 * decimal digits and nothing else; false if they are not, or do not fit. */
bool weir_s3_number(uint64_t *out, const char *text, size_t size);

#endif
