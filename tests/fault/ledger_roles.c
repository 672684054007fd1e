/* ledger_roles.c - the processes that are killed, stopped and woken. Each notes what it calls and
 * what it is told; an answer that no race explains is a complaint, and fails the test.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ledger.h"
#include "proc.h"
#include "test.h"

enum {
    TRIES_MAX = 4,
    SAVES_MAX_EACH = 12, /* of a rank, until it is killed */
    KEEP_MIN = 2,
    WAIT_MS_MAX = 300,
};

struct actor {
    struct ledger_test *t;
    unsigned role, incarnation;
    struct dice dice;
    weir_store *store;
    struct weir_ledger *ledger;
    uint64_t attempt;
};

static int complain(struct actor *a, const char *what, int code)
{
    if (atomic_fetch_add(&a->t->complained, 1) == 0)
        snprintf(a->t->complaint, sizeof a->t->complaint, "process %u: %s: %d (%s): %s", a->role,
                 what, code, strerrorname_np(-code), weir_error_text());
    return 1;
}

static bool is_among(int code, const int *codes)
{
    while (*codes && *codes != -code)
        codes++;
    return code == 0 || *codes;
}

/* ---- what a save is ---- */

struct weir_save save_of(unsigned incarnation, uint64_t attempt, uint64_t number)
{
    struct weir_save save = {.attempt = attempt, .number = number};
    uint64_t pick = mix(mix(incarnation, number), 77) % 10;
    save.parts = pick == 0 ? 1 : pick < 3 ? 5 : RANKS;
    if (pick == 9) /* a name that is used again and again */
        snprintf(save.name, sizeof save.name, "latest");
    else
        snprintf(save.name, sizeof save.name, "step-%llu", (unsigned long long)number);
    return save;
}

struct content content_of(const struct mark *mark)
{
    uint64_t seed = mix(mix(mark->incarnation, mark->attempt), mix(mark->number, mark->part));
    return (struct content){seed, seed % 16 == 0 ? seed % 300000 : seed % 9000};
}

static int part_wrong(const char *prefix, uint32_t number, const char *what)
{
    printf("WRONG PART: part %u of '%s' %s\n", number, prefix, what);
    fflush(stdout);
    return -EILSEQ;
}

static int object_digest(weir_store *store, const char *key, uint8_t digest[WEIR_SHA256_BYTES])
{
    weir_object *obj;
    int code = weir_object_open(&obj, store, key);
    if (code)
        return code;
    weir_object_digest(obj, digest);
    weir_object_close(obj);
    return 0;
}

int part_check(weir_store *store, struct weir_view *view, const char *prefix,
               const struct weir_part *part, const struct mark *want)
{
    char key[2 * WEIR_KEY_BYTES_MAX];
    uint8_t digest[WEIR_SHA256_BYTES];
    struct weir_ref ref;
    weir_object *obj;
    struct mark mark;
    if (part->note_size != sizeof mark || part->refs != 1)
        return part_wrong(prefix, part->number, "has another shape");
    memcpy(&mark, part->note, sizeof mark);
    if (mark.incarnation != want->incarnation || mark.attempt != want->attempt ||
        mark.number != want->number || mark.part != part->number)
        return part_wrong(prefix, part->number, "is of another incarnation or save");
    const uint8_t *at = part->refs_at;
    weir_part_ref(&ref, &at);
    if (view) { /* the way of users; its digest is checked there */
        int code = weir_view_object(view, &ref, &obj);
        if (code)
            return code;
        weir_object_close(obj);
    }
    snprintf(key, sizeof key, "%s/%s", prefix, ref.name);
    int code = object_digest(store, key, digest);
    if (code)
        return code;
    if (memcmp(digest, ref.digest, sizeof digest))
        return part_wrong(prefix, part->number, "refers to another object");
    return content_expect(store, key, content_of(&mark));
}

/* ---- ranks ---- */

/* Puts this rank's object, or finds that it is there from before; *ref names it. 1: this rank
 * cannot do its part of this save any more. */
static int object_put(struct actor *a, const struct weir_save *save, struct weir_ref *ref)
{
    /* A claim of gc's, or a sleep longer than the grace: this save has lost this rank's part. */
    static const int expected[] = {EEXIST, EAGAIN, ESTALE, EBUSY, ENOENT, 0};
    char prefix[WEIR_KEY_BYTES_MAX + 1], key[2 * WEIR_KEY_BYTES_MAX];
    struct mark mark = {a->incarnation, save->attempt, save->number, a->role};
    weir_ledger_prefix(a->ledger, save, prefix);
    *ref = (struct weir_ref){.kind = WEIR_REF_OBJECT};
    snprintf(ref->name, sizeof ref->name, "rank-%u", a->role);
    snprintf(key, sizeof key, "%s/%s", prefix, ref->name);
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        int code = content_put(a->store, key, content_of(&mark), CONTENT_OF_SAVE);
        if (code == 0 || code == -EEXIST)
            code = object_digest(a->store, key, ref->digest);
        if (code == 0)
            return 0;
        if (!is_among(code, expected))
            return complain(a, "putting an object", code);
        if (code == -EAGAIN)
            return 1;
    }
    return 1;
}

