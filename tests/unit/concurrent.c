/* Many threads on one store: puts, gets, removes, lists, verifies, gc and statistics at once. Every
 * read is a whole version that somebody committed, and at the end the books balance.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "stores.h"

enum { WRITERS = 3, READERS = 2, KEYS = 6, ROUNDS = 40, BASE = 3000 };

static weir_store *store;
static atomic_bool stop;
static atomic_uint puts_won, removes_won;

static void key_name(char out[32], uint64_t number)
{
    snprintf(out, 32, "dir%d/k%d", (int)(number % 2), (int)(number % KEYS));
}

/* The size tells the seed, so a reader knows what it must find. */
static size_t size_of(uint64_t seed)
{
    return BASE + seed * 997;
}

static void *write_some(void *arg)
{
    struct rng rng = {(uintptr_t)arg};
    for (int i = 0; i < ROUNDS; i++) {
        char key[32];
        uint64_t seed = rng_below(&rng, 1000);
        key_name(key, rng_below(&rng, KEYS));
        int code = put_try(store, key, size_of(seed), seed, 4096);
        CHECK(code == 0 || code == -EEXIST || code == -EAGAIN);
        puts_won += !code;
        key_name(key, rng_below(&rng, KEYS));
        code = weir_remove(store, key);
        CHECK(code == 0 || code == -ENOENT || code == -EAGAIN);
        removes_won += !code;
    }
    return NULL;
}

static void *read_some(void *arg)
{
    struct rng rng = {100 + (uintptr_t)arg};
    uint8_t *buf = data_buffer(size_of(1000), 0);
    while (!stop) {
        char key[32];
        weir_object *obj;
        size_t got;
        key_name(key, rng_below(&rng, KEYS));
        int code = weir_object_open(&obj, store, key);
        CHECK(code == 0 || code == -ENOENT || code == -EAGAIN);
        if (code)
            continue;
        size_t size = weir_object_info(obj)->size_bytes;
        uint64_t off = rng_below(&rng, size);
        CHECK_EQ(weir_object_info(obj)->kind, WEIR_KIND_SEALED);
        OK(weir_object_read(obj, buf, size, off, &got));
        CHECK(got == size - off && data_is(buf, got, (size - BASE) / 997, off));
        weir_object_close(obj);
    }
    data_free(buf, 0);
    return NULL;
}

static void *look_around(void *arg)
{
    while (!stop) {
        weir_list *list;
        const weir_entry *entry;
        weir_stat_row rows[32];
        weir_store_info info;
        int code;
        OK(weir_list_open(&list, store, "", WEIR_LIST_RECURSIVE | WEIR_LIST_DETAIL));
        while ((code = weir_list_next(list, &entry)) == 1)
            CHECK(!strncmp(entry->key, "dir", 3));
        OK(code);
        weir_list_close(list);
        OK(weir_gc(store, 0, NULL, NULL, NULL));
        CHECK(weir_store_stats(store, rows, 32) > 0);
        OK(weir_store_info_get(store, &info));
    }
    return arg;
}

static unsigned objects_left(void)
{
    weir_list *list;
    const weir_entry *entry;
    unsigned count = 0;
    OK(weir_list_open(&list, store, "", WEIR_LIST_RECURSIVE));
    while (weir_list_next(list, &entry) == 1) {
        CHECK_EQ(entry->kind, WEIR_KIND_SEALED);
        OK(weir_verify(store, entry->key, NULL, NULL));
        count++;
    }
    weir_list_close(list);
    return count;
}

static void everything_at_once(const char *url, const char *engine)
{
    pthread_t writers[WRITERS], others[READERS + 1];
    stop = false;
    puts_won = removes_won = 0;
    store = store_at(url, engine);
    for (uintptr_t i = 0; i < READERS; i++)
        CHECK(pthread_create(&others[i], NULL, read_some, (void *)i) == 0);
    CHECK(pthread_create(&others[READERS], NULL, look_around, NULL) == 0);
    for (uintptr_t i = 0; i < WRITERS; i++)
        CHECK(pthread_create(&writers[i], NULL, write_some, (void *)(i + 1)) == 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    stop = true;
    for (int i = 0; i <= READERS; i++)
        pthread_join(others[i], NULL);
    CHECK_EQ(objects_left(), puts_won - removes_won);
    CHECK(puts_won > 0 && removes_won > 0);
    weir_store_close(store);
}

int main(int argc, char **argv)
{
    const char *engine = engine_or_skip(argc, argv);
    char url[PATH_MAX];
    const char *dir = tmp_path("store");
    snprintf(url, sizeof url, "file:%s?stats=1", dir);
    everything_at_once(url, engine);
    printf("ok files\n");
    CHECK_EQ(tree_files(path_in(dir, ".weir/tmp")), 0);
    everything_at_once("mem:?stats=1", engine);
    printf("ok memory\n");
    return TEST_RESULT;
}
