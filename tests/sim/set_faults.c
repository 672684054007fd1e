/* set_faults.c - every operation of the commit layer, with every one of its system calls and
 * allocations failing in turn, in every way, once and for ever: what was acknowledged is there,
 * what was refused is not, also after a power loss; the same again on a healed machine succeeds;
 * and gc leaves nothing.
 *
 * Each case is run on a fresh copy of a store with two incarnations, saves that are live, retired,
 * stuck, incomplete and abandoned, a dead reader's lease, and another log.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "saves.h"
#include "seeds.h"
#include "sim.h"
#include "sweep.h"
#include "test.h"

enum { GRACE_S = 100, PARTS = 3, TOKEN_OLD = 1, TOKEN_NOW, TOKEN_NEXT, TOKEN_LAST };

/* What an operation works with, and was told. */
static struct {
    weir_store *store;
    struct weir_ledger *ledger;
    uint64_t attempt; /* told by a join */
    bool committed;
    size_t count;
} it;

static struct sim_fs *disk; /* the prepared one */
static uint64_t values_mark, attempt_old, attempt_now, head_before;
static struct weir_save live_old, live, retired, stuck, two, fresh, zombie;
static const char *const others[] = {"tables/t", "tables/new", NULL};

/* ---- the store ---- */

static void put_part(const struct weir_save *save, uint32_t part)
{
    OK(sim_part_put(it.ledger, save, part, &it.committed));
}

static void put_all_parts(const struct weir_save *save)
{
    for (uint32_t i = 0; i < save->parts; i++)
        put_part(save, i);
    CHECK(it.committed);
}

static bool is_save(void *arg, const struct weir_ledger_entry *entry)
{
    return weir_save_same(arg, &entry->save);
}

static int join(unsigned incarnation, uint64_t *attempt)
{
    uint8_t token[WEIR_TOKEN_BYTES];
    sim_token(token, incarnation);
    return weir_ledger_join(it.ledger, token, attempt);
}

static void open_both(void)
{
    OK(sim_store_open(&it.store, 0));
    OK(weir_ledger_open(&it.ledger, it.store, SIM_LEDGER));
}

static void close_both(void)
{
    weir_ledger_close(it.ledger);
    weir_store_close(it.store);
    CHECK_EQ(sim_fs_open_count(sim.fs), 0);
}

/* Another log; what it holds is an empty ledger, or gc would complain. */
static int append_raw(void)
{
    static const uint8_t state[48] = {1};
    struct weir_log *log;
    struct weir_log_record head;
    int code = weir_log_open(&log, it.store, "raw");
    if (code)
        return code;
    code = weir_log_head(log, &head);
    if (!code) {
        code = weir_log_append(log, &head, state, sizeof state);
        weir_log_record_free(&head);
    }
    weir_log_close(log);
    return code;
}

static void prepare(void)
{
    uint8_t digest[WEIR_SHA256_BYTES];
    sim_start(1, NULL);
    OK(sim_store_open(&it.store, GRACE_S));
    OK(weir_ledger_open(&it.ledger, it.store, SIM_LEDGER));
    OK(join(TOKEN_OLD, &attempt_old));
    live_old = sim_save("s1", attempt_old, 1, PARTS);
    zombie = sim_save("s2", attempt_old, 2, PARTS);
    put_all_parts(&live_old);
    put_part(&zombie, 1);
    OK(join(TOKEN_NOW, &attempt_now));
    live = sim_save("s1", attempt_now, 1, PARTS);
    retired = sim_save("old", attempt_now, 2, PARTS);
    stuck = sim_save("stuck", attempt_now, 3, PARTS);
    two = sim_save("two", attempt_now, 4, PARTS);
    fresh = sim_save("new", attempt_now, 5, PARTS);
    put_all_parts(&live);
    put_all_parts(&retired);
    OK(weir_ledger_retire(it.ledger, attempt_now, is_save, &retired, &it.count));
    CHECK_EQ(it.count, 1);
    for (uint32_t i = 0; i < PARTS; i++)
        sim_part_leave(it.ledger, &stuck, i);
    OK(weir_ledger_label(it.ledger, "kept", &live, NULL));
    put_part(&two, 0);
    put_part(&two, 1);
    OK(append_raw());
    OK(sim_table_put(it.store, "tables/t", &live, digest));
    close_both();
    sim_fs_plant(sim.fs, SIM_STORE "/.weir/lease/run/s1-1.1~", "", 0);
    for (size_t i = 0; i < 3; i++)
        sim_spare_plant(250 + 100 * i);
    head_before = sim_book_head();
    sim_fs_sync_all(sim.fs);
    disk = sim_fs_copy(sim.fs);
    sim_stop();
}

/* ---- the operations ---- */

