/* Files that others put into a store's directory: read through the same path, learned when they
 * were read whole, checked from then on, learned afresh when they change.
 */
#include "stores.h"

enum { MIB = 1 << 20, SIZE = 2 * MIB + 333 };

static weir_store *store;
static const char *dir;

static void place(const char *name, size_t size, uint64_t seed)
{
    uint8_t *data = data_buffer(size, 0);
    data_fill(data, size, seed, 0);
    file_write(path_in(dir, name), data, size);
    data_free(data, 0);
}

static void set_mtime(const char *name, time_t seconds)
{
    struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    CHECK(utimensat(AT_FDCWD, path_in(dir, name), times, 0) == 0);
}

static bool learned(const char *key)
{
    char name[256];
    snprintf(name, sizeof name, ".weir/learn/%s~", key);
    return path_there(path_in(dir, name));
}

/* Opens, checks what is known before, and reads a part of it. */
static int read_part(const char *key, const char *algorithm, size_t off, size_t size)
{
    weir_object *obj;
    size_t got;
    uint8_t *buf = data_buffer(size, 0);
    OK(weir_object_open(&obj, store, key));
    const weir_info *info = weir_object_info(obj);
    CHECK_EQ(info->kind, WEIR_KIND_FOREIGN);
    CHECK(!strcmp(info->algorithm, algorithm) && !*info->nonce && !info->meta_bytes);
    CHECK(!strcmp(info->data_name, key));
    int code = weir_object_read(obj, buf, size, off, &got);
    weir_object_close(obj);
    data_free(buf, 0);
    return code;
}

static void learned_when_read_whole(void)
{
    place("f", SIZE, 1);
    set_mtime("f", 1000000);
    OK(read_part("f", "", 0, MIB));
    CHECK(!learned("f")); /* a part is not enough */
    OK(read_part("f", "", 0, SIZE));
    CHECK(learned("f"));
    OK(read_part("f", "xxh3-128", MIB, 10));
    get_seed(store, "f", SIZE, 1);
}

static void in_parts_by_one_reader(void)
{
    weir_object *obj;
    size_t got;
    char byte;
    place("parts", SIZE, 2);
    OK(weir_object_open(&obj, store, "parts"));
    OK(weir_object_read(obj, &byte, 1, 2 * MIB, &got));
    OK(weir_object_read(obj, &byte, 1, 0, &got));
    OK(weir_object_read(obj, &byte, 1, MIB + 5, &got));
    weir_object_close(obj);
    CHECK(learned("parts")); /* each touched block was read whole */
}

static void changed_bytes_are_noticed(void)
{
    int fd = file_force_open(path_in(dir, "f"));
    fd_flip(fd, 8ull * MIB + 3);
    set_mtime("f", 1000000);
    CHECK_EQ(read_part("f", "xxh3-128", 0, SIZE), -EBADMSG);
    CHECK(strstr(weir_error_text(), "'f' is damaged in block 1 "));
    CHECK(strstr(weir_error_text(), "its time is the same"));
    OK(read_part("f", "xxh3-128", 0, MIB));
    CHECK_EQ(weir_verify(store, "f", NULL, NULL), -EBADMSG);
    fd_flip(fd, 8ull * MIB + 3);
    set_mtime("f", 1000000);
    OK(weir_verify(store, "f", NULL, NULL));
    close(fd);
}

static void another_time_is_another_file(void)
{
    place("f", SIZE, 3);
    set_mtime("f", 2000000);
    OK(read_part("f", "", 0, SIZE));
    OK(read_part("f", "xxh3-128", 0, SIZE));
    get_seed(store, "f", SIZE, 3);
    place("f", SIZE + 1, 3); /* the size counts as well */
    set_mtime("f", 2000000);
    OK(read_part("f", "", 0, SIZE + 1));
    OK(read_part("f", "xxh3-128", 0, SIZE + 1));
}

/* It changed while it was read: nothing is kept of it. */
static void changed_while_read(void)
{
    weir_object *obj;
    size_t got;
    uint8_t *buf = data_buffer(SIZE, 0);
    place("moving", SIZE, 4);
    OK(weir_object_open(&obj, store, "moving"));
    OK(weir_object_read(obj, buf, SIZE, 0, &got));
    set_mtime("moving", 3000000);
    weir_object_close(obj);
    CHECK(!learned("moving"));
    data_free(buf, 0);
}

static void verify_learns(void)
{
    place("v", SIZE, 5);
    place("empty", 0, 5);
    OK(weir_verify(store, "v", NULL, NULL));
    CHECK(learned("v"));
    OK(weir_verify(store, "empty", NULL, NULL));
    OK(read_part("empty", "xxh3-128", 0, 0));
}

