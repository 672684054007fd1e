/* keepers.c - those who clean up and those who read: the retirer, gc, and readers with and without
 * a lease.
 */
#include <assert.h>

#include "model.h"

void model_retirer_step(struct explore *x, const struct state *s, unsigned i)
{
    for (uint8_t set = 0; set < SETS; set++) {
        struct state n = *s;
        if (status_of(&s->log[s->head], set) != ENTRY_LIVE)
            continue;
        n.procs[i].set = set;
        model_change_begin(&n, &n.procs[i], OP_RETIRE);
        model_change_step(x, &n, i);
    }
}

/* ---- gc: a pass of collect.c ---- */

/* By the head it holds, could the set still be committed? */
static bool is_open(const struct state *s, const struct proc *p, unsigned set)
{
    const struct rec *held = &s->log[p->held];
    return held->attempt == s->attempt[set / SAVES] && !model_is_closed(s, held, set) &&
           !held->entry[set];
}

static bool is_over(const struct state *s, const struct proc *p, unsigned set)
{
    const struct rec *held = &s->log[p->held];
    uint8_t attempt = s->attempt[set / SAVES];
    if (held->entry[set] || (flaw(FLAW_GC_SKIPS_OLD_SETS) && held->entry[set ^ 1]))
        return false;
    if (attempt == held->attempt)
        return model_is_closed(s, held, set) || number_of(set) <= p->floor;
    return attempt < held->attempt || flaw(FLAW_GC_NOT_EQUAL);
}

static bool is_due(const struct state *s, const struct proc *p, unsigned set)
{
    if (!p->abandoned)
        return status_of(&s->log[p->held], set) == ENTRY_RETIRED;
    return p->found >> set & 1 && !(p->deleted >> set & 1) && is_over(s, p, set);
}

void model_gc_end_pass(struct proc *p)
{
    *p = (struct proc){.pc = p->left ? PC_START : PC_DONE, .left = p->left, .turn = p->turn};
}

/* The floor to give up to: below the first save that is young. */
static uint8_t floor_of(struct explore *x, const struct state *s, const struct proc *p)
{
    uint8_t floor = 0, active = UINT8_MAX;
    for (unsigned set = 0; set < SETS; set++)
        if (p->young >> set & 1 && number_of(set) < active)
            active = number_of(set);
    for (unsigned set = 0; set < SETS; set++) {
        bool waits = flaw(FLAW_FLOOR_PAST_YOUNG) ? p->young >> set & 1 : number_of(set) >= active;
        if (p->found >> set & 1 && is_open(s, p, set) && !waits && number_of(set) > floor)
            floor = number_of(set);
    }
    if (floor >= active && !flaw(YOUNG_UNCHECKED))
        explore_fail(x, "YOUNG SAVES STAY: gc gives up a save that is being written");
    return floor;
}

static void go_on(struct explore *x, struct state *s, struct proc *p);

static void begin_abandoned(struct explore *x, struct state *s, struct proc *p)
{
    p->abandoned = 1;
    p->set = 0;
    go_on(x, s, p);
}

static void give_up(struct explore *x, struct state *s, struct proc *p)
{
    p->floor = floor_of(x, s, p);
    p->young = 0;
    if (p->floor && !flaw(FLAW_DELETE_BEFORE_FLOOR))
        model_change_begin(s, p, OP_GIVE_UP);
    else
        begin_abandoned(x, s, p);
}

/* To the next set that is to be deleted, or what comes when there is none. */
static void go_on(struct explore *x, struct state *s, struct proc *p)
{
    while (p->set < SETS && !is_due(s, p, p->set))
        p->set++;
    if (p->set < SETS) {
        bool is_durable = s->log[p->held].is == REC_DURABLE;
        p->pc = is_durable || flaw(FLAW_GC_BEFORE_SYNC) ? PC_GC_OBJECTS : PC_GC_FIX;
        return;
    }
    p->set = 0;
    if (p->abandoned && p->floor && flaw(FLAW_DELETE_BEFORE_FLOOR))
        model_change_begin(s, p, OP_GIVE_UP);
    else if (p->abandoned)
        model_gc_end_pass(p);
    else if (p->deleted)
        model_change_begin(s, p, OP_FORGET);
    else
        give_up(x, s, p);
}

