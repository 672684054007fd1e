/* fs.c - the same protocol on every file system that can be had here: puts of every alignment,
 * gets, a race, keys beside directories, removes, directories that others removed, gc. What is not
 * to be had is named, not failed. Prints for each whether transfers went around the page cache.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "content.h"
#include "disk.h"
#include "io/io.h"
#include "place.h"
#include "proc.h"
#include "test.h"
#include "util/sys.h"

enum { MIB = 1 << 20, RACES = 20, HANG_MS = 300000 };

static const uint64_t sizes[] = {
    0, 1, 4095, 4096, 4097, 131071, 131073, 2 * MIB - 1, 2 * MIB - 512, 2 * MIB,
    2 * MIB + 512, 2 * MIB + 1, 17 * MIB + 12345,
};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static struct {
    char root[PLACE_ROOM + 16];
    atomic_uint arrived, wins[RACES];
    struct content winner[RACES];
    int direct_fd, cached; /* of a large put: -1 not known */
} *t;

static void size_key(char key[64], unsigned i, unsigned how)
{
    snprintf(key, 64, "sizes/of %u/%llu", how, (unsigned long long)sizes[i]);
}

static struct content size_content(unsigned i, unsigned how)
{
    return (struct content){mix(i, how), sizes[i]};
}

static void put_and_get(weir_store *store)
{
    char key[64];
    for (unsigned how = 0; how < 4; how++)
        for (unsigned i = 0; i < SIZES; i++) {
            size_key(key, i, how);
            OK(content_put(store, key, size_content(i, how), how));
        }
    for (unsigned how = 0; how < 4; how++)
        for (unsigned i = 0; i < SIZES; i++) {
            size_key(key, i, how);
            OK(content_expect(store, key, size_content(i, how)));
            CHECK_EQ(content_put(store, key, size_content(i, how), how), -EEXIST);
        }
}

static void remove_sizes(weir_store *store)
{
    for (unsigned how = 0; how < 4; how++)
        for (unsigned i = 0; i < SIZES; i++) {
            char key[64];
            struct content found;
            size_key(key, i, how);
            OK(weir_remove(store, key));
            CHECK_EQ(content_get(&found, store, key), -ENOENT);
        }
}

static void beside(weir_store *store)
{
    static const char *const keys[] = {"a", "a/b", "a/b/c", "z/y", "z"};
    for (unsigned i = 0; i < 5; i++)
        OK(content_put(store, keys[i], (struct content){50 + i, 100 * i}, 0));
    for (unsigned i = 0; i < 5; i++)
        OK(content_expect(store, keys[i], (struct content){50 + i, 100 * i}));
    for (unsigned i = 0; i < 5; i++)
        OK(weir_remove(store, keys[i]));
}

static int remove_main(void *arg)
{
    weir_store *store = store_must_open(t->root, NULL, 0, 0);
    OK(weir_remove(store, arg));
    weir_store_close(store);
    return 0;
}

/* Another process empties, and so removes, directories that this one keeps open. */
static void directories_vanish(weir_store *store)
{
    for (unsigned i = 0; i < 3; i++) {
        OK(content_put(store, "v/w/x", (struct content){60 + i, 1000}, 0));
        CHECK_EQ(proc_run_ms(remove_main, "v/w/x", HANG_MS), 0);
        struct content found;
        CHECK_EQ(content_get(&found, store, "v/w/x"), -ENOENT);
    }
    OK(content_put(store, "v/w/x", (struct content){69, 1000}, 0));
    OK(content_expect(store, "v/w/x", (struct content){69, 1000}));
    OK(weir_remove(store, "v/w/x"));
}

/* ---- does it go around the page cache? ---- */

/* 1 if a descriptor of this process was opened with O_DIRECT. */
static int has_direct(void)
{
    DIR *dir = opendir("/proc/self/fdinfo");
    int found = dir ? 0 : -1;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[300], line[128];
        snprintf(path, sizeof path, "/proc/self/fdinfo/%s", entry->d_name);
        FILE *file = fopen(path, "re");
        unsigned flags;
        while (file && fgets(line, sizeof line, file))
            if (sscanf(line, "flags: %o", &flags) == 1 && flags & O_DIRECT)
                found = 1;
        if (file)
            fclose(file);
    }
    if (dir)
        closedir(dir);
    return found;
}

