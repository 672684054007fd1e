/* power_loss.c - the power goes after every single system call of a busy life: what was
 * acknowledged is there, exact; what was not is there whole or not at all; nothing is damaged; gc
 * leaves nothing behind; and life goes on.
 *
 * First one fixed story, cut at every point, with several draws of what survives. Then a random
 * story for each seed, with several boots, on file systems that differ.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "model.h"
#include "seeds.h"
#include "sim.h"
#include "sweep.h"
#include "test.h"
#include "util/sys.h"

enum {
    GRACE_S = 100,
    DRAWS = 4, /* of what survives, for each point of the fixed story */
    KEYS = 10,
    STEPS_MAX = 14,
    BOOTS = 3,
};

static const char *const keys[KEYS] = {"a",   "a/b", "a/c",   "d/e/f", "d/e/g",
                                       "d/e", "k",   "x/y/z", "x/y",   "k/l"};

/* A put that may fail: the power may be gone. */
static void put(struct sim_model *model, weir_store *store, const char *key, size_t size)
{
    struct sim_put how = {
        .value = sim_value_new(size),
        .block_bytes = 4096,
        .known = size & 1,
        .in_place = size & 2,
    };
    int code = sim_model_put(model, store, key, &how);
    CHECK(!code || code == -EEXIST || sim.off);
}

static void drop(struct sim_model *model, weir_store *store, const char *key)
{
    int code = sim_model_remove(model, store, key);
    CHECK(!code || code == -ENOENT || sim.off);
}

static void collect(weir_store *store, uint32_t flags)
{
    int code = weir_gc(store, flags, NULL, NULL, NULL);
    CHECK(!code || sim.off);
}

/* What must hold after every reboot. */
static void after_reboot(struct sim_model *model, bool go_on)
{
    weir_store *store;
    CHECK_EQ(sim_fs_open_count(sim.fs), 0);
    OK(sim_store_open(&store, GRACE_S));
    sim_model_check(model, store);
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    sim_model_audit(model);
    sim_model_check(model, store);
    for (unsigned i = 0; go_on && i < model->count; i++) {
        const struct sim_fact *fact = &model->facts[i];
        if (fact->may[0] != SIM_ABSENT)
            continue;
        put(model, store, fact->key, 64);
        CHECK(fact->may[0] != SIM_ABSENT);
    }
    if (go_on)
        sim_model_check(model, store);
    weir_store_close(store);
    CHECK_EQ(sim_fs_open_count(sim.fs), 0);
}

/* ---- the fixed story ---- */

static void story(struct sim_model *model)
{
    weir_store *store;
    int code = sim_store_open(&store, GRACE_S);
    CHECK(!code || sim.off);
    if (code)
        return;
    put(model, store, "a", 100);
    put(model, store, "a", 200); /* exists */
    put(model, store, "a/b", 3 * 4096 + 100);
    put(model, store, "d/e/f", 1000);
    put(model, store, "o/x", 5000);
    drop(model, store, "a");
    put(model, store, "a", 300);
    collect(store, 0);
    drop(model, store, "d/e/f"); /* its directories go */
    put(model, store, "d/e/f", 700);
    put(model, store, "d/e/g", 0);
    drop(model, store, "o/x");
    sim_sleep(2 * GRACE_S * 1000000000ull);
    collect(store, 0);
    drop(model, store, "a/b");
    put(model, store, "big", (1 << 20) + 5000);
    drop(model, store, "d/e/g");
    collect(store, WEIR_GC_NOW);
    weir_store_close(store);
}

/* Returns how many calls the story took. */
static uint64_t cut(uint64_t cut_after, uint64_t seed)
{
    static struct sim_model model;
    model = (struct sim_model){0};
    sim_values_rewind(0);
    sim_start(1, NULL);
    sim.cut_after = cut_after;
    story(&model);
    uint64_t calls = sim.calls;
    sim_reboot(seed);
    after_reboot(&model, true);
    sim_stop();
    return calls;
}

static void every_point(void)
{
    sim_every_cut(DRAWS, cut);
}

/* ---- a root that somebody else has just made ---- */

/* Somebody made the first `made` directories of the way to the store, and synced none (mkdir -p; or
 * one of us died in between). Then the n-th call fails (0: none does). What is acknowledged all the
 * same must survive a power loss. Returns how many calls it took. */
