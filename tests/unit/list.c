/* Listing: the union of objects and plain files, sorted, one level or all; and that the keys "a"
 * and "a/b" live side by side.
 */
#include "stores.h"
#include "util/sys.h"

static weir_store *store;
static const char *dir;

/* The entries, each as KEY (o: sealed, f: foreign) joined by spaces. */
static const char *listed(weir_store *from, const char *prefix, uint32_t flags)
{
    static char text[65536];
    weir_list *list;
    const weir_entry *entry;
    size_t used = 0;
    int code;
    text[0] = 0;
    OK(weir_list_open(&list, from, prefix, flags));
    while ((code = weir_list_next(list, &entry)) == 1) {
        const char *kind = entry->kind == WEIR_KIND_SEALED ? ":o" : ":f";
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s", used ? " " : "",
                                 entry->key, entry->is_dir ? "" : kind);
    }
    OK(code);
    weir_list_close(list);
    return text;
}

static void is(weir_store *from, const char *prefix, uint32_t flags, const char *want)
{
    const char *got = listed(from, prefix, flags);
    if (strcmp(got, want))
        fprintf(stderr, "list '%s' gives: %s\n         not: %s\n", prefix, got, want);
    CHECK(!strcmp(got, want));
}

static int list_code(const char *prefix)
{
    weir_list *list;
    int code = weir_list_open(&list, store, prefix, 0);
    if (!code)
        weir_list_close(list);
    return code;
}

/* A name that may not be opened: root may open everything else. */
static const char *refused = "";

static int open_unless_refused(int dirfd, const char *path, int flags, unsigned mode)
{
    return strcmp(path, refused) ? weir_sys_real.open(dirfd, path, flags, mode) : -EACCES;
}

static void empty(void)
{
    is(store, "", 0, "");
    is(store, "", WEIR_LIST_RECURSIVE, "");
    CHECK_EQ(list_code("nothing"), -ENOENT);
    CHECK_EQ(list_code("nothing/"), -ENOENT);
    CHECK_EQ(list_code("a//b"), -EINVAL);
    CHECK_EQ(list_code(".weir"), -EINVAL);
    weir_list_close(NULL);
}

/* On a file system "a" cannot be both file and directory: one has a plain name, both are there. */
static void side_by_side(weir_store *where)
{
    put_seed(where, "a", 100, 1);
    put_seed(where, "a/b", 200, 2);
    put_seed(where, "a/b/c", 300, 3);
    put_seed(where, "x/y/z", 400, 4);
    put_seed(where, "x/y", 500, 5);
    put_seed(where, "x", 600, 6);
    get_seed(where, "a", 100, 1);
    get_seed(where, "a/b", 200, 2);
    get_seed(where, "a/b/c", 300, 3);
    get_seed(where, "x/y/z", 400, 4);
    get_seed(where, "x/y", 500, 5);
    get_seed(where, "x", 600, 6);
    is(where, "", 0, "a:o a/ x:o x/");
    is(where, "a", 0, "a:o a/b:o a/b/");
    is(where, "a/", 0, "a/b:o a/b/");
    is(where, "", WEIR_LIST_RECURSIVE, "a:o a/b:o a/b/c:o x:o x/y:o x/y/z:o");
    OK(weir_remove(where, "a"));
    is(where, "a", 0, "a/b:o a/b/");
    get_seed(where, "a/b/c", 300, 3);
    OK(weir_remove(where, "a/b/c"));
    OK(weir_remove(where, "x/y"));
    get_seed(where, "a/b", 200, 2);
    get_seed(where, "x/y/z", 400, 4);
    is(where, "", WEIR_LIST_RECURSIVE, "a/b:o x:o x/y/z:o");
    OK(weir_remove(where, "a/b"));
    OK(weir_remove(where, "x"));
    OK(weir_remove(where, "x/y/z"));
    is(where, "", WEIR_LIST_RECURSIVE, "");
}

