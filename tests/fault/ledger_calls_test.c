/* The checker of ledger_calls.h can fail: it takes a history that is possible, and refuses each of
 * those that are not; the same for the steps of a log.
 */
#include <errno.h>

#include "ledger_calls.h"
#include "test.h"

/* ---- steps ---- */

static struct steps *steps;
static struct calls *calls;

/* A ledger state that owns its arrays; number: of its record. */
static struct weir_ledger_state state_of(uint64_t number, uint64_t attempt, unsigned incarnation,
                                         uint64_t floor)
{
    struct weir_ledger_state s = {.attempt = attempt, .floor = floor, .record.number = number};
    s.entries = calloc(16, sizeof *s.entries);
    s.past = calloc(16, sizeof *s.past);
    if (incarnation)
        token_make(s.token, incarnation);
    return s;
}

static void add(struct weir_ledger_state *s, uint64_t attempt, uint64_t number, uint64_t retired)
{
    struct weir_ledger_entry *e = &s->entries[s->count++];
    e->save = (struct weir_save){"x", attempt, number, 8};
    e->retired_ns = retired;
}

static void past(struct weir_ledger_state *s, unsigned incarnation)
{
    token_make(s->past[s->past_count++], incarnation);
}

/* Follows from before to after, which both go; NULL or the fault. */
static const char *follow(struct weir_ledger_state before, struct weir_ledger_state after)
{
    const char *fault = log_follow(steps, &before, &after);
    weir_state_free(&before);
    weir_state_free(&after);
    return fault;
}

/* A log by hand: 1 join #1, 2 commit 1.1, 3 commit 1.2, 4 retire 1.1, 5 join #2, 6 forget 1.1,
 * 7 commit 5.1, 8 give up to 5.3. */
static struct weir_ledger_state at(unsigned number)
{
    uint64_t attempt = number >= 5 ? 5 : number >= 1 ? 1 : 0;
    struct weir_ledger_state s = state_of(number, attempt,
                                          number >= 5 ? 2
                                          : number    ? 1
                                                      : 0,
                                          number >= 8 ? 3 : 0);
    if (number >= 5)
        past(&s, 1);
    if (number >= 2 && number < 6)
        add(&s, 1, 1, number >= 4 ? 99 : 0);
    if (number >= 3)
        add(&s, 1, 2, 0);
    if (number >= 7)
        add(&s, 5, 1, 0);
    return s;
}

static void log_up_to(unsigned number)
{
    memset(steps, 0, sizeof *steps);
    for (unsigned i = 0; i < number; i++)
        CHECK(!follow(at(i), at(i + 1)));
}

static void good_steps_are_taken(void)
{
    log_up_to(8);
    static const enum step_kind kinds[] = {0,           STEP_JOIN,   STEP_COMMIT,
                                           STEP_COMMIT, STEP_RETIRE, STEP_JOIN,
                                           STEP_FORGET, STEP_COMMIT, STEP_GIVE_UP};
    for (unsigned i = 1; i <= 8; i++)
        CHECK_EQ(steps->steps[i].kind, kinds[i]);
    const struct saved *saved = saved_find(steps, (struct which){1, 1});
    CHECK(saved->committed == 2 && saved->retired == 4 && saved->forgotten == 6);
    CHECK_EQ(saved_find(steps, (struct which){5, 1})->committed, 7);
    CHECK(!saved_find(steps, (struct which){5, 2}));
    CHECK_EQ(steps->steps[6].newest.number, 2);
}

static void refused(unsigned number, struct weir_ledger_state after, const char *why)
{
    log_up_to(number);
    const char *fault = follow(at(number), after);
    CHECK(fault && strstr(fault, why));
}

