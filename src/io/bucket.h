/* bucket.h - a token bucket: keeps a flow within a rate over any stretch of time. */
#ifndef WEIR_IO_BUCKET_H
#define WEIR_IO_BUCKET_H

#include <pthread.h>
#include <stdint.h>

struct weir_bucket {
    pthread_mutex_t lock;
    double tokens, rate, burst; /* bytes, bytes a second, bytes */
    uint64_t last_ns;
};

/* burst: how much may go at once after a pause. */
void weir_bucket_init(struct weir_bucket *bucket, uint64_t rate, uint64_t burst);
void weir_bucket_destroy(struct weir_bucket *bucket);
/* Takes the bytes and returns how long the caller has to wait first, in nanoseconds. The debt is
 * shared: those who come later wait longer, so the order of arrival is kept. */
uint64_t weir_bucket_take(struct weir_bucket *bucket, uint64_t bytes);

#endif
