/* Files of deleted objects are written over by the next put, and nobody ever sees that: who linked,
 * opened, mapped or tagged one keeps it as it was; mode and size are a fresh file's; and the space
 * comes back.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/xattr.h>

#include "store/store.h"
#include "stores.h"
#include "util/sys.h"

enum { MIB = 1 << 20, SIZE = 3 * MIB + 100, THREADS = 4, ROUNDS = 12 };

static const char *dir;
static weir_store *store;

static void open_with(const char *options)
{
    char url[512];
    snprintf(url, sizeof url, "file://%s?%s", dir, options);
    store = store_at(url, NULL);
}

static void put(const char *key, size_t size, uint64_t seed)
{
    weir_put *put;
    weir_put_options opts;
    uint8_t *data = data_buffer(size, 0);
    data_fill(data, size, seed, 0);
    weir_put_options_init(&opts);
    opts.size_bytes = size;
    OK(weir_put_open(&put, store, key, &opts));
    OK(weir_put_write(put, data, size));
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
    data_free(data, 0);
}

static void drop(const char *key)
{
    OK(weir_remove_object(store, key, true, NULL));
}

static struct stat stat_of(const char *key)
{
    struct stat st;
    CHECK(!stat(path_in(dir, key), &st));
    return st;
}

static uint64_t spare_bytes(void)
{
    weir_gc_result result;
    OK(weir_gc(store, WEIR_GC_DRY_RUN, &result, NULL, NULL));
    return result.spare_bytes;
}

static void release(void)
{
    OK(weir_gc(store, 0, NULL, NULL, NULL));
    CHECK_EQ(spare_bytes(), 0);
}

static void written_over(void)
{
    static const size_t sizes[] = {SIZE, SIZE, SIZE - 5000, 2 * MIB, 4 * MIB - 1, 4 * MIB + 4096};
    put("first", SIZE, 1);
    struct stat first = stat_of("first");
    drop("first");
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CHECK_EQ(spare_bytes(), i ? sizes[i - 1] : SIZE);
        put("next", sizes[i], 2 + i);
        struct stat next = stat_of("next");
        CHECK_EQ(next.st_ino, first.st_ino);
        CHECK_EQ(next.st_mode, first.st_mode);
        CHECK_EQ(next.st_size, sizes[i]);
        CHECK_EQ(next.st_nlink, 2);
        CHECK_EQ(spare_bytes(), 0);
        get_seed(store, "next", sizes[i], 2 + i);
        drop("next");
    }
    put("other", 1 * MIB, 9); /* too small to be worth it */
    CHECK(stat_of("other").st_ino != first.st_ino);
    OK(weir_remove(store, "other")); /* without being told that there will be more */
    CHECK_EQ(spare_bytes(), 4 * MIB + 4096);
    release();
}

static void shorter_than_announced(void)
{
    weir_put *put_it;
    weir_put_options opts;
    put("long", SIZE, 1);
    drop("long");
    weir_put_options_init(&opts);
    opts.size_bytes = SIZE;
    OK(weir_put_open(&put_it, store, "short", &opts));
    OK(weir_put_write(put_it, "a few", 5));
    OK(weir_put_commit(put_it, NULL));
    weir_put_close(put_it);
    CHECK_EQ(stat_of("short").st_size, 5);
    OK(weir_verify(store, "short", NULL, NULL));
    OK(weir_remove(store, "short"));
}

static void linked(void)
{
    put("a", SIZE, 1);
    CHECK(!link(path_in(dir, "a"), path_in(dir, "mine")));
    drop("a");
    CHECK_EQ(spare_bytes(), 0);
    put("b", SIZE, 2);
    get_seed(store, "mine", SIZE, 1);
    CHECK(!unlink(path_in(dir, "mine")));
    drop("b");
    release();
}

static void open_elsewhere(void)
{
    weir_object *obj;
    static uint8_t bytes[SIZE];
    size_t got;
    put("a", SIZE, 1);
    OK(weir_object_open(&obj, store, "a"));
    drop("a");
    put("b", SIZE, 2);
    OK(weir_object_read(obj, bytes, SIZE, 0, &got));
    CHECK(got == SIZE && data_is(bytes, SIZE, 1, 0));
    weir_object_close(obj);
    drop("b");
    release();
}

static void mapped(void)
{
    put("a", SIZE, 1);
    int fd = open(path_in(dir, "a"), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    uint8_t *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    close(fd);
    drop("a");
    put("b", SIZE, 2);
    CHECK(data_is(map, SIZE, 1, 0));
    munmap(map, SIZE);
    drop("b");
    release();
}

static void tagged(void)
{
    struct stat before;
    put("a", SIZE, 1);
    before = stat_of("a");
    if (setxattr(path_in(dir, "a"), "user.weir-test", "x", 1, 0)) {
        OK(weir_remove(store, "a"));
        return;
    }
    drop("a");
    put("b", SIZE, 2);
    CHECK(stat_of("b").st_ino != before.st_ino);
    OK(weir_remove(store, "b"));
    release();
}

static void *put_and_drop(void *arg)
{
    unsigned who = *(unsigned *)arg;
    char key[32];
    for (unsigned i = 0; i < ROUNDS; i++) {
        snprintf(key, sizeof key, "t%u/%u", who, i);
        put(key, SIZE, 100 * who + i);
        get_seed(store, key, SIZE, 100 * who + i);
        drop(key);
    }
    return NULL;
}

static void all_at_once(void)
{
    pthread_t threads[THREADS];
    unsigned who[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        who[i] = i;
        CHECK(!pthread_create(&threads[i], NULL, put_and_drop, &who[i]));
    }
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    CHECK(spare_bytes() && spare_bytes() <= (uint64_t)THREADS * ROUNDS * SIZE);
    release();
}

/* What is kept goes with whoever kept it, and is bounded. */
static void bounded(void)
{
    put("a", SIZE, 1);
    put("b", SIZE, 2);
    put("c", MIB, 3);
    weir_store_close(store);
    open_with("spare=4M&spare_min=2M");
    drop("a");
    drop("b");
    drop("c");
    CHECK_EQ(spare_bytes(), SIZE);
    weir_store_close(store);
    open_with("spare=0&spare_min=1");
    CHECK_EQ(spare_bytes(), 0);
    put("a", SIZE, 1);
    drop("a");
    CHECK_EQ(spare_bytes(), 0);
}

int main(void)
{
    struct weir_sys_space space;
    dir = tmp_path("store");
    int fd = open(tmpdir(), O_RDONLY | O_CLOEXEC);
    OK(weir_sys->space(fd, &space));
    close(fd);
    if (!space.is_local)
        SKIP("'%s' is on neither ext4 nor XFS", tmpdir());
    open_with("spare_min=1");
    RUN(written_over);
    RUN(shorter_than_announced);
    RUN(linked);
    RUN(open_elsewhere);
    RUN(mapped);
    RUN(tagged);
    RUN(all_at_once);
    RUN(bounded);
    weir_store_close(store);
    return TEST_RESULT;
}
