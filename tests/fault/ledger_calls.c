/* ledger_calls.c - see ledger_calls.h. */
#include "ledger_calls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc.h"
#include "test.h"
#include "util/bytes.h"

enum { INCARNATIONS_MAX = 1 << 16 };

/* ---- noting ---- */

struct call *call_begin(struct calls *calls, enum call_kind kind, unsigned proc)
{
    unsigned at = atomic_fetch_add(&calls->count, 1);
    if (at >= CALLS_MAX) {
        atomic_fetch_sub(&calls->count, 1);
        return NULL;
    }
    struct call *call = &calls->calls[at];
    call->proc = proc;
    call->start_ns = now_ns();
    call->kind = kind;
    return call;
}

void call_end(struct call *call, int code)
{
    call->code = code;
    call->end_ns = now_ns();
    atomic_store(&call->done, 1);
}

void token_make(uint8_t token[WEIR_TOKEN_BYTES], unsigned incarnation)
{
    memset(token, 'T', WEIR_TOKEN_BYTES);
    weir_store_le(token, incarnation, 4);
}

unsigned token_incarnation(const uint8_t token[WEIR_TOKEN_BYTES])
{
    return (unsigned)weir_load_le(token, 4);
}

/* ---- the log ---- */

static bool is_same(struct which a, struct which b)
{
    return a.attempt == b.attempt && a.number == b.number;
}

static struct which which_of(const struct weir_ledger_entry *entry)
{
    return (struct which){entry->save.attempt, entry->save.number};
}

/* They are in the order of their attempts, and an attempt has few. */
const struct saved *saved_find(const struct steps *steps, struct which save)
{
    unsigned low = 0, high = steps->saves;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (steps->saved[middle].save.attempt < save.attempt)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < steps->saves && steps->saved[low].save.attempt == save.attempt; low++)
        if (is_same(steps->saved[low].save, save))
            return &steps->saved[low];
    return NULL;
}

/* All that a commit leaves as it is, apart from when it was retired. */
static bool entry_same(const struct weir_ledger_entry *a, const struct weir_ledger_entry *b)
{
    return weir_save_same(&a->save, &b->save) && a->save.parts == b->save.parts &&
           a->time_ns == b->time_ns && !memcmp(a->root, b->root, sizeof a->root);
}

static const char *join_fault(const struct weir_ledger_state *b, const struct weir_ledger_state *a)
{
    if (a->attempt != a->record.number)
        return "an attempt is not the number of its record";
    if (a->count != b->count || a->floor)
        return "joining changed more than the attempt";
    for (size_t i = 0; i < a->count; i++)
        if (!entry_same(&a->entries[i], &b->entries[i]) ||
            a->entries[i].retired_ns != b->entries[i].retired_ns)
            return "joining changed an entry";
    for (size_t i = 0; i < a->past_count; i++)
        if (!memcmp(a->past[i], a->token, WEIR_TOKEN_BYTES))
            return "an incarnation that was over joined again";
    if (b->attempt && (!a->past_count || memcmp(a->past[0], b->token, WEIR_TOKEN_BYTES)))
        return "joining forgot the token before";
    return NULL;
}

/* Notes what happened to one entry that stands in both, or in one only (the other is NULL). */
static const char *entry_follow(struct steps *steps, struct step *step,
                                const struct weir_ledger_state *before,
                                const struct weir_ledger_entry *b,
                                const struct weir_ledger_entry *a, uint64_t number)
{
    enum step_kind kind = !b ? STEP_COMMIT : !a ? STEP_FORGET : STEP_RETIRE;
    struct saved *saved = (struct saved *)saved_find(steps, which_of(b ? b : a));
    if (kind == STEP_RETIRE && b->retired_ns == a->retired_ns)
        return NULL;
    if (!saved && kind != STEP_COMMIT)
        return "an entry that nobody committed";
    if (step->kind && (step->kind != kind || kind == STEP_COMMIT))
        return "one record did two things";
    step->kind = kind;
    if (kind == STEP_RETIRE) {
        if (b->retired_ns)
            return "an entry was retired twice, or came back";
        saved->retired = number;
    } else if (kind == STEP_FORGET) {
        if (!b->retired_ns)
            return "a live entry disappeared";
        saved->forgotten = number;
    } else {
        if (a->save.attempt != before->attempt)
            return "a commit under an attempt that was over";
        if (a->save.number <= before->floor)
            return "a commit of a save that was given up";
        if (saved || a->retired_ns)
            return "a save was committed a second time";
        if (steps->saves == SAVES_MAX)
            return "(the test has no room for more saves)";
        struct saved *more = &steps->saved[steps->saves++];
        *more = (struct saved){which_of(a), "", a->save.parts, {0}, number, 0, 0};
        memcpy(more->root, a->root, sizeof more->root);
        strcpy(more->name, a->save.name);
    }
    return NULL;
}

