/* set_interleave.c - group commits by many processes at once, in every order that the seeds draw:
 * ranks of several incarnations save, finishers finish, others retire, read and collect; they are
 * held back past the grace, die, and lose power. Every answer must be one that the log explains
 * (deeds.h), every record one legal change (saves.h), every live entry whole and of one save; no
 * set is stuck; and afterwards gc leaves nothing of what is not live.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "baton.h"
#include "deeds.h"
#include "seeds.h"
#include "sim.h"
#include "test.h"

enum { GRACE_S = 1000, SECOND = 1000000000, INCARNATION_BEFORE = 9, INCARNATION_AFTER = 10 };

/* What befalls the processes of a scenario. */
enum {
    HOLDS = 1,  /* some are held back somewhere, for a while */
    KILLS = 2,  /* one or two die */
    POWER = 4,  /* the power goes */
    LIVES = 8,  /* an earlier incarnation has saved twice */
    LONE = 16,  /* and left a complete save without a commit, long ago */
    LINKS = 32, /* some are held right after a link: what they made is seen and not synced */
};

/* Who takes part: a, b, c: a rank of the first, second, third incarnation (as many as there are
 * parts, and then the same ones come back); f: finishes; t: retires; r: reads; g: collects. */
static const struct scenario {
    const char *name, *roles;
    uint32_t parts;
    uint64_t saves;
    unsigned flags;
} scenarios[] = {
    {"an incarnation", "aaa", 3, 2, 0},
    {"an incarnation, a reader and a finisher", "aaarf", 3, 2, 0},
    {"ranks die", "aaaf", 3, 1, KILLS},
    {"ranks die and come back", "aaaaa", 3, 1, KILLS},
    {"two incarnations", "aabbr", 2, 2, 0},
    {"zombies", "aabbfr", 2, 2, HOLDS},
    {"zombies and gc", "aabbgr", 2, 2, HOLDS},
    {"three incarnations", "abcabcr", 2, 1, HOLDS | KILLS},
    {"a save left alone, finished beside gc", "agf", 1, 1, LONE | HOLDS},
    {"ranks past the grace beside gc", "aaagf", 3, 1, HOLDS},
    {"retired beside readers and gc", "atrgr", 1, 2, LIVES},
    {"readers hold what gc wants", "atrgg", 1, 2, LIVES | HOLDS},
    {"deaths beside gc", "aatrgg", 2, 2, LIVES | KILLS | HOLDS},
    {"power loss among ranks", "aaa", 3, 2, POWER},
    {"deaths and power loss", "aaff", 2, 1, POWER | KILLS},
    {"incarnations, deaths and power loss", "aabbf", 2, 1, POWER | KILLS},
    {"unsynced records and power loss", "abc", 1, 1, POWER | LINKS},
    {"unsynced records, deaths and power loss", "aabbf", 2, 1, POWER | LINKS | KILLS},
    {"unsynced roots and power loss", "aff", 1, 1, POWER | LINKS | HOLDS},
    {"unsynced retirements, gc and power loss", "atgtg", 1, 2, POWER | LINKS | LIVES},
    {"gc and power loss", "atgrg", 1, 2, POWER | LIVES},
    {"everything", "aabbtrgf", 2, 2, HOLDS | KILLS | POWER | LIVES},
};
enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

/* One process. */
struct actor {
    char role;
    unsigned incarnation;
    uint32_t rank;
    char name[16];
    weir_store *store;
    struct weir_ledger *ledger;
    struct weir_rng *rng;
};

static struct {
    const struct scenario *scenario;
    struct sim_deeds deeds;
    struct sim_proc procs[SIM_PROCS_MAX];
    struct actor actors[SIM_PROCS_MAX];
    unsigned count;
} world;

static const char *const no_others[] = {NULL};

static bool is_dead(void)
{
    return sim_self->dead || sim.off;
}

static struct weir_save save_of(uint64_t attempt, uint64_t number)
{
    char name[32];
    snprintf(name, sizeof name, "s%llu", (unsigned long long)number);
    return sim_save(name, attempt, number, world.scenario->parts);
}

/* ---- what processes do ---- */

static int join(struct actor *self, uint64_t *attempt)
{
    uint8_t token[WEIR_TOKEN_BYTES];
    struct sim_deed *deed = sim_deed_begin(&world.deeds, self->name, SIM_JOIN, NULL);
    deed->incarnation = self->incarnation;
    sim_token(token, self->incarnation);
    int code = weir_ledger_join(self->ledger, token, attempt);
    deed->attempt = code ? 0 : *attempt;
    sim_deed_end(deed, code, is_dead());
    CHECK(!code || code == -ESTALE || is_dead());
    return is_dead() ? -EIO : code;
}

