/* commits URL [faults] - eight processes commit to one store: one winner for each name; puts,
 * removes and gets of a few names at once; appends to one log. All is noted, and the history of
 * each name must be linearizable (fault/linear.h), the log one chain that holds what was
 * acknowledged, once, in the order it came. With "faults" an operation may fail, but not lie: what
 * failed did not happen, what was unknown may have, and no read gives wrong bytes.
 *
 * WEIR_COMMITS=n: operations of each process (default 60). WEIR_SEED replays its choices.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>

#include "fault/content.h"
#include "fault/history.h"
#include "fault/linear.h"
#include "fault/proc.h"
#include "store/log.h"
#include "test.h"

enum { PROCS = 8, WINS = 6, KEYS = 4, APPENDS_MAX = 4096 };

static const char *const keys[KEYS] = {"k", "k/under", "x", "deep/y/z"};

/* What an append writes: the n-th of a process. */
struct word {
    uint32_t proc, number;
};

struct append {
    struct word word;
    uint64_t start_ns, end_ns, record;
    atomic_int done;
    int code;
};

static struct {
    const char *url;
    bool faults;
    uint64_t seed, ops, begun_ns;
    atomic_uint arrived;
    atomic_uint wins[WINS], doubts[WINS];
    atomic_uint answers[200];
    atomic_uint append_count;
    struct append appends[APPENDS_MAX];
    struct history history;
} * t;

struct role {
    unsigned number;
    struct dice dice;
    weir_store *store;
};

static void note(int code)
{
    unsigned known = code < 0 && code > -200 ? (unsigned)-code : code ? 199 : 0;
    atomic_fetch_add(&t->answers[known], 1);
}

static void print_answers(const char *what)
{
    printf("%s:", what);
    for (int code = 0; code < 200; code++) {
        unsigned count = atomic_exchange(&t->answers[code], 0);
        if (count)
            printf(" %s %u", !code ? "ok" : code == 199 ? "unknown" : strerrorname_np(code), count);
    }
    printf("\n");
    fflush(stdout);
}

/* Wrong bytes are never right; other failures are only where there are faults. */
static int judge(int code, const char *what, const char *key, const int *codes)
{
    note(code);
    CHECK(code != -EILSEQ);
    if (!code || t->faults)
        return code;
    while (*codes && *codes != -code)
        codes++;
    if (!*codes)
        printf("UNEXPECTED: %s '%s': %d: %s\n", what, key, code, weir_error_text());
    CHECK(*codes);
    return code;
}

static const int put_codes[] = {EEXIST, EAGAIN, 0};
static const int get_codes[] = {ENOENT, EAGAIN, ESTALE, 0};
static const int remove_codes[] = {ENOENT, EAGAIN, 0};
static const int append_codes[] = {EAGAIN, 0};

static weir_store *open_store(uint32_t flags)
{
    weir_store *store = NULL;
    weir_store_options opts;
    weir_store_options_init(&opts);
    opts.flags = flags;
    opts.pool_bytes_max = 16 << 20;
    int code;
    while ((code = weir_store_open(&store, t->url, &opts)) && t->faults)
        sleep_ms(100);
    OK(code);
    return store;
}

static void run_all(int (*fn)(void *), uint64_t salt)
{
    static struct role roles[PROCS];
    pid_t pids[PROCS];
    atomic_store(&t->arrived, 0);
    for (unsigned i = 0; i < PROCS; i++) {
        roles[i] = (struct role){.number = i, .dice = {mix(mix(t->seed, salt), i)}};
        pids[i] = proc_start(fn, &roles[i]);
    }
    proc_all_ok(pids, PROCS);
}

/* Until all have come here so often. */
static void barrier(unsigned round)
{
    atomic_fetch_add(&t->arrived, 1);
    while (atomic_load(&t->arrived) < PROCS * (round + 1))
        sleep_us(50);
}

/* ---- one winner ---- */