static void bad_steps_are_refused(void)
{
    struct weir_ledger_state s = at(3);
    add(&s, 1, 3, 0);
    s.record.number = 3;
    refused(2, s, "two things"); /* two commits at once */
    s = at(2);
    s.record.number = 3;
    refused(2, s, "does nothing");
    s = at(7);
    s.record.number = 8;
    add(&s, 1, 3, 0);
    refused(7, s, "over"); /* a zombie's commit */
    s = at(8);
    s.record.number = 9;
    add(&s, 5, 3, 0);
    refused(8, s, "given up");
    s = at(6);
    s.record.number = 7;
    s.count = 0;
    refused(6, s, "live entry disappeared");
    s = at(5);
    s.record.number = 5;
    s.attempt = 4;
    refused(4, s, "number of its record");
    s = at(4);
    s.record.number = 5;
    s.entries[0].retired_ns = 0;
    refused(4, s, "came back");
    s = at(8);
    s.record.number = 9;
    s.floor = 2;
    refused(8, s, "sank");
    s = at(8);
    s.record.number = s.attempt = 9;
    s.floor = 0;
    token_make(s.token, 1); /* the first incarnation again */
    memmove(s.past + 1, s.past, sizeof s.past[0]);
    token_make(s.past[0], 2);
    s.past_count = 2;
    refused(8, s, "joined again");
    s = at(7);
    s.record.number = 8;
    s.entries[1].root[3] ^= 1;
    refused(7, s, "");
}

/* ---- calls ---- */

static struct call *call(enum call_kind kind, uint64_t start, uint64_t end, int code)
{
    struct call *c = call_begin(calls, kind, atomic_load(&calls->count));
    c->start_ns = start;
    c->code = code;
    c->end_ns = end;
    if (end)
        atomic_store(&c->done, 1);
    return c;
}

static struct call *join(uint64_t start, uint64_t end, int code, unsigned who, uint64_t attempt)
{
    struct call *c = call(CALL_JOIN, start, end, code);
    c->incarnation = who;
    c->attempt = attempt;
    return c;
}

static struct call *put(uint64_t start, uint64_t end, int code, uint64_t attempt, uint64_t number)
{
    struct call *c = call(CALL_PUT, start, end, code);
    c->save = (struct which){attempt, number};
    c->committed = !code && end;
    return c;
}

static struct call *read_head(uint64_t start, uint64_t end, uint64_t head)
{
    struct call *c = call(CALL_READ, start, end, 0);
    c->head = head;
    return c;
}

static struct call *view(uint64_t start, uint64_t end, int code, uint64_t attempt, uint64_t number)
{
    struct call *c = call(CALL_VIEW, start, end, code);
    c->save = (struct which){attempt, number};
    return c;
}

static struct call *retire(uint64_t start, uint64_t end, int code, uint64_t attempt,
                           uint64_t number)
{
    struct call *c = call(CALL_RETIRE, start, end, code);
    c->retired_count = 1;
    c->retired[0] = (struct which){attempt, number};
    return c;
}

/* What happened, as those saw it who did it. Each that is left out makes room for a wrong one. */
static void tell(void)
{
    memset(calls, 0, sizeof *calls);
    join(10, 20, 0, 1, 1);
    join(15, 40, 0, 1, 1);
    put(21, 30, 0, 1, 1);
    put(31, 0, 0, 1, 2); /* killed */
    view(31, 34, 0, 1, 1);
    retire(50, 60, 0, 1, 1);
    read_head(61, 62, 4);
    join(70, 80, 0, 2, 5);
    put(90, 100, 0, 5, 1);
    put(91, 99, -ESTALE, 1, 7); /* a zombie */
    read_head(101, 102, 8);
}

static void good_calls_are_taken(void)
{
    log_up_to(8);
    tell();
    CHECK(calls_check(calls, steps));
    tell();
    put(200, 210, 0, 1, 2); /* committed long ago: the answer is right */
    put(200, 210, -ESTALE, 5, 2);
    put(200, 210, -ESTALE, 1, 1); /* forgotten */
    join(200, 210, -ESTALE, 1, 0);
    view(200, 210, 0, 5, 1);
    CHECK(calls_check(calls, steps));
    tell();
    view(5, 12, -ENOENT, 0, 0);
    read_head(11, 25, 0);
    read_head(11, 25, 2);
    CHECK(calls_check(calls, steps));
}

