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

enum work { WORK_NONE, WORK_DELETE, WORK_TOMB };

/* What the pass has to do about a set: by the head it holds, which may be old by now, and what it
 * lists, which is not. */
static enum work work_of(const struct state *s, const struct proc *p, unsigned set)
{
    const struct rec *held = &s->log[p->held];
    uint8_t attempt = s->attempt[set / SAVES], there = s->sets[set].there;
    if (!attempt || status_of(held, set) == ENTRY_LIVE)
        return WORK_NONE;
    if (status_of(held, set) == ENTRY_RETIRED) {
        bool forgets = model_may_forget(s, held, set) && s->log[s->head].entry[set];
        return there || forgets ? WORK_DELETE : WORK_NONE;
    }
    if (!there)
        return WORK_NONE;
    if (attempt < held->attempt || (flaw(FLAW_GC_NOT_EQUAL) && attempt != held->attempt)) {
        bool skips = flaw(FLAW_GC_SKIPS_OLD_SETS) && held->entry[set ^ 1];
        return skips ? WORK_NONE : WORK_DELETE;
    }
    if (attempt > held->attempt)
        return WORK_NONE;
    if (model_is_closed(s, held, set))
        return WORK_DELETE;
    return flaw(FLAW_DELETE_BEFORE_TOMB) ? WORK_DELETE : WORK_TOMB;
}

static void step_pick(struct explore *x, const struct state *s, unsigned i)
{
    for (uint8_t set = 0; set < SETS; set++) {
        struct state n = *s;
        struct proc *p = &n.procs[i];
        enum work work = work_of(s, p, set);
        if (work == WORK_NONE)
            continue;
        bool was_retired = status_of(&s->log[p->held], set) == ENTRY_RETIRED;
        p->set = set;
        p->pc = PC_GC_OBJECTS;
        explore_say(x, "%s: by record %u, set %u is to be %s", model_name(i), p->held, set,
                    work == WORK_TOMB ? "given a tombstone" : "deleted");
        if (work == WORK_TOMB)
            model_change_begin(&n, p, OP_TOMB);
        else if (was_retired && flaw(FLAW_FORGET_FIRST))
            model_change_begin(&n, p, OP_FORGET);
        model_emit(x, &n);
    }
    struct state n = *s;
    struct proc *p = &n.procs[i];
    explore_say(x, "%s: ends its pass", model_name(i));
    p->pc = p->left ? PC_START : PC_DONE;
    p->held = 0;
    model_emit(x, &n);
}

/* Deleted all of p->set. What was retired is now to be forgotten. */
static void deleted(struct state *s, struct proc *p)
{
    if (status_of(&s->log[p->held], p->set) == ENTRY_RETIRED && !flaw(FLAW_FORGET_FIRST)) {
        model_change_begin(s, p, OP_FORGET);
    } else if (!status_of(&s->log[p->held], p->set) && flaw(FLAW_DELETE_BEFORE_TOMB) &&
               s->attempt[p->set / SAVES] == s->log[p->held].attempt) {
        model_change_begin(s, p, OP_TOMB);
    } else {
        p->pc = PC_GC_PICK;
        p->set = 0;
    }
}

static void step_delete(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    static const char *const whats[] = {"objects", "leaves", "upper nodes"};
    static const uint8_t masks[] = {OBJECTS, LEAVES, TOPS};
    unsigned at = p->pc - PC_GC_OBJECTS;
    if (at == 0 && s->lease == p->set + 1 && !flaw(FLAW_DELETE_LEASED)) {
        explore_say(x, "%s: set %u is leased, leaves it", model_name(i), p->set);
        p->pc = PC_GC_PICK;
        p->set = 0;
        model_emit(x, &n);
        return;
    }
    explore_say(x, "%s: deletes the %s of set %u", model_name(i), whats[at], p->set);
    model_set_delete(&n.sets[p->set], masks[at]);
    p->pc++;
    if (p->pc == PC_GC_LEAVES && !(n.sets[p->set].there & LEAVES))
        p->pc++;
    if (p->pc > PC_GC_TOPS || (p->pc == PC_GC_TOPS && !(n.sets[p->set].there & TOPS)))
        deleted(&n, p);
    model_emit(x, &n);
    if (at > 0) {
        struct state dead = *s;
        explore_say(x, "%s: crashes, and its lock is free", model_name(i));
        dead.procs[i].pc = PC_DONE;
        model_emit(x, &dead);
    }
}

