/* explore.c - see explore.h. Nodes are numbered as they are found, and in that order expanded; of
 * each only its fingerprint, its parent and which successor it was are kept. Whole states are kept
 * for two levels: the one being expanded and the one being found. A trace is made by walking the
 * same successors again.
 */
#include "explore.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct node {
    uint64_t print;
    uint32_t parent;
    uint32_t ordinal; /* among the parent's successors */
};

struct level {
    uint8_t *states;
    size_t count, room;
};

struct explore_memory {
    struct node *nodes;
    size_t nodes_room;
    uint32_t *table; /* node number + 1, by fingerprint; 0: free */
    size_t table_size;
    struct level now, next;
    uint32_t expanding, ordinal;
    bool has_failed_step;
    uint32_t failed_node, failed_ordinal;
    /* While a trace is made: which successor is wanted, and where to. */
    uint32_t wanted;
    uint8_t *found;
    char found_text[200];
};

static void *resized(void *block, size_t count, size_t size)
{
    void *bigger = realloc(block, count * size);
    if (!bigger) {
        fprintf(stderr, "explore: no memory for %zu of %zu bytes\n", count, size);
        exit(1);
    }
    return bigger;
}

static uint64_t fingerprint(const uint8_t *state, size_t bytes)
{
    uint64_t hash = 0x9e3779b97f4a7c15u, word;
    for (size_t at = 0; at < bytes; at += sizeof word) {
        size_t part = bytes - at < sizeof word ? bytes - at : sizeof word;
        word = 0;
        memcpy(&word, state + at, part);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    hash *= 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 29;
}

static void grow_table(struct explore *x)
{
    struct explore_memory *m = x->memory;
    size_t size = m->table_size ? m->table_size * 2 : 1 << 16;
    free(m->table);
    m->table = calloc(size, sizeof *m->table);
    if (!m->table)
        m->table = resized(NULL, size, sizeof *m->table);
    m->table_size = size;
    for (size_t i = 0; i < x->states; i++) {
        size_t at = m->nodes[i].print & (size - 1);
        while (m->table[at])
            at = (at + 1) & (size - 1);
        m->table[at] = (uint32_t)i + 1;
    }
}

/* True: it was not there. */
static bool remember(struct explore *x, uint64_t print)
{
    struct explore_memory *m = x->memory;
    if (x->states * 3 >= m->table_size * 2)
        grow_table(x);
    size_t at = print & (m->table_size - 1);
    for (; m->table[at]; at = (at + 1) & (m->table_size - 1))
        if (m->nodes[m->table[at] - 1].print == print)
            return false;
    if (x->states == m->nodes_room) {
        m->nodes_room = m->nodes_room ? m->nodes_room * 2 : 1 << 16;
        m->nodes = resized(m->nodes, m->nodes_room, sizeof *m->nodes);
    }
    m->nodes[x->states] = (struct node){print, m->expanding, m->ordinal};
    m->table[at] = (uint32_t)++x->states;
    return true;
}

static void keep(struct explore *x, const void *state)
{
    struct level *next = &x->memory->next;
    if (next->count == next->room) {
        next->room = next->room ? next->room * 2 : 1024;
        next->states = resized(next->states, next->room, x->state_bytes);
    }
    memcpy(next->states + next->count++ * x->state_bytes, state, x->state_bytes);
}

void explore_fail(struct explore *x, const char *property)
{
    if (!x->failed)
        x->failed = property;
}

void explore_emit(struct explore *x, const void *state)
{
    struct explore_memory *m = x->memory;
    if (m->found) {
        if (m->ordinal++ == m->wanted) {
            memcpy(m->found, state, x->state_bytes);
            memcpy(m->found_text, x->told, sizeof m->found_text);
        }
        return;
    }
    if (x->failed && m->has_failed_step)
        return;
    x->transitions++;
    if (!x->failed && remember(x, fingerprint(state, x->state_bytes))) {
        x->check(x, state);
        keep(x, state);
    }
    if (x->failed) {
        m->has_failed_step = true;
        m->failed_node = m->expanding;
        m->failed_ordinal = m->ordinal;
    }
    m->ordinal++;
}

static void expand_level(struct explore *x)
{
    struct explore_memory *m = x->memory;
    for (size_t i = 0; i < m->now.count && !x->failed; i++, m->expanding++) {
        const uint8_t *state = m->now.states + i * x->state_bytes;
        m->ordinal = 0;
        x->expand(x, state);
        if (!m->ordinal && !x->failed) {
            x->ends++;
            x->at_end(x, state);
            m->failed_node = m->expanding;
        }
        if (x->states > x->states_max)
            explore_fail(x, "the bound on states was reached before all were visited");
    }
}

bool explore_run(struct explore *x, const void *initial)
{
    struct explore_memory *m = x->memory = resized(NULL, 1, sizeof *m);
    memset(m, 0, sizeof *m);
    x->states = x->transitions = x->ends = x->frontier_max = 0;
    x->depth = 0;
    x->failed = NULL;
    remember(x, fingerprint(initial, x->state_bytes));
    keep(x, initial);
    x->check(x, initial);
    while (m->next.count && !x->failed) {
        struct level done = m->now;
        m->now = m->next;
        m->next = done;
        m->next.count = 0;
        if (m->now.count > x->frontier_max)
            x->frontier_max = m->now.count;
        expand_level(x);
        x->depth += m->next.count > 0;
    }
    return !x->failed;
}

void explore_say(struct explore *x, const char *format, ...)
{
    if (!x->telling)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(x->told, sizeof x->told, format, args);
    va_end(args);
}

void explore_trace(struct explore *x, const void *initial, FILE *out)
{
    struct explore_memory *m = x->memory;
    size_t count = 0, room = x->depth + 2;
    uint32_t *path = resized(NULL, room, sizeof *path);
    if (m->has_failed_step)
        path[count++] = m->failed_ordinal;
    for (uint32_t at = m->failed_node; at; at = m->nodes[at].parent) {
        assert(count < room);
        path[count++] = m->nodes[at].ordinal;
    }
    uint8_t *state = resized(NULL, 1, x->state_bytes);
    m->found = resized(NULL, 1, x->state_bytes);
    memcpy(state, initial, x->state_bytes);
    const char *failed = x->failed;
    x->telling = true;
    fprintf(out, "  violated: %s\n", failed);
    for (size_t step = 1; count; step++) {
        m->ordinal = 0;
        m->wanted = path[--count];
        x->expand(x, state);
        memcpy(state, m->found, x->state_bytes);
        fprintf(out, "  %3zu  %s\n", step, m->found_text);
    }
    x->telling = false;
    x->failed = failed;
    free(m->found);
    m->found = NULL;
    free(state);
    free(path);
}

void explore_free(struct explore *x)
{
    struct explore_memory *m = x->memory;
    if (!m)
        return;
    free(m->nodes);
    free(m->table);
    free(m->now.states);
    free(m->next.states);
    free(m);
    x->memory = NULL;
}
