/* interleave.c - several processes at once in one store, in every order that the seeds draw: they
 * write, read, remove, list and collect, are held back past the grace, die, and lose power. What
 * they are told must be what one store could have told them (history.h), a reader only ever gets
 * bytes that one writer wrote, and afterwards nothing is left behind.
 *
 * No exception is made for plain names: they are made and removed under the store's lock together
 * with a look at the seal, so that not even two deaths at the worst instants leave one behind.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "baton.h"
#include "history.h"
#include "model.h"
#include "seeds.h"
#include "sim.h"
#include "test.h"

/* Half the grace is much longer than the life of a void (a minute): neither covers for the other.
 */
enum { GRACE_S = 1000, SECOND = 1000000000 };

/* Beside a paused machine, whose clock is no help, only the void protects a key, for a minute: gc
 * looks five times, the last time past the grace, and does not come back to remove its void. */
#define NAP_NS (GRACE_S * 26 / 100 * (uint64_t)SECOND)

/* What befalls the processes of a scenario. */
enum {
    HOLDS = 1,    /* one is held back somewhere, for a while */
    SEALS = 2,    /* writers are held between their age check and their seal */
    PAUSES = 4,   /* or anywhere, and their boot-time clock stands still meanwhile */
    KILLS = 8,    /* one or two die */
    POWER = 16,   /* the power goes */
    LIVES = 32,   /* the keys exist already */
    FRESH = 64,   /* the store does not: they make it, too */
    DEBRIS = 128, /* dead writers left data for every key, long ago */
    BACK = 256,   /* gc comes back, also for its voids */
};

enum role { NOBODY, WRITER, REMOVER, READER, COLLECTOR, ANYONE };

static const struct scenario {
    const char *name;
    enum role roles[SIM_PROCS_MAX];
    unsigned keys, flags;
} scenarios[] = {
    {"two writers", {WRITER, WRITER}, 1, 0},
    {"three writers", {WRITER, WRITER, WRITER}, 1, 0},
    {"a writer and a remover", {WRITER, REMOVER}, 1, 0},
    {"a writer and a remover of an object", {WRITER, REMOVER}, 1, LIVES},
    {"a writer, a reader and a remover", {WRITER, READER, REMOVER}, 1, 0},
    {"writers, a reader and a remover", {WRITER, WRITER, READER, REMOVER}, 1, LIVES},
    {"two removers and a writer", {REMOVER, REMOVER, WRITER, READER}, 1, LIVES},
    {"shared directories", {WRITER, REMOVER, WRITER, REMOVER, READER}, 3, LIVES},
    {"a writer past the grace", {WRITER, COLLECTOR, READER}, 1, HOLDS},
    {"writers past the grace", {WRITER, WRITER, COLLECTOR, COLLECTOR, READER}, 2, HOLDS},
    {"a writer held at its seal", {WRITER, COLLECTOR, READER}, 1, SEALS},
    {"writers held at their seals", {WRITER, WRITER, COLLECTOR, READER}, 1, SEALS},
    {"a writer on a paused machine", {WRITER, COLLECTOR, READER}, 1, PAUSES},
    {"a paused machine, and gc all over", {WRITER, COLLECTOR, COLLECTOR, WRITER}, 1, PAUSES | BACK},
    {"a paused machine beside a remover", {WRITER, REMOVER, COLLECTOR, WRITER}, 1, PAUSES | BACK},
    {"a remover and gc", {WRITER, REMOVER, COLLECTOR, READER}, 2, LIVES | HOLDS},
    {"deaths of writers and removers", {WRITER, REMOVER, READER}, 1, KILLS},
    {"deaths beside gc", {WRITER, REMOVER, COLLECTOR, READER}, 2, KILLS | LIVES},
    {"deaths at the seal", {WRITER, COLLECTOR, READER, WRITER}, 1, KILLS | SEALS},
    {"anyone", {ANYONE, ANYONE, ANYONE, ANYONE}, 3, LIVES},
    {"anyone, held and dying", {ANYONE, ANYONE, ANYONE, ANYONE, COLLECTOR}, 3, HOLDS | KILLS},
    {"power loss among writers", {WRITER, WRITER, REMOVER}, 2, POWER},
    {"power loss among anyone", {ANYONE, ANYONE, ANYONE}, 3, POWER | LIVES},
    {"deaths and power loss", {ANYONE, REMOVER, ANYONE, REMOVER}, 2, POWER | KILLS | LIVES},
    {"a dead remover and power loss", {REMOVER, REMOVER}, 1, POWER | KILLS | LIVES},
    {"gc of debris beside the living", {WRITER, REMOVER, COLLECTOR, COLLECTOR}, 1, DEBRIS},
    {"rival gcs", {WRITER, WRITER, COLLECTOR, COLLECTOR, COLLECTOR}, 1, KILLS | HOLDS},
    {"a new store", {ANYONE, ANYONE, ANYONE}, 2, FRESH},
    {"a new store, and deaths", {ANYONE, ANYONE, ANYONE}, 2, FRESH | KILLS},
    {"a new store, and power loss", {WRITER, WRITER, WRITER}, 2, FRESH | KILLS | POWER},
};
enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

