/* pool.c - see pool.h. */
#include "io/pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "util/err.h"
#include "util/huge.h"
#include "util/sys.h"

enum { BUFFERS_MIN = 8 };

struct weir_pool {
    pthread_mutex_t lock;
    pthread_cond_t more;
    char *arena;
    unsigned buffers, free_count, streams;
    void *free_list[]; /* a stack: the warmest buffer first */
};

int weir_pool_open(struct weir_pool **out, uint64_t bytes_max)
{
    uint64_t buffers = bytes_max / WEIR_BUFFER_BYTES;
    if (buffers < BUFFERS_MIN || buffers > WEIR_POOL_BUFFERS_MAX)
        return weir_fail(EINVAL, "a buffer pool has 8 MiB to 1 GiB, not %llu bytes",
                         (unsigned long long)bytes_max);
    struct weir_pool *pool = weir_alloc(sizeof *pool + buffers * sizeof pool->free_list[0]);
    if (!pool)
        return weir_fail_memory();
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->more, NULL);
    pool->buffers = (unsigned)buffers;
    *out = pool;
    return 0;
}

void weir_pool_close(struct weir_pool *pool)
{
    if (!pool)
        return;
    assert(!pool->arena || pool->free_count == pool->buffers);
    if (pool->arena)
        munmap(pool->arena, pool->buffers * WEIR_BUFFER_BYTES);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->more);
    free(pool);
}

/* Called with the lock held. */
static int map_arena(struct weir_pool *pool)
{
    size_t size = pool->buffers * WEIR_BUFFER_BYTES;
    pool->arena = weir_huge_map(size); /* so a transfer pins one page and sends one segment */
    if (!pool->arena)
        return weir_fail(ENOMEM, "cannot map %zu bytes of transfer buffers", size);
    madvise(pool->arena, size, MADV_DONTFORK);
    for (unsigned i = pool->buffers; i-- > 0;)
        pool->free_list[pool->free_count++] = pool->arena + i * WEIR_BUFFER_BYTES;
    return 0;
}

static int take(struct weir_pool *pool, void **buf, bool wait)
{
    int code = 0;
    pthread_mutex_lock(&pool->lock);
    if (!pool->arena)
        code = map_arena(pool);
    while (!code && !pool->free_count && wait)
        pthread_cond_wait(&pool->more, &pool->lock);
    if (!code && !pool->free_count)
        code = -EAGAIN;
    if (!code)
        *buf = pool->free_list[--pool->free_count];
    pthread_mutex_unlock(&pool->lock);
    return code;
}

int weir_pool_get(struct weir_pool *pool, void **buf)
{
    return take(pool, buf, true);
}

int weir_pool_try(struct weir_pool *pool, void **buf)
{
    return take(pool, buf, false);
}

void weir_pool_put(struct weir_pool *pool, void *buf)
{
    pthread_mutex_lock(&pool->lock);
    assert(pool->free_count < pool->buffers);
    pool->free_list[pool->free_count++] = buf;
    pthread_cond_signal(&pool->more);
    pthread_mutex_unlock(&pool->lock);
}

unsigned weir_pool_streams_max(const struct weir_pool *pool)
{
    return pool->buffers / 2;
}

int weir_pool_reserve(struct weir_pool *pool)
{
    int code = 0;
    pthread_mutex_lock(&pool->lock);
    if (pool->streams >= weir_pool_streams_max(pool))
        code = weir_fail(EMFILE,
                         "%u objects are being written at once, the limit of a %u MiB pool: "
                         "commit or close some, or open the store with a larger pool",
                         pool->streams, pool->buffers);
    else
        pool->streams++;
    pthread_mutex_unlock(&pool->lock);
    return code;
}

void weir_pool_release(struct weir_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    assert(pool->streams);
    pool->streams--;
    pthread_mutex_unlock(&pool->lock);
}

unsigned weir_pool_share(struct weir_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    unsigned share = pool->buffers / 2 / (pool->streams ? pool->streams : 1);
    pthread_mutex_unlock(&pool->lock);
    return share > 2 ? share : 2;
}

void *weir_pool_arena(struct weir_pool *pool, size_t *size)
{
    pthread_mutex_lock(&pool->lock);
    void *arena = pool->arena;
    *size = arena ? pool->buffers * WEIR_BUFFER_BYTES : 0;
    pthread_mutex_unlock(&pool->lock);
    return arena;
}
