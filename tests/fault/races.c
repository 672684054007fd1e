/* races.c - many processes, a few keys, nobody is killed: put-if-absent has one winner; puts, gets,
 * removes, listings and collections all at once never give wrong bytes, a damaged object, or an
 * answer that a race does not explain; and what they saw is linearizable (history.h).
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "content.h"
#include "disk.h"
#include "history.h"
#include "place.h"
#include "proc.h"
#include "test.h"

enum { PROCS = 8, WINS = 50, MIX_MS = 3000, KEYS = 6 };

static const char *const keys[KEYS] = {"k", "k/under", "k/under/this", "x", "deep/y/z", "deep/y"};

/* What each answers when others are faster, and nothing else; with a short grace a writer may also
 * be taken for dead. */
static const int put_codes[] = {EEXIST, EAGAIN, EOVERFLOW, 0};
static const int put_codes_hurried[] = {EEXIST, EAGAIN, EOVERFLOW, ESTALE, 0};
static const int get_codes[] = {ENOENT, EAGAIN, ESTALE, EOVERFLOW, 0};
static const int remove_codes[] = {ENOENT, EAGAIN, EOVERFLOW, 0};

static struct {
    uint64_t seed;
    char root[PLACE_ROOM];
    bool hurried; /* the grace is short */
    unsigned epoch;
    atomic_uint arrived, busy;
    atomic_uint wins[WINS];
    struct content winner[WINS];
    atomic_uint answers[2][200]; /* of the two halves of the test, by errno */
    struct history history;
} *t;

struct role {
    unsigned number;
    struct dice dice;
    weir_store *store;
};

static void must_be_among(int code, const int *codes, const char *what, const char *key)
{
    atomic_fetch_add(&t->answers[t->epoch > 0][-code % 200], 1);
    if (code == 0)
        return;
    while (*codes && *codes != -code)
        codes++;
    if (!*codes)
        printf("UNEXPECTED: %s '%s': %d (%s): %s\n", what, key, code, strerrorname_np(-code),
               weir_error_text());
    CHECK(*codes);
}

static void print_answers(const char *what, unsigned half)
{
    printf("%s:", what);
    for (int code = 0; code < 200; code++)
        if (atomic_load(&t->answers[half][code]))
            printf(" %s %u", code ? strerrorname_np(code) : "ok",
                   atomic_load(&t->answers[half][code]));
    printf("\n");
}

static void run_all(int (*fn)(void *))
{
    struct role roles[PROCS];
    pid_t pids[PROCS];
    for (unsigned i = 0; i < PROCS; i++) {
        roles[i] = (struct role){.number = i, .dice = {mix(mix(t->seed, t->epoch), i)}};
        pids[i] = proc_start(fn, &roles[i]);
    }
    proc_all_ok(pids, PROCS);
}

/* ---- one winner ---- */

static void barrier(unsigned round)
{
    atomic_fetch_add(&t->arrived, 1);
    while (atomic_load(&t->arrived) < PROCS * (round + 1))
        sleep_us(20);
}

static int winner_main(void *arg)
{
    struct role *role = arg;
    weir_store *store = store_must_open(t->root, engine_pick(role->number), WEIR_STORE_CREATE, 0);
    for (unsigned round = 0; round < WINS; round++) {
        char key[64];
        struct content what = {dice_next(&role->dice), dice_below(&role->dice, 200000)};
        snprintf(key, sizeof key, "one/of/%u", round);
        barrier(round);
        int code = content_put(store, key, what, 0);
        must_be_among(code, put_codes, "put of", key);
        CHECK(code == 0 || code == -EEXIST); /* nobody else is about */
        if (code == 0 && atomic_fetch_add(&t->wins[round], 1) == 0)
            t->winner[round] = what;
        /* Won or lost, from now on it is there. */
        struct content found;
        OK(content_get(&found, store, key));
    }
    weir_store_close(store);
    return 0;
}

static int winner_check(void *arg)
{
    weir_store *store = store_must_open(t->root, NULL, 0, 0);
    (void)arg;
    for (unsigned round = 0; round < WINS; round++) {
        char key[64];
        snprintf(key, sizeof key, "one/of/%u", round);
        CHECK_EQ(atomic_load(&t->wins[round]), 1);
        OK(content_expect(store, key, t->winner[round]));
    }
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    CHECK_EQ(disk_debris(store, t->root), 0);
    CHECK_EQ(disk_plain_missing(store, t->root), 0);
    weir_store_close(store);
    return 0;
}

static void one_winner(void)
{
    snprintf(t->root, sizeof t->root, "%s/winner", place_temp(NULL));
    run_all(winner_main);
    CHECK_EQ(proc_run(winner_check, NULL), 0);
    print_answers("8 processes, 50 keys", 0);
}

/* ---- everything at once ---- */

static uint64_t size_pick(struct dice *dice)
{
    static const uint64_t sizes[] = {0, 1, 4096, 70000, 140001, (1 << 20) + 5, 3 << 20};
    return sizes[dice_below(dice, dice_one_in(dice, 4) ? 7 : 4)];
}