static int join_next(void)
{
    return join(TOKEN_NEXT, &it.attempt);
}
static bool joined_next(const struct weir_ledger_state *s)
{
    uint8_t token[WEIR_TOKEN_BYTES];
    sim_token(token, TOKEN_NEXT);
    bool is = !memcmp(s->token, token, sizeof token);
    CHECK(!is || s->attempt == head_before + 1);
    CHECK(!it.attempt || it.attempt == head_before + 1);
    return is;
}

static int join_again(void)
{
    int code = join(TOKEN_NOW, &it.attempt);
    CHECK(code || it.attempt == attempt_now);
    return code;
}
static int join_stale(void)
{
    return join(TOKEN_OLD, &it.attempt);
}

static bool has(const struct weir_ledger_state *s, const struct weir_save *save)
{
    return weir_ledger_find_save(s, save);
}

/* The part that completes the set. */
static int put_last(void)
{
    int code = sim_part_put(it.ledger, &two, 2, &it.committed);
    CHECK(it.committed == !code);
    return code;
}
static bool two_is_there(const struct weir_ledger_state *s)
{
    return has(s, &two);
}

static int put_first(void)
{
    int code = sim_part_put(it.ledger, &fresh, 0, &it.committed);
    CHECK(!it.committed);
    return code;
}
static bool first_is_there(const struct weir_ledger_state *s)
{
    (void)s;
    return sim_part_is_there(&fresh, 0);
}

static int put_again(void)
{
    return sim_part_put(it.ledger, &two, 1, &it.committed);
}
static int put_with(const struct weir_save *save, const char *note)
{
    struct weir_set *set;
    int code = weir_set_open(&set, it.ledger, save);
    if (code)
        return code;
    code = weir_set_put(set, 1, NULL, 0, note, strlen(note), &it.committed);
    weir_set_close(set);
    return code;
}
static int put_other(void)
{
    return put_with(&two, "another note");
}
static int put_miscounted(void)
{
    struct weir_save save = two;
    save.parts++;
    return put_with(&save, "a note");
}

static int put_whole(void)
{
    int code = 0;
    for (uint32_t i = 0; !code && i < PARTS; i++) {
        code = sim_part_put(it.ledger, &fresh, i, &it.committed);
        CHECK(code || it.committed || i < PARTS - 1);
    }
    return code;
}
static bool fresh_is_there(const struct weir_ledger_state *s)
{
    return has(s, &fresh);
}

static int finish(const struct weir_save *save, uint64_t wait_ns)
{
    struct weir_set *set;
    int code = weir_set_open(&set, it.ledger, save);
    if (code)
        return code;
    bool committed;
    code = wait_ns ? weir_set_wait(set, wait_ns, &committed) : weir_set_finish(set);
    weir_set_close(set);
    return code;
}
static int finish_stuck(void)
{
    return finish(&stuck, 0);
}
static int wait_stuck(void)
{
    return finish(&stuck, 100000000000);
}
static bool stuck_is_there(const struct weir_ledger_state *s)
{
    return has(s, &stuck);
}
static int finish_missing(void)
{
    return finish(&two, 0);
}
static int wait_missing(void)
{
    return finish(&two, 10000000);
}
static int finish_stale(void)
{
    return finish(&zombie, 0);
}
static int finish_again(void)
{
    return finish(&live, 0);
}
static int finish_retired(void)
{
    return finish(&retired, 0);
}

static int commit_other(void)
{
    uint8_t root[WEIR_SHA256_BYTES] = {1};
    return weir_ledger_commit(it.ledger, &live, root, NULL);
}

static int retire_old(void)
{
    return weir_ledger_retire(it.ledger, attempt_now, is_save, &live_old, &it.count);
}
static bool old_is_retired(const struct weir_ledger_state *s)
{
    const struct weir_ledger_entry *entry = weir_ledger_find_save(s, &live_old);
    return !entry || entry->retired_ns;
}
static int retire_stale(void)
{
    return weir_ledger_retire(it.ledger, attempt_old, is_save, &live_old, &it.count);
}

static int retire_labelled(void)
{
    int code = weir_ledger_retire(it.ledger, attempt_now, is_save, &live, &it.count);
    CHECK(code || it.count == 0);
    return code;
}

