/* history.c - see history.h. */
#include "history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proc.h"
#include "test.h"

/* ---- noting ---- */

void history_reset(struct history *h)
{
    for (unsigned p = 0; p < HISTORY_PROCS; p++)
        atomic_store(&h->count[p], 0);
}

struct op *history_begin(struct history *h, unsigned proc, enum op_kind kind, const char *key,
                         struct content what)
{
    unsigned at = atomic_load(&h->count[proc]);
    CHECK(strlen(key) < KEY_ROOM);
    if (at == HISTORY_OPS)
        return NULL;
    struct op *op = &h->ops[proc][at];
    *op = (struct op){.kind = kind, .what = what, .start_ns = now_ns(), .end_ns = UINT64_MAX};
    strcpy(op->key, key);
    atomic_store(&h->count[proc], at + 1);
    return op;
}

void history_end(struct op *op, int code)
{
    op->code = code;
    op->end_ns = now_ns();
    atomic_store(&op->done, 1);
}

int history_put(struct history *h, unsigned proc, weir_store *store, const char *key,
                struct content what, unsigned how)
{
    struct op *op = history_begin(h, proc, OP_PUT, key, what);
    if (!op)
        return -EOVERFLOW;
    int code = content_put(store, key, what, how);
    history_end(op, code);
    return code;
}

int history_remove(struct history *h, unsigned proc, weir_store *store, const char *key)
{
    struct op *op = history_begin(h, proc, OP_REMOVE, key, (struct content){0, 0});
    if (!op)
        return -EOVERFLOW;
    int code = weir_remove(store, key);
    history_end(op, code);
    return code;
}

int history_get(struct history *h, unsigned proc, weir_store *store, const char *key)
{
    struct content found = {0, 0};
    struct op *op = history_begin(h, proc, OP_GET, key, found);
    if (!op)
        return -EOVERFLOW;
    int code = content_get(&found, store, key);
    op->what = found;
    op->present = !code;
    history_end(op, code);
    return code;
}

void history_given(struct history *h, unsigned proc, const char *key, struct content what)
{
    struct op *op = history_begin(h, proc, OP_PUT, key, what);
    CHECK(op);
    op->start_ns = 0;
    op->code = 0;
    op->end_ns = 0;
    atomic_store(&op->done, 1);
}

/* ---- judging ---- */

static bool happened(const struct op *op)
{
    return atomic_load(&op->done) && !op->code;
}

static bool in_doubt(const struct op *op)
{
    return !atomic_load(&op->done) || op->code == -WEIR_EUNKNOWN;
}

/* When it was surely over; never, for what is in doubt: it counts as if it could happen late. */
static uint64_t over_ns(const struct op *op)
{
    return in_doubt(op) ? UINT64_MAX : op->end_ns;
}

#define EACH_OP(h, it)                                                                             \
    for (unsigned p_ = 0; p_ < HISTORY_PROCS; p_++)                                                \
        for (const struct op *it = (h)->ops[p_], *end_ = it + atomic_load(&(h)->count[p_]);        \
             it < end_; it++)

static bool refuse(const struct history *h, const char *key, const char *why)
{
    printf("IMPOSSIBLE: '%s' %s\n", key, why);
    history_print(h, key);
    return false;
}

/* The put that wrote `what` under key, or NULL. */
static const struct op *put_of(const struct history *h, const char *key, struct content what)
{
    EACH_OP(h, op)
        if (op->kind == OP_PUT && !strcmp(op->key, key) && content_same(op->what, what))
            return op;
    return NULL;
}

/* Could put's content be seen by somebody who looks from from_ns to to_ns? */
static const char *seen_fault(const struct history *h, const struct op *put, uint64_t from_ns,
                              uint64_t to_ns)
{
    if (!happened(put) && !in_doubt(put))
        return "holds what a failed put wrote";
    if (put->start_ns > to_ns)
        return "was seen before it was written";
    uint64_t there_ns = happened(put) ? put->end_ns : UINT64_MAX;
    EACH_OP(h, op) {
        if (strcmp(op->key, put->key) || op == put || !happened(op) || op->start_ns <= there_ns ||
            op->end_ns >= from_ns)
            continue;
        if (op->kind == OP_REMOVE)
            return "was seen after it was removed";
        if (op->kind == OP_PUT)
            return "was seen although a later put of the key succeeded: two winners";
    }
    return NULL;
}

