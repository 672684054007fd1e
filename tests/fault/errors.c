/* errors.c - a store that cannot be written to, one that is taken away under a running process, one
 * that spans mounts, and a device that fails: clear errors, no crash, nothing acknowledged that is
 * not there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "content.h"
#include "disk.h"
#include "io/io.h"
#include "place.h"
#include "proc.h"
#include "test.h"

enum { MIB = 1 << 20, HANG_MS = 300000 };

static char root[2 * PLACE_ROOM];
static const struct content small = {1, 5000}, middle = {2, 3 * MIB + 5};

static void fill_store(const char *path)
{
    weir_store *store = store_must_open(path, NULL, WEIR_STORE_CREATE, 0);
    char file[3 * PLACE_ROOM];
    OK(content_put(store, "dir/small", small, 0));
    OK(content_put(store, "middle", middle, 0));
    weir_store_close(store);
    snprintf(file, sizeof file, "%s/foreign", path);
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && write(fd, "somebody else's", 15) == 15);
    close(fd);
}

static void check_readable(weir_store *store)
{
    weir_list *list;
    const weir_entry *entry;
    unsigned count = 0;
    OK(content_expect(store, "dir/small", small));
    OK(content_expect(store, "middle", middle));
    OK(weir_verify(store, "middle", NULL, NULL));
    OK(weir_verify(store, "foreign", NULL, NULL));
    OK(weir_list_open(&list, store, "", WEIR_LIST_RECURSIVE | WEIR_LIST_DETAIL));
    while (weir_list_next(list, &entry) == 1)
        count += !entry->is_dir && !entry->error;
    weir_list_close(list);
    CHECK_EQ(count, 3);
}

/* The call failed so, and its text says what it was about and why. */
static void check_text(const char *what, int code, int expected, const char *name, const char *why)
{
    printf("  %s: %s\n", what, weir_error_text());
    CHECK_EQ(code, expected);
    CHECK(strstr(weir_error_text(), name));
    CHECK(strstr(weir_error_text(), why));
}

/* ---- read-only ---- */

static int read_only_main(void *arg)
{
    static const char why[] = "Read-only file system";
    char other[3 * PLACE_ROOM];
    weir_store *store = store_must_open(root, arg, 0, 0), *none = NULL;
    weir_store_options opts;
    check_readable(store);
    check_text("put", content_put(store, "new/one", small, 0), -EROFS, "new/one", why);
    check_text("large put", content_put(store, "new/two", middle, CONTENT_HINT), -EROFS, "new/two",
               why);
    check_text("remove", weir_remove(store, "middle"), -EROFS, "middle", why);
    check_text("gc", weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL), -EROFS, root, why);
    check_readable(store);
    weir_store_close(store);
    /* Asked to make it if it is not there: it is. One that is not there cannot be made. */
    weir_store_close(store_must_open(root, arg, WEIR_STORE_CREATE, 0));
    snprintf(other, sizeof other, "%s/not/there", root);
    weir_store_options_init(&opts);
    opts.flags = WEIR_STORE_CREATE;
    check_text("open", weir_store_open(&none, other, &opts), -EROFS, other, why);
    return 0;
}

static void read_only(void)
{
    char from[PLACE_ROOM], path[PLACE_ROOM];
    snprintf(from, sizeof from, "%s/store", place_temp(NULL));
    fill_store(from);
    const char *why = place_bind(path, from, true);
    if (why)
        SKIP("%s", why);
    snprintf(root, sizeof root, "%s", path);
    for (uint64_t i = 0; i < 2; i++)
        CHECK_EQ(proc_run_ms(read_only_main, (void *)engine_pick(i), HANG_MS), 0);
    place_unmount(path);
}

/* ---- taken away ---- */

/* What every call answers is its own matter, as long as it has a text and comes back. */
static void note(const char *what, int code)
{
    printf("  %s: %s%s%s\n", what, code ? strerrorname_np(-code) : "works", code ? ": " : "",
           code ? weir_error_text() : "");
    CHECK(code <= 0 && code != -EILSEQ && (!code || *weir_error_text()));
}

