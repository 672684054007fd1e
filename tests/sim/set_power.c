/* set_power.c - the power goes after every single system call of a life with logs and group
 * commits: what was acknowledged (an attempt, a commit, a retirement) is there, and what is
 * committed reads back exactly; what was not acknowledged is whole or absent; the log is a chain;
 * no attempt's number is ever another's; gc leaves nothing behind, and life goes on.
 *
 * First one fixed story, cut at every point, with several draws of what survives. Then a random
 * story for each seed, with several boots, on file systems that differ.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "saves.h"
#include "seeds.h"
#include "sim.h"
#include "sweep.h"
#include "test.h"

enum {
    GRACE_S = 100,
    DRAWS = 3,
    PARTS = 3,
    SAVES_MAX = 64,
    ATTEMPTS_MAX = 64,
    STEPS_MAX = 10,
    BOOTS = 3,
};
#define SECOND 1000000000ull

/* What was acknowledged of a save, and what was asked for and not answered. */
struct told {
    struct weir_save save;
    bool committed, retired, maybe_retired;
};

static struct {
    weir_store *store;
    struct weir_ledger *ledger;
    struct told saves[SAVES_MAX];
    unsigned saves_count;
    struct {
        uint64_t attempt;
        unsigned incarnation;
    } attempts[ATTEMPTS_MAX];
    unsigned attempts_count;
    unsigned incarnations; /* how many tokens there were */
    uint64_t attempt, number;
} life;

static const char *const no_others[] = {NULL};

/* ---- what is done, and what that means ---- */

static bool answered(int code)
{
    return !sim.off && code != -WEIR_EUNKNOWN;
}

static int join(unsigned incarnation)
{
    uint8_t token[WEIR_TOKEN_BYTES];
    uint64_t attempt = 0;
    sim_token(token, incarnation);
    int code = weir_ledger_join(life.ledger, token, &attempt);
    CHECK(!code || code == -ESTALE || sim.off);
    if (code || !answered(code))
        return code ? code : -EIO;
    CHECK(life.attempts_count < ATTEMPTS_MAX);
    life.attempts[life.attempts_count].attempt = attempt;
    life.attempts[life.attempts_count++].incarnation = incarnation;
    if (attempt != life.attempt)
        life.number = 0;
    life.attempt = attempt;
    return 0;
}

static struct told *begin_save(const char *name)
{
    CHECK(life.saves_count < SAVES_MAX);
    struct told *told = &life.saves[life.saves_count++];
    *told = (struct told){.save = sim_save(name, life.attempt, ++life.number, PARTS)};
    return told;
}

static void take_note(struct told *told, int code, bool committed)
{
    if (answered(code) && !code && committed)
        told->committed = true;
    CHECK(!code || code == -ESTALE || code == -EAGAIN || sim.off);
}

static void put_part(struct told *told, uint32_t part)
{
    bool committed;
    int code = sim_part_put(life.ledger, &told->save, part, &committed);
    take_note(told, code, committed);
}

static void put_parts(const char *name, uint32_t first, uint32_t count)
{
    struct told *told = begin_save(name);
    for (uint32_t i = 0; i < count && !sim.off; i++)
        put_part(told, (first + i) % PARTS);
    CHECK(count < PARTS || told->committed || sim.off);
}

static void finish(struct told *told)
{
    struct weir_set *set;
    OK(weir_set_open(&set, life.ledger, &told->save));
    int code = weir_set_finish(set);
    take_note(told, code, true);
    weir_set_close(set);
}

static bool is_save(void *arg, const struct weir_ledger_entry *entry)
{
    return weir_save_same(arg, &entry->save);
}

static void retire(struct told *told)
{
    size_t count;
    told->maybe_retired = true;
    int code = weir_ledger_retire(life.ledger, life.attempt, is_save, &told->save, &count);
    CHECK(!code || sim.off);
    if (answered(code) && !code)
        told->retired = told->committed;
}

static void collect(uint32_t flags)
{
    int code = weir_gc(life.store, flags, NULL, NULL, NULL);
    CHECK(!code || sim.off);
}