void model_gc_answered(struct state *s, struct proc *p, enum op op, enum code code)
{
    bool deletes =
        op == OP_TOMB ? code == CODE_OK && !flaw(FLAW_DELETE_BEFORE_TOMB) : flaw(FLAW_FORGET_FIRST);
    p->pc = deletes && s->sets[p->set].there ? PC_GC_OBJECTS : PC_GC_PICK;
    if (p->pc == PC_GC_PICK)
        p->set = 0;
}

void model_gc_step(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    switch ((enum pc)p->pc) {
    case PC_START:
        p->held = s->head;
        p->left--;
        p->pc = model_log_is_durable(s) || flaw(FLAW_GC_BEFORE_SYNC) ? PC_GC_PICK : PC_GC_FIX;
        explore_say(x, "%s: begins a pass, head is %u", model_name(i), p->held);
        model_emit(x, &n);
        break;
    case PC_GC_FIX:
        explore_say(x, "%s: makes the log durable", model_name(i));
        model_log_sync(&n);
        p->pc = PC_GC_PICK;
        model_emit(x, &n);
        break;
    case PC_GC_PICK:
        step_pick(x, s, i);
        break;
    default:
        step_delete(x, s, i);
    }
}

/* A reader answers from an entry only when its head is durable; then it was promised to somebody.
 */
static void reader_goes_on(struct state *s, unsigned i)
{
    struct proc *p = &s->procs[i];
    p->pc = model_spec(i)->leases ? PC_READER_LEASE : PC_READER_NODES;
    s->acked |= 1u << p->set;
    if (p->held > s->acked_number)
        s->acked_number = p->held;
    p->held = 0;
}

static void step_reader_start(struct explore *x, const struct state *s, unsigned i)
{
    for (uint8_t set = 0; set < SETS; set++) {
        struct state n = *s;
        struct proc *p = &n.procs[i];
        if (status_of(&s->log[s->head], set) != ENTRY_LIVE)
            continue;
        explore_say(x, "%s: head is %u, set %u is live", model_name(i), s->head, set);
        p->set = set;
        p->held = s->head;
        p->val = s->log[s->head].entry[set] & ~ENTRY_STATUS;
        p->node = 0;
        if (model_log_is_durable(s) || flaw(FLAW_READ_BEFORE_SYNC))
            reader_goes_on(&n, i);
        else
            p->pc = PC_READER_FIX;
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
        if ((p->pc == PC_GC_LEAVES || p->pc == PC_GC_TOPS) && p->set == set)
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
        p->pc = flaw(FLAW_LEASE_UNCHECKED) ? PC_READER_NODES : PC_READER_AGAIN;
    } else {
        bool is_live = status_of(&s->log[s->head], p->set) == ENTRY_LIVE;
        explore_say(x, "%s: reads the head again: set %u is %s", model_name(i), p->set,
                    is_live ? "live" : "not live: ESTALE");
        p->pc = PC_READER_NODES;
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
    uint8_t nodes = model_set_whole() & NODES, part = p->node;
    bool reads_nodes = p->pc == PC_READER_NODES;
    bool found = reads_nodes ? (set->there & nodes) == nodes : set->there >> part & 1;
    explore_say(x, "%s: reads %s %u of set %u: %s", model_name(i), reads_nodes ? "nodes" : "object",
                part, p->set, found ? "there" : "ENOENT");
    if (!found && model_spec(i)->leases)
        explore_fail(x, "READERS: a reader with a lease got ENOENT");
    if (found && reads_nodes && set->val[ROOT] != p->val)
        explore_fail(x, "READERS: a reader got other nodes than its entry names");
    if (found && !reads_nodes && set->val[part] != (p->val >> 2 * part & 3))
        explore_fail(x, "READERS: a reader got other bytes than its entry names");
    if (!found)
        p->pc = PC_READER_GONE;
    else if (reads_nodes)
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
    case PC_READER_FIX:
        explore_say(x, "%s: makes the log durable", model_name(i));
        model_log_sync(&n);
        reader_goes_on(&n, i);
        model_emit(x, &n);
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
