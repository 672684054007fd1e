/* enospc.c - a full file system: what does not fit fails with ENOSPC and a text that says so and
 * names the object, what was acknowledged stays exact, the space comes back, and removing works
 * although there is no byte left.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "content.h"
#include "disk.h"
#include "io/io.h"
#include "place.h"
#include "proc.h"
#include "store/store.h"
#include "test.h"

enum {
    MIB = 1 << 20,
    FILL_OBJECTS = 3000,
    FILL_LEAVE = 5 * MIB,     /* what small objects are to fill */
    BACK_TOLERANCE = 1 * MIB, /* directories and journals keep a little */
    BACK_WAIT_MS = 120000,    /* XFS frees in the background */
};

struct site {
    const char *kind, *engine;
    char mount[PLACE_ROOM], root[PLACE_ROOM + 8];
    weir_store *store;
    unsigned filled; /* objects "fill/…" that were acknowledged: */
    bool there[FILL_OBJECTS];
};

static const struct content keep_small = {11, 5000}, keep_middle = {12, 3 * MIB + 1};

static void check_kept(struct site *s)
{
    OK(content_expect(s->store, "keep/small", keep_small));
    OK(content_expect(s->store, "keep/deep/middle", keep_middle));
}

static void check_no_space(const char *key, int code)
{
    const char *text = weir_error_text();
    CHECK_EQ(code, -ENOSPC);
    CHECK(strstr(text, "No space left") || strstr(text, "is full"));
    CHECK(strstr(text, key));
}

static void check_given_back(struct site *s, uint64_t before)
{
    uint64_t now = 0, end_ns = now_ns() + BACK_WAIT_MS * 1000000ull;
    do
        now = place_free_bytes(s->mount);
    while (now + BACK_TOLERANCE < before && now_ns() < end_ns && (sleep_ms(20), true));
    if (now + BACK_TOLERANCE < before)
        printf("%s: %llu bytes were free, %llu are\n", s->kind, (unsigned long long)before,
               (unsigned long long)now);
    CHECK(now + BACK_TOLERANCE >= before);
}

/* ---- one object that does not fit ---- */

static void too_large(struct site *s, unsigned how)
{
    uint64_t before = place_free_bytes(s->mount);
    check_no_space("large/one", content_put(s->store, "large/one",
                                            (struct content){21, before + 9 * MIB + 5}, how));
    check_kept(s);
    check_given_back(s, before);
    struct content found, half = {22 + how, before / 2};
    CHECK_EQ(content_get(&found, s->store, "large/one"), -ENOENT);
    OK(content_put(s->store, "large/one", half, how));
    OK(content_expect(s->store, "large/one", half));
    OK(weir_remove(s->store, "large/one"));
    check_given_back(s, before);
}

/* A stream of unknown length takes space ahead; what others need is not its to take. */
static void side_by_side(struct site *s)
{
    static char piece[MIB];
    weir_put *put;
    OK(weir_put_open(&put, s->store, "stream", NULL));
    for (unsigned i = 0; i < 3; i++)
        OK(weir_put_write(put, piece, sizeof piece));
    OK(content_put(s->store, "side/by/side", keep_middle, 0));
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
    OK(weir_verify(s->store, "stream", NULL, NULL));
    OK(weir_remove(s->store, "stream"));
    OK(weir_remove(s->store, "side/by/side"));
}

/* ---- many small ones ---- */

static struct content fill_content(unsigned i)
{
    static const uint64_t sizes[] = {0, 100, 3000, 9000, 30000};
    return (struct content){1000 + i, sizes[i % 5]};
}

static void fill_key(char key[64], unsigned i)
{
    snprintf(key, 64, "fill/%u/%u/o%u", i % 7, i / 50, i);
}