/* What a checkpointer does after a commit: files of what it deletes are written over. */
static void tidy(void)
{
    int code = weir_ledger_collect(life.store, SIM_LEDGER, 0, NULL);
    CHECK(!code || sim.off);
}

static void look(void)
{
    struct weir_view *view;
    int code = weir_view_open(&view, life.ledger, NULL);
    CHECK(!code || code == -ENOENT || sim.off);
    if (code)
        return;
    code = sim_view_read(view);
    CHECK(!code || sim.off);
    weir_view_close(view);
}

/* ---- afterwards ---- */

static bool open_both(void)
{
    int code = sim_store_open(&life.store, GRACE_S);
    CHECK(!code || sim.off);
    if (!code)
        OK(weir_ledger_open(&life.ledger, life.store, SIM_LEDGER));
    return !code;
}

static void close_both(void)
{
    weir_ledger_close(life.ledger);
    weir_store_close(life.store);
}

static void check_told(const struct weir_ledger_state *head)
{
    static struct sim_book book;
    uint8_t token[WEIR_TOKEN_BYTES];
    sim_book_open(&book);
    for (unsigned i = 0; i < life.attempts_count; i++) {
        uint64_t attempt = life.attempts[i].attempt;
        sim_token(token, life.attempts[i].incarnation);
        CHECK(attempt <= book.head && book.states[attempt].attempt == attempt);
        CHECK(!memcmp(book.states[attempt].token, token, sizeof token));
    }
    for (unsigned i = 0; i < life.saves_count; i++) {
        const struct told *told = &life.saves[i];
        const struct weir_ledger_entry *entry = weir_ledger_find_save(head, &told->save);
        bool is_live = entry && !entry->retired_ns;
        CHECK(!told->committed || is_live || told->maybe_retired);
        CHECK(!told->retired || !is_live);
    }
    sim_book_close(&book);
}

/* What is complete and may be committed is not stuck. */
static void finish_all(const struct weir_ledger_state *head)
{
    for (unsigned i = 0; i < life.saves_count; i++) {
        struct told *told = &life.saves[i];
        struct weir_set *set;
        bool parts = true,
             open = told->save.attempt == head->attempt && told->save.number > head->floor;
        for (uint32_t part = 0; part < PARTS; part++)
            parts &= sim_part_is_there(&told->save, part);
        bool is_entry = weir_ledger_find_save(head, &told->save);
        OK(weir_set_open(&set, life.ledger, &told->save));
        int code = weir_set_finish(set);
        CHECK_EQ(code, is_entry || (parts && open) ? 0 : open ? -EAGAIN : -ESTALE);
        told->committed |= !code;
        weir_set_close(set);
    }
}

/* Looks at what is there; what was uncertain is certain then. */
static void after_reboot(void)
{
    struct weir_ledger_state head;
    CHECK_EQ(sim_fs_open_count(sim.fs), 0);
    CHECK(open_both());
    sim_saves_check(life.store, &head);
    check_told(&head);
    finish_all(&head);
    weir_state_free(&head);
    sim_saves_collect(life.store, no_others);
    sim_saves_check(life.store, &head);
    check_told(&head);
    for (unsigned i = 0; i < life.saves_count; i++) {
        const struct weir_ledger_entry *entry = weir_ledger_find_save(&head, &life.saves[i].save);
        life.saves[i].committed = life.saves[i].retired = life.saves[i].maybe_retired = false;
        if (entry)
            life.saves[i].committed = true;
        else
            life.saves[i].maybe_retired = true; /* it is gone, for good */
    }
    weir_state_free(&head);
    OK(join(++life.incarnations));
    put_parts("after", 1, PARTS);
    look();
    close_both();
    CHECK_EQ(sim_fs_open_count(sim.fs), 0);
}

static void begin(uint64_t seed)
{
    memset(&life, 0, sizeof life);
    sim_values_rewind(0);
    sim_saves_reset();
    sim_start(seed, NULL);
}

/* ---- the fixed story ---- */

