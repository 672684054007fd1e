/* Readers share the buffer pool with each other and with writers, and nobody waits for ever:
 * a reader that waits for a buffer holds none. Each case hung before that was so.
 */
#include <pthread.h>

#include "store/store.h"
#include "stores.h"

enum { OBJECT_BYTES = 12 << 20, POOL_BYTES = 8 << 20, THREADS = 6, ROUNDS = 3 };

static weir_store *store;
static size_t shift = 1; /* 0: the readers' memory is aligned, so they could do without buffers */

static void read_whole(uint64_t seed)
{
    weir_object *obj;
    size_t got;
    char key[16];
    snprintf(key, sizeof key, "o%llu", (unsigned long long)seed);
    uint8_t *buf = data_buffer(OBJECT_BYTES, shift);
    OK(weir_object_open(&obj, store, key));
    OK(weir_object_read(obj, buf, OBJECT_BYTES, 0, &got));
    CHECK_EQ(got, OBJECT_BYTES);
    CHECK(data_is(buf, OBJECT_BYTES, seed, 0));
    weir_object_close(obj);
    data_free(buf, shift);
}

/* One reader wants more buffers in flight than the pool has. */
static void more_depth_than_pool(void)
{
    read_whole(0);
    OK(weir_verify(store, "o0", NULL, NULL));
}

static void *read_some(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        read_whole((uint64_t)(uintptr_t)arg % 2);
        OK(weir_verify(store, "o1", NULL, NULL));
    }
    return NULL;
}

static void start(pthread_t *threads)
{
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, read_some, (void *)i) == 0);
}

static void join(pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void many_readers(void)
{
    pthread_t threads[THREADS];
    start(threads);
    join(threads);
}

/* Those that want buffers and need none take what there is. */
static void many_readers_that_need_none(void)
{
    shift = 0;
    store->landing.forced = WEIR_WAY_POOL;
    more_depth_than_pool();
    many_readers();
    store->landing.forced = WEIR_WAY_UNKNOWN;
    shift = 1;
}

/* Writers that hold a buffer each while their owner is elsewhere: as many as there may be. */
static void readers_beside_idle_writers(void)
{
    weir_put *puts[POOL_BYTES / 2 >> 20], *more;
    pthread_t threads[THREADS];
    enum { PUTS = sizeof puts / sizeof puts[0] };
    for (int i = 0; i < PUTS; i++) {
        char key[16];
        snprintf(key, sizeof key, "p%d", i);
        OK(weir_put_open(&puts[i], store, key, NULL));
        OK(weir_put_write(puts[i], "x", 1));
    }
    CHECK_EQ(weir_put_open(&more, store, "one-more", NULL), -EMFILE);
    start(threads);
    join(threads);
    for (int i = 0; i < PUTS; i++) {
        OK(weir_put_commit(puts[i], NULL));
        weir_put_close(puts[i]);
    }
    OK(put_try(store, "one-more", 1, 1, 0));
}

int main(int argc, char **argv)
{
    const char *engine = engine_or_skip(argc, argv);
    store = store_sized(tmp_path("store"), engine, POOL_BYTES, 16);
    put_seed(store, "o0", OBJECT_BYTES, 0);
    put_seed(store, "o1", OBJECT_BYTES, 1);
    RUN(more_depth_than_pool);
    RUN(many_readers);
    RUN(many_readers_that_need_none);
    RUN(readers_beside_idle_writers);
    weir_store_close(store);
    return TEST_RESULT;
}