static int winner_main(void *arg)
{
    struct role *r = arg;
    r->store = open_store(0);
    for (unsigned round = 0; round < WINS; round++) {
        char key[64];
        struct content what = {dice_next(&r->dice), dice_below(&r->dice, 20000)};
        snprintf(key, sizeof key, "one/of/%" PRIx64 "/%u", t->seed, round);
        barrier(round);
        int code = judge(content_put(r->store, key, what, 0), "put of", key, put_codes);
        atomic_fetch_add(&t->wins[round], code == 0);
        atomic_fetch_add(&t->doubts[round], code == -WEIR_EUNKNOWN);
        if (!t->faults)
            CHECK(code == 0 || code == -EEXIST);
    }
    weir_store_close(r->store);
    return 0;
}

static void one_winner(void)
{
    run_all(winner_main, 1);
    for (unsigned round = 0; round < WINS; round++) {
        unsigned wins = atomic_load(&t->wins[round]), doubts = atomic_load(&t->doubts[round]);
        CHECK(wins <= 1);
        CHECK(t->faults || wins + doubts == 1);
    }
    print_answers("one winner");
}

/* ---- puts, removes and gets ---- */

static int mix_main(void *arg)
{
    struct role *r = arg;
    r->store = open_store(0);
    barrier(0);
    for (uint64_t i = 0; i < t->ops; i++) {
        const char *key = keys[dice_below(&r->dice, KEYS)];
        unsigned deed = (unsigned)dice_below(&r->dice, 10);
        if (deed < 4) {
            struct content what = {dice_next(&r->dice), dice_below(&r->dice, 100000)};
            judge(history_put(&t->history, r->number, r->store, key, what, 0), "put of", key,
                  put_codes);
        } else if (deed < 7) {
            judge(history_remove(&t->history, r->number, r->store, key), "removing", key,
                  remove_codes);
        } else {
            judge(history_get(&t->history, r->number, r->store, key), "reading", key, get_codes);
        }
    }
    weir_store_close(r->store);
    return 0;
}

/* What was there before this run is history, too. */
static void mix_begin(weir_store *store)
{
    history_reset(&t->history);
    for (unsigned i = 0; i < KEYS; i++) {
        int code;
        while ((code = weir_remove(store, keys[i])) && code != -ENOENT && t->faults)
            sleep_ms(10);
        CHECK(!code || code == -ENOENT);
    }
}

static void check_key(const char *key, void *arg)
{
    struct content what;
    int code;
    while ((code = content_get(&what, arg, key)) && code != -ENOENT && code != -EILSEQ && t->faults)
        sleep_ms(10);
    if (code && code != -ENOENT)
        printf("'%s' cannot be read: %s\n", key, weir_error_text());
    CHECK(!code || code == -ENOENT);
    CHECK(history_allows(&t->history, key, code ? NULL : &what));
    CHECK(linear_key(&t->history, key, code ? NULL : &what));
}

static int mix_check(void *arg)
{
    weir_store *store = open_store(0);
    (void)arg;
    history_keys(&t->history, check_key, store);
    CHECK(history_reads_allowed(&t->history));
    weir_store_close(store);
    return 0;
}

static int mix_clear(void *arg)
{
    weir_store *store = open_store(WEIR_STORE_CREATE);
    (void)arg;
    mix_begin(store);
    weir_store_close(store);
    return 0;
}

static void linearizable(void)
{
    CHECK_EQ(proc_run(mix_clear, NULL), 0);
    run_all(mix_main, 2);
    CHECK_EQ(proc_run(mix_check, NULL), 0);
    struct history_totals sum = history_count(&t->history);
    printf("puts %u of %u (%u open), removes %u of %u (%u open), gets %u\n", sum.puts_ok, sum.puts,
           sum.puts_open, sum.removes_ok, sum.removes, sum.removes_open, sum.gets);
    CHECK(t->faults || (sum.puts_ok && sum.removes_ok && sum.gets));
    print_answers("puts, removes, gets");
}

/* ---- a log ---- */