static int work_once(struct role *r)
{
    const char *key = keys[dice_below(&r->dice, KEYS)];
    int code;
    if (r->number < 3) {
        struct content what = {dice_next(&r->dice), size_pick(&r->dice)};
        code = history_put(&t->history, r->number, r->store, key, what, r->number & CONTENT_HINT);
        must_be_among(code, t->hurried ? put_codes_hurried : put_codes, "put of", key);
        if (code)
            sleep_us((unsigned)dice_below(&r->dice, 400));
    } else if (r->number < 5) {
        code = history_remove(&t->history, r->number, r->store, key);
        must_be_among(code, remove_codes, "removing", key);
        if (code)
            sleep_us((unsigned)dice_below(&r->dice, 400));
    } else {
        code = history_get(&t->history, r->number, r->store, key);
        must_be_among(code, get_codes, "reading", key);
        sleep_us((unsigned)dice_below(&r->dice, 200));
    }
    return code;
}

/* A listing names only keys that are used, and calls nothing somebody else's for long. */
static void list_once(struct role *r)
{
    weir_list *list;
    const weir_entry *entry;
    int code;
    OK(weir_list_open(&list, r->store, "", WEIR_LIST_RECURSIVE | WEIR_LIST_DETAIL));
    while ((code = weir_list_next(list, &entry)) == 1) {
        unsigned at = 0;
        while (at < KEYS && strcmp(keys[at], entry->key))
            at++;
        CHECK(entry->is_dir || at < KEYS);
        must_be_among(entry->error, get_codes, "listing", entry->key);
        weir_object *obj;
        if (entry->is_dir || entry->kind == WEIR_KIND_SEALED ||
            weir_object_open(&obj, r->store, entry->key))
            continue;
        CHECK_EQ(weir_object_info(obj)->kind, WEIR_KIND_SEALED);
        weir_object_close(obj);
    }
    CHECK_EQ(code, 0);
    weir_list_close(list);
}

/* Nothing here is old: a gc that takes anything has taken it from a writer. */
static void collect_once(struct role *r)
{
    weir_gc_result result;
    OK(weir_gc(r->store, 0, &result, NULL, NULL));
    if (!t->hurried)
        CHECK_EQ(result.objects + result.temporaries + result.voids_placed, 0);
}

static int mix_main(void *arg)
{
    struct role *r = arg;
    r->store = store_must_open(t->root, engine_pick(dice_next(&r->dice)), 0, 0);
    if (r->number < 6) {
        while (work_once(r) != -EOVERFLOW)
            ;
        atomic_fetch_sub(&t->busy, 1);
    }
    while (atomic_load(&t->busy)) {
        if (r->number == 6)
            list_once(r);
        else if (r->number == 7)
            collect_once(r);
        sleep_us(100);
    }
    weir_store_close(r->store);
    return 0;
}

static void check_key(const char *key, void *arg)
{
    struct content what;
    int code = content_get(&what, arg, key);
    CHECK(code == 0 || code == -ENOENT);
    CHECK(history_allows(&t->history, key, code ? NULL : &what));
}

/* After an epoch: its history can have been; what is left is given to the next one. */
static int mix_check(void *arg)
{
    weir_store *store = store_must_open(t->root, NULL, 0, 0);
    (void)arg;
    history_keys(&t->history, check_key, store);
    CHECK(history_reads_allowed(&t->history));
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    CHECK_EQ(disk_debris(store, t->root), 0);
    CHECK_EQ(disk_plain_missing(store, t->root), 0);
    for (unsigned i = 0; i < KEYS; i++) {
        int code = weir_remove(store, keys[i]);
        CHECK(code == 0 || code == -ENOENT);
    }
    CHECK(disk_is_bare(t->root));
    weir_store_close(store);
    return 0;
}

static void mix_for(const char *base, uint64_t grace_s)
{
    uint64_t end_ns = now_ns() + MIX_MS * 1000000ull;
    struct history_totals sum = {0};
    unsigned epochs = 0;
    t->hurried = grace_s == 1;
    snprintf(t->root, sizeof t->root, "%s/mix", place_temp(base));
    weir_store_close(store_must_open(t->root, NULL, WEIR_STORE_CREATE, grace_s));
    for (; epochs == 0 || now_ns() < end_ns; epochs++) {
        t->epoch++;
        history_reset(&t->history);
        atomic_store(&t->busy, 6);
        run_all(mix_main);
        CHECK_EQ(proc_run(mix_check, NULL), 0);
        struct history_totals n = history_count(&t->history);
        sum.puts_ok += n.puts_ok, sum.removes_ok += n.removes_ok, sum.gets += n.gets;
    }
    printf("%s, grace %llu s: %u epochs, %u puts and %u removes that succeeded, %u gets\n", t->root,
           (unsigned long long)grace_s, epochs, sum.puts_ok, sum.removes_ok, sum.gets);
}

static void everything_at_once(void)
{
    mix_for(NULL, 86400);
    mix_for(NULL, 1);
    mix_for(place_memory(), 86400);
    mix_for(place_memory(), 1);
    print_answers("mixed", 1);
}

int main(void)
{
    t = shared_alloc(sizeof *t);
    t->seed = seed_choose();
    RUN(one_winner);
    RUN(everything_at_once);
    return TEST_RESULT;
}