/* A file of the test's own that leaves only `leave` bytes free. */
static void take_space(struct site *s, uint64_t leave)
{
    char path[2 * PLACE_ROOM];
    static const char zeros[65536];
    snprintf(path, sizeof path, "%s/filler", s->mount);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    uint64_t free = place_free_bytes(s->mount);
    if (leave && free > leave)
        posix_fallocate(fd, 0, (off_t)(free - leave));
    for (size_t size = sizeof zeros; !leave && size; size /= 2)
        while (write(fd, zeros, size) > 0)
            ;
    if (fsync(fd)) /* delayed allocation finds out now; that is what is wanted */
        CHECK(errno == ENOSPC || errno == EIO);
    close(fd);
}

static void drop_filler(struct site *s)
{
    char path[2 * PLACE_ROOM];
    snprintf(path, sizeof path, "%s/filler", s->mount);
    unlink(path);
}

static void fill(struct site *s)
{
    unsigned full = 0;
    for (unsigned i = 0; i < FILL_OBJECTS && full < 20; i++) {
        char key[64];
        fill_key(key, i);
        int code = content_put(s->store, key, fill_content(i), i % 2 ? CONTENT_HINT : 0);
        if (code)
            check_no_space(key, code);
        full += code != 0;
        s->there[i] = !code;
        s->filled += !code;
    }
    CHECK_EQ(full, 20);
}

static void check_filled(struct site *s)
{
    for (unsigned i = 0; i < FILL_OBJECTS; i++) {
        char key[64];
        struct content found;
        fill_key(key, i);
        if (s->there[i])
            OK(content_expect(s->store, key, fill_content(i)));
        else
            CHECK_EQ(content_get(&found, s->store, key), -ENOENT);
    }
    check_kept(s);
}

static void remove_filled(struct site *s, unsigned step)
{
    for (unsigned i = 0; i < FILL_OBJECTS; i += step) {
        char key[64];
        fill_key(key, i);
        if (s->there[i])
            OK(weir_remove(s->store, key));
        s->there[i] = false;
    }
}

static void many_small(struct site *s)
{
    take_space(s, FILL_LEAVE);
    fill(s);
    take_space(s, 0); /* and now nothing at all is left */
    uint64_t before = place_free_bytes(s->mount);
    check_filled(s);
    remove_filled(s, 2);
    check_filled(s);
    OK(weir_gc(s->store, WEIR_GC_NOW, NULL, NULL, NULL));
    uint64_t after = place_free_bytes(s->mount);
    CHECK(after > before);
    OK(content_put(s->store, "again", (struct content){31, 9000}, 0));
    OK(content_expect(s->store, "again", (struct content){31, 9000}));
    CHECK_EQ(disk_debris(s->store, s->root), 0);
    printf("  %s, %s: %u small objects filled it; removing half of them gave %llu KiB back\n",
           s->kind, s->engine, s->filled, (unsigned long long)(after - before) >> 10);
    drop_filler(s);
    remove_filled(s, 1);
    OK(weir_remove(s->store, "again"));
}

/* ---- the whole ---- */

static void on_site(const char *kind, const char *engine, uint64_t bytes, bool large)
{
    struct site *s = calloc(1, sizeof *s);
    CHECK(s);
    s->kind = kind;
    s->engine = engine;
    const char *why = place_mount(s->mount, kind, bytes);
    if (why) {
        printf("  SKIP %s: %s\n", kind, why);
        free(s);
        return;
    }
    snprintf(s->root, sizeof s->root, "%s/store", s->mount);
    s->store = store_must_open(s->root, engine, WEIR_STORE_CREATE, 0);
    OK(content_put(s->store, "keep/small", keep_small, 0));
    OK(content_put(s->store, "keep/deep/middle", keep_middle, 0));
    uint64_t before = place_free_bytes(s->mount);
    if (large) {
        side_by_side(s);
        too_large(s, CONTENT_HINT);
        too_large(s, 0);
        too_large(s, CONTENT_IN_PLACE);
    }
    many_small(s);
    check_kept(s);
    check_given_back(s, before);
    CHECK_EQ(disk_debris(s->store, s->root), 0);
    weir_store_close(s->store);
    place_unmount(s->mount);
    free(s);
}

static void each_engine(const char *kind, uint64_t bytes, bool large)
{
    for (uint64_t i = weir_io_uring_fault() ? 1 : 0; i < 2; i++)
        on_site(kind, engine_pick(i), bytes, large);
}