static void log_name(char name[64])
{
    snprintf(name, 64, "commits/%" PRIx64, t->seed);
}

static int append_once(struct weir_log *log, uint32_t proc, uint32_t number)
{
    struct weir_log_record head;
    int code = weir_log_head(log, &head);
    if (code)
        return code;
    unsigned at = atomic_fetch_add(&t->append_count, 1);
    CHECK(at < APPENDS_MAX);
    struct append *a = &t->appends[at];
    *a = (struct append){.word = {proc, number}, .record = head.number + 1};
    a->start_ns = now_ns();
    a->code = weir_log_append(log, &head, &a->word, sizeof a->word);
    a->end_ns = now_ns();
    atomic_store(&a->done, 1);
    weir_log_record_free(&head);
    return a->code;
}

static int log_main(void *arg)
{
    struct role *r = arg;
    struct weir_log *log;
    char name[64];
    log_name(name);
    r->store = open_store(0);
    OK(weir_log_open(&log, r->store, name));
    barrier(0);
    for (unsigned i = 0; i < t->ops / 4; i++)
        judge(append_once(log, r->number, i), "appending to", name, append_codes);
    weir_log_close(log);
    weir_store_close(r->store);
    return 0;
}

/* Whose record is it? Each was written by the one that says so, and by nobody else. */
static void check_record(const struct weir_log_record *record)
{
    unsigned explained = 0;
    for (unsigned i = 0; i < atomic_load(&t->append_count); i++) {
        struct append *a = &t->appends[i];
        if (a->record != record->number || (a->code && a->code != -WEIR_EUNKNOWN))
            continue;
        bool is_it = record->state_size == sizeof a->word &&
                     !memcmp(record->state, &a->word, sizeof a->word);
        CHECK(is_it || a->code); /* acknowledged, and another stands there */
        explained += is_it;
    }
    CHECK(explained >= 1);
}

static int log_check(void *arg)
{
    struct weir_log *log;
    struct weir_log_record head, record;
    uint64_t good = 0;
    char name[64];
    (void)arg;
    log_name(name);
    weir_store *store = open_store(0);
    OK(weir_log_open(&log, store, name));
    OK(weir_log_head(log, &head));
    OK(weir_log_verify(log, &good));
    CHECK_EQ(good, head.number);
    for (uint64_t n = 1; n <= head.number; n++) {
        OK(weir_log_read(log, n, &record));
        check_record(&record);
        weir_log_record_free(&record);
    }
    for (unsigned i = 0; i < atomic_load(&t->append_count); i++) {
        const struct append *a = &t->appends[i];
        CHECK(a->code || a->record <= head.number); /* acknowledged, and lost */
        for (unsigned j = 0; !a->code && j < atomic_load(&t->append_count); j++) {
            const struct append *b = &t->appends[j];
            CHECK(b->code || i == j || a->record != b->record);
            CHECK(b->code || a->end_ns >= b->start_ns || a->record < b->record);
        }
    }
    printf("a log of %" PRIu64 " records, one chain\n", head.number);
    weir_log_record_free(&head);
    weir_log_close(log);
    weir_store_close(store);
    return 0;
}

static void one_chain(void)
{
    run_all(log_main, 3);
    CHECK_EQ(proc_run(log_check, NULL), 0);
    print_answers("appends");
}

int main(int argc, char **argv)
{
    const char *ops = getenv("WEIR_COMMITS");
    CHECK(argc == 2 || argc == 3);
    t = shared_alloc(sizeof *t);
    t->url = argv[1];
    t->faults = argc == 3 && !strcmp(argv[2], "faults");
    t->seed = seed_choose();
    t->ops = ops ? strtoull(ops, NULL, 10) : 60;
    CHECK(t->ops >= 4 && t->ops <= HISTORY_OPS && PROCS * t->ops / KEYS <= LINEAR_OPS / 2);
    RUN(linearizable);
    RUN(one_winner);
    RUN(one_chain);
    return TEST_RESULT;
}
