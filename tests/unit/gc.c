/* Collecting: what is debris goes and is counted, what is young or live or unknown stays. */
#include <time.h>

#include "store/seal.h"
#include "stores.h"
#include "util/bytes.h"

#define NONCE "0123456789abcdef0123456789abcdef"

static weir_store *store;
static const char *dir;

static void fresh_store(void)
{
    weir_store_close(store);
    dir = tmp_path("store");
    store = store_at(dir, NULL);
    put_seed(store, "live/x", 5000, 1); /* makes the directories, and must survive everything */
}

static void make_dirs(const char *path)
{
    char copy[2 * PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(copy, 0755);
        *slash = '/';
    }
}

/* A file of `size` bytes that is that many seconds old. */
static void place(const char *name, size_t size, time_t age)
{
    struct timespec now;
    char *bytes = calloc(1, size + 1);
    const char *path = path_in(dir, name);
    make_dirs(path);
    file_write(path, bytes, size);
    free(bytes);
    clock_gettime(CLOCK_REALTIME, &now);
    struct timespec times[2] = {now, {now.tv_sec - age, now.tv_nsec}};
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

static bool there(const char *name)
{
    return path_there(path_in(dir, name));
}

static weir_gc_result collect(uint32_t flags)
{
    weir_gc_result result;
    memset(&result, 0xff, sizeof result);
    OK(weir_gc(store, flags, &result, NULL, NULL));
    get_seed(store, "live/x", 5000, 1);
    return result;
}

static int stop_at_third(void *arg, uint64_t more)
{
    uint64_t *seen = arg;
    CHECK_EQ(more, 1);
    return ++*seen == 3;
}

static int count_up(void *arg, uint64_t more)
{
    *(uint64_t *)arg += more;
    return 0;
}

/* Every file is told of, and who is told may say stop. */
static void progress(void)
{
    weir_gc_result r;
    uint64_t seen = 0;
    fresh_store();
    place(".weir/data/a~" NONCE, 6, 90000);
    place(".weir/data/b~" NONCE, 6, 90000);
    place(".weir/data/c~" NONCE, 6, 90000);
    OK(weir_gc(store, WEIR_GC_DRY_RUN, &r, count_up, &seen));
    CHECK(r.objects == 3 && seen == 5); /* and the data and the seal of what lives */
    seen = 0;
    CHECK_EQ(weir_gc(store, 0, &r, stop_at_third, &seen), -ECANCELED);
    CHECK(strstr(weir_error_text(), "stopped") && strstr(weir_error_text(), dir));
    CHECK(seen == 3 && r.objects >= 2 && r.objects <= 3);
    seen = r.objects;
    CHECK_EQ(collect(0).objects, 3 - seen);
}

static void nothing_to_do(void)
{
    fresh_store();
    for (int flags = 0; flags < 4; flags++) {
        weir_gc_result r = collect((uint32_t)flags);
        CHECK(!r.objects && !r.bytes && !r.temporaries && !r.voids_placed && !r.voids_removed);
        CHECK(!r.links_restored && !r.young);
    }
}

static void old_and_young(void)
{
    fresh_store();
    place(".weir/data/old~" NONCE, 100, 90000);
    place(".weir/data/deep/er/old~" NONCE, 200, 90000);
    place(".weir/data/young~" NONCE, 400, 80000);
    place(".weir/tmp/" NONCE, 800, 90000);
    place(".weir/tmp/1" NONCE, 800, 40000); /* half the grace is for them */
    weir_gc_result r = collect(WEIR_GC_DRY_RUN);
    CHECK(r.objects == 2 && r.bytes == 300 && r.temporaries == 1 && r.young == 2);
    CHECK(!r.voids_placed && there(".weir/data/old~" NONCE) && there(".weir/tmp/" NONCE));
    r = collect(0);
    CHECK(r.objects == 2 && r.bytes == 300 && r.temporaries == 1 && r.young == 2);
    CHECK_EQ(r.voids_placed, 2);
    CHECK(!there(".weir/data/old~" NONCE) && !there(".weir/data/deep"));
    CHECK(there(".weir/data/young~" NONCE) && there(".weir/tmp/1" NONCE));
    CHECK(!there(".weir/tmp/" NONCE));
}

/* While the void stands, the key cannot be written; it is no object; then it goes. */
static void voids(void)
{
    fresh_store();
    place(".weir/data/k~" NONCE, 100, 90000);
    CHECK_EQ(collect(0).voids_placed, 1);
    CHECK(there(".weir/seal/k~"));
    CHECK_EQ(put_try(store, "k", 10, 1, 0), -EAGAIN);
    CHECK(strstr(weir_error_text(), "seconds"));
    CHECK_EQ(get_code(store, "k"), -ENOENT);
    CHECK_EQ(weir_remove(store, "k"), -ENOENT);
    CHECK_EQ(collect(0).voids_removed, 0); /* it is young */
    place(".weir/seal/k~", 0, 0);
    CHECK(unlink(path_in(dir, ".weir/seal/k~")) == 0);
    place(".weir/data/k~" NONCE, 100, 90000);
    CHECK_EQ(collect(0).voids_placed, 1);
    struct timespec old[2] = {{1000, 0}, {1000, 0}};
    CHECK(utimensat(AT_FDCWD, path_in(dir, ".weir/seal/k~"), old, 0) == 0);
    CHECK_EQ(collect(WEIR_GC_DRY_RUN).voids_removed, 0);
    CHECK(there(".weir/seal/k~"));
    CHECK_EQ(collect(0).voids_removed, 1);
    CHECK(!there(".weir/seal/k~"));
    put_seed(store, "k", 10, 1);
}

/* A writer finds an old void and clears it by itself. */
static void old_void_does_not_stop_a_writer(void)
{
    fresh_store();
    place(".weir/data/k~" NONCE, 100, 90000);
    CHECK_EQ(collect(0).voids_placed, 1);
    struct timespec old[2] = {{1000, 0}, {1000, 0}};
    CHECK(utimensat(AT_FDCWD, path_in(dir, ".weir/seal/k~"), old, 0) == 0);
    put_seed(store, "k", 10, 1);
    get_seed(store, "k", 10, 1);
}

static void now(void)
{
    fresh_store();
    place(".weir/data/k~" NONCE, 100, 0);
    place(".weir/tmp/" NONCE, 100, 0);
    CHECK_EQ(collect(0).young, 2);
    weir_gc_result r = collect(WEIR_GC_NOW);
    CHECK(r.objects == 1 && r.temporaries == 1 && r.voids_placed == 1 && !r.young);
    collect(WEIR_GC_NOW);
    put_seed(store, "k", 10, 1); /* no void is left in the way */
}

/* Data of a losing writer: another seal stands at the key, and is claim enough. */
static void loser(void)
{
    fresh_store();
    place(".weir/data/live/x~" NONCE, 100, 90000);
    weir_gc_result r = collect(0);
    CHECK(r.objects == 1 && r.voids_placed == 0);
    CHECK(!there(".weir/data/live/x~" NONCE));
}

/* A plain name that is gone comes back; one that somebody else took stays theirs. */
static void plain_names(void)
{
    fresh_store();
    CHECK(unlink(path_in(dir, "live/x")) == 0);
    CHECK_EQ(collect(WEIR_GC_DRY_RUN).links_restored, 0);
    CHECK_EQ(collect(0).links_restored, 1);
    CHECK(there("live/x"));
    CHECK(unlink(path_in(dir, "live/x")) == 0);
    file_write(path_in(dir, "live/x"), "mine", 4);
    CHECK_EQ(collect(0).links_restored, 0);
    struct stat st;
    CHECK(stat(path_in(dir, "live/x"), &st) == 0 && st.st_size == 4);
}

/* What is not ours, or is damaged, or was made by a newer Weir, is left alone. */
static void unknown_things(void)
{
    fresh_store();
    place(".weir/data/strange", 10, 90000);
    place(".weir/data/strange~", 10, 90000);
    place(".weir/seal/strange", 10, 90000);
    place(".weir/seal/damaged~", 80, 90000);
    place(".weir/data/damaged~" NONCE, 10, 90000);
    place("foreign", 10, 900000);
    struct weir_seal seal = {.kind = WEIR_SEAL_VOID};
    uint8_t *record;
    size_t size;
    OK(weir_seal_encode(&seal, &record, &size));
    weir_store_le(record + 8, 2, 2);
    weir_sum(record + size - WEIR_SUM_BYTES, record, size - WEIR_SUM_BYTES);
    file_write(path_in(dir, ".weir/seal/newer~"), record, size);
    free(record);
    weir_gc_result r = collect(WEIR_GC_NOW);
    CHECK(!r.objects && !r.voids_placed && !r.voids_removed);
    CHECK(there(".weir/data/strange") && there(".weir/data/strange~") && there("foreign"));
    CHECK(there(".weir/seal/strange") && there(".weir/seal/newer~"));
    CHECK(there(".weir/seal/damaged~") && there(".weir/data/damaged~" NONCE));
}

/* Directories that crashed writers left go when they are old; the engine's own places stay. */
static void directories(void)
{
    struct timespec old[2] = {{1000, 0}, {1000, 0}};
    fresh_store();
    make_dirs(path_in(dir, ".weir/data/e/m/p/t/y/"));
    make_dirs(path_in(dir, ".weir/seal/e/m/"));
    make_dirs(path_in(dir, ".weir/seal/young/er/"));
    CHECK(utimensat(AT_FDCWD, path_in(dir, ".weir/data/e/m/p/t/y"), old, 0) == 0);
    CHECK(utimensat(AT_FDCWD, path_in(dir, ".weir/seal/e/m"), old, 0) == 0);
    collect(WEIR_GC_DRY_RUN);
    CHECK(there(".weir/data/e/m/p/t/y"));
    collect(0);
    CHECK(!there(".weir/data/e") && !there(".weir/seal/e") && there(".weir/seal/young/er"));
    collect(WEIR_GC_NOW);
    CHECK(!there(".weir/seal/young"));
    CHECK(there(".weir/data") && there(".weir/seal"));
}

/* A put in progress is not debris while it is young, and finds out when it was collected. */
static void put_in_progress(void)
{
    weir_put *put;
    fresh_store();
    OK(weir_put_open(&put, store, "slow", NULL));
    uint8_t *data = data_buffer(3 << 20, 1);
    data_fill(data, 3 << 20, 1, 0);
    OK(weir_put_write(put, data, 3 << 20));
    weir_gc_result r = collect(0);
    CHECK(r.young == 1 && !r.temporaries);
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
    get_seed(store, "slow", 3 << 20, 1);
    OK(weir_put_open(&put, store, "slower", NULL));
    OK(weir_put_write(put, data, 3 << 20));
    r = collect(WEIR_GC_NOW); /* the caller lied: there is a writer */
    CHECK_EQ(r.temporaries, 1);
    CHECK_EQ(weir_put_commit(put, NULL), -ESTALE);
    weir_put_close(put);
    CHECK_EQ(get_code(store, "slower"), -ENOENT);
    data_free(data, 1);
}

static void in_memory(void)
{
    weir_gc_result r;
    weir_store *mem = store_at("mem:", NULL);
    put_seed(mem, "k", 10, 1);
    OK(weir_gc(mem, 0, &r, NULL, NULL));
    OK(weir_gc(mem, WEIR_GC_NOW, NULL, NULL, NULL));
    CHECK(!r.objects && !r.temporaries && !r.links_restored);
    get_seed(mem, "k", 10, 1);
    weir_store_close(mem);
}

int main(void)
{
    RUN(nothing_to_do);
    RUN(progress);
    RUN(old_and_young);
    RUN(voids);
    RUN(old_void_does_not_stop_a_writer);
    RUN(now);
    RUN(loser);
    RUN(plain_names);
    RUN(unknown_things);
    RUN(directories);
    RUN(put_in_progress);
    RUN(in_memory);
    weir_store_close(store);
    return TEST_RESULT;
}
