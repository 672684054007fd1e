/* writers.c - ranks, which join, write their object, publish their leaf and climb; and finishers,
 * which walk down a set and complete it.
 */
#include <assert.h>

#include "model.h"

static uint8_t parent_of(uint8_t node)
{
    return model_config->parts == 3 && node < LEAF + 2 ? INNER : ROOT;
}

static uint8_t sibling_of(uint8_t node)
{
    static const uint8_t siblings[ELEMENTS] = {
        [LEAF] = LEAF + 1, [LEAF + 1] = LEAF, [LEAF + 2] = INNER, [INNER] = LEAF + 2};
    return siblings[node];
}

static const char *node_name(uint8_t node)
{
    static const char *const names[ELEMENTS] = {"object 0", "object 1", "object 2", "leaf 0",
                                                "leaf 1",   "leaf 2",   "inner",    "root"};
    return names[node];
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

/* The node that p meant to put is there and durable, and p goes on with it. */
static void has_put(struct state *s, struct proc *p)
{
    if (p->node == ROOT)
        model_change_begin(s, p, OP_COMMIT);
    else
        p->pc = p->left ? PC_WALK : PC_CLIMB;
    if (p->left && p->node == INNER)
        p->node = LEAF + 2;
}

static void lose(struct explore *x, const struct state *s, unsigned i, bool is_made)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    explore_say(x, "%s: puts %s of set %u, the answer is LOST (%s)", model_name(i),
                node_name(p->node), p->set, is_made ? "made" : "not made");
    if (is_made)
        model_set_link(&n.sets[p->set], p->node, p->val);
    n.lost_left--;
    p->pc = PC_NODE_SETTLE;
    model_emit(x, &n);
}

static void step_node_link(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    struct set *set = &n.sets[p->set];
    bool exists = is_there(s, p, p->node), is_same = exists && set->val[p->node] == p->val;
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
        next_save(p, model_spec(i), false); /* whoever put it goes on */
    } else {
        if (!exists)
            model_set_link(set, p->node, p->val);
        if (model_set_is_durable(set))
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
    model_set_sync(&n.sets[p->set]);
    if (s->lost_left) {
        struct state lost = n;
        explore_say(x, "%s: syncs %s of set %u, the answer is LOST", model_name(i),
                    node_name(p->node), p->set);
        lost.lost_left--;
        lost.procs[i].pc = PC_NODE_SETTLE;
        model_emit(x, &lost);
    }
    explore_say(x, "%s: syncs %s of set %u: OK", model_name(i), node_name(p->node), p->set);
    has_put(&n, p);
    model_emit(x, &n);
}

/* Nodes above the leaves have the same bytes whoever writes them, so that one which is there may be
 * ours: going on is never wrong, stopping might leave the set to nobody. */
static void step_node_settle(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    const struct set *set = &s->sets[p->set];
    bool is_ours = is_there(s, p, p->node) && set->val[p->node] == p->val;
    explore_say(x, "%s: reads %s of set %u back: %s", model_name(i), node_name(p->node), p->set,
                is_ours ? "there" : "not there, puts it again");
    if (!is_ours)
        p->pc = PC_NODE_LINK;
    else if (flaw(FLAW_LOST_PARENT_STOPS) && p->node >= INNER && !p->left)
        next_save(p, model_spec(i), false);
    else if (model_set_is_durable(set))
        has_put(&n, p);
    else
        p->pc = PC_NODE_SYNC;
    model_emit(x, &n);
}

/* Puts p->node next, once what it names is durable. */
static void put_above(const struct state *s, struct proc *p)
{
    p->pc = model_set_is_durable(&s->sets[p->set]) || flaw(FLAW_PARENT_BEFORE_SYNC) ? PC_NODE_LINK
                                                                                    : PC_NODE_FIX;
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
        put_above(s, p);
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
                spec->part, p->set, s->attempt[p->set / SAVES], p->set % SAVES,
                is_others ? ": EEXIST, gives up" : "");
    if (is_others) {
        p->pc = PC_DONE;
    } else {
        model_set_link(set, OBJECT + spec->part, spec->token);
        p->node = LEAF + spec->part;
        p->val = (uint8_t)(spec->token << 2 * spec->part);
        p->pc = flaw(FLAW_LOOK_FIRST) ? PC_LOOK : PC_NODE_LINK;
    }
    model_emit(x, &n);
}

static void step_look(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    p->skip = is_there(s, p, sibling_of(p->node)) ? 2 : 1;
    p->pc = PC_NODE_LINK;
    explore_say(x, "%s: looks for the sibling first: %s", model_name(i),
                p->skip == 2 ? "there" : "absent");
    model_emit(x, &n);
}

/* One look of the walk down from the root. `node` is where it is; `val` what it has found so far.
 */
static void step_walk(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    const struct set *set = &s->sets[p->set];
    uint8_t node = p->node;
    bool found = is_there(s, p, node), has_three = model_config->parts == 3;
    if (node >= INNER && flaw(VARIANT_WALK_ALL))
        found = false;
    explore_say(x, "%s: finishes set %u: %s is %s", model_name(i), p->set, node_name(node),
                found ? "there" : "absent");
    if (found)
        p->val |= set->val[node];
    if (node == ROOT && found) {
        if (model_set_is_durable(set) || flaw(FLAW_ROOT_BEFORE_SYNC))
            model_change_begin(&n, p, OP_COMMIT);
        else
            p->pc = PC_WALK_FIX;
    } else if (node == ROOT) {
        p->node = has_three ? INNER : LEAF;
    } else if (node == INNER) {
        p->node = found ? LEAF + 2 : LEAF;
    } else if (!found) {
        p->pc = PC_DONE;
    } else if (node == LEAF) {
        p->node = LEAF + 1;
    } else {
        p->node = parent_of(node);
        put_above(s, p);
    }
    model_emit(x, &n);
}

static void walk(struct proc *p)
{
    p->pc = PC_WALK;
    p->node = ROOT;
    p->val = 0;
    p->left = 1; /* it finishes, and does so once */
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
        walk(p);
        step_walk(x, &n, i);
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
        p->set = slot * SAVES + save;
        walk(p);
        step_walk(x, &n, i);
    }
}

void model_finisher_step(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    switch ((enum pc)p->pc) {
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
    case PC_NODE_FIX:
    case PC_WALK_FIX:
        explore_say(x, "%s: makes the nodes of set %u durable", model_name(i), p->set);
        model_set_sync(&n.sets[p->set]);
        if (p->pc == PC_NODE_FIX)
            p->pc = PC_NODE_LINK;
        else
            model_change_begin(&n, p, OP_COMMIT);
        model_emit(x, &n);
        break;
    default:
        assert(0);
    }
}