static void a_beside_a_b(void)
{
    side_by_side(store);
    CHECK_EQ(tree_files(path_in(dir, ".weir/data")), 0);
    weir_store *mem = store_at("mem:", NULL);
    side_by_side(mem);
    weir_store_close(mem);
}

static void sorted_and_merged(void)
{
    put_seed(store, "s/b", 1, 1);
    put_seed(store, "s/a-", 1, 1);
    put_seed(store, "s/a/x", 1, 1);
    put_seed(store, "s/a", 1, 1);
    put_seed(store, "s/a0", 1, 1);
    put_seed(store, "s/\xc3\xbc", 1, 1);
    file_write(path_in(dir, "s/foreign"), "x", 1);
    CHECK(mkdir(path_in(dir, "s/zdir"), 0755) == 0);
    file_write(path_in(dir, "s/zdir/f"), "x", 1);
    /* What cannot be a key is not shown. */
    file_write(path_in(dir, "s/backup~"), "x", 1);
    file_write(path_in(dir, "s/bad\x01name"), "x", 1);
    CHECK(symlink("b", path_in(dir, "s/link")) == 0);
    is(store, "s", 0, "s/a:o s/a/ s/a-:o s/a0:o s/b:o s/foreign:f s/link:f s/zdir/ s/\xc3\xbc:o");
    is(store, "s/", WEIR_LIST_RECURSIVE,
       "s/a:o s/a/x:o s/a-:o s/a0:o s/b:o s/foreign:f s/link:f s/zdir/f:f s/\xc3\xbc:o");
    is(store, "s/a", 0, "s/a:o s/a/x:o");
    is(store, "s/foreign", 0, "s/foreign:f");
    is(store, "s/zdir/f", WEIR_LIST_RECURSIVE, "s/zdir/f:f");
}

static void details(void)
{
    weir_list *list;
    const weir_entry *entry;
    OK(weir_list_open(&list, store, "s/b", WEIR_LIST_DETAIL));
    CHECK_EQ(weir_list_next(list, &entry), 1);
    CHECK(entry->size_bytes == 1 && entry->time_ns && !entry->error && !entry->is_dir);
    CHECK_EQ(weir_list_next(list, &entry), 0);
    weir_list_close(list);
    OK(weir_list_open(&list, store, "s/zdir/f", WEIR_LIST_DETAIL));
    CHECK_EQ(weir_list_next(list, &entry), 1);
    CHECK(entry->size_bytes == 1 && entry->time_ns && entry->kind == WEIR_KIND_FOREIGN);
    weir_list_close(list);
}

static void many(void)
{
    enum { MANY = 1000 };
    weir_store *mem = store_at("mem:", NULL);
    weir_list *list;
    const weir_entry *entry;
    char key[32], last[64] = "";
    int seen = 0;
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "d%d/k%d", i % 7, i);
        put_seed(mem, key, 1, 1);
    }
    OK(weir_list_open(&list, mem, "", WEIR_LIST_RECURSIVE));
    while (weir_list_next(list, &entry) == 1) {
        CHECK(strcmp(last, entry->key) < 0);
        snprintf(last, sizeof last, "%s", entry->key);
        seen++;
    }
    CHECK_EQ(seen, MANY);
    weir_list_close(list);
    weir_store_close(mem);
}

/* Of many plain files the sizes are looked at ahead, some thousand at a time, by threads: each gets
 * its own. What is sealed among them has its seal's. */
static void many_details(void)
{
    enum { MANY = 4400, SIZES = 700 };
    weir_list *list;
    const weir_entry *entry;
    char name[32], content[SIZES];
    memset(content, 'x', sizeof content);
    put_seed(store, "many/0500", 5000, 1);
    for (size_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "many/%04zu", i);
        if (i != 500)
            file_write(path_in(dir, name), content, i % SIZES);
    }
    OK(weir_list_open(&list, store, "many/", WEIR_LIST_DETAIL));
    for (size_t i = 0; i < MANY; i++) {
        CHECK_EQ(weir_list_next(list, &entry), 1);
        snprintf(name, sizeof name, "many/%04zu", i);
        CHECK(!strcmp(entry->key, name) && !entry->error && entry->time_ns);
        CHECK_EQ(entry->size_bytes, i == 500 ? 5000 : i % SIZES);
    }
    CHECK_EQ(weir_list_next(list, &entry), 0);
    weir_list_close(list);
}

