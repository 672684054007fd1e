/* A sealed object is mapped: its bytes are there, each block is checked when it is first asked for,
 * and nothing else is mapped.
 */
#include "store/map.h"

#include "stores.h"
#include "util/thread.h"

enum { BLOCK = 65536, SIZE = 5 * BLOCK + 123, SEED = 3 };

static const char *dir;
static weir_store *store;

static void the_bytes_are_there(void)
{
    weir_object *obj;
    struct weir_map *map;
    OK(put_try(store, "whole", SIZE, SEED, BLOCK));
    OK(weir_object_open(&obj, store, "whole"));
    OK(weir_object_map(&map, obj));
    weir_map_want_all(map);
    OK(weir_map_check(map, 0, SIZE - BLOCK));
    CHECK(weir_map_is_checked(map, BLOCK - 1, 2) && weir_map_is_checked(map, 3 * BLOCK, 0));
    CHECK(!weir_map_is_checked(map, 0, SIZE) && !weir_map_is_checked(map, SIZE - 1, 1));
    CHECK(!weir_map_is_whole(map));
    OK(weir_map_check(map, 0, SIZE));
    CHECK(weir_map_is_checked(map, 0, SIZE) && weir_map_is_whole(map));
    CHECK(data_is(weir_map_data(map), SIZE, SEED, 0));
    OK(weir_map_check(map, SIZE, 0));
    weir_map_close(map);
    weir_object_close(obj);
}

static void damage_is_seen_where_it_is_touched(void)
{
    weir_object *obj;
    struct weir_map *map;
    OK(put_try(store, "damaged", SIZE, SEED, BLOCK));
    char *path = data_path(store, dir, "damaged");
    int fd = file_force_open(path);
    fd_flip(fd, 8 * (2 * BLOCK + 7));
    close(fd);
    free(path);
    OK(weir_object_open(&obj, store, "damaged"));
    OK(weir_object_map(&map, obj));
    OK(weir_map_check(map, 0, 2 * BLOCK));
    OK(weir_map_check(map, 3 * BLOCK, SIZE - 3 * BLOCK));
    CHECK_EQ(weir_map_check(map, 2 * BLOCK - 1, 2), -EBADMSG);
    CHECK(strstr(weir_error_text(), "block 2"));
    CHECK_EQ(weir_map_check(map, 3 * BLOCK - 1, 1), -EBADMSG); /* again: nothing was noted */
    weir_map_close(map);
    weir_object_close(obj);
}

/* A disk may give other bytes when it is asked again. */
static void what_is_forgotten_is_checked_again(void)
{
    weir_object *obj;
    struct weir_map *map;
    OK(put_try(store, "later", SIZE, SEED, BLOCK));
    OK(weir_object_open(&obj, store, "later"));
    OK(weir_object_map(&map, obj));
    weir_map_detach(map);
    OK(weir_map_check(map, 0, SIZE));
    char *path = data_path(store, dir, "later");
    int fd = file_force_open(path);
    fd_flip(fd, 8 * (2 * BLOCK + 7));
    close(fd);
    free(path);
    OK(weir_map_check(map, 0, SIZE));
    CHECK(weir_map_is_checked(map, BLOCK, 2));
    weir_map_forget(map, 2 * BLOCK - 1, 2);
    CHECK(!weir_map_is_checked(map, BLOCK, 2) && weir_map_is_checked(map, 0, 2));
    CHECK(!weir_map_is_whole(map));
    weir_map_forget(map, 2 * BLOCK - 1, 2); /* twice is once */
    OK(weir_map_check(map, BLOCK, 1));
    CHECK(!weir_map_is_whole(map));
    CHECK_EQ(weir_map_check(map, 0, SIZE), -EBADMSG);
    OK(weir_map_check(map, 3 * BLOCK, SIZE - 3 * BLOCK));
    weir_map_forget(map, SIZE, 1); /* not within it */
    weir_map_close(map);
    weir_object_close(obj);
}

static void *check_often(void *arg)
{
    for (int i = 0; i < 300; i++)
        OK(weir_map_check(arg, 0, SIZE));
    return NULL;
}

static void *forget_often(void *arg)
{
    for (int i = 0; i < 3000; i++)
        weir_map_forget(arg, (uint64_t)(i % 6) * BLOCK, 1);
    return NULL;
}

/* It is never said to be whole when it is not, and said at last when it is. */
static void checked_and_forgotten_at_once(void)
{
    weir_object *obj;
    struct weir_map *map;
    pthread_t threads[4];
    OK(put_try(store, "both", SIZE, SEED, BLOCK));
    OK(weir_object_open(&obj, store, "both"));
    OK(weir_object_map(&map, obj));
    for (int i = 0; i < 4; i++)
        OK(weir_thread_start(&threads[i], "test", i % 2 ? forget_often : check_often, map));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i <= 6; i++) {
        CHECK_EQ(weir_map_is_whole(map), weir_map_is_checked(map, 0, SIZE));
        if (i < 6)
            OK(weir_map_check(map, (uint64_t)i * BLOCK, 1));
    }
    CHECK(weir_map_is_whole(map));
    weir_map_close(map);
    weir_object_close(obj);
}

static void an_empty_object_has_no_bytes(void)
{
    weir_object *obj;
    struct weir_map *map;
    OK(put_try(store, "empty", 0, SEED, BLOCK));
    OK(weir_object_open(&obj, store, "empty"));
    OK(weir_object_map(&map, obj));
    OK(weir_map_check(map, 0, 0));
    weir_map_close(map);
    weir_object_close(obj);
}

static void a_foreign_file_is_not_mapped(void)
{
    weir_object *obj;
    struct weir_map *map;
    file_write(path_in(dir, "foreign"), "somebody's", 10);
    OK(weir_object_open(&obj, store, "foreign"));
    CHECK_EQ(weir_object_map(&map, obj), -ENOTSUP);
    weir_object_close(obj);
}

static void what_is_no_file_is_not_mapped(void)
{
    char limited[PATH_MAX + 64];
    snprintf(limited, sizeof limited, "file:%s?read_rate=1G", dir);
    const char *urls[] = {"mem:", limited};
    for (int i = 0; i < 2; i++) {
        weir_store *other = store_at(urls[i], NULL);
        weir_object *obj;
        struct weir_map *map;
        put_seed(other, "here", 100, SEED);
        OK(weir_object_open(&obj, other, "here"));
        CHECK_EQ(weir_object_map(&map, obj), -ENOTSUP);
        weir_object_close(obj);
        weir_store_close(other);
    }
}

int main(void)
{
    dir = tmp_path("store");
    store = store_at(dir, NULL);
    RUN(the_bytes_are_there);
    RUN(damage_is_seen_where_it_is_touched);
    RUN(what_is_forgotten_is_checked_again);
    RUN(checked_and_forgotten_at_once);
    RUN(an_empty_object_has_no_bytes);
    RUN(a_foreign_file_is_not_mapped);
    RUN(what_is_no_file_is_not_mapped);
    weir_store_close(store);
    return TEST_RESULT;
}