static uint64_t unsynced_root(const char *root, unsigned made, uint64_t nth, uint64_t seed)
{
    static const char *const way[] = {"/x", "/x/y", "/x/y/store"};
    weir_store *store;
    struct sim_put how = {.value = sim_value_new(100)};
    sim_start(seed, NULL);
    for (unsigned i = 0; i < made; i++)
        OK(weir_sys->mkdir(AT_FDCWD, way[i], 0777));
    uint64_t before = sim.calls;
    sim.fault = (struct sim_fault){SIM_FAULT_EIO, before + nth, nth > 0};
    int code = sim_store_open_at(&store, root, GRACE_S);
    CHECK(!code || nth);
    if (!code) {
        code = sim_put(store, "k", &how);
        CHECK(!code || nth);
        weir_store_close(store);
    }
    uint64_t calls = sim.calls - before, value;
    weir_kind kind;
    sim_reboot(seed);
    if (!code) {
        OK(sim_store_open_at(&store, root, 0));
        OK(sim_get(store, "k", &value, &kind));
        CHECK_EQ(value, how.value);
        weir_store_close(store);
    }
    sim_stop();
    return calls;
}

static void unsynced_roots(void)
{
    static const char *const roots[] = {"/x/y/store", "x/y/store", "x//y/./store/"};
    uint64_t cases = 0;
    for (unsigned i = 0; i < 3 * 4; i++) {
        const char *root = roots[i / 4];
        sim_values_rewind(0);
        uint64_t calls = unsynced_root(root, i % 4, 0, 1);
        for (uint64_t nth = 0; nth <= calls; nth++)
            for (uint64_t draw = 0; draw < 2 * DRAWS; draw++) {
                uint64_t number = 2000000 + ++cases;
                if (!sim_case_wanted(number, 1))
                    continue;
                sim_scene(number, "'%s', of which %u directories are there, and call %llu fails",
                          root, i % 4, (unsigned long long)nth);
                sim_values_rewind(0);
                unsynced_root(root, i % 4, nth, number);
            }
    }
}

/* ---- random stories ---- */

static size_t draw_size(struct weir_rng *rng)
{
    switch (weir_rng_below(rng, 40)) {
    case 0:
        return 0;
    case 1:
        return (1 << 20) + weir_rng_below(rng, 600000);
    case 2:
    case 3:
    case 4:
    case 5:
        return 8 + weir_rng_below(rng, 40000);
    default:
        return 8 + weir_rng_below(rng, 1500);
    }
}

static void random_step(struct sim_model *model, weir_store *store, struct weir_rng *rng,
                        unsigned *once)
{
    char name[32];
    const char *key = keys[weir_rng_below(rng, KEYS)];
    uint64_t dice = weir_rng_below(rng, 100);
    if (dice < 50) {
        put(model, store, key, draw_size(rng));
    } else if (dice < 58) {
        snprintf(name, sizeof name, "once/%u", (*once)++); /* nobody ever reuses it */
        put(model, store, name, draw_size(rng));
    } else if (dice < 85) {
        if (*once && dice < 63) {
            snprintf(name, sizeof name, "once/%llu",
                     (unsigned long long)weir_rng_below(rng, *once));
            key = name;
        }
        drop(model, store, key);
    } else {
        sim_sleep(weir_rng_below(rng, 3) * GRACE_S * 1000000000ull);
        collect(store, dice < 90 ? WEIR_GC_NOW : 0);
    }
}

static void random_life(struct sim_model *model, struct weir_rng *rng, unsigned *once)
{
    weir_store *store;
    int code = sim_store_open(&store, GRACE_S);
    CHECK(!code || sim.off);
    if (code)
        return;
    uint64_t steps = 2 + weir_rng_below(rng, STEPS_MAX);
    for (uint64_t i = 0; i < steps && !sim.off; i++)
        random_step(model, store, rng, once);
    if (!sim.off && weir_rng_percent(rng, 50)) {
        sim.cut_after = SIM_FOREVER; /* after the story */
        sim_model_check(model, store);
    }
    weir_store_close(store);
}

static void random_story(uint64_t seed)
{
    static struct sim_model model;
    struct weir_rng rng = weir_rng_fork(seed, 9);
    unsigned once = 0;
    model = (struct sim_model){0};
    sim_values_rewind(0);
    sim_start(seed, NULL);
    sim.fs->quirks = (struct sim_quirks){
        .no_direct = weir_rng_percent(&rng, 15),
        .late_direct = weir_rng_percent(&rng, 15),
        .no_fallocate = weir_rng_percent(&rng, 20),
        .no_types = weir_rng_percent(&rng, 20),
        .user = weir_rng_percent(&rng, 30),
        .dents_max = (unsigned)weir_rng_below(&rng, 4),
    };
    for (int boot = 0; boot < BOOTS; boot++) {
        /* Past the end of most stories now and then: what then? Everything is acknowledged. */
        sim.cut_after = sim.calls + weir_rng_below(&rng, 500);
        random_life(&model, &rng, &once);
        sim_reboot(weir_rng_next(&rng));
        after_reboot(&model, boot == BOOTS - 1);
    }
    sim_stop();
}

static void random_stories(void)
{
    sim_each_seed("a random story", random_story);
}

int main(void)
{
    sim_seeds_init();
    RUN(every_point);
    RUN(unsynced_roots);
    RUN(random_stories);
    return TEST_RESULT;
}