static void go_past(struct explore *x, struct state *s, struct proc *p)
{
    p->set++;
    go_on(x, s, p);
}

void model_gc_answered(struct explore *x, struct state *s, struct proc *p, enum op op)
{
    if (op == OP_FORGET)
        give_up(x, s, p);
    else if (flaw(FLAW_DELETE_BEFORE_FLOOR))
        model_gc_end_pass(p);
    else if (flaw(FLAW_GIVE_UP_BY_OLD_HEAD))
        begin_abandoned(x, s, p);
    else
        p->pc = PC_GC_AGAIN;
}

/* Which of the saves that could still be committed are young is anybody's guess. */
static void step_list(struct explore *x, const struct state *s, unsigned i)
{
    uint8_t found = 0, open = 0;
    for (unsigned set = 0; set < SETS; set++) {
        if (!s->sets[set].there)
            continue;
        found |= (uint8_t)(1u << set);
        open |= (uint8_t)(is_open(s, &s->procs[i], set) << set);
    }
    for (unsigned young = 0; young <= open; young++) {
        struct state n = *s;
        struct proc *p = &n.procs[i];
        if (young & ~open)
            continue;
        explore_say(x, "%s: lists the sets %#x, of which %#x are young", model_name(i), found,
                    young);
        p->found = found;
        p->young = (uint8_t)young;
        go_on(x, &n, p);
        model_emit(x, &n);
    }
}

static void step_objects(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    bool is_leased = s->lease == p->set + 1 && !flaw(FLAW_DELETE_LEASED);
    if (!is_leased) {
        explore_say(x, "%s: by record %u, deletes the objects of set %u", model_name(i), p->held,
                    p->set);
        model_set_delete(&n.sets[p->set], OBJECTS);
        p->pc = PC_GC_NODES;
        model_emit(x, &n);
    }
    if (is_leased || !p->abandoned) {
        n = *s;
        explore_say(x, "%s: set %u is %s, leaves it", model_name(i), p->set,
                    is_leased ? "leased" : "within the grace");
        go_past(x, &n, p);
        model_emit(x, &n);
    }
}

/* Nodes in any order: leaves first, or the others. */
static void step_nodes(struct explore *x, const struct state *s, unsigned i)
{
    static const uint16_t groups[] = {LEAVES, TOPS, 0};
    uint16_t there = s->sets[s->procs[i].set].there;
    for (unsigned g = 0; g < 3; g++) {
        struct state n = *s;
        struct proc *p = &n.procs[i];
        if (groups[g] ? !(there & groups[g]) : there & NODES)
            continue;
        explore_say(x, "%s: deletes %s of set %u", model_name(i),
                    g == 0   ? "the leaves"
                    : g == 1 ? "the upper nodes"
                             : "the last",
                    p->set);
        model_set_delete(&n.sets[p->set], groups[g]);
        if (!(n.sets[p->set].there & NODES)) {
            p->deleted |= (uint8_t)(1u << p->set);
            go_past(x, &n, p);
        }
        model_emit(x, &n);
    }
    struct state dead = *s;
    explore_say(x, "%s: crashes, and its lock is free", model_name(i));
    dead.procs[i].pc = PC_DONE;
    model_emit(x, &dead);
}

void model_gc_step(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    switch ((enum pc)p->pc) {
    case PC_START:
        explore_say(x, "%s: begins a pass, head is %u", model_name(i), s->head);
        p->held = s->head;
        p->left--;
        p->pc = PC_GC_LIST;
        model_emit(x, &n);
        break;
    case PC_GC_LIST:
        step_list(x, s, i);
        break;
    case PC_GC_FIX:
        explore_say(x, "%s: makes record %u durable", model_name(i), p->held);
        model_log_sync(&n, p->held);
        p->pc = PC_GC_OBJECTS;
        model_emit(x, &n);
        break;
    case PC_GC_OBJECTS:
        step_objects(x, s, i);
        break;
    case PC_GC_NODES:
        step_nodes(x, s, i);
        break;
    case PC_GC_AGAIN:
        explore_say(x, "%s: has given up, reads the head again: %u", model_name(i), s->head);
        p->held = s->head;
        p->floor = 0;
        begin_abandoned(x, &n, p);
        model_emit(x, &n);
        break;
    default:
        assert(0);
    }
}