/* -ESTALE: too late, in one of several ways. -EAGAIN, -EBUSY: gc claimed the key of its object just
 * now; or somebody stands still with the store's lock, which may leave an outcome unknown. -ENOENT,
 * -EEXIST: what an earlier try of this rank wrote was given up, and deleted under its eyes. */
static void put_part(struct actor *self, const struct weir_save *save)
{
    bool committed;
    struct sim_deed *deed = sim_deed_begin(&world.deeds, self->name, SIM_COMMIT, save);
    int code = sim_part_put(self->ledger, save, self->rank, &committed);
    deed->claims = !code && committed;
    /* What was told before the last call is not about the log. */
    bool about = committed || (code == -ESTALE && (strstr(weir_error_text(), "attempt") ||
                                                   strstr(weir_error_text(), "overtaken")));
    sim_deed_end(deed, code, is_dead() || !about);
    CHECK(!code || code == -ESTALE || code == -EAGAIN || code == -EBUSY || code == -ENOENT ||
          code == -EEXIST || code == -WEIR_EUNKNOWN || is_dead());
}

static void finish(struct actor *self, const struct weir_save *save, uint64_t timeout_ns)
{
    struct weir_set *set;
    OK(weir_set_open(&set, self->ledger, save));
    struct sim_deed *deed = sim_deed_begin(&world.deeds, self->name, SIM_COMMIT, save);
    bool committed;
    int code = timeout_ns ? weir_set_wait(set, timeout_ns, &committed) : weir_set_finish(set);
    deed->claims = !code;
    sim_deed_end(deed, code, is_dead());
    weir_set_close(set);
    CHECK(!code || code == -ESTALE || code == (timeout_ns ? -ETIMEDOUT : -EAGAIN) || is_dead());
}

static void be_rank(struct actor *self)
{
    uint64_t attempt;
    if (join(self, &attempt))
        return;
    for (uint64_t n = 1; n <= world.scenario->saves && !is_dead(); n++) {
        struct weir_save save = save_of(attempt, n);
        put_part(self, &save);
        if (!is_dead() && weir_rng_percent(self->rng, 40))
            finish(self, &save, (1 + weir_rng_below(self->rng, 4)) * SECOND);
    }
}

/* 0 and the attempt of the head, which may be 0. */
static int read_state(struct actor *self, struct weir_ledger_state *out)
{
    struct sim_deed *deed = sim_deed_begin(&world.deeds, self->name, SIM_READ, NULL);
    int code = weir_ledger_read(self->ledger, out);
    deed->attempt = code ? 0 : out->record.number;
    sim_deed_end(deed, code, is_dead());
    CHECK(!code || is_dead());
    return code;
}

static void be_finisher(struct actor *self)
{
    for (unsigned i = 0; i < 3 && !is_dead(); i++) {
        struct weir_ledger_state state;
        if (read_state(self, &state))
            return;
        struct weir_save save =
            save_of(state.attempt, 1 + weir_rng_below(self->rng, world.scenario->saves));
        if (state.attempt)
            finish(self, &save, weir_rng_percent(self->rng, 30) ? 2 * (uint64_t)SECOND : 0);
        weir_state_free(&state);
        sim_sleep(weir_rng_below(self->rng, 3) * GRACE_S / 4 * SECOND);
    }
}

static bool is_before(void *arg, const struct weir_ledger_entry *entry)
{
    const struct weir_save *save = arg;
    return entry->save.attempt < save->attempt ||
           (entry->save.attempt == save->attempt && entry->save.number < save->number);
}

/* All but the newest, as one does with checkpoints. */
static void be_retirer(struct actor *self)
{
    for (unsigned i = 0; i < 2 && !is_dead(); i++) {
        struct weir_ledger_state state;
        size_t count;
        if (read_state(self, &state))
            return;
        const struct weir_ledger_entry *newest = weir_ledger_find(&state, NULL);
        if (newest) {
            struct weir_save save = newest->save;
            struct sim_deed *deed = sim_deed_begin(&world.deeds, self->name, SIM_RETIRE, &save);
            deed->attempt = weir_rng_percent(self->rng, 50) ? state.attempt : 0;
            int code = weir_ledger_retire(self->ledger, deed->attempt, is_before, &save, &count);
            sim_deed_end(deed, code, is_dead());
            CHECK(!code || code == -ESTALE || is_dead());
        }
        weir_state_free(&state);
        sim_sleep(weir_rng_below(self->rng, 100) * SECOND);
    }
}

