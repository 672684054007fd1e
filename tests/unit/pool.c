/* The buffer pool: bounded, aligned, waits for what others give back, counts its streams. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "io/pool.h"
#include "test.h"

enum { BUFFERS = 8, THREADS = 16, ROUNDS = 2000 };

static void sizes(void)
{
    struct weir_pool *pool = NULL;
    CHECK_EQ(weir_pool_open(&pool, 0), -EINVAL);
    CHECK_EQ(weir_pool_open(&pool, (8 << 20) - 1), -EINVAL);
    CHECK_EQ(weir_pool_open(&pool, (1ull << 30) + (1 << 20)), -EINVAL);
    CHECK(!pool && strstr(weir_fail_last(), "8 MiB to 1 GiB"));
    OK(weir_pool_open(&pool, 1ull << 30));
    weir_pool_close(pool); /* never used: nothing was mapped */
    weir_pool_close(NULL);
}

static void bound_and_alignment(void)
{
    struct weir_pool *pool;
    void *bufs[BUFFERS], *more = NULL;
    size_t size;
    OK(weir_pool_open(&pool, BUFFERS << 20));
    CHECK(!weir_pool_arena(pool, &size) && size == 0);
    for (int i = 0; i < BUFFERS; i++) {
        OK(weir_pool_get(pool, &bufs[i]));
        CHECK_EQ((uintptr_t)bufs[i] % WEIR_IO_ALIGN, 0);
        memset(bufs[i], i, WEIR_BUFFER_BYTES);
    }
    char *arena = weir_pool_arena(pool, &size);
    CHECK_EQ(size, BUFFERS << 20);
    for (int i = 0; i < BUFFERS; i++) {
        char *buf = bufs[i];
        CHECK(buf >= arena && buf + WEIR_BUFFER_BYTES <= arena + size);
        CHECK(buf[0] == i && buf[WEIR_BUFFER_BYTES - 1] == i); /* none overlaps another */
    }
    CHECK_EQ(weir_pool_try(pool, &more), -EAGAIN);
    CHECK(!more);
    weir_pool_put(pool, bufs[3]);
    OK(weir_pool_try(pool, &more));
    CHECK(more == bufs[3]);
    for (int i = 0; i < BUFFERS; i++)
        weir_pool_put(pool, bufs[i]);
    weir_pool_close(pool);
}

static void streams(void)
{
    struct weir_pool *pool;
    OK(weir_pool_open(&pool, BUFFERS << 20));
    for (int i = 0; i < BUFFERS / 2; i++) {
        /* half of them shared out, but never less than one to fill and one to write */
        CHECK_EQ(weir_pool_share(pool), i < 2 ? 4 : 2);
        OK(weir_pool_reserve(pool));
    }
    CHECK_EQ(weir_pool_share(pool), 2);
    CHECK_EQ(weir_pool_reserve(pool), -EMFILE);
    CHECK(strstr(weir_fail_last(), "larger pool"));
    weir_pool_release(pool);
    OK(weir_pool_reserve(pool));
    for (int i = 0; i < BUFFERS / 2; i++)
        weir_pool_release(pool);
    weir_pool_close(pool);
}

struct waiter {
    struct weir_pool *pool;
    void *got;
};

static void *wait_for_one(void *arg)
{
    struct waiter *w = arg;
    OK(weir_pool_get(w->pool, &w->got));
    return NULL;
}

static void waiting(void)
{
    void *bufs[BUFFERS];
    pthread_t thread;
    struct waiter w = {0};
    OK(weir_pool_open(&w.pool, BUFFERS << 20));
    for (int i = 0; i < BUFFERS; i++)
        OK(weir_pool_get(w.pool, &bufs[i]));
    CHECK(pthread_create(&thread, NULL, wait_for_one, &w) == 0);
    weir_pool_put(w.pool, bufs[5]);
    pthread_join(thread, NULL);
    CHECK(w.got == bufs[5]);
    for (int i = 0; i < BUFFERS; i++)
        weir_pool_put(w.pool, bufs[i]);
    weir_pool_close(w.pool);
}

static void *take_and_give(void *arg)
{
    struct weir_pool *pool = arg;
    for (int i = 0; i < ROUNDS; i++) {
        void *buf;
        if (i % 3 || weir_pool_try(pool, &buf))
            OK(weir_pool_get(pool, &buf));
        /* Nobody else writes here while it is ours. */
        *(volatile pthread_t *)buf = pthread_self();
        CHECK(pthread_equal(*(volatile pthread_t *)buf, pthread_self()));
        weir_pool_put(pool, buf);
    }
    return NULL;
}

static void many_threads(void)
{
    struct weir_pool *pool;
    pthread_t threads[THREADS];
    OK(weir_pool_open(&pool, BUFFERS << 20));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, take_and_give, pool) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    weir_pool_close(pool);
}

int main(void)
{
    RUN(sizes);
    RUN(bound_and_alignment);
    RUN(streams);
    RUN(waiting);
    RUN(many_threads);
    return TEST_RESULT;
}