/* What was learned is worth nothing when it is damaged, and is learned again. */
static void damaged_record(void)
{
    int fd = file_force_open(path_in(dir, ".weir/learn/v~"));
    fd_flip(fd, 800);
    close(fd);
    OK(read_part("v", "", 0, SIZE));
    OK(read_part("v", "xxh3-128", 0, SIZE));
}

static void not_to_be_written_or_removed(void)
{
    weir_put *put;
    CHECK_EQ(weir_put_open(&put, store, "f", NULL), -EEXIST);
    CHECK(strstr(weir_error_text(), "plain file"));
    /* One that came while the object was written. */
    OK(weir_put_open(&put, store, "late", NULL));
    OK(weir_put_write(put, "x", 1));
    place("late", 10, 1);
    CHECK_EQ(weir_put_commit(put, NULL), -EEXIST);
    CHECK(strstr(weir_error_text(), "plain file"));
    weir_put_close(put);
    get_seed(store, "late", 10, 1);
    CHECK_EQ(weir_remove(store, "f"), -EPERM);
    CHECK_EQ(weir_remove(store, "not-there"), -ENOENT);
    CHECK(path_there(path_in(dir, "f")));
}

/* What was learned of a file that is gone goes with the next collection. */
static void forgotten_by_gc(void)
{
    CHECK(unlink(path_in(dir, "v")) == 0);
    OK(weir_gc(store, 0, NULL, NULL, NULL));
    CHECK(!learned("v") && learned("f"));
}

/* Directories and pipes are not files. */
static void not_files(void)
{
    CHECK(mkdir(path_in(dir, "directory"), 0755) == 0);
    CHECK(mkfifo(path_in(dir, "pipe"), 0644) == 0);
    CHECK_EQ(get_code(store, "directory"), -ENOENT);
    CHECK_EQ(get_code(store, "pipe"), -ENOENT);
    CHECK_EQ(get_code(store, "f/below"), -ENOENT);
}

static void link_at(const char *target, const char *name)
{
    unlink(path_in(dir, name));
    CHECK(symlink(target, path_in(dir, name)) == 0);
}

/* What a link of theirs leads to is as what they put there; what changes behind it is noticed. */
static void links_are_followed(void)
{
    const char *elsewhere = tmp_path("elsewhere");
    CHECK(mkdir(elsewhere, 0755) == 0 && mkdir(path_in(elsewhere, "sub"), 0755) == 0);
    place("blob", 5 << 20, 1); /* large enough for direct I/O */
    CHECK(rename(path_in(dir, "blob"), path_in(elsewhere, "sub/blob")) == 0);
    link_at(path_in(elsewhere, "sub/blob"), "link");
    link_at(elsewhere, "directory-link");
    for (int again = 0; again < 2; again++) {
        get_seed(store, "link", 5 << 20, 1);
        get_seed(store, "directory-link/sub/blob", 5 << 20, 1);
        OK(weir_verify(store, "link", NULL, NULL));
    }
    CHECK(learned("link"));
    place("blob", 3000, 2);
    CHECK(rename(path_in(dir, "blob"), path_in(elsewhere, "sub/blob")) == 0);
    get_seed(store, "link", 3000, 2);
    link_at("f", "link");
    CHECK_EQ(weir_remove(store, "link"), -EPERM);
    CHECK_EQ(weir_remove(store, "directory-link/sub/blob"), -EPERM);
    weir_put *put;
    CHECK_EQ(weir_put_open(&put, store, "link", NULL), -EEXIST);
    CHECK_EQ(weir_put_open(&put, store, "directory-link/new", NULL), -ELOOP);
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    CHECK(path_there(path_in(dir, "link")) && path_there(path_in(elsewhere, "sub/blob")));
    CHECK_EQ(tree_files(elsewhere), 1);
    CHECK_EQ(get_code(store, "directory-link/none"), -ENOENT); /* as any file that is not there */
}

/* What is listed below a place; the last that cannot be read is copied to *odd. */
static int list_below(const char *prefix, char odd[WEIR_KEY_BYTES_MAX])
{
    weir_list *list;
    const weir_entry *entry;
    int code, count = 0;
    odd[0] = 0;
    OK(weir_list_open(&list, store, prefix,
                      WEIR_LIST_RECURSIVE | WEIR_LIST_DETAIL | WEIR_LIST_ODD));
    while ((code = weir_list_next(list, &entry)) == 1) {
        if (entry->error)
            snprintf(odd, WEIR_KEY_BYTES_MAX, "%s", entry->key);
        count += !entry->error;
    }
    CHECK_EQ(code, 0);
    weir_list_close(list);
    return count;
}

