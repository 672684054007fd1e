/* ckpt_points.c - a save of two ranks, with the process killed just before each system call in turn
 * that changes something, or that call failing, once or with all that follow: where ckpt_kill.c
 * meets some of these points by chance. After each the newest checkpoint is the one before or this
 * one, whole, and this one if any rank was told so.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "content.h"
#include "place.h"
#include "proc.h"
#include "test.h"

enum {
    RANKS = 2,
    BYTES = 600000,
    POINTS_SHORT = 40, /* of each way; WEIR_TEST_LONG: all */
    HANG_MS = 300000,
    KEEP_LAST = 2,
};
#define LONG_NS 120000000000ull

enum way { WAY_COUNT, WAY_KILL, WAY_EIO, WAY_ENOSPC, WAY_EIO_ON, WAYS };
static const char *const way_names[WAYS] = {"count", "kill", "EIO", "ENOSPC", "EIO for ever"};

/* One life, and what came of it. */
static struct shared {
    char root[PLACE_ROOM];
    enum way way;
    unsigned life, number; /* of the call at which it happens */
    atomic_uint calls;
    atomic_int told; /* a rank was told that it is committed */
} * shared;

static int pass(void)
{
    unsigned call = atomic_fetch_add(&shared->calls, 1) + 1;
    if (shared->way == WAY_COUNT || call < shared->number)
        return 0;
    if (shared->way == WAY_KILL)
        kill(getpid(), SIGKILL);
    if (call > shared->number && shared->way != WAY_EIO_ON)
        return 0;
    return shared->way == WAY_ENOSPC ? -ENOSPC : -EIO;
}

static void join(weir_store *store, uint32_t rank, weir_ckpt **out)
{
    uint8_t token[16] = {(uint8_t)shared->life, (uint8_t)(shared->life >> 8), 7};
    weir_ckpt_options opts;
    weir_ckpt_options_init(&opts);
    opts.rank = rank;
    opts.ranks = RANKS;
    opts.token = token;
    opts.keep_last = KEEP_LAST;
    opts.retired_grace_s = 0;
    opts.staging_bytes_max = 4 << 20;
    OK(weir_ckpt_open(out, store, "run", &opts));
}

static int save_main(void *arg)
{
    static uint8_t data[BYTES];
    static const uint64_t shape[] = {BYTES}, whole[] = {RANKS * BYTES};
    weir_ckpt *ckpt[RANKS];
    weir_saving *saving[RANKS];
    (void)arg;
    calls_arm(pass); /* before the store is opened, but nothing is counted yet */
    unsigned number = shared->number;
    shared->number = UINT32_MAX;
    weir_store *store = store_must_open(shared->root, "threads", 0, 0);
    for (uint32_t i = 0; i < RANKS; i++)
        join(store, i, &ckpt[i]);
    atomic_store(&shared->calls, 0);
    shared->number = number;
    for (uint32_t i = 0; i < RANKS; i++) {
        const uint64_t offset[] = {i * (uint64_t)BYTES};
        const weir_tensor tensor = {.name = "w",
                                    .dtype = "U8",
                                    .ndim = 1,
                                    .shape = shape,
                                    .global_shape = whole,
                                    .offset = offset,
                                    .data = data};
        content_fill(data, shared->life, offset[0], BYTES);
        weir_save_options opts = {.struct_size = sizeof opts, .meta = "{}", .state = "[]"};
        OK(weir_ckpt_save(ckpt[i], shared->life, &tensor, 1, &opts, &saving[i]));
    }
    for (uint32_t i = 0; i < RANKS; i++)
        weir_saving_wait(saving[i], WEIR_LEVEL_NODE, LONG_NS);
    for (uint32_t i = 0; i < RANKS; i++) {
        int code = weir_saving_wait(saving[i], WEIR_LEVEL_HOME, 0);
        if (!code)
            atomic_store(&shared->told, 1);
        CHECK(!code || weir_error_text()[0]);
        weir_saving_close(saving[i]);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        weir_ckpt_close(ckpt[i]);
    weir_store_close(store);
    return 0;
}

/* Which step is the newest; all bytes of it are right. */
static uint64_t newest(weir_store *store)
{
    static uint8_t copy[RANKS * BYTES], want[RANKS * BYTES];
    weir_restore *restore;
    OK(weir_restore_open(&restore, store, "run", WEIR_STEP_NEWEST));
    uint64_t step = weir_restore_info_get(restore)->step;
    const weir_slice slice = {.tensor = 0, .data = copy};
    OK(weir_restore_read(restore, &slice, 1, NULL, NULL));
    content_fill(want, step, 0, sizeof want);
    CHECK(!memcmp(copy, want, sizeof want));
    weir_restore_close(restore);
    return step;
}

static uint64_t last; /* the newest so far */

static void one_point(weir_store *store, enum way way, unsigned number)
{
    shared->way = way;
    shared->number = number;
    shared->life++;
    atomic_store(&shared->told, 0);
    int answer = proc_run_ms(save_main, NULL, HANG_MS);
    if (answer && answer != 128 + SIGKILL)
        printf("%s at call %u: the process ended with %d\n", way_names[way], number, answer);
    CHECK(answer == 0 || (way == WAY_KILL && answer == 128 + SIGKILL));
    uint64_t step = newest(store);
    bool good = step == shared->life || (step == last && !atomic_load(&shared->told));
    if (!good)
        printf("%s at call %u: step %lu is the newest, not %u\n", way_names[way], number,
               (unsigned long)step, shared->life);
    CHECK(good);
    last = step;
}

int main(void)
{
    const char *base = place_temp(place_memory());
    unsigned most = getenv("WEIR_ROUNDS")      ? (unsigned)atoi(getenv("WEIR_ROUNDS"))
                    : getenv("WEIR_TEST_LONG") ? UINT32_MAX
                                               : POINTS_SHORT;
    shared = shared_alloc(sizeof *shared);
    snprintf(shared->root, sizeof shared->root, "%.*s/store", PLACE_ROOM - 8, base);
    weir_store *store = store_must_open(shared->root, "threads", WEIR_STORE_CREATE, 0);
    for (unsigned i = 0; i < KEEP_LAST + 2; i++) /* until one is retired and collected */
        one_point(store, WAY_COUNT, 0);
    unsigned calls = atomic_load(&shared->calls), stride = calls / most + 1;
    CHECK(calls > 50);
    for (enum way way = WAY_KILL; way < WAYS; way++) {
        unsigned done = 0, began = shared->life, kept = 0;
        for (unsigned n = 1 + (unsigned)way % stride; n <= calls; n += stride, done++) {
            uint64_t before = last;
            one_point(store, way, n);
            kept += last != before;
        }
        printf("%s: %u of %u calls; %u saves committed nevertheless\n", way_names[way], done, calls,
               kept);
        CHECK(kept < shared->life - began); /* it did hit something */
    }
    one_point(store, WAY_COUNT, 0);
    CHECK(last == shared->life);
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    CHECK(newest(store) == last);
    weir_store_close(store);
    return TEST_RESULT;
}