/* Entries of both in one walk: what was added and what is gone are single gaps. */
static const char *entries_follow(struct steps *steps, struct step *step,
                                  const struct weir_ledger_state *b,
                                  const struct weir_ledger_state *a)
{
    size_t i = 0, j = 0;
    const char *fault = NULL;
    while (!fault && (i < b->count || j < a->count)) {
        bool both = i < b->count && j < a->count;
        if (both && entry_same(&b->entries[i], &a->entries[j])) {
            fault =
                entry_follow(steps, step, b, &b->entries[i++], &a->entries[j++], a->record.number);
        } else if (a->count > b->count && j < a->count) {
            fault = entry_follow(steps, step, b, NULL, &a->entries[j++], a->record.number);
        } else if (i < b->count) {
            fault = entry_follow(steps, step, b, &b->entries[i++], NULL, a->record.number);
        } else {
            fault = "an entry came out of nothing";
        }
    }
    for (j = 1; !fault && j < a->count; j++)
        if (a->entries[j - 1].save.attempt > a->entries[j].save.attempt ||
            (a->entries[j - 1].save.attempt == a->entries[j].save.attempt &&
             a->entries[j - 1].save.number >= a->entries[j].save.number))
            fault = "the entries are not in the order in which they were begun";
    return fault;
}

const char *log_follow(struct steps *steps, const struct weir_ledger_state *before,
                       const struct weir_ledger_state *after)
{
    struct step step = {.incarnation = token_incarnation(after->token),
                        .attempt = after->attempt,
                        .floor = after->floor};
    const char *fault = NULL;
    if (after->record.number != steps->head + 1 || steps->head + 1 == RECORDS_MAX)
        return "(the test has no room for more records)";
    if (after->attempt != before->attempt) {
        step.kind = STEP_JOIN;
        fault = join_fault(before, after);
    } else {
        if (memcmp(after->token, before->token, WEIR_TOKEN_BYTES) ||
            after->past_count != before->past_count)
            fault = "a token changed within an attempt";
        else if (after->floor < before->floor)
            fault = "the floor sank";
        if (!fault)
            fault = entries_follow(steps, &step, before, after);
        if (!fault && !step.kind && after->floor > before->floor)
            step.kind = STEP_GIVE_UP;
        else if (!fault && after->floor > before->floor && step.kind != STEP_FORGET)
            fault = "one record did two things";
    }
    if (!fault && !step.kind)
        fault = "a record that does nothing";
    const struct weir_ledger_entry *newest = weir_ledger_find(after, NULL);
    if (newest)
        step.newest = which_of(newest);
    steps->steps[++steps->head] = step;
    return fault;
}

/* ---- where a call can have taken place ---- */

struct span {
    uint64_t from, to;
};

static uint64_t join_record(const struct steps *steps, unsigned incarnation)
{
    for (uint64_t i = 1; i <= steps->head; i++)
        if (steps->steps[i].kind == STEP_JOIN && steps->steps[i].incarnation == incarnation)
            return i;
    return 0;
}

/* The record that ended an attempt; UINT64_MAX if it is not over. */
static uint64_t attempt_end(const struct steps *steps, uint64_t attempt)
{
    for (uint64_t i = attempt + 1; i <= steps->head; i++)
        if (steps->steps[i].kind == STEP_JOIN)
            return i;
    return UINT64_MAX;
}

/* The record from which on a save that is no entry is refused; UINT64_MAX: none yet. */
static uint64_t refused_from(const struct steps *steps, struct which save)
{
    for (uint64_t i = save.attempt; i <= steps->head; i++)
        if (steps->steps[i].attempt > save.attempt ||
            (steps->steps[i].attempt == save.attempt && steps->steps[i].floor >= save.number))
            return i;
    return UINT64_MAX;
}

static const char *span_of_join(const struct steps *steps, const struct call *c, struct span *out)
{
    uint64_t record = join_record(steps, c->incarnation);
    if (c->code == 0) {
        if (!record || c->attempt != record)
            return "joined an attempt that the log does not know as his";
        *out = (struct span){record, attempt_end(steps, record) - 1};
    } else if (c->code == -ESTALE) {
        uint64_t end = record ? attempt_end(steps, record) : UINT64_MAX;
        if (end == UINT64_MAX)
            return "was told that his incarnation is over, and it is not";
        out->from = end;
    }
    return NULL;
}