/* What the calls of a set may answer: ENOENT, EEXIST and an unknown outcome while gc deletes what
 * was given up. */
static const int set_expected[] = {ESTALE, EBUSY, EEXIST, WEIR_EUNKNOWN, ETIMEDOUT, 0};

static int part_put(struct actor *a, struct weir_set *set, const struct weir_save *save,
                    const struct weir_ref *ref, bool *committed)
{
    struct mark mark = {a->incarnation, save->attempt, save->number, a->role};
    int code = -WEIR_EUNKNOWN;
    for (int tries = 0; code == -WEIR_EUNKNOWN && tries < TRIES_MAX; tries++) {
        struct call *call = call_begin(&a->t->calls, CALL_PUT, a->role);
        if (!call)
            return -EOVERFLOW;
        call->save = (struct which){save->attempt, save->number};
        code = weir_set_put(set, a->role, ref, 1, &mark, sizeof mark, committed);
        call->committed = *committed;
        call_end(call, code);
    }
    return code;
}

static int wait_for(struct actor *a, struct weir_set *set, const struct weir_save *save)
{
    struct call *call = call_begin(&a->t->calls, CALL_WAIT, a->role);
    if (!call)
        return -EOVERFLOW;
    call->save = (struct which){save->attempt, save->number};
    /* Some finish at once what others left undone. */
    bool at_once = dice_one_in(&a->dice, 4), committed;
    int code = at_once
                   ? weir_set_finish(set)
                   : weir_set_wait(set, dice_below(&a->dice, WAIT_MS_MAX) * 1000000, &committed);
    if (code == -EAGAIN)
        code = -ETIMEDOUT;
    call_end(call, code);
    return code;
}

/* One save of this rank. 0: go on; else the process stops. */
static int save_one(struct actor *a, uint64_t number)
{
    struct weir_save save = save_of(a->incarnation, a->attempt, number);
    struct weir_set *set;
    struct weir_ref ref;
    bool committed = false;
    if (a->role >= save.parts)
        return 0;
    int code = object_put(a, &save, &ref);
    if (code)
        return atomic_load(&a->t->complained) ? -EIO : 0;
    OK(weir_set_open(&set, a->ledger, &save));
    code = part_put(a, set, &save, &ref, &committed);
    if (!is_among(code, set_expected) && code != -EOVERFLOW)
        complain(a, "putting a part", code);
    if (code == 0 && !committed && dice_one_in(&a->dice, 2)) {
        code = wait_for(a, set, &save);
        if (!is_among(code, set_expected) && code != -EOVERFLOW)
            complain(a, "waiting for a save", code);
    }
    weir_set_close(set);
    return code == -ESTALE || code == -EOVERFLOW || atomic_load(&a->t->complained) ? code : 0;
}

static int join(struct actor *a)
{
    uint8_t token[WEIR_TOKEN_BYTES];
    struct call *call = call_begin(&a->t->calls, CALL_JOIN, a->role);
    if (!call)
        return -EOVERFLOW;
    token_make(token, a->incarnation);
    call->incarnation = a->incarnation;
    int code = weir_ledger_join(a->ledger, token, &a->attempt);
    call->attempt = code ? 0 : a->attempt;
    call_end(call, code);
    if (code && code != -ESTALE)
        complain(a, "joining", code);
    return code;
}

/* It is over for good only if the ledger says so: a single save that was given up is no reason. */
static bool is_over(struct actor *a)
{
    struct weir_ledger_state state;
    int code = weir_ledger_read(a->ledger, &state);
    if (code) {
        complain(a, "reading the ledger", code);
        return true;
    }
    bool over = state.attempt != a->attempt;
    weir_state_free(&state);
    return over;
}

static int rank_main(struct actor *a)
{
    int code = join(a);
    if (code)
        return code == -ESTALE ? 0 : 1;
    bool current = a->incarnation == atomic_load(&a->t->incarnation);
    uint64_t number = current ? atomic_load(&a->t->began[a->role]) : 0;
    for (unsigned i = 0; i < SAVES_MAX_EACH; i++) {
        if (!number || i)
            number++; /* else the one before its death, once more */
        if (a->incarnation == atomic_load(&a->t->incarnation))
            atomic_store(&a->t->began[a->role], number);
        code = save_one(a, number);
        if (code == -ESTALE && is_over(a))
            return atomic_load(&a->t->complained) ? 1 : 0;
        if (code && code != -ESTALE)
            break;
    }
    while (!atomic_load(&a->t->complained))
        pause(); /* it waits to be killed */
    return 1;
}

/* ---- the others ---- */

/* All live ones but the newest few go. */
static bool is_chosen(void *arg, const struct weir_ledger_entry *entry)
{
    const struct call *call = arg;
    for (unsigned i = 0; i < call->retired_count; i++)
        if (call->retired[i].attempt == entry->save.attempt &&
            call->retired[i].number == entry->save.number)
            return true;
    return false;
}

