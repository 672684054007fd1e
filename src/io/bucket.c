/* bucket.c - see bucket.h. */
#include "io/bucket.h"

#include "util/sys.h"

void weir_bucket_init(struct weir_bucket *bucket, uint64_t rate, uint64_t burst)
{
    pthread_mutex_init(&bucket->lock, NULL);
    bucket->rate = (double)rate;
    bucket->burst = bucket->tokens = (double)burst;
    bucket->last_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
}

void weir_bucket_destroy(struct weir_bucket *bucket)
{
    pthread_mutex_destroy(&bucket->lock);
}

uint64_t weir_bucket_take(struct weir_bucket *bucket, uint64_t bytes)
{
    pthread_mutex_lock(&bucket->lock);
    uint64_t now_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    bucket->tokens += (double)(now_ns - bucket->last_ns) * bucket->rate / 1e9;
    bucket->last_ns = now_ns;
    if (bucket->tokens > bucket->burst)
        bucket->tokens = bucket->burst;
    bucket->tokens -= (double)bytes;
    double debt = bucket->tokens;
    pthread_mutex_unlock(&bucket->lock);
    return debt >= 0 ? 0 : (uint64_t)(-debt / bucket->rate * 1e9);
}
