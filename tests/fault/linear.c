/* linear.c - the search for an order. A depth-first one over sets of operations that are placed,
 * with what was visited kept in a table: the same set with the same content needs no second look.
 * An operation that changes nothing and fits is placed at once: that never spoils an order.
 */
#include "linear.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { WORDS = LINEAR_OPS / 64, NOTHING = -1, ANYTHING = -2 };

/* An operation as a step: from a content (or NOTHING, or ANYTHING but that) to another. */
struct step {
    const struct op *op;
    int before, after;
    bool optional;
    uint64_t start_ns, end_ns;
};

struct set {
    uint64_t words[WORDS];
    int content;
};

struct search {
    struct step steps[LINEAR_OPS];
    unsigned count, words;
    const struct op *puts[LINEAR_OPS]; /* contents, by number */
    unsigned put_count;
    struct set *visited; /* a table with open addressing; content INT32_MIN: free */
    size_t visited_room, visited_count;
    unsigned most; /* placed so far, at best, and which */
    struct set best;
};

static bool is_in(const struct set *set, unsigned i)
{
    return set->words[i / 64] >> (i % 64) & 1;
}

/* ---- what the operations say ---- */

static int content_number(struct search *s, struct content what)
{
    for (unsigned i = 0; i < s->put_count; i++)
        if (content_same(s->puts[i]->what, what))
            return (int)i;
    return INT32_MIN;
}

/* False: it says nothing, as a failure does. */
static bool step_of(struct search *s, const struct op *op, struct step *step)
{
    bool done = atomic_load(&op->done);
    bool doubt = !done || op->code == -WEIR_EUNKNOWN;
    *step = (struct step){.op = op, .optional = doubt, .start_ns = op->start_ns};
    step->end_ns = doubt ? UINT64_MAX : op->end_ns;
    if (op->kind == OP_PUT) {
        step->before = op->code == -EEXIST && !doubt ? ANYTHING : NOTHING;
        step->after = op->code == -EEXIST && !doubt ? ANYTHING : content_number(s, op->what);
        return doubt || !op->code || op->code == -EEXIST;
    }
    if (op->kind == OP_REMOVE) {
        step->before = op->code == -ENOENT && !doubt ? NOTHING : ANYTHING;
        step->after = NOTHING;
        return doubt || !op->code || op->code == -ENOENT;
    }
    step->before = step->after = op->present ? content_number(s, op->what) : NOTHING;
    return !doubt && (op->present || op->code == -ENOENT);
}

static int by_start(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void collect(struct search *s, const struct history *h, const char *key)
{
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned p = 0; p < HISTORY_PROCS; p++)
            for (unsigned i = 0; i < atomic_load(&h->count[p]); i++) {
                const struct op *op = &h->ops[p][i];
                if (strcmp(op->key, key))
                    continue;
                if (pass == 0 && op->kind == OP_PUT) {
                    CHECK(s->put_count < LINEAR_OPS);
                    s->puts[s->put_count++] = op;
                } else if (pass == 1) {
                    CHECK(s->count < LINEAR_OPS);
                    s->count += step_of(s, op, &s->steps[s->count]);
                }
            }
}

/* ---- the search ---- */

static uint64_t hash_of(const struct search *s, const struct set *set)
{
    uint64_t hash = (uint64_t)(uint32_t)set->content;
    for (unsigned i = 0; i < s->words; i++)
        hash = mix(hash, set->words[i]);
    return hash;
}

/* True the first time. */
static bool visit(struct search *s, const struct set *set)
{
    size_t at = hash_of(s, set) & (s->visited_room - 1);
    while (s->visited[at].content != INT32_MIN) {
        if (s->visited[at].content == set->content &&
            !memcmp(s->visited[at].words, set->words, s->words * sizeof set->words[0]))
            return false;
        at = (at + 1) & (s->visited_room - 1);
    }
    CHECK(s->visited_count++ < s->visited_room / 2); /* too large a history to be judged */
    s->visited[at] = *set;
    return true;
}

/* The end of the first of those that are not placed and must be: none after it can come before. */
static uint64_t horizon(const struct search *s, const struct set *set)
{
    uint64_t first = UINT64_MAX;
    for (unsigned i = 0; i < s->count; i++)
        if (!is_in(set, i) && !s->steps[i].optional && s->steps[i].end_ns < first)
            first = s->steps[i].end_ns;
    return first;
}

static bool fits(const struct step *step, int content)
{
    return step->before == ANYTHING ? content != NOTHING : step->before == content;
}