#define WRONG(wrong_call)                                                                          \
    do {                                                                                           \
        log_up_to(8);                                                                              \
        tell();                                                                                    \
        wrong_call;                                                                                \
        CHECK(!calls_check(calls, steps));                                                         \
    } while (0)

static void wrong_calls_are_refused(void)
{
    WRONG(put(200, 210, 0, 5, 9));        /* acknowledged, and not in the log */
    WRONG(put(200, 210, 0, 1, 1));        /* acknowledged, and forgotten before */
    WRONG(put(200, 210, -ESTALE, 5, 1));  /* refused, and committed */
    WRONG(put(200, 210, -ESTALE, 5, 4));  /* refused, and nothing says why */
    WRONG(put(22, 25, -ESTALE, 1, 7));    /* refused before there was a reason: see below */
    WRONG(read_head(31, 35, 1));          /* a commit was acknowledged before it began */
    WRONG(read_head(63, 65, 3));          /* another read was further */
    WRONG(read_head(103, 105, 7));        /* the same, at the end */
    WRONG(read_head(103, 105, 9));        /* what is not there */
    WRONG(read_head(1, 5, 2));            /* before anybody called for it */
    WRONG(read_head(1, 5, 1));            /* the same of a join */
    WRONG(join(200, 210, 0, 1, 1));       /* an old incarnation, after the new one */
    WRONG(join(200, 210, 0, 2, 6));       /* another attempt than the log's */
    WRONG(join(200, 210, -ESTALE, 2, 0)); /* the current one is not over */
    WRONG(join(200, 210, -ESTALE, 3, 0)); /* one that never was */
    WRONG(view(200, 210, 0, 1, 2));       /* not the newest any more */
    WRONG(view(200, 210, 0, 1, 1));       /* retired */
    WRONG(view(5, 9, 0, 1, 1));           /* before it was committed */
    WRONG(view(200, 210, -ENOENT, 0, 0)); /* something was there */
    WRONG(view(31, 33, -ENOENT, 0, 0));
    WRONG(retire(200, 210, 0, 1, 2));       /* retired, and the log does not know it */
    WRONG(retire(200, 210, -ESTALE, 1, 2)); /* by hand nothing is stale */
}

/* The order of two calls that did not overlap, whatever each says alone. */
static void order_counts(void)
{
    log_up_to(8);
    memset(calls, 0, sizeof *calls);
    join(10, 20, 0, 1, 1);
    put(21, 0, 0, 1, 1);
    put(21, 0, 0, 1, 2);
    join(25, 0, 0, 2, 0);
    put(26, 0, 0, 5, 1);
    read_head(30, 40, 8);
    CHECK(calls_check(calls, steps));
    read_head(40, 50, 3); /* they touch: that is beside each other */
    CHECK(calls_check(calls, steps));
    read_head(41, 50, 3);
    CHECK(!calls_check(calls, steps));
    /* A save that nobody put. */
    memset(calls, 0, sizeof *calls);
    join(10, 20, 0, 1, 1);
    put(21, 0, 0, 1, 1);
    put(21, 0, 0, 1, 2);
    CHECK(!calls_check(calls, steps));
}

int main(void)
{
    steps = calloc(1, sizeof *steps);
    calls = calloc(1, sizeof *calls);
    CHECK(steps && calls);
    RUN(good_steps_are_taken);
    RUN(bad_steps_are_refused);
    RUN(good_calls_are_taken);
    RUN(wrong_calls_are_refused);
    RUN(order_counts);
    free(steps);
    free(calls);
    return TEST_RESULT;
}