/* A directory of numbered files. */
static void make_numbered(const char *root, const char *in, size_t count)
{
    char name[128];
    CHECK(!mkdir(path_in(root, in), 0755));
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s/%05zu", in, i);
        file_write(path_in(root, name), "0123456789", i % 11);
    }
}

/* Directories beside each other are read ahead, by threads: each has its own files, in its place.
 * One in between is too large for that, one has directories of its own, one has a sealed object,
 * and one is empty. */
static void many_directories(void)
{
    enum { DIRS = 150, FILES = 30, LARGE = 4200, NESTED = 20 };
    weir_list *list;
    const weir_entry *entry;
    char name[64], last[64] = "";
    size_t seen = 0, sealed = 0;
    const char *root = tmp_path("wide");
    weir_store *wide = store_at(root, NULL);
    for (int i = 0; i < DIRS; i++) {
        snprintf(name, sizeof name, "%03d", i);
        make_numbered(root, name, i == 70 ? LARGE : i == 90 ? 0 : FILES);
    }
    for (int i = 0; i < NESTED; i++) {
        snprintf(name, sizeof name, "030/n%02d", i);
        make_numbered(root, name, 1);
    }
    put_seed(wide, "040/sealed", 100, 1);
    OK(weir_list_open(&list, wide, "", WEIR_LIST_RECURSIVE | WEIR_LIST_DETAIL));
    for (; weir_list_next(list, &entry) == 1; seen++) {
        CHECK(strcmp(last, entry->key) < 0 && !entry->error && entry->time_ns);
        snprintf(last, sizeof last, "%s", entry->key);
        sealed += entry->kind == WEIR_KIND_SEALED;
        CHECK(entry->size_bytes == (entry->kind == WEIR_KIND_SEALED
                                        ? 100
                                        : strtoull(strrchr(last, '/') + 1, NULL, 10) % 11));
    }
    CHECK_EQ(seen, (DIRS - 2) * FILES + LARGE + NESTED + 1);
    CHECK_EQ(sealed, 1);
    weir_list_close(list);
    OK(weir_list_open(&list, wide, "", WEIR_LIST_RECURSIVE)); /* and not to its end */
    CHECK_EQ(weir_list_next(list, &entry), 1);
    weir_list_close(list);
    weir_store_close(wide);
}

/* One that cannot be read says so in its turn: what comes before it is listed. */
static void directory_that_cannot_be_read(void)
{
    weir_list *list;
    const weir_entry *entry;
    const char *root = tmp_path("shut");
    weir_store *shut = store_at(root, NULL);
    char name[64];
    int code, seen = 0;
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "%03d", i);
        make_numbered(root, name, 2);
    }
    refused = "005";
    OK(weir_list_open(&list, shut, "", WEIR_LIST_RECURSIVE | WEIR_LIST_DETAIL));
    while ((code = weir_list_next(list, &entry)) == 1)
        seen++;
    refused = "";
    CHECK_EQ(code, -EACCES);
    CHECK(strstr(weir_error_text(), "005"));
    CHECK_EQ(seen, 10);
    weir_list_close(list);
    weir_store_close(shut);
}

/* Somebody else removed the last object of a directory and wrote another: what this process keeps
 * open is a directory that no longer is, and must not be taken for an empty one. */
static void directory_made_again_by_another(void)
{
    weir_store *other = store_at(dir, NULL);
    put_seed(store, "again/old", 1, 1);
    is(store, "again", 0, "again/old:o");
    OK(weir_remove(other, "again/old"));
    put_seed(other, "again/new", 1, 1);
    is(store, "again", 0, "again/new:o");
    is(store, "again", WEIR_LIST_DETAIL, "again/new:o");
    get_seed(store, "again/new", 1, 1);
    OK(weir_remove(other, "again/new"));
    CHECK_EQ(list_code("again"), -ENOENT);
    weir_store_close(other);
}