static int removed_main(void *arg)
{
    const char *part = arg;
    char path[3 * PLACE_ROOM];
    struct content found;
    static char buf[MIB], early[3 * MIB];
    weir_object *obj;
    weir_put *put;
    weir_gc_result result;
    weir_list *list;
    size_t got;
    snprintf(root, sizeof root, "%s/store", place_temp(NULL));
    fill_store(root);
    weir_store *store = store_must_open(root, NULL, 0, 0);
    OK(content_put(store, "cached/dir/x", small, 0));
    OK(weir_object_open(&obj, store, "middle"));
    OK(weir_put_open(&put, store, "dir/in/flight", NULL));
    OK(weir_put_write(put, early, sizeof early));
    snprintf(path, sizeof path, "%s%s", root, part);
    disk_remove(path);
    printf(" without STORE%s:\n", part);
    int code = weir_object_read(obj, buf, sizeof buf, MIB, &got);
    note("reading what is open", code);
    if (!code) {
        content_fill(early, middle.seed, MIB, MIB);
        CHECK(got == MIB && !memcmp(buf, early, MIB));
    }
    weir_object_close(obj);
    int committed = weir_put_commit(put, NULL);
    note("committing what is open", committed);
    weir_put_close(put);
    if (!committed)
        OK(weir_verify(store, "dir/in/flight", NULL, NULL));
    note("get", content_get(&found, store, "dir/small"));
    code = content_put(store, "cached/dir/y", middle, 0);
    note("put", code);
    if (!code)
        OK(content_expect(store, "cached/dir/y", middle));
    note("remove", weir_remove(store, "cached/dir/x"));
    note("gc", weir_gc(store, WEIR_GC_NOW, &result, NULL, NULL));
    code = weir_list_open(&list, store, "", WEIR_LIST_RECURSIVE);
    note("list", code);
    if (!code)
        weir_list_close(list);
    weir_store_close(store);
    return 0;
}

static void taken_away(void)
{
    static const char *const parts[] = {
        "", "/.weir", "/.weir/tmp", "/.weir/data", "/.weir/seal", "/.weir/store"};
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++)
        CHECK_EQ(proc_run_ms(removed_main, (void *)parts[i], HANG_MS), 0);
}

/* ---- mounts inside and outside ---- */

static void across_mounts(void)
{
    char from[PLACE_ROOM], path[PLACE_ROOM], inner[2 * PLACE_ROOM];
    snprintf(from, sizeof from, "%s/store", place_temp(NULL));
    fill_store(from);
    CHECK(!place_bind(path, from, false));
    weir_store *here = store_must_open(from, NULL, 0, 0);
    weir_store *there = store_must_open(path, NULL, 0, 0);
    check_readable(there);
    OK(content_put(there, "by/bind", middle, 0));
    OK(content_expect(here, "by/bind", middle));
    CHECK_EQ(content_put(here, "by/bind", middle, 0), -EEXIST);
    OK(weir_remove(here, "by/bind"));
    struct content found;
    CHECK_EQ(content_get(&found, there, "by/bind"), -ENOENT);

    /* Somebody mounts something where plain names would go: they cannot be, the objects can. */
    snprintf(inner, sizeof inner, "%s/sub", path);
    CHECK(mkdir(inner, 0777) == 0 && mount("tmpfs", inner, "tmpfs", 0, "size=1m") == 0);
    OK(content_put(there, "sub/x", middle, 0));
    OK(content_expect(there, "sub/x", middle));
    OK(content_expect(here, "sub/x", middle));
    OK(weir_gc(there, WEIR_GC_NOW, NULL, NULL, NULL));
    OK(weir_remove(there, "sub/x"));
    CHECK(umount(inner) == 0);
    weir_store_close(there);
    weir_store_close(here);
    place_unmount(path);
}

/* ---- a device that fails ---- */

/* The errors of a broken device. XFS and ext4 call a damaged structure EUCLEAN or EBADMSG, ext4
 * gives up with EROFS, and a loop device passes on why its image could not grow. */
static bool is_device_error(int code)
{
    return code == -EIO || code == -EROFS || code == -EUCLEAN || code == -EBADMSG ||
           code == -ENOSPC || code == -WEIR_EUNKNOWN;
}