/* ---- readers ---- */

static void step_reader_start(struct explore *x, const struct state *s, unsigned i)
{
    for (uint8_t set = 0; set < SETS; set++) {
        struct state n = *s;
        struct proc *p = &n.procs[i];
        if (status_of(&s->log[s->head], set) != ENTRY_LIVE)
            continue;
        explore_say(x, "%s: head is %u, set %u is live", model_name(i), s->head, set);
        p->set = set;
        p->val = s->log[s->head].entry[set] & ~ENTRY_STATUS;
        p->node = 0;
        p->pc = model_spec(i)->leases ? PC_READER_LEASE : PC_READER_ROOT;
        model_emit(x, &n);
    }
}

static void reader_ends(struct state *s, unsigned i)
{
    if (s->lease == s->procs[i].set + 1 && model_spec(i)->leases)
        s->lease = 0;
    s->procs[i].pc = PC_DONE;
}

/* gc keeps leases away from a set while it deletes it; that does not keep another gc away. */
static bool is_locked(const struct state *s, uint8_t set)
{
    for (unsigned i = 0; i < PROCS - 1; i++) {
        const struct proc *p = &s->procs[i];
        if (p->pc == PC_GC_NODES && p->set == set)
            return true;
    }
    return false;
}

static void step_reader_lease(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    if (p->pc == PC_READER_LEASE) {
        if (is_locked(s, p->set) || s->lease)
            return; /* waits */
        explore_say(x, "%s: takes a lease of set %u", model_name(i), p->set);
        n.lease = p->set + 1;
        p->pc = flaw(FLAW_LEASE_UNCHECKED) ? PC_READER_ROOT : PC_READER_AGAIN;
    } else {
        bool is_live = status_of(&s->log[s->head], p->set) == ENTRY_LIVE;
        explore_say(x, "%s: reads the head again: set %u is %s", model_name(i), p->set,
                    is_live ? "live" : "not live: ESTALE");
        p->pc = PC_READER_ROOT;
        if (!is_live)
            reader_ends(&n, i);
    }
    model_emit(x, &n);
}

static void step_reader_data(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    const struct set *set = &s->sets[p->set];
    uint8_t part = p->node;
    bool reads_root = p->pc == PC_READER_ROOT, found = set->there >> (reads_root ? ROOT : part) & 1;
    explore_say(x, "%s: reads %s %u of set %u: %s", model_name(i), reads_root ? "root" : "object",
                part, p->set, found ? "there" : "ENOENT");
    if (!found && model_spec(i)->leases)
        explore_fail(x, "READERS: a reader with a lease got ENOENT");
    if (found && reads_root && set->val[ROOT] != p->val)
        explore_fail(x, "READERS: a reader got another root than its entry names");
    if (found && !reads_root && set->val[part] != (p->val >> 2 * part & 3))
        explore_fail(x, "READERS: a reader got other bytes than its entry names");
    if (!found)
        p->pc = PC_READER_GONE;
    else if (reads_root)
        p->pc = PC_READER_OBJECTS;
    else if (++p->node == model_config->parts)
        reader_ends(&n, i);
    model_emit(x, &n);
}

void model_reader_step(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    if (s->lease == p->set + 1 && model_spec(i)->leases && p->pc != PC_START &&
        p->pc != PC_READER_LEASE) {
        struct state dead = n;
        explore_say(x, "%s: crashes, and its lease is free", model_name(i));
        reader_ends(&dead, i);
        model_emit(x, &dead);
    }
    switch ((enum pc)p->pc) {
    case PC_START:
        step_reader_start(x, s, i);
        break;
    case PC_READER_LEASE:
    case PC_READER_AGAIN:
        step_reader_lease(x, s, i);
        break;
    case PC_READER_GONE:
        if (status_of(&s->log[s->head], p->set) == ENTRY_LIVE)
            explore_fail(x, "READERS: ENOENT for an entry that a fresh head says is live");
        explore_say(x, "%s: a fresh head says that set %u is not live: ESTALE", model_name(i),
                    p->set);
        reader_ends(&n, i);
        model_emit(x, &n);
        break;
    default:
        step_reader_data(x, s, i);
    }
}
