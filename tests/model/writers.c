/* writers.c - ranks, which join, write their object, publish their leaf and climb; and finishers,
 * which walk down a set and complete it.
 */
#include <assert.h>

#include "model.h"

static uint8_t parent_of(uint8_t node)
{
    if (model_config->parts == 2 || node >= INNER)
        return ROOT;
    return node == LEAF + 2 ? LONE : INNER;
}

/* 0: it has none. */
static uint8_t sibling_of(uint8_t node)
{
    static const uint8_t siblings[ELEMENTS] = {
        [LEAF] = LEAF + 1, [LEAF + 1] = LEAF, [INNER] = LONE, [LONE] = INNER};
    return siblings[node];
}

static const char *node_name(uint8_t node)
{
    static const char *const names[ELEMENTS] = {"object 0", "object 1", "object 2",
                                                "leaf 0",   "leaf 1",   "leaf 2",
                                                "node 1.0", "node 1.1", "the root"};
    return names[node];
}

/* What p->node holds: of the parts that p knows, those below it. */
static uint8_t value_of(const struct proc *p)
{
    static const uint8_t below[ELEMENTS] = {[LEAF] = 0x03,  [LEAF + 1] = 0x0c, [LEAF + 2] = 0x30,
                                            [INNER] = 0x0f, [LONE] = 0x30,     [ROOT] = 0x3f};
    return p->val & below[p->node];
}

static bool is_there(const struct state *s, const struct proc *p, uint8_t node)
{
    return s->sets[p->set].there >> node & 1;
}

/* This save is over for this rank: another, or whoever finishes, commits it. */
static void next_save(struct proc *p, const struct spec *spec, bool is_committed)
{
    p->node = p->val = p->skip = 0;
    if (spec->kind == RANK && p->set % SAVES + 1 < model_config->saves) {
        p->set++;
        p->pc = PC_OBJECT;
    } else {
        p->pc =
            !is_committed && spec->kind == RANK && spec->finishes && !p->left ? PC_WAIT : PC_DONE;
    }
}

void model_writer_answered(struct state *s, unsigned i, enum op op, enum code code, uint8_t base)
{
    struct proc *p = &s->procs[i];
    if (op == OP_COMMIT) {
        next_save(p, model_spec(i), true);
        return;
    }
    p->pc = PC_DONE;
    uint8_t slot = model_slot(s, s->log[base].attempt);
    if (code != CODE_OK || slot == SLOTS)
        return;
    p->set = slot * SAVES;
    p->pc = PC_OBJECT;
}

static void start_put(struct proc *p, const struct spec *spec)
{
    p->node = LEAF + spec->part;
    p->val = (uint8_t)(spec->token << 2 * spec->part);
    p->pc = flaw(FLAW_LOOK_FIRST) ? PC_LOOK : PC_NODE_LINK;
}

static void walk(struct proc *p)
{
    p->pc = PC_WALK;
    p->node = ROOT;
    p->val = 0;
    p->left = 1;
}

void model_writer_unknown(struct state *s, unsigned i)
{
    struct proc *p = &s->procs[i];
    p->op = OP_NONE;
    p->since = p->skip = 0;
    if (p->left)
        walk(p);
    else
        start_put(p, model_spec(i));
    s->was_unknown = model_config->wakes;
}

/* The node that p meant to put is there and durable, and p goes on with it. */
static void has_put(struct state *s, struct proc *p)
{
    bool finishes = p->left;
    if (p->node == ROOT) {
        model_change_begin(s, p, OP_COMMIT);
    } else if (finishes && p->node == INNER) {
        p->node = LONE;
        p->pc = PC_WALK;
    } else if (finishes || !sibling_of(p->node)) {
        p->node = parent_of(p->node);
        p->pc = PC_NODE_LINK;
    } else {
        p->pc = PC_CLIMB;
    }
}

static bool is_durable(const struct state *s, const struct proc *p)
{
    return s->sets[p->set].durable >> p->node & 1;
}

static void lose(struct explore *x, const struct state *s, unsigned i, bool is_made)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    explore_say(x, "%s: puts %s of set %u, the answer is LOST (%s)", model_name(i),
                node_name(p->node), p->set, is_made ? "made" : "not made");
    if (is_made)
        model_set_link(&n.sets[p->set], p->node, value_of(p));
    n.lost_left--;
    p->pc = PC_NODE_SETTLE;
    model_emit(x, &n);
}

/* A put whose name is taken makes what is there durable. A rank that finds a parent taken leaves it
 * to who put it; whoever finishes goes on. */
