/* A store on two tiers (commit=URL): bytes on the one, records on the other, and neither is opened
 * without its own other half. */
#include <time.h>

#include "stores.h"
#include "tier/tier.h"
#include "util/sys.h"

static char data[PATH_MAX], records[PATH_MAX], url[3 * PATH_MAX];

static void fresh_places(void)
{
    snprintf(data, sizeof data, "%s", tmp_path("data"));
    snprintf(records, sizeof records, "%s", tmp_path("records"));
    snprintf(url, sizeof url, "file:%s?commit=file:%s", data, records);
}

static int open_code(const char *text, uint32_t flags)
{
    weir_store *store;
    weir_store_options opts;
    weir_store_options_init(&opts);
    opts.flags = flags;
    int code = weir_store_open(&store, text, &opts);
    if (!code)
        weir_store_close(store);
    return code;
}

static unsigned files_in(const char *dir, const char *name)
{
    return tree_files(path_in(dir, name));
}

static void each_on_its_side(void)
{
    fresh_places();
    weir_store *store = store_at(url, NULL);
    put_seed(store, "a/b", 5000, 1);
    put_seed(store, "c", 3 << 20, 2);
    get_seed(store, "a/b", 5000, 1);
    get_seed(store, "c", 3 << 20, 2);
    CHECK_EQ(put_try(store, "c", 1, 1, 0), -EEXIST);
    CHECK(files_in(data, ".weir/data") == 2 && files_in(data, ".weir/seal") == 0);
    CHECK(files_in(records, ".weir/seal") == 2 && files_in(records, ".weir/data") == 0);
    CHECK_EQ(files_in(data, "a"), 0); /* no plain names */
    weir_store_close(store);
    store = store_at(url, NULL); /* and again */
    get_seed(store, "c", 3 << 20, 2);
    OK(weir_remove(store, "c"));
    CHECK_EQ(get_code(store, "c"), -ENOENT);
    CHECK(files_in(data, ".weir/data") == 1 && files_in(records, ".weir/seal") == 1);
    weir_store_close(store);
}

/* Half a store is none: its data would look like debris. */
static void halves_are_refused(void)
{
    char wrong[3 * PATH_MAX], mine[3 * PATH_MAX];
    fresh_places();
    snprintf(mine, sizeof mine, "%s", url);
    weir_store_close(store_at(mine, NULL));
    CHECK_EQ(open_code(data, 0), -EPROTO);
    CHECK(strstr(weir_error_text(), "commit=URL"));
    CHECK_EQ(open_code(data, WEIR_STORE_CREATE), -EPROTO);
    /* With records that are nobody's, or another's. */
    snprintf(wrong, sizeof wrong, "file:%s?commit=file:%s", data, tmp_path("none"));
    CHECK_EQ(open_code(wrong, WEIR_STORE_CREATE), -ENXIO);
    char first[PATH_MAX];
    snprintf(first, sizeof first, "%s", data);
    fresh_places();
    weir_store_close(store_at(url, NULL));
    snprintf(wrong, sizeof wrong, "file:%s?commit=file:%s", first, records);
    CHECK_EQ(open_code(wrong, 0), -ENXIO);
    CHECK(strstr(weir_error_text(), "another store"));
    /* A whole store has its own records. */
    const char *whole = tmp_path("whole");
    weir_store_close(store_at(whole, NULL));
    snprintf(wrong, sizeof wrong, "file:%s?commit=file:%s", whole, tmp_path("none"));
    CHECK_EQ(open_code(wrong, WEIR_STORE_CREATE), -EEXIST);
    OK(open_code(whole, 0));
    OK(open_code(mine, 0));
    /* Nothing there is nothing there; a URL in a URL has none in it. */
    fresh_places();
    CHECK_EQ(open_code(url, 0), -ENOENT);
    CHECK_EQ(open_code("mem:?commit=mem:%3Fcommit=mem:", WEIR_STORE_CREATE), -EINVAL);
    CHECK_EQ(open_code("mem:?commit=nonsense:x", WEIR_STORE_CREATE), -ENOTSUP);
}

/* Made by a process that died between the two notes. */
static void made_halfway(void)
{
    fresh_places();
    weir_store_close(store_at(url, NULL));
    CHECK(unlink(path_in(data, ".weir/store")) == 0);
    CHECK_EQ(open_code(url, 0), -ENOENT);
    weir_store *store = store_at(url, NULL);
    put_seed(store, "k", 10, 1);
    weir_store_close(store);
    OK(open_code(url, 0));
}

static void age(const char *path, time_t seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct timespec times[2] = {now, {now.tv_sec - seconds, now.tv_nsec}};
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

/* Debris is claimed on the one side and removed on the other. */
static void collected(void)
{
    static const char debris[] = ".weir/data/k~0123456789abcdef0123456789abcdef";
    weir_gc_result result;
    fresh_places();
    weir_store *store = store_at(url, NULL);
    put_seed(store, "k/live", 5000, 1);
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s", path_in(data, debris));
    file_write(path, "x", 1);
    OK(weir_gc(store, 0, &result, NULL, NULL));
    CHECK(result.objects == 0 && result.young == 1 && path_there(path));
    age(path, 400 * 86400);
    OK(weir_gc(store, 0, &result, NULL, NULL));
    CHECK(result.objects == 1 && result.voids_placed == 1 && !path_there(path));
    CHECK_EQ(files_in(records, ".weir/seal"), 2); /* the live one's, and the void */
    get_seed(store, "k/live", 5000, 1);
    weir_store_close(store);
}

/* Requests that nobody waits for are done all the same. */
static void asynchronous(void)
{
    struct weir_url parsed;
    struct weir_tier *tier;
    struct weir_queue queue;
    struct weir_req req;
    OK(weir_url_parse(&parsed, "mem:?commit=mem:"));
    OK(weir_tier_open(&tier, &parsed, NULL, true));
    weir_url_free(&parsed);
    CHECK_EQ(tier->level, WEIR_LEVEL_MEMORY);
    weir_queue_init(&queue);
    for (int i = 0; i < 3; i++) {
        weir_req_init(&req, WEIR_OP_SWEEP);
        weir_req_push(&req, weir_queue_done, &queue);
        weir_tier_submit(tier, &req);
        CHECK(weir_queue_get(&queue) == &req && req.code == 0 && req.stat.time_ns > 0);
    }
    weir_queue_destroy(&queue);
    weir_tier_close(tier);
}

int main(void)
{
    RUN(each_on_its_side);
    RUN(halves_are_refused);
    RUN(made_halfway);
    RUN(collected);
    RUN(asynchronous);
    return TEST_RESULT;
}