static void story(void)
{
    if (!open_both())
        return;
    if (!join(++life.incarnations)) {
        put_parts("s1", 0, PARTS);
        put_parts("s2", 2, 2);
        look();
    }
    if (!sim.off && !join(++life.incarnations)) {
        join(life.incarnations);
        put_parts("s1", 1, PARTS);
        retire(&life.saves[0]);
        put_parts("s3", 0, 1);
        tidy();
        put_parts("s6", 0, PARTS);
        collect(0);
    }
    if (!sim.off) {
        sim_sleep(2 * GRACE_S * SECOND);
        put_parts("s4", 0, PARTS);
        collect(0);
        put_parts("s5", 0, PARTS - 1);
        retire(&life.saves[life.saves_count - 2]);
    }
    close_both();
}

static unsigned count_calls(enum sim_call call)
{
    unsigned count = 0;
    for (uint64_t i = 0; i < sim.calls && i < SIM_TRACE_MAX; i++)
        count += sim.trace[i] == call;
    return count;
}

/* Returns how many calls the story took. */
static uint64_t cut(uint64_t cut_after, uint64_t seed)
{
    begin(1);
    sim.cut_after = cut_after;
    story();
    uint64_t calls = sim.calls;
    /* The whole of it writes over files. */
    CHECK(cut_after != SIM_FOREVER || count_calls(SIM_CALL_RECYCLABLE) >= 3);
    sim_reboot(seed);
    after_reboot();
    sim_stop();
    return calls;
}

static void every_point(void)
{
    sim_every_cut(DRAWS, cut);
}

/* ---- random stories ---- */

static void random_step(struct weir_rng *rng)
{
    static const char *const names[] = {"s1", "s2", "s3"};
    uint64_t dice = weir_rng_below(rng, 100);
    struct told *any = &life.saves[weir_rng_below(rng, life.saves_count)];
    if (!life.attempt || dice < 12)
        join(++life.incarnations);
    else if (dice < 17)
        join(1 + (unsigned)weir_rng_below(rng, life.incarnations));
    else if (dice < 55)
        put_parts(names[weir_rng_below(rng, 3)], (uint32_t)weir_rng_below(rng, PARTS),
                  weir_rng_percent(rng, 70) ? PARTS : 1 + (uint32_t)weir_rng_below(rng, PARTS - 1));
    else if (!life.saves_count || dice < 65)
        look();
    else if (dice < 70)
        put_part(any, (uint32_t)weir_rng_below(rng, PARTS));
    else if (dice < 78)
        finish(any);
    else if (dice < 88)
        retire(any);
    else {
        sim_sleep(weir_rng_below(rng, 3) * GRACE_S * SECOND);
        if (dice < 94)
            tidy();
        else
            collect(dice < 97 ? WEIR_GC_NOW : 0);
    }
}

static void random_life(struct weir_rng *rng)
{
    struct weir_ledger_state head;
    if (!open_both())
        return;
    uint64_t steps = 2 + weir_rng_below(rng, STEPS_MAX);
    for (uint64_t i = 0; i < steps && !sim.off; i++)
        random_step(rng);
    if (!sim.off && weir_rng_percent(rng, 50)) {
        sim.cut_after = SIM_FOREVER; /* after the story */
        sim_saves_check(life.store, &head);
        check_told(&head);
        weir_state_free(&head);
    }
    close_both();
}

static void random_story(uint64_t seed)
{
    struct weir_rng rng = weir_rng_fork(seed, 9);
    begin(seed);
    sim.fs->quirks = (struct sim_quirks){
        .no_direct = weir_rng_percent(&rng, 15),
        .no_fallocate = weir_rng_percent(&rng, 20),
        .no_types = weir_rng_percent(&rng, 20),
        .user = weir_rng_percent(&rng, 30),
        .dents_max = (unsigned)weir_rng_below(&rng, 4),
    };
    for (int boot = 0; boot < BOOTS; boot++) {
        sim.cut_after = sim.calls + weir_rng_below(&rng, 1500);
        random_life(&rng);
        sim_reboot(weir_rng_next(&rng));
        after_reboot();
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
    RUN(random_stories);
    return TEST_RESULT;
}