static int retire_some(struct actor *a)
{
    struct weir_ledger_state state;
    size_t live = 0, keep = KEEP_MIN + (size_t)dice_below(&a->dice, 3), count;
    int code = weir_ledger_read(a->ledger, &state);
    if (code)
        return complain(a, "reading the ledger", code);
    struct call *call = call_begin(&a->t->calls, CALL_RETIRE, a->role);
    for (size_t i = 0; i < state.count; i++)
        live += !state.entries[i].retired_ns;
    for (size_t i = 0; call && i < state.count && live > keep; i++) {
        if (state.entries[i].retired_ns || call->retired_count == CALL_RETIRED_MAX)
            continue;
        call->retired[call->retired_count++] =
            (struct which){state.entries[i].save.attempt, state.entries[i].save.number};
        live--;
    }
    uint64_t attempt = dice_one_in(&a->dice, 2) ? state.attempt : 0;
    weir_state_free(&state);
    if (!call)
        return 1;
    call->attempt = attempt;
    code = weir_ledger_retire(a->ledger, attempt, is_chosen, call, &count);
    call_end(call, code);
    if (code && code != -ESTALE)
        return complain(a, "retiring", code);
    sleep_us((unsigned)dice_below(&a->dice, 20000));
    return 0;
}

static int read_view(struct actor *a, struct weir_view *view)
{
    const struct weir_save *save = &weir_view_entry(view)->save;
    struct mark first, want = {0, save->attempt, save->number, 0};
    /* Some readers are slow: what they read is retired meanwhile, and the grace passes. */
    bool slow = dice_one_in(&a->dice, 100);
    for (uint32_t i = 0; i < save->parts; i++) {
        struct weir_part part;
        if (slow && i == save->parts / 2)
            sleep_ms(GRACE_S * 1400);
        int code = weir_view_part(view, i, &part);
        if (code)
            return complain(a, "a part of a view", code);
        if (!i && part.note_size == sizeof first) { /* all must be of the same */
            memcpy(&first, part.note, sizeof first);
            want.incarnation = first.incarnation;
        }
        code = part_check(a->store, view, weir_view_prefix(view), &part, &want);
        if (code)
            return complain(a, "reading what is committed", code);
        atomic_fetch_add(&a->t->tally.objects_read, 1);
    }
    atomic_fetch_add(&a->t->tally.views, 1);
    return 0;
}

static int read_newest(struct actor *a)
{
    static const int expected[] = {ENOENT, ESTALE, EBUSY, 0};
    struct weir_ledger_state state;
    struct weir_view *view;
    struct call *call = call_begin(&a->t->calls, CALL_READ, a->role);
    if (!call)
        return 1;
    int code = weir_ledger_read(a->ledger, &state);
    if (code)
        return complain(a, "reading the ledger", code);
    call->head = state.record.number;
    call_end(call, 0);
    weir_state_free(&state);
    call = call_begin(&a->t->calls, CALL_VIEW, a->role);
    if (!call)
        return 1;
    code = weir_view_open(&view, a->ledger, NULL);
    if (!code) {
        const struct weir_save *save = &weir_view_entry(view)->save;
        call->save = (struct which){save->attempt, save->number};
    }
    call_end(call, code);
    if (!is_among(code, expected))
        return complain(a, "opening the newest", code);
    if (!code) {
        code = read_view(a, view);
        weir_view_close(view);
    }
    sleep_us((unsigned)dice_below(&a->dice, 5000));
    return code > 0;
}

static int collect(struct actor *a)
{
    static const int expected[] = {EBUSY, 0}; /* somebody sleeps with the store's lock */
    weir_gc_result result;
    int code = weir_gc(a->store, 0, &result, NULL, NULL);
    if (!is_among(code, expected))
        return complain(a, "gc", code);
    atomic_fetch_add(&a->t->tally.collections, (unsigned long)result.saves);
    sleep_us((unsigned)dice_below(&a->dice, 10000));
    return 0;
}

int role_main(const struct start *start)
{
    static int (*const acts[])(struct actor *) = {retire_some, read_newest, collect};
    struct actor a = {.t = start->t, .role = start->role, .incarnation = start->incarnation};
    a.dice.state = mix(mix(a.t->seed, a.t->round), a.role);
    a.store = store_must_open(a.t->root, engine_pick(dice_next(&a.dice)), 0, 0);
    OK(weir_ledger_open(&a.ledger, a.store, LEDGER_NAME));
    atomic_fetch_add(&a.t->ready, 1);
    int stop = a.role < RANKS ? rank_main(&a) : 0;
    while (!stop && a.role >= RANKS)
        stop = acts[a.role - RANKS](&a);
    weir_ledger_close(a.ledger);
    weir_store_close(a.store);
    while (a.role >= RANKS && !atomic_load(&a.t->complained))
        pause(); /* there is no more room for its calls */
    return stop;
}
