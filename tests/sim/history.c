/* history.c - see history.h. The check is the search of Wing and Gong: try every operation that may
 * come next, remember the positions that led nowhere.
 */
#include "history.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "objects.h"
#include "test.h"

enum { SEEN_MAX = 1 << 16 };

unsigned sim_history_begin(struct sim_history *history, const char *who, enum sim_op op,
                           const char *key, uint64_t value)
{
    CHECK(history->count < SIM_EVENTS_MAX);
    history->events[history->count] = (struct sim_event){
        .op = op, .key = key, .who = who, .value = value, .begin = ++history->tick, .open = true};
    return history->count++;
}

void sim_history_end(struct sim_history *history, unsigned event, int code, uint64_t value,
                     bool open)
{
    struct sim_event *e = &history->events[event];
    e->code = code;
    e->open = open;
    e->end = ++history->tick;
    if (e->op == SIM_GET)
        e->value = value;
}

bool sim_history_certain(const struct sim_history *history, const char *key, uint64_t since)
{
    const struct sim_event *put = NULL;
    for (unsigned i = 0; i < history->count; i++) {
        const struct sim_event *e = &history->events[i];
        if (e->op == SIM_PUT && !strcmp(e->key, key) && e->end && !e->open && !e->code &&
            e->end < since)
            put = e;
    }
    for (unsigned i = 0; put && i < history->count; i++) {
        const struct sim_event *e = &history->events[i];
        if (e->op == SIM_REMOVE && !strcmp(e->key, key) && (!e->end || e->end > put->begin))
            return false;
    }
    return put;
}

/* ---- the search ---- */

struct search {
    const struct sim_event *events[SIM_KEY_EVENTS_MAX];
    unsigned count;
    struct {
        uint64_t done, value;
    } seen[SEEN_MAX];
    unsigned seen_count;
};

/* Does this event have to be explained? A refusal only tells what its process saw, as a get. */
static bool counts(const struct sim_event *e, bool durable)
{
    if (e->op == SIM_GET)
        return !e->open && !durable && e->code != -EAGAIN;
    if (e->open || !e->code)
        return true;
    return !durable && e->code != -EAGAIN && e->code != -ESTALE && e->code != -EBUSY;
}

/* Can e happen at an instant when the key has *value? Then it is what e makes of it. */
static bool step(const struct sim_event *e, uint64_t *value)
{
    switch (e->op) {
    case SIM_PUT:
        if (e->code == -EEXIST && !e->open)
            return *value != SIM_ABSENT;
        if (*value != SIM_ABSENT)
            return false;
        *value = e->value;
        return true;
    case SIM_REMOVE:
        if (e->code == -ENOENT && !e->open)
            return *value == SIM_ABSENT;
        if (*value == SIM_ABSENT)
            return false;
        *value = SIM_ABSENT;
        return true;
    default:
        return *value == e->value;
    }
}

static bool is_done(uint64_t done, unsigned i)
{
    return done >> i & 1;
}

/* Nothing that has not happened yet was over before e began; nothing that has happened began after
 * e was over. */
static bool may_be_next(const struct search *s, uint64_t done, const struct sim_event *e)
{
    for (unsigned i = 0; i < s->count; i++) {
        const struct sim_event *other = s->events[i];
        if (is_done(done, i) ? other->begin > e->end : !other->open && other->end < e->begin)
            return false;
    }
    return true;
}

static bool been_here(struct search *s, uint64_t done, uint64_t value)
{
    for (unsigned i = 0; i < s->seen_count; i++)
        if (s->seen[i].done == done && s->seen[i].value == value)
            return true;
    CHECK(s->seen_count < SEEN_MAX);
    s->seen[s->seen_count].done = done;
    s->seen[s->seen_count++].value = value;
    return false;
}

/* As deep as a key has events. */
static bool explain(struct search *s, uint64_t done, uint64_t value)
{
    bool complete = true;
    for (unsigned i = 0; i < s->count; i++)
        complete &= is_done(done, i) || s->events[i]->open;
    if (complete)
        return true;
    if (been_here(s, done, value))
        return false;
    for (unsigned i = 0; i < s->count; i++) {
        uint64_t then = value;
        if (!is_done(done, i) && may_be_next(s, done, s->events[i]) && step(s->events[i], &then) &&
            explain(s, done | (uint64_t)1 << i, then))
            return true;
    }
    return false;
}

static void print(const struct sim_history *history, const char *key)
{
    static const char *const ops[] = {"put", "get", "remove"};
    for (unsigned i = 0; i < history->count; i++) {
        const struct sim_event *e = &history->events[i];
        if (strcmp(e->key, key))
            continue;
        fprintf(stderr, "  %4llu-%-4llu %-10s %-6s value %llu: ", (unsigned long long)e->begin,
                (unsigned long long)e->end, e->who, ops[e->op], (unsigned long long)e->value);
        if (e->open)
            fprintf(stderr, "never answered\n");
        else
            fprintf(stderr, "%s\n", e->code ? strerrorname_np(-e->code) : "ok");
    }
}

bool sim_history_holds(const struct sim_history *history, const char *key, bool durable)
{
    static struct search s;
    s.count = s.seen_count = 0;
    for (unsigned i = 0; i < history->count; i++) {
        const struct sim_event *e = &history->events[i];
        bool last = durable && e->op == SIM_GET && !strcmp(e->who, "after");
        if (strcmp(e->key, key) || (!counts(e, durable) && !last))
            continue;
        CHECK(s.count < SIM_KEY_EVENTS_MAX);
        s.events[s.count++] = e;
    }
    return explain(&s, 0, SIM_ABSENT);
}

void sim_history_check(const struct sim_history *history, const char *key, bool durable)
{
    if (sim_history_holds(history, key, durable))
        return;
    fprintf(stderr, "no order of these explains what was answered for '%s':\n", key);
    print(history, key);
    exit(1);
}