/* A directory of people's that became a link is entered; the objects below it are still there. */
static void plain_directory_became_a_link(void)
{
    const char *elsewhere = tmp_path("elsewhere");
    CHECK(mkdir(elsewhere, 0755) == 0);
    file_write(path_in(elsewhere, "x"), "x", 1);
    put_seed(store, "linked/o", 10, 1);
    CHECK(unlink(path_in(dir, "linked/o")) == 0 && rmdir(path_in(dir, "linked")) == 0);
    CHECK(symlink(elsewhere, path_in(dir, "linked")) == 0);
    get_seed(store, "linked/o", 10, 1);
    is(store, "linked", 0, "linked/o:o linked/x:f");
    is(store, "linked/", WEIR_LIST_RECURSIVE, "linked/o:o linked/x:f");
    CHECK(strstr(listed(store, "", WEIR_LIST_RECURSIVE), "linked/o:o"));
    OK(weir_gc(store, 0, NULL, NULL, NULL));
    OK(weir_remove(store, "linked/o"));
    is(store, "linked", 0, "linked/x:f");
    CHECK_EQ(tree_files(elsewhere), 1); /* nothing came there, and nothing went */
    CHECK(unlink(path_in(dir, "linked")) == 0 && symlink("gone", path_in(dir, "linked")) == 0);
    CHECK_EQ(list_code("linked"), -ELOOP);
}

/* A seal cut to the size of a void is no void. */
static void seal_cut_short(void)
{
    put_seed(store, "cut", 3000, 1);
    char *seal = seal_path(dir, "cut");
    CHECK(chmod(seal, 0644) == 0 && truncate(seal, 80) == 0);
    CHECK(strstr(listed(store, "", 0), "cut:o"));
    CHECK(unlink(path_in(dir, "cut")) == 0);
    CHECK(strstr(listed(store, "", 0), "cut:o"));
    /* Without a plain name, giving up the seal would give up the bytes. */
    CHECK_EQ(weir_remove_damaged(store, "cut"), -EBUSY);
    uint8_t *bytes = data_buffer(3000, 0);
    data_fill(bytes, 3000, 1, 0);
    file_write(path_in(dir, "cut"), bytes, 3000);
    data_free(bytes, 0);
    OK(weir_remove_damaged(store, "cut"));
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    get_seed(store, "cut", 3000, 1);
    free(seal);
    CHECK(unlink(path_in(dir, "cut")) == 0);
}

static void removed_while_listed(void)
{
    weir_list *list;
    const weir_entry *entry;
    put_seed(store, "seen/a", 10, 1);
    put_seed(store, "seen/b", 10, 1);
    OK(weir_list_open(&list, store, "seen/", WEIR_LIST_DETAIL));
    OK(weir_remove(store, "seen/a"));
    CHECK_EQ(weir_list_next(list, &entry), 1);
    CHECK(!strcmp(entry->key, "seen/b") && !entry->error);
    CHECK_EQ(weir_list_next(list, &entry), 0);
    weir_list_close(list);
    OK(weir_remove(store, "seen/b"));
}

int main(void)
{
    struct weir_sys table = weir_sys_real;
    table.open = open_unless_refused;
    weir_sys = &table; /* before there is a thread */
    dir = tmp_path("store");
    store = store_at(dir, NULL);
    RUN(empty);
    RUN(a_beside_a_b);
    RUN(sorted_and_merged);
    RUN(details);
    RUN(many);
    RUN(many_details);
    RUN(many_directories);
    RUN(directory_that_cannot_be_read);
    RUN(directory_made_again_by_another);
    RUN(plain_directory_became_a_link);
    RUN(seal_cut_short);
    RUN(removed_while_listed);
    weir_store_close(store);
    return TEST_RESULT;
}