static void step_node_link(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    struct set *set = &n.sets[p->set];
    bool exists = is_there(s, p, p->node), is_same = exists && set->val[p->node] == value_of(p);
    if (!exists && s->lost_left) {
        lose(x, s, i, true);
        lose(x, s, i, false);
    }
    explore_say(x, "%s: puts %s of set %u%s", model_name(i), node_name(p->node), p->set,
                is_same  ? ": EEXIST, the same bytes"
                : exists ? ": EEXIST, other bytes: gives up"
                         : "");
    if (exists && !is_same) {
        p->pc = PC_DONE;
    } else if (exists && !p->left && p->node >= INNER) {
        next_save(p, model_spec(i), false);
    } else {
        if (!exists)
            model_set_link(set, p->node, value_of(p));
        if (is_durable(&n, p))
            has_put(&n, p);
        else
            p->pc = PC_NODE_SYNC;
    }
    model_emit(x, &n);
}

static void step_node_sync(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    if (s->lost_left) {
        struct state failed = *s;
        explore_say(x, "%s: cannot sync %s of set %u: unknown", model_name(i), node_name(p->node),
                    p->set);
        failed.lost_left--;
        model_writer_unknown(&failed, i);
        model_emit(x, &failed);
    }
    explore_say(x, "%s: syncs %s of set %u: OK", model_name(i), node_name(p->node), p->set);
    n.sets[p->set].durable |= n.sets[p->set].there & (uint16_t)(1u << p->node);
    has_put(&n, p);
    model_emit(x, &n);
}

/* Nodes above the leaves have the same bytes whoever writes them, so that one which is there may be
 * ours: going on is never wrong, stopping might leave the set to nobody. */
static void step_node_settle(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    bool exists = is_there(s, p, p->node);
    bool is_ours = exists && s->sets[p->set].val[p->node] == value_of(p);
    if (s->lost_left) {
        struct state lost = n;
        explore_say(x, "%s: cannot read %s of set %u back: unknown", model_name(i),
                    node_name(p->node), p->set);
        lost.lost_left--;
        model_writer_unknown(&lost, i);
        model_emit(x, &lost);
    }
    explore_say(x, "%s: reads %s of set %u back: %s", model_name(i), node_name(p->node), p->set,
                is_ours  ? "there"
                : exists ? "other bytes: gives up"
                         : "not there: unknown");
    if (!is_ours && exists)
        p->pc = PC_DONE;
    else if (!is_ours)
        model_writer_unknown(&n, i);
    else if (flaw(FLAW_LOST_PARENT_STOPS) && p->node >= INNER && !p->left)
        next_save(p, model_spec(i), false);
    else if (is_durable(s, p) || flaw(FLAW_NODE_BEFORE_SYNC))
        has_put(&n, p);
    else
        p->pc = PC_NODE_SYNC;
    model_emit(x, &n);
}

static void step_climb(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    uint8_t sibling = sibling_of(p->node);
    bool looked = p->skip, found = looked ? p->skip == 2 : is_there(s, p, sibling);
    explore_say(x, "%s: %s of set %u is %s", model_name(i), node_name(sibling), p->set,
                found ? "there" : "absent: stops");
    p->skip = 0;
    if (found) {
        p->val |= s->sets[p->set].val[sibling];
        p->node = parent_of(p->node);
        p->pc = PC_NODE_LINK;
    } else {
        next_save(p, model_spec(i), false);
    }
    model_emit(x, &n);
}

static void step_object(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    const struct spec *spec = model_spec(i);
    struct set *set = &n.sets[p->set];
    bool is_others = is_there(s, p, spec->part) && set->val[spec->part] != spec->token;
    explore_say(x, "%s: writes object %u of set %u (attempt %u, save %u)%s", model_name(i),
                spec->part, p->set, s->attempt[p->set / SAVES], number_of(p->set),
                is_others ? ": EEXIST, gives up" : "");
    if (is_others) {
        p->pc = PC_DONE;
    } else {
        model_set_link(set, OBJECT + spec->part, spec->token);
        start_put(p, spec);
    }
    model_emit(x, &n);
}

static void step_look(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    if (sibling_of(p->node))
        p->skip = is_there(s, p, sibling_of(p->node)) ? 2 : 1;
    p->pc = PC_NODE_LINK;
    explore_say(x, "%s: looks for the sibling first: %s", model_name(i),
                p->skip == 2 ? "there" : "absent");
    model_emit(x, &n);
}