static void look_direct(weir_store *store)
{
    static char piece[MIB];
    char path[2 * PLACE_ROOM];
    weir_put *put;
    weir_object *obj;
    OK(weir_put_open(&put, store, "direct", NULL));
    for (unsigned i = 0; i < 8; i++)
        OK(weir_put_write(put, piece, sizeof piece));
    t->direct_fd = has_direct();
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
    OK(weir_object_open(&obj, store, "direct"));
    snprintf(path, sizeof path, "%s/%s", t->root, weir_object_info(obj)->data_name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    t->cached = weir_sys->resident(fd, 0, 4 * MIB);
    close(fd);
    weir_object_close(obj);
    OK(weir_verify(store, "direct", NULL, NULL));
    OK(weir_remove(store, "direct"));
}

/* ---- a race ---- */

static int race_main(void *arg)
{
    uint64_t number = *(unsigned *)arg;
    weir_store *store = store_must_open(t->root, engine_pick(number), 0, 0);
    for (unsigned i = 0; i < RACES; i++) {
        char key[64];
        struct content what = {mix(number, i), 10000 * i};
        snprintf(key, sizeof key, "race/%u/k", i);
        atomic_fetch_add(&t->arrived, 1);
        while (atomic_load(&t->arrived) < 2 * (i + 1))
            sleep_us(10);
        int code = content_put(store, key, what, 0);
        CHECK(code == 0 || code == -EEXIST);
        if (!code && atomic_fetch_add(&t->wins[i], 1) == 0)
            t->winner[i] = what;
    }
    weir_store_close(store);
    return 0;
}

static void race(weir_store *store)
{
    unsigned numbers[2] = {0, 1};
    pid_t pids[2];
    atomic_store(&t->arrived, 0);
    for (unsigned i = 0; i < RACES; i++)
        atomic_store(&t->wins[i], 0);
    for (unsigned i = 0; i < 2; i++)
        pids[i] = proc_start(race_main, &numbers[i]);
    proc_all_ok(pids, 2);
    for (unsigned i = 0; i < RACES; i++) {
        char key[64];
        snprintf(key, sizeof key, "race/%u/k", i);
        CHECK_EQ(atomic_load(&t->wins[i]), 1);
        OK(content_expect(store, key, t->winner[i]));
        OK(weir_remove(store, key));
    }
}

/* ---- gc ---- */

static void debris(weir_store *store)
{
    char path[2 * PLACE_ROOM];
    weir_gc_result result;
    snprintf(path, sizeof path, "%s/.weir/data/lost~00112233445566778899aabbccddeeff", t->root);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    CHECK(fd >= 0);
    close(fd);
    snprintf(path, sizeof path, "%s/.weir/tmp/0123", t->root);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    CHECK(fd >= 0);
    close(fd);
    OK(weir_gc(store, 0, &result, NULL, NULL));
    CHECK_EQ(result.objects + result.temporaries, 0); /* young */
    OK(weir_gc(store, WEIR_GC_NOW, &result, NULL, NULL));
    CHECK_EQ(result.objects, 1);
    CHECK_EQ(result.temporaries, 1);
    CHECK_EQ(disk_debris(store, t->root), 0);
    CHECK(disk_is_bare(t->root));
    OK(content_put(store, "lost", (struct content){70, 10}, 0));
    OK(weir_remove(store, "lost"));
}

static int protocol_main(void *arg)
{
    const char *engine = arg;
    weir_store *store = store_must_open(t->root, engine, WEIR_STORE_CREATE, 0);
    weir_store_info info;
    OK(weir_store_info_get(store, &info));
    CHECK(!strcmp(info.io, engine));
    put_and_get(store);
    beside(store);
    directories_vanish(store);
    race(store);
    CHECK_EQ(disk_debris(store, t->root), 0);
    CHECK_EQ(disk_plain_missing(store, t->root), 0);
    remove_sizes(store);
    debris(store);
    look_direct(store);
    weir_store_close(store);
    return 0;
}

static int nobody_main(void *arg)
{
    CHECK(proc_drop_root());
    return protocol_main(arg);
}

static const char *yes_no(int answer)
{
    return answer < 0 ? "unknown" : answer ? "yes" : "no";
}

static void run_on(const char *kind, const char *dir, const char *engine, proc_fn fn,
                   const char *who)
{
    static unsigned number;
    snprintf(t->root, sizeof t->root, "%s/s%u", dir, number++);
    CHECK(mkdir(t->root, 0777) == 0 && chmod(t->root, 0777) == 0);
    t->direct_fd = t->cached = -1;
    CHECK_EQ(proc_run_ms(fn, (void *)engine, HANG_MS), 0);
    printf("  %s, %s, %s: works; opened O_DIRECT: %s; written bytes in the page cache: %s\n", kind,
           engine, who, yes_no(t->direct_fd), yes_no(t->cached));
    fflush(stdout);
}

static void on_kind(const char *kind, uint64_t bytes)
{
    char dir[PLACE_ROOM];
    const char *why = place_mount(dir, kind, bytes);
    if (why) {
        printf("  SKIP %s: %s\n", kind, why);
        return;
    }
    for (uint64_t i = weir_io_uring_fault() ? 1 : 0; i < 2; i++)
        run_on(kind, dir, engine_pick(i), protocol_main, "root");
    int root_direct = t->direct_fd;
    run_on(kind, dir, engine_pick(0), nobody_main, "nobody");
    CHECK_EQ(t->direct_fd, root_direct); /* not a privilege of root's */
    place_unmount(dir);
}

static void disk_file_systems(void)
{
    on_kind("ext4", 256 * MIB);
    on_kind("ext4-4k", 256 * MIB);
    on_kind("ext2", 256 * MIB);
    on_kind("xfs", 400 * MIB);
    on_kind("xfs-4k", 400 * MIB);
    on_kind("btrfs", 400 * MIB);
}

static void other_file_systems(void)
{
    on_kind("tmpfs", 256 * MIB);
    on_kind("ramfs", 256 * MIB);
    on_kind("overlay", 256 * MIB);
    on_kind("fuse", 256 * MIB);
    printf("  SKIP nfs: a server of it is not to be had without more packages\n");
}

int main(void)
{
    t = shared_alloc(sizeof *t);
    const char *why = place_private();
    if (why) {
        const char *dir = place_temp(NULL);
        run_on("the temporary directory", dir, engine_pick(0), protocol_main, "this user");
        run_on("the temporary directory", dir, engine_pick(1), protocol_main, "this user");
        SKIP("%s", why);
    }
    RUN(disk_file_systems);
    RUN(other_file_systems);
    return TEST_RESULT;
}
