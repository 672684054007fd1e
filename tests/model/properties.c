/* properties.c - what must hold: of every record when it is put, of every state, and of states from
 * which one process goes on alone.
 */
#include <assert.h>

#include "model.h"

enum { ALONE_STEPS_MAX = 400 };

/* The digest of a root all of whose parts were written by `token`. */
static uint8_t root_of(uint8_t token)
{
    uint8_t root = 0;
    for (unsigned part = 0; part < model_config->parts; part++)
        root |= (uint8_t)(token << 2 * part);
    return root;
}

static void check_commit(struct explore *x, const struct state *s, uint8_t number, unsigned set)
{
    const struct rec *rec = &s->log[number], *before = &s->log[number - 1];
    if (before->attempt != s->attempt[set / SAVES])
        explore_fail(x, "FENCING: a commit of an attempt that is not the current one");
    if ((rec->entry[set] & ~ENTRY_STATUS) != root_of(s->owner[set / SAVES]))
        explore_fail(x, "NO MIXTURE: a root names a part that another incarnation wrote");
    if (s->retired >> set & 1)
        explore_fail(x, "NO LOST COMMIT: an entry is live again after it was retired");
}

/* Record `number` was just linked: compares it with the one before it. */
void model_check_linked(struct explore *x, struct state *s, uint8_t number)
{
    const struct rec *rec = &s->log[number], *before = &s->log[number - 1];
    if (rec->attempt != before->attempt && before->past >> rec->token & 1)
        explore_fail(x, "FENCING: a token that was superseded is current again");
    if (number < s->head)
        explore_fail(x, "LINEARIZABLE: a record was put below the head");
    for (unsigned set = 0; set < SETS; set++) {
        uint8_t was = status_of(before, set), is = status_of(rec, set);
        if (is == ENTRY_LIVE && was != ENTRY_LIVE)
            check_commit(x, s, number, set);
        if (was == ENTRY_LIVE && is == ENTRY_RETIRED)
            s->retired |= (uint8_t)(1u << set);
        if (was == ENTRY_LIVE && !is)
            explore_fail(x, "LINEARIZABLE: a record drops a live entry of the one before it");
        bool is_raised = rec->attempt == before->attempt && rec->floor > before->floor;
        if ((is_raised || was) && !is && model_is_closed(s, rec, set))
            s->given_up |= (uint8_t)(1u << set);
    }
}

static void check_live(struct explore *x, const struct state *s, unsigned set)
{
    const struct set *is = &s->sets[set];
    uint16_t needed = model_set_needed();
    uint8_t root = s->log[s->head].entry[set] & ~ENTRY_STATUS;
    if ((is->there & needed) != needed)
        explore_fail(x, "GC SAFE: a live entry lacks its root or an object");
    else if (is->val[ROOT] != root)
        explore_fail(x, "NO MIXTURE: the root that is there is not the one committed");
    for (unsigned part = 0; part < model_config->parts && (is->there & needed) == needed; part++)
        if (is->val[OBJECT + part] != (root >> 2 * part & 3))
            explore_fail(x, "NO MIXTURE: an object that is there is not the one committed");
}

/* A finisher running alone commits a set all of whose parts are published, unless it was given up.
 */
static void check_finish(struct explore *x, const struct state *s, unsigned set)
{
    const struct rec *head = &s->log[s->head];
    if (!s->attempt[set / SAVES] || head->attempt != s->attempt[set / SAVES] || head->entry[set] ||
        !model_set_is_complete(&s->sets[set]) || s->given_up >> set & 1)
        return;
    struct state n = *s;
    n.lost_left = 0;
    model_alone = (struct spec){.kind = FINISHER};
    n.procs[PROCS - 1] = (struct proc){.pc = PC_WALK, .node = ROOT, .set = (uint8_t)set, .left = 1};
    for (unsigned steps = 0; n.procs[PROCS - 1].pc != PC_DONE; steps++)
        if (steps == ALONE_STEPS_MAX || !model_alone_step(x, &n))
            break;
    if (status_of(&n.log[n.head], set) != ENTRY_LIVE)
        explore_fail(x, "NO STUCK SET: a finisher running alone does not commit it");
}

/* gc running alone, all others dead, leaves nothing that no live entry names. */
static void check_gc(struct explore *x, const struct state *s)
{
    struct state n = *s;
    n.lost_left = n.lease = 0;
    model_alone = (struct spec){.kind = GC};
    n.procs[PROCS - 1] = (struct proc){.left = 3};
    for (unsigned steps = 0; n.procs[PROCS - 1].pc != PC_DONE; steps++)
        if (steps == ALONE_STEPS_MAX || !model_alone_step(x, &n)) {
            explore_fail(x, "GC CLEAN: gc running alone does not end");
            return;
        }
    for (unsigned set = 0; set < SETS; set++) {
        bool is_live = status_of(&n.log[n.head], set) == ENTRY_LIVE;
        if (n.sets[set].there && !is_live)
            explore_fail(x, "GC CLEAN: gc running alone leaves debris");
        if (status_of(&n.log[n.head], set) == ENTRY_RETIRED)
            explore_fail(x, "GC CLEAN: gc running alone leaves a retired entry");
        if (is_live && status_of(&s->log[s->head], set) == ENTRY_LIVE)
            check_live(x, &n, set);
    }
}

void model_check(struct explore *x, const void *state)
{
    const struct state *s = state;
    const struct rec *head = &s->log[s->head];
    for (unsigned number = 1; number < s->head; number++)
        if (!s->log[number].is)
            explore_fail(x, "LINEARIZABLE: the log has a hole");
    if (s->head < s->acked_number)
        explore_fail(x, "NO LOST COMMIT: an acknowledged record is gone");
    for (unsigned set = 0; set < SETS; set++) {
        if (status_of(head, set) == ENTRY_LIVE)
            check_live(x, s, set);
        else if (s->acked >> set & 1 && !(s->retired >> set & 1))
            explore_fail(x, "NO LOST COMMIT: an acknowledged entry is gone, and was not retired");
        if (!x->failed)
            check_finish(x, s, set);
    }
    if (model_config->gc_check && !x->failed)
        check_gc(x, s);
}

void model_check_end(struct explore *x, const void *state)
{
    const struct state *s = state;
    bool wakes = model_config->wakes && !s->was_unknown;
    for (unsigned set = 0; set < SETS && wakes; set++)
        if (model_set_is_complete(&s->sets[set]) && !s->log[s->head].entry[set])
            explore_fail(x, "NO SLEEPING SET: all ranks have stopped, and nobody committed");
    check_gc(x, s);
}