/* The second shares the third's directory; the third stands below the second's plain name. */
static const char *const keys[] = {"d/k", "d/e", "d/e/f"};

static struct {
    const struct scenario *scenario;
    struct sim_history history;
    struct sim_model model;
    struct sim_proc procs[SIM_PROCS_MAX];
    unsigned count;
} world;

static bool is_dead(void)
{
    return sim_self->dead || sim.off;
}

/* ---- what processes do ---- */

static size_t draw_size(struct weir_rng *rng)
{
    uint64_t dice = weir_rng_below(rng, 200);
    return 8 + weir_rng_below(rng, dice == 0 ? 1200000 : dice < 40 ? 20000 : 700);
}

static void write_one(struct sim_proc *self, weir_store *store, const char *key)
{
    struct sim_put how = {
        .value = sim_value_new(draw_size(&self->rng)),
        .block_bytes = 4096,
        .known = weir_rng_percent(&self->rng, 50),
        .in_place = weir_rng_percent(&self->rng, 30),
    };
    unsigned event = sim_history_begin(&world.history, self->name, SIM_PUT, key, how.value);
    int code = sim_put(store, key, &how);
    /* Whoever stands still with the store's lock keeps others from clearing a void (-EBUSY), or
     * from taking back a seal that came too late (unknown). */
    bool open = is_dead() || code == -WEIR_EUNKNOWN;
    /* A seal that came late stands for a moment before its writer takes it back. */
    bool late = code == -EEXIST && world.scenario->flags & BACK;
    sim_history_end(&world.history, event, late ? -EAGAIN : code, 0, open);
    CHECK(!code || code == -EEXIST || code == -EAGAIN || code == -ESTALE || code == -EBUSY || open);
}

static void remove_one(struct sim_proc *self, weir_store *store, const char *key)
{
    unsigned event = sim_history_begin(&world.history, self->name, SIM_REMOVE, key, 0);
    int code = weir_remove(store, key);
    sim_history_end(&world.history, event, code, 0, is_dead());
    CHECK(!code || code == -ENOENT || code == -EAGAIN || code == -EBUSY || is_dead());
}

/* The bytes are checked where they are read: they are one writer's, or the test ends there. */
static void read_one(struct sim_proc *self, weir_store *store, const char *key)
{
    uint64_t value = SIM_ABSENT;
    weir_kind kind = WEIR_KIND_SEALED;
    unsigned event = sim_history_begin(&world.history, self->name, SIM_GET, key, 0);
    int code = weir_rng_percent(&self->rng, 20) && !is_dead() ? -EAGAIN /* nothing to explain */
                                                              : sim_get(store, key, &value, &kind);
    if (code == -EAGAIN && !is_dead()) {
        int verified = weir_verify(store, key, NULL, NULL);
        CHECK(!verified || verified == -ENOENT || verified == -EAGAIN || is_dead());
    }
    sim_history_end(&world.history, event, code, value, is_dead());
    CHECK(!code || code == -ENOENT || code == -EAGAIN || is_dead());
    CHECK(kind == WEIR_KIND_SEALED);
}

static void list_all(weir_store *store)
{
    bool expected[3] = {false}, listed[3] = {false};
    weir_list *list;
    const weir_entry *entry;
    uint64_t begin = ++world.history.tick;
    for (unsigned i = 0; i < world.scenario->keys; i++)
        expected[i] = sim_history_certain(&world.history, keys[i], begin);
    int code = weir_list_open(&list, store, "", WEIR_LIST_RECURSIVE);
    CHECK(!code || is_dead());
    if (code)
        return;
    while ((code = weir_list_next(list, &entry)) == 1)
        for (unsigned i = 0; i < world.scenario->keys; i++)
            listed[i] |= !entry->is_dir && !strcmp(entry->key, keys[i]);
    CHECK(!code || is_dead());
    weir_list_close(list);
    for (unsigned i = 0; i < world.scenario->keys && !is_dead(); i++)
        CHECK(listed[i] || !expected[i] || !sim_history_certain(&world.history, keys[i], begin));
}