static void place(struct search *s, struct set *set, unsigned i)
{
    set->words[i / 64] |= (uint64_t)1 << (i % 64);
    if (s->steps[i].after != ANYTHING)
        set->content = s->steps[i].after;
}

/* Places everything that changes nothing; says whether all that must be is placed. */
static bool place_idle(struct search *s, struct set *set)
{
    unsigned placed = 0, must = 0;
    for (bool again = true; again;) {
        uint64_t end_ns = horizon(s, set);
        again = false;
        for (unsigned i = 0; i < s->count && s->steps[i].start_ns <= end_ns; i++) {
            const struct step *step = &s->steps[i];
            if (is_in(set, i) || step->optional || !fits(step, set->content) ||
                (step->after != ANYTHING && step->after != set->content))
                continue;
            place(s, set, i);
            again = true;
        }
    }
    for (unsigned i = 0; i < s->count; i++) {
        placed += is_in(set, i);
        must += !is_in(set, i) && !s->steps[i].optional;
    }
    if (placed >= s->most) {
        s->most = placed;
        s->best = *set;
    }
    return must == 0;
}

static bool search(struct search *s)
{
    struct set *stack = malloc((LINEAR_OPS * 16) * sizeof *stack);
    size_t depth = 1;
    bool found = false;
    CHECK(stack);
    memset(&stack[0], 0, sizeof stack[0]);
    stack[0].content = NOTHING;
    while (depth && !found) {
        struct set set = stack[--depth];
        found = place_idle(s, &set);
        if (found || !visit(s, &set))
            continue;
        uint64_t end_ns = horizon(s, &set);
        for (unsigned i = 0; i < s->count && s->steps[i].start_ns <= end_ns; i++) {
            if (is_in(&set, i) || !fits(&s->steps[i], set.content))
                continue;
            CHECK(depth < LINEAR_OPS * 16);
            stack[depth] = set;
            place(s, &stack[depth++], i);
        }
    }
    free(stack);
    return found;
}

/* What the key holds in the end is what a last get sees. */
static bool add_final(struct search *s, const struct content *final)
{
    static const struct op last = {.kind = OP_GET};
    int content = final ? content_number(s, *final) : NOTHING;
    uint64_t now_ns = 0;
    CHECK(s->count < LINEAR_OPS);
    for (unsigned i = 0; i < s->count; i++) {
        uint64_t known_ns = s->steps[i].optional ? s->steps[i].start_ns : s->steps[i].end_ns;
        now_ns = known_ns > now_ns ? known_ns : now_ns;
    }
    s->steps[s->count++] = (struct step){.op = &last,
                                         .before = content,
                                         .after = content,
                                         .start_ns = now_ns + 1,
                                         .end_ns = now_ns + 2};
    return content != INT32_MIN;
}

static void print_left(const struct search *s, const char *key)
{
    static const char *const kinds[] = {"?", "put", "remove", "get"};
    printf("NOT LINEARIZABLE: '%s': %u of %u operations have a place; among the others:\n", key,
           s->most, s->count);
    unsigned shown = 0;
    for (unsigned i = 0; i < s->count && shown < 12; i++) {
        const struct step *step = &s->steps[i];
        if (is_in(&s->best, i))
            continue;
        shown++;
        printf("  %s from %" PRIu64 " to %" PRIu64 " us: %d, content %d to %d%s\n",
               kinds[step->op->kind], step->start_ns / 1000,
               step->end_ns == UINT64_MAX ? 0 : step->end_ns / 1000, step->op->code, step->before,
               step->after, step->optional ? ", in doubt" : "");
    }
    fflush(stdout);
}

bool linear_key(const struct history *h, const char *key, const struct content *final)
{
    struct search *s = calloc(1, sizeof *s);
    CHECK(s);
    collect(s, h, key);
    bool known = add_final(s, final);
    s->words = (s->count + 63) / 64;
    qsort(s->steps, s->count, sizeof s->steps[0], by_start);
    for (s->visited_room = 1024; s->visited_room < (size_t)s->count * 512;)
        s->visited_room *= 2;
    s->visited = calloc(s->visited_room, sizeof *s->visited);
    CHECK(s->visited);
    for (size_t i = 0; i < s->visited_room; i++)
        s->visited[i].content = INT32_MIN;
    bool found = known && search(s);
    if (!found)
        print_left(s, key);
    free(s->visited);
    free(s);
    return found;
}