/* A way by one link after the other, each of which leads to the next directory with a file. */
static void links_have_an_end(void)
{
    enum { LINKS_MAX = 8, DIRS = LINKS_MAX + 2 };
    const char *chain = tmp_path("chain");
    char path[64], deepest[128] = "chain", odd[WEIR_KEY_BYTES_MAX];
    CHECK(mkdir(chain, 0755) == 0);
    for (int i = 0; i < DIRS; i++) {
        snprintf(path, sizeof path, "%d", i);
        CHECK(mkdir(path_in(chain, path), 0755) == 0);
        snprintf(path, sizeof path, "%d/file", i);
        file_write(path_in(chain, path), "0123456789", 10);
        snprintf(path, sizeof path, "%d/next", i);
        char next[16];
        snprintf(next, sizeof next, "../%d", i + 1);
        CHECK(i + 1 == DIRS || symlink(next, path_in(chain, path)) == 0);
    }
    char first[PATH_MAX];
    snprintf(first, sizeof first, "%s/0", chain);
    link_at(first, "chain");
    CHECK_EQ(list_below("chain", odd), LINKS_MAX);
    for (int i = 1; i < LINKS_MAX; i++)
        strcat(deepest, "/next");
    strcat(deepest, "/file");
    CHECK_EQ(get_code(store, deepest), 0);
    deepest[strlen(deepest) - 4] = 0;
    strcat(deepest, "next");
    CHECK(!strcmp(odd, deepest)); /* said, not left out */
    strcat(deepest, "/file");
    CHECK_EQ(get_code(store, deepest), -ELOOP);
    CHECK(strstr(weir_error_text(), "more than 8 symbolic links"));
    CHECK(unlink(path_in(dir, "chain")) == 0);
}

/* Links that lead nowhere, in a circle, up, or to what is a store's own. */
static void links_that_are_not_followed(void)
{
    put_seed(store, "own", 100, 3);
    link_at("nowhere", "dangling");
    CHECK_EQ(get_code(store, "dangling"), -ELOOP);
    CHECK(strstr(weir_error_text(), "nothing where it leads"));
    link_at("circle", "circle");
    CHECK_EQ(get_code(store, "circle"), -ELOOP);
    link_at(".", "self");
    link_at("..", "up");
    CHECK_EQ(get_code(store, "self/f"), -ELOOP);
    CHECK_EQ(get_code(store, "up/x"), -ELOOP);
    CHECK(strstr(weir_error_text(), "above it"));
    link_at(".weir", "engine");
    link_at(".weir/store", "marker");
    CHECK_EQ(get_code(store, "engine/store"), -ELOOP);
    CHECK_EQ(get_code(store, "marker"), -ELOOP);
    CHECK(strstr(weir_error_text(), "into a directory .weir"));
    const char *other = tmp_path("other");
    weir_store_close(store_at(other, NULL));
    link_at(other, "other");
    CHECK_EQ(get_code(store, "other/.weir/store"), -ELOOP);
    /* A link in the place of an engine's own directory or file. */
    char *seals = strdup(path_in(dir, ".weir/seal")), *moved = strdup(path_in(dir, ".weir/moved"));
    CHECK(rename(seals, moved) == 0 && symlink("moved", seals) == 0);
    weir_store *again = store_at(dir, NULL);
    CHECK_EQ(get_code(again, "own"), -ELOOP);
    weir_store_close(again);
    CHECK(unlink(seals) == 0 && rename(moved, seals) == 0);
    free(seals);
    free(moved);
    get_seed(store, "own", 100, 3);
    const char *const names[] = {"dangling", "circle", "self", "up", "engine", "marker", "other"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        CHECK(unlink(path_in(dir, names[i])) == 0);
}

/* A directory that is no store can be read, and nothing is written to it. */
static void plain_directory(void)
{
    weir_store *plain;
    weir_store_info info;
    weir_put *put;
    const char *other = tmp_path("plain");
    CHECK(mkdir(other, 0755) == 0);
    file_write(path_in(other, "file"), "0123456789", 10);
    OK(weir_store_open(&plain, other, NULL));
    OK(weir_store_info_get(plain, &info));
    CHECK(!*info.uuid);
    OK(weir_verify(plain, "file", NULL, NULL));
    CHECK_EQ(weir_put_open(&put, plain, "x", NULL), -EROFS);
    CHECK_EQ(weir_remove(plain, "file"), -EROFS);
    CHECK_EQ(weir_gc(plain, 0, NULL, NULL, NULL), -EROFS);
    weir_store_close(plain);
    CHECK(!path_there(path_in(other, ".weir")));
}

int main(void)
{
    dir = tmp_path("store");
    store = store_at(dir, NULL);
    RUN(learned_when_read_whole);
    RUN(in_parts_by_one_reader);
    RUN(changed_bytes_are_noticed);
    RUN(another_time_is_another_file);
    RUN(changed_while_read);
    RUN(verify_learns);
    RUN(damaged_record);
    RUN(not_to_be_written_or_removed);
    RUN(forgotten_by_gc);
    RUN(not_files);
    RUN(links_are_followed);
    RUN(links_have_an_end);
    RUN(links_that_are_not_followed);
    RUN(plain_directory);
    weir_store_close(store);
    return TEST_RESULT;
}
