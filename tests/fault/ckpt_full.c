/* ckpt_full.c - a store that is full: the save fails at its handle and says so, training goes on,
 * the next save works when there is room again, and after a gc nothing is left of the failed one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "content.h"
#include "place.h"
#include "test.h"

enum { MIB = 1 << 20, RANKS = 2, BYTES = 5 * MIB };
#define LONG_NS 300000000000ull

struct site {
    weir_store *store;
    weir_ckpt *ckpt[RANKS];
    weir_saving *saving[RANKS];
};

static uint8_t data[BYTES];

static void begin(struct site *s, uint64_t step, uint64_t bytes)
{
    const uint64_t shape[] = {bytes}, whole[] = {RANKS * bytes};
    for (uint32_t i = 0; i < RANKS; i++) {
        const uint64_t offset[] = {i * bytes};
        const weir_tensor tensor = {.name = "w",
                                    .dtype = "U8",
                                    .ndim = 1,
                                    .shape = shape,
                                    .global_shape = whole,
                                    .offset = offset,
                                    .data = data};
        content_fill(data, 100 + step, i * bytes, bytes);
        weir_save_options opts = {.struct_size = sizeof opts, .state = "{}"};
        OK(weir_ckpt_save(s->ckpt[i], step, &tensor, 1, &opts, &s->saving[i]));
    }
}

static void finish(struct site *s, int code)
{
    unsigned failed = 0;
    for (uint32_t i = 0; i < RANKS; i++) {
        int got = weir_saving_wait(s->saving[i], WEIR_LEVEL_NODE, LONG_NS);
        if (!got)
            got = weir_saving_wait(s->saving[i], WEIR_LEVEL_HOME, code ? 0 : LONG_NS);
        else if (got == code)
            CHECK(strstr(weir_error_text(), "ckpt/full/"));
        /* One of them may have had room enough: then it waits for the other one. */
        CHECK(got == code || (code && got == -ETIMEDOUT));
        failed += got == code;
        weir_saving_close(s->saving[i]);
    }
    CHECK(failed);
}

static void newest_is(struct site *s, uint64_t step, uint64_t bytes)
{
    static uint8_t copy[RANKS * BYTES];
    weir_restore *restore;
    OK(weir_restore_open(&restore, s->store, "full", WEIR_STEP_NEWEST));
    CHECK_EQ(weir_restore_info_get(restore)->step, step);
    const weir_slice slice = {.tensor = 0, .data = copy};
    OK(weir_restore_read(restore, &slice, 1, NULL, NULL));
    for (uint32_t i = 0; i < RANKS; i++) {
        content_fill(data, 100 + step, i * bytes, bytes);
        CHECK(!memcmp(copy + i * bytes, data, bytes));
    }
    weir_restore_close(restore);
}

static unsigned objects_with(weir_store *store, const char *part)
{
    weir_list *list;
    const weir_entry *entry;
    unsigned count = 0;
    OK(weir_list_open(&list, store, "ckpt", WEIR_LIST_RECURSIVE));
    while (weir_list_next(list, &entry) == 1)
        count += strstr(entry->key, part) != NULL;
    weir_list_close(list);
    return count;
}

static uint64_t free_bytes(weir_store *store)
{
    weir_store_info info;
    OK(weir_store_info_get(store, &info));
    return info.free_bytes;
}

static void on(const char *url)
{
    static const uint8_t token[16] = {1};
    struct site s = {.store = store_must_open(url, NULL, WEIR_STORE_CREATE, 0)};
    weir_ckpt_options opts;
    weir_ckpt_options_init(&opts);
    opts.ranks = RANKS;
    opts.token = token;
    opts.staging_bytes_max = 4 * MIB;
    for (opts.rank = 0; opts.rank < RANKS; opts.rank++)
        OK(weir_ckpt_open(&s.ckpt[opts.rank], s.store, "full", &opts));
    begin(&s, 1, MIB);
    finish(&s, 0);
    uint64_t room = free_bytes(s.store), filler = (room - 7 * MIB) & ~(uint64_t)(MIB - 1);
    OK(content_put(s.store, "filler", (struct content){1, filler}, 0));
    for (uint64_t step = 2; step < 4; step++) {
        begin(&s, step, BYTES);
        finish(&s, -ENOSPC);
        newest_is(&s, 1, MIB);
    }
    OK(weir_remove(s.store, "filler"));
    begin(&s, 4, BYTES);
    finish(&s, 0);
    newest_is(&s, 4, BYTES);
    for (uint32_t i = 0; i < RANKS; i++)
        weir_ckpt_close(s.ckpt[i]);
    OK(weir_gc(s.store, WEIR_GC_NOW, NULL, NULL, NULL));
    CHECK(!objects_with(s.store, "/2-1.2/") && !objects_with(s.store, "/3-1.3/"));
    CHECK(objects_with(s.store, "/4-1.4/") >= 3 * RANKS);
    newest_is(&s, 4, BYTES);
    uint64_t now = free_bytes(s.store); /* both checkpoints, and a little for directories */
    CHECK(now + RANKS * BYTES + 2 * MIB > room);
    weir_store_close(s.store);
}

static void memory_full(void)
{
    on("mem:?size=32M");
}

static void on_mount(const char *kind, uint64_t bytes)
{
    char mount[PLACE_ROOM], root[PLACE_ROOM + 8];
    const char *why = place_mount(mount, kind, bytes);
    if (why) {
        printf("  SKIP %s: %s\n", kind, why);
        return;
    }
    snprintf(root, sizeof root, "%s/store", mount);
    on(root);
    place_unmount(mount);
}

static void tmpfs_full(void)
{
    on_mount("tmpfs", 40 * MIB);
}

static void ext4_full(void)
{
    on_mount("ext4", 64 * MIB);
}

int main(void)
{
    RUN(memory_full);
    const char *why = place_private();
    if (why)
        SKIP("%s", why);
    RUN(tmpfs_full);
    RUN(ext4_full);
    return TEST_RESULT;
}