/* While a view is open everything in it can be read, however long that takes. */
static void be_reader(struct actor *self)
{
    for (unsigned i = 0; i < 2 && !is_dead(); i++) {
        struct weir_view *view;
        struct sim_deed *deed = sim_deed_begin(&world.deeds, self->name, SIM_VIEW, NULL);
        deed->name = weir_rng_percent(self->rng, 50) ? "s1" : NULL;
        int code = weir_view_open(&view, self->ledger, deed->name);
        if (!code)
            deed->save = weir_view_entry(view)->save;
        sim_deed_end(deed, code, is_dead());
        /* -EBUSY: gc was held up while it had the lease. */
        CHECK(!code || code == -ENOENT || code == -ESTALE || code == -EBUSY || is_dead());
        if (code) {
            sim_sleep(SECOND);
            continue;
        }
        if (weir_rng_percent(self->rng, 50))
            sim_sleep(weir_rng_below(self->rng, 3) * GRACE_S * SECOND);
        code = sim_view_read(view);
        CHECK(!code || is_dead());
        weir_view_close(view);
    }
}

/* The collector is also what makes time go by. */
static void be_collector(struct actor *self)
{
    static const uint64_t naps_s[] = {1, 61, GRACE_S * 35 / 100, GRACE_S * 6 / 10, GRACE_S + 1};
    for (unsigned i = 0; i < 3 && !is_dead(); i++) {
        int code = weir_rng_percent(self->rng, 50)
                       ? weir_ledger_collect(self->store, SIM_LEDGER, 0, NULL)
                       : weir_gc(self->store, 0, NULL, NULL, NULL);
        /* It was itself away for too long, or somebody stood still with the store's lock. */
        CHECK(!code || code == -ESTALE || code == -EBUSY || is_dead());
        sim_sleep(naps_s[weir_rng_below(self->rng, 5)] * SECOND);
    }
}

static void live(struct sim_proc *proc)
{
    struct actor *self = proc->arg;
    self->rng = &proc->rng;
    int code = sim_store_open(&self->store, 0);
    CHECK(!code || is_dead());
    if (code)
        return;
    OK(weir_ledger_open(&self->ledger, self->store, SIM_LEDGER));
    switch (self->role) {
    case 'f':
        be_finisher(self);
        break;
    case 't':
        be_retirer(self);
        break;
    case 'r':
        be_reader(self);
        break;
    case 'g':
        be_collector(self);
        break;
    default:
        be_rank(self);
    }
    weir_ledger_close(self->ledger);
    weir_store_close(self->store);
}

/* ---- what befalls them ---- */

static uint64_t draw_hold_ns(struct weir_rng *rng)
{
    static const uint64_t holds_s[] = {GRACE_S / 4, GRACE_S * 6 / 10, GRACE_S + 65, 3 * GRACE_S};
    uint64_t i = weir_rng_below(rng, 5);
    return i < 4 ? holds_s[i] * SECOND : SIM_FOREVER;
}

static void set_fates(struct weir_rng *rng)
{
    const struct scenario *s = world.scenario;
    uint32_t ranks[3] = {0};
    for (world.count = 0; s->roles[world.count]; world.count++) {
        struct sim_proc *proc = &world.procs[world.count];
        struct actor *actor = &world.actors[world.count];
        char role = s->roles[world.count];
        *actor = (struct actor){.role = role};
        snprintf(actor->name, sizeof actor->name, "%c", role);
        if (role <= 'c') {
            actor->incarnation = 1 + (unsigned)(role - 'a');
            actor->rank = ranks[role - 'a']++ % s->parts;
            snprintf(actor->name, sizeof actor->name, "%c%u", role, actor->rank);
        }
        *proc = (struct sim_proc){
            .name = actor->name,
            .body = live,
            .arg = actor,
            .rng = weir_rng_fork(weir_rng_next(rng), world.count),
            /* Their real-time clocks do not agree; nothing may depend on them. */
            .real_skew_ns = ((int64_t)weir_rng_below(rng, 1000) - 500) * SECOND,
        };
        if (s->flags & HOLDS && weir_rng_percent(rng, 60)) {
            proc->hold_call = 1 + weir_rng_below(rng, 250);
            proc->hold_call_ns = draw_hold_ns(rng);
        }
        if (s->flags & LINKS && weir_rng_percent(rng, 80)) {
            proc->hold_link = 1 + weir_rng_below(rng, weir_rng_percent(rng, 50) ? 1 : 9);
            proc->hold_link_ns = SIM_FOREVER;
        }
    }
    for (uint64_t deaths = s->flags & KILLS ? 1 + weir_rng_below(rng, 2) : 0; deaths; deaths--)
        world.procs[weir_rng_below(rng, world.count)].kill_at = 1 + weir_rng_below(rng, 250);
}

/* ---- a scenario ---- */