/* Of a PUT or a WAIT. */
static const char *span_of_commit(const struct steps *steps, const struct call *c, struct span *out)
{
    const struct saved *saved = saved_find(steps, c->save);
    if (c->code == 0 && (c->committed || c->kind == CALL_WAIT)) {
        if (!saved)
            return "was told that it is committed, and the log does not know it";
        *out =
            (struct span){saved->committed, saved->forgotten ? saved->forgotten - 1 : UINT64_MAX};
    } else if (c->code == -ESTALE || c->code == -EEXIST) {
        out->from = !saved             ? refused_from(steps, c->save)
                    : saved->forgotten ? saved->forgotten
                                       : UINT64_MAX;
        if (out->from == UINT64_MAX)
            return "was refused, and nothing in the log says why";
    }
    return NULL;
}

static const char *span_of_retire(const struct steps *steps, const struct call *c, struct span *out)
{
    if (c->code == -ESTALE) {
        out->from = c->attempt ? attempt_end(steps, c->attempt) : UINT64_MAX;
        return out->from == UINT64_MAX ? "could not retire, and his attempt is not over" : NULL;
    }
    for (unsigned i = 0; c->code == 0 && i < c->retired_count; i++) {
        const struct saved *saved = saved_find(steps, c->retired[i]);
        if (!saved || !saved->retired)
            return "was told that it is retired, and the log does not know that";
        if (saved->retired > out->from)
            out->from = saved->retired;
    }
    return NULL;
}

static const char *span_of_view(const struct steps *steps, const struct call *c, struct span *out)
{
    const struct saved *saved = c->code ? NULL : saved_find(steps, c->save);
    if (c->code == -ENOENT && steps->saves) {
        out->to = steps->saved[0].committed - 1;
        for (uint64_t i = steps->head; i > out->to; i--)
            if (!steps->steps[i].newest.attempt)
                out->to = i; /* all were retired then */
    }
    if (c->code)
        return NULL;
    if (!saved)
        return "saw what the log does not know";
    *out = (struct span){UINT64_MAX, 0};
    uint64_t last = saved->retired ? saved->retired - 1 : steps->head;
    for (uint64_t i = saved->committed; i <= last; i++)
        if (is_same(steps->steps[i].newest, c->save)) {
            out->from = out->from < i ? out->from : i;
            out->to = i;
        }
    /* The newest record may not be the last for ever. */
    if (out->to == steps->head)
        out->to = UINT64_MAX;
    return out->from == UINT64_MAX ? "saw one that was never the newest" : NULL;
}

static const char *span_of(const struct steps *steps, const struct call *c, struct span *out)
{
    *out = (struct span){0, UINT64_MAX};
    switch (c->kind) {
    case CALL_JOIN:
        return span_of_join(steps, c, out);
    case CALL_PUT:
    case CALL_WAIT:
        return span_of_commit(steps, c, out);
    case CALL_RETIRE:
        return span_of_retire(steps, c, out);
    case CALL_VIEW:
        return span_of_view(steps, c, out);
    case CALL_READ:
        if (c->code == 0)
            *out = (struct span){c->head, c->head};
        return c->code == 0 && c->head > steps->head ? "saw a record that is not there" : NULL;
    }
    return "is no call";
}

/* ---- all calls in one order ---- */

/* The beginning or the end of a call. */
struct moment {
    uint64_t time_ns;
    unsigned call;
    bool end;
};

static int moment_order(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (int)x->end - (int)y->end; /* what touches overlaps */
}

static struct moment *moments_of(const struct calls *calls, unsigned count, size_t *size)
{
    struct moment *moments = malloc(2 * (size_t)count * sizeof *moments + 1);
    CHECK(moments);
    *size = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct call *c = &calls->calls[i];
        if (!c->kind)
            continue; /* killed before it had said what it calls */
        moments[(*size)++] = (struct moment){c->start_ns, i, false};
        if (atomic_load(&c->done))
            moments[(*size)++] = (struct moment){c->end_ns, i, true};
    }
    qsort(moments, *size, sizeof *moments, moment_order);
    return moments;
}

struct order {
    const struct calls *calls;
    const struct steps *steps;
    uint64_t reached;   /* no call that begins now can have taken place before this */
    uint64_t joined;    /* the newest attempt that somebody was told of */
    uint64_t *position; /* of each call: the first that is possible */
    bool *joining;      /* incarnations of which a JOIN has begun */
    bool *begun;        /* saves of which a PUT or a WAIT has begun, by their index */
};