/* A part is missing. A rank waits on. */
static void stop_walk(struct proc *p, const struct spec *spec)
{
    p->node = p->val = 0;
    p->pc = spec->kind == RANK ? PC_WAIT : PC_DONE;
}

/* One look of the walk down from the root. `node` is where it is; `val` what it has found so far. A
 * root that is there is put once more, which makes it durable. */
static void step_walk(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    uint8_t node = p->node;
    bool found = is_there(s, p, node);
    explore_say(x, "%s: finishes set %u: %s is %s", model_name(i), p->set, node_name(node),
                found ? "there" : "absent");
    if (found)
        p->val |= s->sets[p->set].val[node];
    if (node == ROOT && found && flaw(FLAW_ROOT_BEFORE_SYNC)) {
        model_change_begin(&n, p, OP_COMMIT);
    } else if (node == ROOT && found) {
        p->pc = PC_NODE_LINK;
    } else if (node == ROOT) {
        p->node = model_config->parts == 3 ? INNER : LEAF;
    } else if (node >= INNER && !found) {
        p->node = node == INNER ? LEAF : LEAF + 2;
    } else if (!found) {
        stop_walk(p, model_spec(i));
    } else if (node == LEAF || node == INNER) {
        p->node = node == LEAF ? LEAF + 1 : LONE;
    } else {
        p->node = parent_of(node);
        p->pc = PC_NODE_LINK;
    }
    model_emit(x, &n);
}

/* Reports that the set is committed; its entry is in a durable record. */
static void waited(struct state *s, struct proc *p)
{
    s->acked |= (uint8_t)(1u << p->set);
    if (p->held > s->acked_number)
        s->acked_number = p->held;
    p->pc = PC_DONE;
}

/* A waiter looks at the log; once, when it thinks that the set is stuck, it finishes it. */
static void step_wait(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    const struct rec *head = &s->log[s->head];
    bool is_over = head->attempt > s->attempt[p->set / SAVES] || model_is_closed(s, head, p->set);
    if (!head->entry[p->set] && !is_over) {
        if (!p->left) {
            walk(p);
            step_walk(x, &n, i);
        }
        return;
    }
    explore_say(x, "%s: waits: by record %u, set %u is %s", model_name(i), s->head, p->set,
                head->entry[p->set] ? "committed" : "over: ESTALE");
    p->held = s->head;
    if (!head->entry[p->set])
        p->pc = PC_DONE;
    else if (head->is == REC_DURABLE || flaw(FLAW_WAIT_BEFORE_SYNC))
        waited(&n, p);
    else
        p->pc = PC_WAIT_FIX;
    model_emit(x, &n);
}

void model_rank_step(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    switch ((enum pc)p->pc) {
    case PC_START:
        explore_say(x, "%s: starts", model_name(i));
        model_change_begin(&n, p, OP_JOIN);
        model_change_step(x, &n, i);
        break;
    case PC_OBJECT:
        step_object(x, s, i);
        break;
    case PC_LOOK:
        step_look(x, s, i);
        break;
    case PC_CLIMB:
        step_climb(x, s, i);
        break;
    case PC_WAIT:
        step_wait(x, s, i);
        break;
    case PC_WAIT_FIX:
        explore_say(x, "%s: makes record %u durable: committed", model_name(i), p->held);
        model_log_sync(&n, p->held);
        waited(&n, p);
        model_emit(x, &n);
        break;
    default:
        model_finisher_step(x, s, i);
    }
}

static void step_choose(struct explore *x, const struct state *s, unsigned i)
{
    uint8_t slot = model_slot(s, s->log[s->head].attempt);
    for (uint8_t save = 0; slot < SLOTS && save < model_config->saves; save++) {
        struct state n = *s;
        struct proc *p = &n.procs[i];
        if (!s->sets[slot * SAVES + save].there || !s->attempt[slot])
            continue;
        p->set = (uint8_t)(slot * SAVES + save);
        walk(p);
        step_walk(x, &n, i);
    }
}

void model_finisher_step(struct explore *x, const struct state *s, unsigned i)
{
    switch ((enum pc)s->procs[i].pc) {
    case PC_START:
        step_choose(x, s, i);
        break;
    case PC_WALK:
        step_walk(x, s, i);
        break;
    case PC_NODE_LINK:
        step_node_link(x, s, i);
        break;
    case PC_NODE_SYNC:
        step_node_sync(x, s, i);
        break;
    case PC_NODE_SETTLE:
        step_node_settle(x, s, i);
        break;
    default:
        assert(0);
    }
}