static void drop_caches(void)
{
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "3\n", 2) != 2)
        printf("  the page cache stays\n");
    if (fd >= 0)
        close(fd);
}

static int unreadable_main(void *arg)
{
    struct content found;
    weir_store *store = store_must_open(root, arg, 0, 0);
    OK(content_put(store, "large", (struct content){3, 20 * MIB}, 0));
    place_free_bytes(root); /* and all is on the device */
    CHECK(ftruncate(place_last_image(), 0) == 0);
    drop_caches();
    int code = content_get(&found, store, "large");
    note("get", code);
    CHECK(is_device_error(code));
    note("remove", weir_remove(store, "large"));
    note("gc", weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    weir_store_close(store);
    return 0;
}

/* Whatever was acknowledged before the device failed is exact; what was not is not there. */
static int unwritable_main(void *arg)
{
    enum { OBJECTS = 64 };
    int codes[OBJECTS];
    unsigned acknowledged = 0, failures = 0;
    weir_store *store = store_must_open(root, arg, 0, 0);
    for (unsigned i = 0; i < OBJECTS; i++) {
        char key[32];
        snprintf(key, sizeof key, "o/%u", i);
        codes[i] = content_put(store, key, (struct content){i, i % 2 ? 3 * MIB + 1 : 70000}, i % 3);
        CHECK(!codes[i] || is_device_error(codes[i]));
        if (codes[i] && !failures++)
            note("the first put that failed", codes[i]);
        acknowledged += !codes[i];
    }
    printf("  %u were acknowledged, %u failed\n", acknowledged, failures);
    CHECK(acknowledged && failures);
    drop_caches();
    for (unsigned i = 0; i < OBJECTS; i++) {
        char key[32];
        struct content found;
        snprintf(key, sizeof key, "o/%u", i);
        int code = content_get(&found, store, key);
        if (codes[i] == 0)
            OK(content_expect(store, key, (struct content){i, i % 2 ? 3 * MIB + 1 : 70000}));
        else
            CHECK(code == -ENOENT || is_device_error(code) ||
                  (code == 0 && codes[i] == -WEIR_EUNKNOWN));
    }
    note("remove", weir_remove(store, "o/0"));
    note("gc", weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    weir_store_close(store);
    return 0;
}

static void broken_on(const char *kind, uint64_t bytes, const char *engine, proc_fn fn)
{
    char path[PLACE_ROOM];
    const char *why = place_mount(path, kind, bytes);
    if (why) {
        printf("  SKIP %s: %s\n", kind, why);
        return;
    }
    printf(" %s, %s:\n", kind, engine);
    snprintf(root, sizeof root, "%s/store", path);
    weir_store_close(store_must_open(root, NULL, WEIR_STORE_CREATE, 0));
    CHECK_EQ(proc_run_ms(fn, (void *)engine, HANG_MS), 0);
    place_unmount(path);
}

static void unreadable_device(void)
{
    for (uint64_t i = weir_io_uring_fault() ? 1 : 0; i < 2; i++) {
        broken_on("ext4", 96ull * MIB, engine_pick(i), unreadable_main);
        broken_on("xfs", 320ull * MIB, engine_pick(i), unreadable_main);
    }
}

/* The image is on a file system that is soon full. */
static void unwritable_on(const char *kind, uint64_t room, const char *engine)
{
    char base[PLACE_ROOM];
    CHECK(!place_mount(base, "tmpfs", room));
    place_images_in(base);
    broken_on(kind, 320ull * MIB, engine, unwritable_main);
    place_images_in(NULL);
    place_unmount(base);
}

static void unwritable_device(void)
{
    for (uint64_t i = weir_io_uring_fault() ? 1 : 0; i < 2; i++) {
        unwritable_on("ext4", 60 * MIB, engine_pick(i));
        unwritable_on("xfs", 120 * MIB, engine_pick(i)); /* 64 of them are its log */
    }
}

int main(void)
{
    RUN(taken_away);
    const char *why = place_private();
    if (why)
        SKIP("%s", why);
    RUN(read_only);
    RUN(across_mounts);
    RUN(unreadable_device);
    RUN(unwritable_device);
    return TEST_RESULT;
}