static void tmpfs_full(void)
{
    each_engine("tmpfs", 48 * MIB, true);
}

static void tmpfs_without_inodes(void)
{
    each_engine("tmpfs-inodes", 48 * MIB, false);
}

static void ext4_full(void)
{
    each_engine("ext4", 64 * MIB, true);
}

static void xfs_full(void)
{
    each_engine("xfs", 320ull * MIB, true);
}

/* What is kept to be written over is in nobody's way: it is used, or it goes. */
static void with_spares(const char *kind, uint64_t bytes)
{
    struct site s = {.kind = kind};
    const struct content large = {51, 12 * MIB}, other = {52, 5 * MIB}, small = {53, 30000};
    char url[2 * PLACE_ROOM];
    weir_gc_result result;
    const char *why = place_mount(s.mount, kind, bytes);
    if (why) {
        printf("  SKIP %s: %s\n", kind, why);
        return;
    }
    snprintf(s.root, sizeof s.root, "%s/store", s.mount);
    snprintf(url, sizeof url, "file://%s?spare_min=1M", s.root);
    s.store = store_must_open(url, NULL, WEIR_STORE_CREATE, 0);
    OK(content_put(s.store, "keep/small", keep_small, 0));
    OK(content_put(s.store, "keep/deep/middle", keep_middle, 0));
    OK(content_put(s.store, "a", large, CONTENT_HINT));
    OK(weir_remove_object(s.store, "a", true, NULL));
    take_space(&s, 2 * MIB);
    OK(content_put(s.store, "b", large, CONTENT_HINT)); /* over the old one */
    OK(content_expect(s.store, "b", large));
    drop_filler(&s);
    OK(weir_remove_object(s.store, "b", true, NULL));
    take_space(&s, 2 * MIB);
    OK(content_put(s.store, "c", other, CONTENT_HINT)); /* in its place: it does not fit */
    OK(content_expect(s.store, "c", other));
    drop_filler(&s);
    OK(content_put(s.store, "d", large, CONTENT_HINT));
    OK(weir_remove_object(s.store, "d", true, NULL));
    OK(weir_gc(s.store, WEIR_GC_DRY_RUN, &result, NULL, NULL));
    CHECK_EQ(result.spare_bytes, large.size);
    take_space(&s, 0);
    OK(content_put(s.store, "e", small, 0));
    OK(content_expect(s.store, "e", small));
    check_kept(&s);
    drop_filler(&s);
    weir_store_close(s.store);
    place_unmount(s.mount);
}

static void full_of_spares(void)
{
    with_spares("ext4", 64 * MIB);
    with_spares("xfs", 320ull * MIB);
}

static void memory_full(void)
{
    weir_store *store = store_must_open("mem:?size=8M", NULL, WEIR_STORE_CREATE, 0);
    weir_store_info info;
    OK(content_put(store, "keep", keep_small, 0));
    OK(weir_store_info_get(store, &info));
    uint64_t before = info.free_bytes;
    for (unsigned how = 0; how < 4; how++) {
        check_no_space("large/one",
                       content_put(store, "large/one", (struct content){41, 20 * MIB}, how));
        OK(weir_store_info_get(store, &info));
        CHECK_EQ(info.free_bytes, before);
        OK(content_put(store, "large/one", (struct content){42, 5 * MIB}, how));
        OK(content_expect(store, "large/one", (struct content){42, 5 * MIB}));
        OK(content_expect(store, "keep", keep_small));
        OK(weir_remove(store, "large/one"));
    }
    OK(weir_store_info_get(store, &info));
    CHECK_EQ(info.free_bytes, before);
    weir_store_close(store);
}

int main(void)
{
    RUN(memory_full);
    const char *why = place_private();
    if (why)
        SKIP("%s", why);
    RUN(tmpfs_full);
    RUN(tmpfs_without_inodes);
    RUN(ext4_full);
    RUN(xfs_full);
    RUN(full_of_spares);
    return TEST_RESULT;
}