/* Nothing is in the log before somebody called for it. */
static const char *cause_fault(struct order *o, const struct call *c)
{
    if (c->kind == CALL_JOIN && !o->joining[c->incarnation % INCARNATIONS_MAX]) {
        uint64_t record = join_record(o->steps, c->incarnation);
        o->joining[c->incarnation % INCARNATIONS_MAX] = true;
        if (record && record <= o->reached)
            return "joined in the log before anybody called";
    }
    if (c->kind == CALL_PUT || c->kind == CALL_WAIT) {
        const struct saved *saved = saved_find(o->steps, c->save);
        if (!saved || o->begun[saved - o->steps->saved])
            return NULL;
        o->begun[saved - o->steps->saved] = true;
        if (saved->committed <= o->reached)
            return "was committed before anybody called";
    }
    return NULL;
}

static const char *begin_fault(struct order *o, unsigned at)
{
    const struct call *c = &o->calls->calls[at];
    struct span span;
    const char *fault = cause_fault(o, c);
    if (fault || !atomic_load(&c->done))
        return fault;
    fault = span_of(o->steps, c, &span);
    if (fault)
        return fault;
    bool told = (c->kind == CALL_PUT && c->committed) || (c->kind == CALL_WAIT && !c->code);
    if (told && c->save.attempt < o->joined && span.from > o->joined)
        return "committed under an old attempt after a newer one had begun";
    o->position[at] = span.from > o->reached ? span.from : o->reached;
    return o->position[at] > span.to ? "took place before what had been answered when it began"
                                     : NULL;
}

static bool refuse(const struct order *o, unsigned at, const char *why)
{
    const struct call *c = &o->calls->calls[at];
    printf("IMPOSSIBLE: call %u of process %u, kind %d, code %d, save %" PRIu64 ".%" PRIu64
           ", incarnation %u, attempt %" PRIu64 ", head %" PRIu64 ": it %s (record %" PRIu64
           " had been reached)\n",
           at, c->proc, (int)c->kind, c->code, c->save.attempt, c->save.number, c->incarnation,
           c->attempt, c->head, why, o->reached);
    calls_print(o->calls, o->steps, c->save);
    return false;
}

/* Every save in the log is one that somebody put. */
static bool all_begun(const struct order *o)
{
    for (unsigned i = 0; i < o->steps->saves; i++)
        if (!o->begun[i]) {
            printf("IMPOSSIBLE: save %" PRIu64 ".%" PRIu64 " was committed, and nobody put it\n",
                   o->steps->saved[i].save.attempt, o->steps->saved[i].save.number);
            return false;
        }
    return true;
}

bool calls_check(const struct calls *calls, const struct steps *steps)
{
    unsigned count = atomic_load(&calls->count);
    size_t size;
    struct moment *moments = moments_of(calls, count, &size);
    struct order o = {.calls = calls,
                      .steps = steps,
                      .position = calloc(count + 1, sizeof *o.position),
                      .joining = calloc(INCARNATIONS_MAX, sizeof *o.joining),
                      .begun = calloc(steps->saves + 1, sizeof *o.begun)};
    bool good = true;
    CHECK(o.position && o.joining && o.begun);
    for (size_t i = 0; good && i < size; i++) {
        const struct call *c = &calls->calls[moments[i].call];
        if (!moments[i].end) {
            const char *fault = begin_fault(&o, moments[i].call);
            good = fault ? refuse(&o, moments[i].call, fault) : true;
            continue;
        }
        if (o.position[moments[i].call] > o.reached)
            o.reached = o.position[moments[i].call];
        if (c->kind == CALL_JOIN && !c->code && c->attempt > o.joined)
            o.joined = c->attempt;
    }
    good = good && all_begun(&o);
    free(o.position);
    free(o.joining);
    free(o.begun);
    free(moments);
    fflush(stdout);
    return good;
}

void calls_print(const struct calls *calls, const struct steps *steps, struct which save)
{
    static const char *const kinds[] = {"?", "join", "put", "wait", "retire", "read", "view"};
    const struct saved *saved = saved_find(steps, save);
    if (saved)
        printf("  committed by record %" PRIu64 ", retired by %" PRIu64 ", forgotten by %" PRIu64
               "\n",
               saved->committed, saved->retired, saved->forgotten);
    for (unsigned i = 0; save.attempt && i < atomic_load(&calls->count); i++) {
        const struct call *c = &calls->calls[i];
        if (is_same(c->save, save))
            printf("  process %u: %s, %" PRIu64 " to %" PRIu64 " us: %s%d%s\n", c->proc,
                   kinds[c->kind], c->start_ns / 1000, c->end_ns / 1000,
                   atomic_load(&c->done) ? "" : "no answer ", c->code,
                   c->committed ? ", committed" : "");
    }
    fflush(stdout);
}