/* The collector is also what makes time go by. */
static void collect(struct sim_proc *self, weir_store *store)
{
    static const uint64_t naps_s[] = {
        1, 61, GRACE_S * 35 / 100, GRACE_S * 35 / 100, GRACE_S * 6 / 10, GRACE_S + 1};
    int code = weir_gc(store, 0, NULL, NULL, NULL);
    /* -ESTALE: it was itself away for so long that another took its temporary file. -EBUSY:
     * somebody stood still with the store's lock. */
    CHECK(!code || code == -ESTALE || code == -EBUSY || is_dead());
    bool short_naps = (world.scenario->flags & (PAUSES | BACK)) == PAUSES;
    sim_sleep(short_naps ? NAP_NS : naps_s[weir_rng_below(&self->rng, 6)] * SECOND);
}

static void act(struct sim_proc *self, weir_store *store, enum role role)
{
    const char *key = keys[weir_rng_below(&self->rng, world.scenario->keys)];
    if (role == ANYONE) {
        static const enum role roles[] = {WRITER,  WRITER, WRITER, REMOVER,
                                          REMOVER, READER, READER, COLLECTOR};
        role = roles[weir_rng_below(&self->rng, sizeof roles / sizeof roles[0])];
    }
    if (role == WRITER)
        write_one(self, store, key);
    else if (role == REMOVER)
        remove_one(self, store, key);
    else if (role == COLLECTOR)
        collect(self, store);
    else if (weir_rng_percent(&self->rng, 15))
        list_all(store);
    else
        read_one(self, store, key);
}

static void live(struct sim_proc *self)
{
    enum role role = *(const enum role *)self->arg;
    weir_store *store;
    bool fresh = world.scenario->flags & FRESH;
    int code = sim_store_open(&store, fresh ? GRACE_S : 0);
    /* -ESTALE: gc took its temporary file, because so much time went by meanwhile. */
    CHECK(!code || (fresh && code == -ESTALE) || is_dead());
    if (code)
        return;
    uint64_t steps = 1 + weir_rng_below(&self->rng, role == COLLECTOR ? 6 : 4);
    if (role == COLLECTOR && world.scenario->flags & PAUSES)
        steps = world.scenario->flags & BACK ? 8 : 5;
    for (uint64_t i = 0; i < steps && !is_dead(); i++)
        act(self, store, role);
    weir_store_close(store);
}

/* ---- what befalls them ---- */

static uint64_t draw_hold_ns(struct weir_rng *rng)
{
    static const uint64_t holds_s[] = {GRACE_S / 4, GRACE_S * 6 / 10, GRACE_S * 12 / 10,
                                       GRACE_S + 65, 3 * GRACE_S};
    uint64_t i = weir_rng_below(rng, 6);
    return i < 5 ? holds_s[i] * SECOND : SIM_FOREVER;
}

static void set_fate(struct sim_proc *proc, enum role role, struct weir_rng *rng)
{
    unsigned flags = world.scenario->flags;
    /* Their real-time clocks do not agree; nothing may depend on them. */
    proc->real_skew_ns = (int64_t)(weir_rng_below(rng, 1000) * SECOND) - 500 * (int64_t)SECOND;
    if (flags & HOLDS && weir_rng_percent(rng, 50)) {
        proc->hold_call = 1 + weir_rng_below(rng, 150);
        proc->hold_call_ns = draw_hold_ns(rng);
    }
    if (flags & SEALS && role == WRITER && weir_rng_percent(rng, 80)) {
        proc->hold_boot = 2; /* the first put's: it began, it looked at its age */
        proc->hold_boot_ns = draw_hold_ns(rng);
    }
    if (flags & SEALS && role == WRITER && weir_rng_percent(rng, 50)) {
        proc->hold_link = 1; /* its data is there; it took its time before that look */
        proc->hold_link_ns = GRACE_S * 3 / 10 * (uint64_t)SECOND;
    }
    if (flags & DEBRIS && role == COLLECTOR && weir_rng_percent(rng, 50)) {
        proc->hold_link = 1; /* it tried to claim the key */
        proc->hold_link_ns = SIM_FOREVER;
    }
    if (flags & PAUSES && role == WRITER && !(flags & BACK && weir_rng_percent(rng, 30))) {
        /* Its data is there. It wakes while gc looks for the last time, or later. */
        uint64_t late = weir_rng_percent(rng, 70) ? 0 : weir_rng_below(rng, GRACE_S / 3);
        proc->hold_link = 1;
        proc->hold_link_ns = (GRACE_S + (flags & BACK ? 4 : 1) * late) * (uint64_t)SECOND;
        proc->hold_paused = true;
    }
}