static bool has_label(const struct weir_ledger_state *s, const char *label,
                      const struct weir_save *save)
{
    const struct weir_ledger_entry *entry = weir_ledger_find_label(s, label);
    return entry && weir_save_same(&entry->save, save);
}
static int label(void)
{
    return weir_ledger_label(it.ledger, "best", &live_old, NULL);
}
static bool is_labelled(const struct weir_ledger_state *s)
{
    return has_label(s, "best", &live_old);
}
static int label_again(void)
{
    return weir_ledger_label(it.ledger, "kept", &live, NULL);
}
static int move_label(void)
{
    return weir_ledger_label(it.ledger, "kept", &live_old, NULL);
}
static bool is_moved(const struct weir_ledger_state *s)
{
    CHECK(weir_ledger_find_label(s, "kept")); /* of the one or the other, at any time */
    return has_label(s, "kept", &live_old);
}
static int unlabel(void)
{
    return weir_ledger_unlabel(it.ledger, "kept", NULL);
}
static bool is_unlabelled(const struct weir_ledger_state *s)
{
    return !weir_ledger_find_label(s, "kept");
}
static int label_retired(void)
{
    return weir_ledger_label(it.ledger, "best", &retired, NULL);
}

static int gc(void)
{
    return weir_gc(it.store, 0, NULL, NULL, NULL);
}
static int gc_now(void)
{
    return weir_gc(it.store, WEIR_GC_NOW, NULL, NULL, NULL);
}
static int gc_dry(void)
{
    return weir_gc(it.store, WEIR_GC_DRY_RUN, NULL, NULL, NULL);
}
static int tidy(void)
{
    return weir_ledger_collect(it.store, SIM_LEDGER, 0, NULL);
}
static bool is_collected(const struct weir_ledger_state *s)
{
    return !has(s, &retired) && !sim_part_is_there(&two, 0) && !sim_part_is_there(&zombie, 1) &&
           sim_part_is_there(&live, 0) && s->floor == two.number;
}

static int view(const char *name, const struct weir_save *expected)
{
    struct weir_view *view;
    int code = weir_view_open(&view, it.ledger, name);
    if (code)
        return code;
    CHECK(weir_save_same(&weir_view_entry(view)->save, expected));
    code = sim_view_read(view);
    weir_view_close(view);
    return code;
}
static int view_newest(void)
{
    return view(NULL, &live);
}
static int view_named(void)
{
    return view("s1", &live);
}
static int view_none(void)
{
    return view("old", &live);
}

static int table_put(void)
{
    uint8_t digest[WEIR_SHA256_BYTES];
    return sim_table_put(it.store, "tables/new", &live, digest);
}
static int table_get(void)
{
    struct weir_table *table;
    int code = weir_table_open(&table, it.store, "tables/t", NULL);
    if (code)
        return code;
    sim_table_check(table, &live);
    weir_table_close(table);
    return 0;
}
static bool table_is_there(const struct weir_ledger_state *s)
{
    (void)s;
    return sim_fs_at(sim.fs, SIM_STORE "/.weir/seal/tables/new~");
}
static bool raw_is_there(const struct weir_ledger_state *s)
{
    (void)s;
    return sim_fs_at(sim.fs, SIM_STORE "/.weir/log/raw~/00000000000000000002");
}

static int verify(void)
{
    uint64_t records;
    return weir_log_verify(weir_ledger_log(it.ledger), &records);
}

enum {
    READS = 1,  /* changes nothing that a power loss could take */
    PARTLY = 2, /* a failure may leave it half done, or done */
    HEAVY = 4,  /* has many cases: one in three of them, */
    VAST = 8,   /* one in eleven, unless there is time */
};