/* Could key be absent to somebody who looks from from_ns to to_ns? Every put that was over by then
 * needs a remove that may have come after it. */
static const char *absent_fault(const struct history *h, const char *key, uint64_t from_ns,
                                uint64_t to_ns)
{
    EACH_OP(h, put) {
        if (put->kind != OP_PUT || strcmp(put->key, key) || !happened(put) ||
            put->end_ns >= from_ns)
            continue;
        bool removed = false;
        EACH_OP(h, op)
            removed |= op->kind == OP_REMOVE && !strcmp(op->key, key) &&
                       (happened(op) || in_doubt(op)) && over_ns(op) > put->start_ns &&
                       op->start_ns < to_ns;
        if (!removed)
            return "is not there, although its put succeeded and nobody removed it";
    }
    return NULL;
}

/* Puts and removes that succeed take turns, so their numbers hardly differ. */
static const char *count_fault(const struct history *h, const char *key, int present)
{
    int puts = 0, puts_open = 0, removes = 0, removes_open = 0;
    EACH_OP(h, op) {
        if (strcmp(op->key, key))
            continue;
        puts += op->kind == OP_PUT && happened(op);
        puts_open += op->kind == OP_PUT && in_doubt(op);
        removes += op->kind == OP_REMOVE && happened(op);
        removes_open += op->kind == OP_REMOVE && in_doubt(op);
    }
    if (puts - removes - removes_open > present)
        return "had more puts succeed than removes can explain: two winners";
    if (puts + puts_open - removes < present)
        return "was removed more often than it was put";
    return NULL;
}

bool history_allows(const struct history *h, const char *key, const struct content *final)
{
    const char *fault = count_fault(h, key, final != NULL);
    if (fault)
        return refuse(h, key, fault);
    if (!final) {
        fault = absent_fault(h, key, UINT64_MAX, UINT64_MAX);
        return fault ? refuse(h, key, fault) : true;
    }
    const struct op *put = put_of(h, key, *final);
    if (!put)
        return refuse(h, key, "holds what nobody put there");
    fault = seen_fault(h, put, UINT64_MAX, UINT64_MAX);
    return fault ? refuse(h, key, fault) : true;
}

bool history_reads_allowed(const struct history *h)
{
    bool all = true;
    EACH_OP(h, get) {
        const char *fault = NULL;
        if (get->kind != OP_GET || !atomic_load(&get->done))
            continue;
        if (get->present) {
            const struct op *put = put_of(h, get->key, get->what);
            fault = put ? seen_fault(h, put, get->start_ns, get->end_ns)
                        : "gave a reader what nobody put there";
        } else if (get->code == -ENOENT) {
            fault = absent_fault(h, get->key, get->start_ns, get->end_ns);
        }
        if (fault)
            all = refuse(h, get->key, fault);
    }
    return all;
}

static bool is_first_use(const struct history *h, const struct op *op)
{
    EACH_OP(h, before) {
        if (before == op)
            return true;
        if (!strcmp(before->key, op->key))
            return false;
    }
    return true;
}

void history_keys(const struct history *h, void (*fn)(const char *key, void *arg), void *arg)
{
    EACH_OP(h, op)
        if (is_first_use(h, op))
            fn(op->key, arg);
}

void history_print(const struct history *h, const char *key)
{
    static const char *const kinds[] = {"?", "put", "remove", "get"};
    EACH_OP(h, op)
        if (!strcmp(op->key, key))
            printf("  process %u: %s, %" PRIu64 " to %" PRIu64 " us, seed %" PRIx64 ", %" PRIu64
                   " bytes: %s%d\n",
                   p_, kinds[op->kind], op->start_ns / 1000,
                   op->end_ns == UINT64_MAX ? 0 : op->end_ns / 1000, op->what.seed, op->what.size,
                   atomic_load(&op->done) ? "" : "no answer ", op->code);
    fflush(stdout);
}

struct history_totals history_count(const struct history *h)
{
    struct history_totals t = {0};
    EACH_OP(h, op) {
        t.puts += op->kind == OP_PUT;
        t.puts_ok += op->kind == OP_PUT && happened(op);
        t.puts_open += op->kind == OP_PUT && in_doubt(op);
        t.removes += op->kind == OP_REMOVE;
        t.removes_ok += op->kind == OP_REMOVE && happened(op);
        t.removes_open += op->kind == OP_REMOVE && in_doubt(op);
        t.gets += op->kind == OP_GET;
    }
    return t;
}