static void set_fates(struct weir_rng *rng)
{
    const struct scenario *s = world.scenario;
    for (world.count = 0; s->roles[world.count] != NOBODY; world.count++) {
        static const char *const names[] = {"", "writer", "remover", "reader", "gc", "anyone"};
        struct sim_proc *proc = &world.procs[world.count];
        enum role role = s->roles[world.count];
        *proc = (struct sim_proc){
            .name = names[role],
            .body = live,
            .arg = (void *)&s->roles[world.count],
            .rng = weir_rng_fork(weir_rng_next(rng), world.count),
        };
        set_fate(proc, role, rng);
    }
    for (unsigned deaths = s->flags & KILLS ? 1 + (unsigned)weir_rng_below(rng, 2) : 0; deaths;
         deaths--) {
        struct sim_proc *proc = &world.procs[weir_rng_below(rng, world.count)];
        proc->kill_at = 1 + weir_rng_below(rng, weir_rng_percent(rng, 50) ? 60 : 160);
    }
}

/* ---- a scenario ---- */

static void leave_debris(const char *key, char nonce)
{
    char path[256], digits[33] = {0};
    memset(digits, nonce, 32);
    snprintf(path, sizeof path, "%s/.weir/data/%s~%s", SIM_STORE, key, digits);
    sim_fs_plant(sim.fs, path, "debris", 6);
    sim.clock_ns += 2 * GRACE_S * (uint64_t)SECOND;
}

static void set_the_stage(struct weir_rng *rng)
{
    weir_store *store;
    sim.fs->quirks.no_types = weir_rng_percent(rng, 10);
    sim.fs->quirks.dents_max = (unsigned)weir_rng_below(rng, 3);
    if (world.scenario->flags & FRESH)
        return;
    OK(sim_store_open(&store, GRACE_S));
    for (unsigned i = 0; world.scenario->flags & LIVES && i < world.scenario->keys; i++) {
        struct sim_put how = {.value = sim_value_new(8 + weir_rng_below(rng, 500))};
        unsigned event = sim_history_begin(&world.history, "before", SIM_PUT, keys[i], how.value);
        OK(sim_put(store, keys[i], &how));
        sim_history_end(&world.history, event, 0, 0, false);
    }
    weir_store_close(store);
    for (unsigned i = 0; world.scenario->flags & DEBRIS && i < world.scenario->keys; i++) {
        leave_debris(keys[i], '1');
        leave_debris(keys[i], '2');
    }
    sim_fs_sync_all(sim.fs);
}

/* Reads every key once more, and asks whether all that was said can be true. */
static void judge(weir_store *store)
{
    for (unsigned i = 0; i < world.scenario->keys; i++) {
        weir_kind kind = WEIR_KIND_SEALED;
        uint64_t value;
        unsigned event = sim_history_begin(&world.history, "after", SIM_GET, keys[i], 0);
        int code = sim_get(store, keys[i], &value, &kind);
        sim_history_end(&world.history, event, code, value, false);
        CHECK(!code || code == -ENOENT);
        CHECK(kind == WEIR_KIND_SEALED);
        sim_history_check(&world.history, keys[i], world.scenario->flags & POWER);
        sim_fact_set(sim_model_fact(&world.model, keys[i]), value);
    }
}

/* Nothing is left behind, nothing is in the way. */
static void clean_up(weir_store *store)
{
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    sim_model_audit(&world.model);
    for (unsigned i = 0; i < world.scenario->keys; i++) {
        struct sim_put how = {.value = sim_value_new(20)};
        bool absent = sim_model_fact(&world.model, keys[i])->may[0] == SIM_ABSENT;
        CHECK_EQ(sim_model_put(&world.model, store, keys[i], &how), absent ? 0 : -EEXIST);
    }
    sim_model_check(&world.model, store);
}

static void play(uint64_t seed)
{
    const struct scenario *scenario = world.scenario;
    struct weir_rng rng = weir_rng_fork(seed, 100 + (uint64_t)(scenario - scenarios));
    weir_store *store;
    world.history.count = 0;
    world.history.tick = 0;
    world.model.count = 0;
    sim_values_rewind(0);
    sim_start(weir_rng_next(&rng), NULL);
    set_the_stage(&rng);
    set_fates(&rng);
    if (scenario->flags & POWER)
        sim.cut_after = sim.calls + weir_rng_below(&rng, 120 * world.count);
    sim_run(world.procs, world.count);
    if (scenario->flags & POWER)
        sim_reboot(weir_rng_next(&rng));
    CHECK_EQ(sim_fs_open_count(sim.fs), 0);
    OK(sim_store_open(&store, scenario->flags & FRESH ? GRACE_S : 0));
    judge(store);
    clean_up(store);
    weir_store_close(store);
    CHECK_EQ(sim_fs_open_count(sim.fs), 0);
    sim_stop();
}

int main(int argc, char **argv)
{
    sim_seeds_init();
    for (unsigned i = 0; i < SCENARIOS; i++)
        if (sim_is_asked_for(scenarios[i].name, argc, argv)) {
            world.scenario = &scenarios[i];
            sim_each_seed(scenarios[i].name, play);
            printf("ok %s\n", scenarios[i].name);
            fflush(stdout);
        }
    return TEST_RESULT;
}