static const struct operation {
    const char *name;
    int (*run)(void);
    int answer;                                         /* when nothing fails */
    bool (*is_done)(const struct weir_ledger_state *s); /* NULL: it leaves no trace */
    int again; /* the answer when it is done once more, where that differs */
    unsigned flags;
} operations[] = {
    {"join", join_next, 0, joined_next, 0, 0},
    {"join again", join_again, 0, NULL, 0, 0},
    {"join late", join_stale, -ESTALE, NULL, 0, 0},
    {"append", append_raw, 0, raw_is_there, 0, 0},
    {"put the last part", put_last, 0, two_is_there, 0, 0},
    {"put the first part", put_first, 0, first_is_there, 0, 0},
    {"put a part again", put_again, 0, NULL, 0, 0},
    {"put another part again", put_other, -EEXIST, NULL, 0, 0},
    {"put a part of more parts", put_miscounted, -EINVAL, NULL, 0, 0},
    {"put all parts", put_whole, 0, fresh_is_there, 0, HEAVY},
    {"finish", finish_stuck, 0, stuck_is_there, 0, 0},
    {"wait", wait_stuck, 0, stuck_is_there, 0, 0},
    {"finish what is missing a part", finish_missing, -EAGAIN, NULL, 0, READS},
    {"wait for what is missing a part", wait_missing, -ETIMEDOUT, NULL, 0, READS},
    {"finish what is over", finish_stale, -ESTALE, NULL, 0, READS},
    {"finish what is committed", finish_again, 0, NULL, 0, 0},
    {"finish what is retired", finish_retired, 0, NULL, 0, 0},
    {"commit another root", commit_other, -EEXIST, NULL, 0, READS},
    {"retire", retire_old, 0, old_is_retired, 0, 0},
    {"retire late", retire_stale, -ESTALE, NULL, 0, 0},
    {"retire what is labelled", retire_labelled, 0, NULL, 0, 0},
    {"label", label, 0, is_labelled, 0, 0},
    {"label again", label_again, 0, NULL, 0, 0},
    {"label what is retired", label_retired, -ESTALE, NULL, 0, 0},
    {"move a label", move_label, 0, is_moved, 0, 0},
    {"take a label off", unlabel, 0, is_unlabelled, -ENOENT, 0},
    {"gc", gc, 0, is_collected, 0, PARTLY | VAST},
    {"collect", tidy, 0, is_collected, 0, PARTLY | VAST},
    {"gc now", gc_now, 0, is_collected, 0, PARTLY | VAST},
    {"gc dry", gc_dry, 0, NULL, 0, READS | HEAVY},
    {"view the newest", view_newest, 0, NULL, 0, READS},
    {"view by name", view_named, 0, NULL, 0, READS},
    {"view what is retired", view_none, -ENOENT, NULL, 0, READS},
    {"write a table", table_put, 0, table_is_there, -EEXIST, 0},
    {"read a table", table_get, 0, NULL, 0, READS},
    {"verify", verify, 0, NULL, 0, READS},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* ---- the sweep ---- */

static int answer_of(const struct operation *op)
{
    it.attempt = 0;
    it.committed = false;
    sim_text_clear();
    int code = op->run();
    sim_text_check(code);
    bool said = code && strstr(weir_error_text(), "unknown");
    CHECK(!code || said == (code == -WEIR_EUNKNOWN));
    CHECK(code != -WEIR_EUNKNOWN || !(op->flags & READS));
    return code;
}

static bool is_done(const struct operation *op)
{
    static struct sim_book book;
    sim_book_open(&book);
    bool is = op->is_done && op->is_done(&book.states[book.head]);
    CHECK(op->is_done || book.head == head_before);
    sim_book_close(&book);
    return is;
}

/* Is the answer true, now and (a second time) after a power loss? */
static void judge(const struct operation *op, int code)
{
    bool done = is_done(op);
    CHECK(code || !op->answer);
    if (!code && op->is_done)
        CHECK(done);
    if (code && code != -WEIR_EUNKNOWN && !(op->flags & PARTLY))
        CHECK(!done);
}

/* The same again, and then a life after it. */
static void go_on(const struct operation *op)
{
    struct weir_ledger_state head;
    uint64_t attempt;
    bool done = is_done(op);
    open_both();
    CHECK_EQ(answer_of(op), done && op->again ? op->again : op->answer);
    CHECK(!op->is_done || is_done(op));
    sim_saves_check(it.store, &head);
    const struct weir_ledger_entry *entry = weir_ledger_find_save(&head, &live);
    CHECK(entry && !entry->retired_ns);
    CHECK(old_is_retired(&head) == (op->run == retire_old));
    weir_state_free(&head);
    sim_saves_collect(it.store, others);
    OK(join(TOKEN_LAST, &attempt));
    struct weir_save save = sim_save("last", attempt, 1, PARTS);
    put_all_parts(&save);
    OK(view(NULL, &save));
    close_both();
}

static void run(const void *arg, const struct sim_fault *fault, bool power_loss,
                struct sim_census *census)
{
    const struct operation *op = arg;
    sim_values_rewind(values_mark);
    sim_start(2, sim_fs_copy(disk));
    sim.clock_ns = 10 * GRACE_S * 1000000000ull;
    open_both();
    sim.calls = sim.allocs = 0;
    sim.fault = *fault;
    int code = answer_of(op);
    sim_census_take(census);
    if (census)
        CHECK_EQ(code, op->answer);
    close_both();
    sim.fault = (struct sim_fault){0};
    judge(op, code);
    if (power_loss) {
        sim_reboot(fault->first);
        if (!(op->flags & PARTLY)) /* deleted nodes may come back, until the next gc */
            judge(op, code);
    }
    go_on(op);
    sim_stop();
}

int main(void)
{
    sim_seeds_init();
    sim_scene(0, "preparing");
    prepare();
    values_mark = sim_values_mark();
    for (size_t i = 0; i < OPERATIONS; i++) {
        const struct operation *op = &operations[i];
        sim_sweep(&(struct sim_sweep){.name = op->name,
                                      .run = run,
                                      .op = op,
                                      .reads = op->flags & READS,
                                      .stride = op->flags & VAST    ? 11
                                                : op->flags & HEAVY ? 3
                                                                    : 1});
    }
    printf("%llu cases in all\n", (unsigned long long)sim_cases());
    sim_fs_free(disk);
    return TEST_RESULT;
}