static void set_the_stage(struct weir_rng *rng)
{
    struct actor before = {.incarnation = INCARNATION_BEFORE, .name = "before"};
    uint64_t attempt;
    bool committed = false;
    sim.fs->quirks.no_types = weir_rng_percent(rng, 10);
    sim.fs->quirks.dents_max = (unsigned)weir_rng_below(rng, 3);
    OK(sim_store_open(&before.store, GRACE_S));
    OK(weir_ledger_open(&before.ledger, before.store, SIM_LEDGER));
    if (world.scenario->flags & (LIVES | LONE)) {
        /* The lone save is one of the first incarnation's own. */
        before.incarnation = world.scenario->flags & LONE ? 1 : INCARNATION_BEFORE;
        OK(join(&before, &attempt));
        for (uint64_t n = 1; world.scenario->flags & LIVES && n <= 2; n++) {
            struct weir_save save = save_of(attempt, n);
            for (uint32_t i = 0; i < save.parts; i++)
                OK(sim_part_put(before.ledger, &save, i, &committed));
            CHECK(committed);
        }
        struct weir_save lone = save_of(attempt, 1);
        for (uint32_t i = 0; world.scenario->flags & LONE && i < lone.parts; i++)
            sim_part_leave(before.ledger, &lone, i);
        sim.clock_ns += 2 * GRACE_S * (uint64_t)SECOND;
    }
    weir_ledger_close(before.ledger);
    weir_store_close(before.store);
    sim_fs_sync_all(sim.fs);
}

/* No set is stuck: what is complete and open is committed by whoever tries. */
static void finish_all(weir_store *store, const struct sim_book *book)
{
    const struct weir_ledger_state *head = &book->states[book->head];
    struct weir_ledger *ledger;
    OK(weir_ledger_open(&ledger, store, SIM_LEDGER));
    for (uint64_t i = 1; i <= book->head; i++)
        for (uint64_t n = 1; book->states[i].attempt == i && n <= world.scenario->saves; n++) {
            struct weir_save save = save_of(i, n);
            struct weir_set *set;
            bool parts = true, is_open = head->attempt == i && head->floor < n;
            for (uint32_t part = 0; part < save.parts; part++)
                parts &= sim_part_is_there(&save, part);
            bool committed = weir_ledger_find_save(head, &save) || (parts && is_open);
            OK(weir_set_open(&set, ledger, &save));
            CHECK_EQ(weir_set_finish(set), committed ? 0 : is_open ? -EAGAIN : -ESTALE);
            weir_set_close(set);
        }
    weir_ledger_close(ledger);
}

/* A new incarnation saves once and reads that. */
static void go_on(weir_store *store)
{
    struct actor after = {.incarnation = INCARNATION_AFTER, .name = "after", .store = store};
    struct weir_view *view;
    uint64_t attempt;
    bool committed = false;
    OK(weir_ledger_open(&after.ledger, store, SIM_LEDGER));
    OK(join(&after, &attempt));
    struct weir_save save = save_of(attempt, 1);
    for (uint32_t i = 0; i < save.parts; i++)
        OK(sim_part_put(after.ledger, &save, i, &committed));
    CHECK(committed);
    OK(weir_view_open(&view, after.ledger, NULL));
    CHECK(weir_save_same(&weir_view_entry(view)->save, &save));
    OK(sim_view_read(view));
    weir_view_close(view);
    weir_ledger_close(after.ledger);
}

static void judge(uint64_t seed)
{
    static struct sim_book before, now;
    struct weir_ledger_state head;
    weir_store *store;
    sim_book_open(&before);
    sim_deeds_check(&world.deeds, &before);
    if (world.scenario->flags & POWER)
        sim_reboot(seed);
    sim_book_open(&now);
    sim_book_check_prefix(&now, &before);
    sim_deeds_check_durable(&world.deeds, &now);
    OK(sim_store_open(&store, 0));
    sim_saves_check(store, &head);
    weir_state_free(&head);
    finish_all(store, &now);
    sim_saves_check(store, &head);
    weir_state_free(&head);
    sim_saves_collect(store, no_others);
    sim_saves_check(store, &head);
    weir_state_free(&head);
    go_on(store);
    weir_store_close(store);
    sim_book_close(&before);
    sim_book_close(&now);
}

static void play(uint64_t seed)
{
    const struct scenario *scenario = world.scenario;
    struct weir_rng rng = weir_rng_fork(seed, 200 + (uint64_t)(scenario - scenarios));
    world.deeds.count = 0;
    /* Records are unsynced from the beginning, but a retirement only matters when gc comes. */
    bool is_early = scenario->flags & LINKS && !(scenario->flags & (LIVES | HOLDS));
    sim_values_rewind(0);
    sim_saves_reset();
    sim_start(weir_rng_next(&rng), NULL);
    set_the_stage(&rng);
    set_fates(&rng);
    if (scenario->flags & POWER)
        sim.cut_after = sim.calls + weir_rng_below(&rng, (is_early ? 60 : 250) * world.count);
    sim_run(world.procs, world.count);
    if (!(scenario->flags & POWER))
        CHECK_EQ(sim_fs_open_count(sim.fs), 0);
    judge(weir_rng_next(&rng));
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
