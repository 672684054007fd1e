/* Removing: nothing stays, whoever reads meanwhile gets the right bytes or -ESTALE, and a key can
 * be written again.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "stores.h"

enum { SIZE = 3 << 20 };

static void nothing_stays(const char *dir)
{
    CHECK_EQ(tree_files(path_in(dir, ".weir/data")), 0);
    CHECK_EQ(tree_files(path_in(dir, ".weir/seal")), 0);
    CHECK_EQ(tree_files(path_in(dir, ".weir/tmp")), 0);
}

static void removed(void)
{
    const char *dir = tmp_path("store");
    weir_store *store = store_at(dir, NULL);
    CHECK_EQ(weir_remove(store, "a/b/c"), -ENOENT);
    put_seed(store, "a/b/c", SIZE, 1);
    OK(weir_remove(store, "a/b/c"));
    CHECK_EQ(get_code(store, "a/b/c"), -ENOENT);
    CHECK_EQ(weir_remove(store, "a/b/c"), -ENOENT);
    CHECK(!path_there(path_in(dir, "a"))); /* empty directories go, too */
    nothing_stays(dir);
    put_seed(store, "a/b/c", 10, 2);
    get_seed(store, "a/b/c", 10, 2);
    weir_store_close(store);
}

/* The plain name belongs to people: what they put in its place stays. */
static void replaced_plain_name(void)
{
    const char *dir = tmp_path("store");
    weir_store *store = store_at(dir, NULL);
    put_seed(store, "k", 10, 1);
    CHECK(unlink(path_in(dir, "k")) == 0);
    file_write(path_in(dir, "k"), "mine", 4);
    OK(weir_remove(store, "k"));
    CHECK(path_there(path_in(dir, "k")));
    nothing_stays(dir);
    CHECK_EQ(weir_remove(store, "k"), -EPERM);
    weir_store_close(store);
}

static void while_reading(const char *url)
{
    weir_store *store = store_at(url, NULL);
    weir_object *obj;
    size_t got;
    uint8_t *buf = data_buffer(SIZE, 0);
    put_seed(store, "k", SIZE, 1);
    OK(weir_object_open(&obj, store, "k"));
    OK(weir_object_read(obj, buf, SIZE / 2, 0, &got));
    OK(weir_remove(store, "k"));
    put_seed(store, "k", SIZE, 2);
    memset(buf, 0, SIZE);
    int code = weir_object_read(obj, buf, SIZE, 0, &got);
    CHECK(code == 0 || code == -ESTALE);
    CHECK(code || (got == SIZE && data_is(buf, SIZE, 1, 0)));
    weir_object_close(obj);
    get_seed(store, "k", SIZE, 2);
    data_free(buf, 0);
    weir_store_close(store);
}

static void readers_keep_what_they_have(void)
{
    while_reading(tmp_path("store"));
    while_reading("mem:");
}

/* One key, written and removed all the time; a reader finds a whole version or none. */
struct churn {
    weir_store *store;
    atomic_bool stop;
};

static void *write_and_remove(void *arg)
{
    struct churn *churn = arg;
    for (uint64_t i = 0; i < 60; i++) {
        put_seed(churn->store, "k", 5000 + i, i);
        OK(weir_remove(churn->store, "k"));
    }
    churn->stop = true;
    return NULL;
}

static void *read_always(void *arg)
{
    struct churn *churn = arg;
    uint8_t buf[8192];
    while (!churn->stop) {
        weir_object *obj;
        size_t got;
        int code = weir_object_open(&obj, churn->store, "k");
        CHECK(code == 0 || code == -ENOENT || code == -EAGAIN);
        if (code)
            continue;
        CHECK_EQ(weir_object_info(obj)->kind, WEIR_KIND_SEALED); /* never taken for a foreign one */
        code = weir_object_read(obj, buf, sizeof buf, 0, &got);
        CHECK(code == 0 || code == -ESTALE);
        if (!code)
            CHECK(data_is(buf, got, got - 5000, 0));
        weir_object_close(obj);
    }
    return NULL;
}

static void churning(const char *url)
{
    struct churn churn = {.store = store_at(url, NULL)};
    pthread_t writer, readers[3];
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&readers[i], NULL, read_always, &churn) == 0);
    CHECK(pthread_create(&writer, NULL, write_and_remove, &churn) == 0);
    pthread_join(writer, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(readers[i], NULL);
    weir_store_close(churn.store);
}

static void versions_are_whole(void)
{
    churning(tmp_path("store"));
    churning("mem:");
}

int main(void)
{
    RUN(removed);
    RUN(replaced_plain_name);
    RUN(readers_keep_what_they_have);
    RUN(versions_are_whole);
    return TEST_RESULT;
}
