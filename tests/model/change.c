/* change.c - one change of the ledger: read the head, make it durable, decide, put the next number,
 * and settle an answer that was lost by reading back.
 */
#include <assert.h>

#include "model.h"

static const char *const op_names[] = {"", "join", "commit", "retire", "tombstone", "forget"};
static const char *const code_names[] = {"OK", "ESTALE", "EEXIST", ""};

void model_change_begin(struct state *s, struct proc *p, enum op op)
{
    p->op = op;
    p->pc = PC_READ;
    p->skip = 0;
    p->since = s->acked_number;
}

bool model_is_closed(const struct state *s, const struct rec *head, unsigned set)
{
    return head->attempt == s->attempt[set / SAVES] && set % SAVES < head->floor;
}

bool model_may_forget(const struct state *s, const struct rec *head, unsigned set)
{
    uint32_t early = head->entry[set] == ENTRY_RETIRED ? FLAW_TOMB_DROPPED : FLAW_FORGET_CURRENT;
    return head->attempt != s->attempt[set / SAVES] || flaw(early | VARIANT_FLOOR);
}

static enum code decide_commit(const struct state *s, const struct proc *p, const struct rec *head)
{
    uint8_t entry = head->entry[p->set];
    if (flaw(FLAW_TOMB_IGNORED) && entry == ENTRY_RETIRED)
        entry = 0;
    if (entry == (ENTRY_LIVE | p->val))
        return CODE_OK;
    if (entry)
        return (entry & ENTRY_STATUS) == ENTRY_LIVE ? CODE_EXISTS : CODE_STALE;
    if (model_is_closed(s, head, p->set))
        return CODE_STALE;
    if (head->attempt != s->attempt[p->set / SAVES] && !flaw(FLAW_NO_FENCE))
        return CODE_STALE;
    return CODE_APPEND;
}

static enum code decide(const struct state *s, unsigned i)
{
    const struct proc *p = &s->procs[i];
    const struct rec *head = &s->log[p->seen];
    uint8_t status = head->entry[p->set] & ENTRY_STATUS;
    uint8_t attempt = s->attempt[p->set / SAVES], token = model_spec(i)->token;
    switch ((enum op)p->op) {
    case OP_JOIN:
        if (head->token == token)
            return CODE_OK;
        return head->past >> token & 1 && !flaw(FLAW_PAST_REJOINS) ? CODE_STALE : CODE_APPEND;
    case OP_COMMIT:
        return decide_commit(s, p, head);
    case OP_RETIRE:
        return status == ENTRY_LIVE ? CODE_APPEND : CODE_OK;
    case OP_TOMB:
        if (flaw(FLAW_GC_TOMB_BLIND))
            return CODE_APPEND;
        if (status == ENTRY_LIVE)
            return CODE_EXISTS;
        if (status || head->attempt != attempt || model_is_closed(s, head, p->set))
            return CODE_OK;
        return CODE_APPEND;
    case OP_FORGET:
        if (status != ENTRY_RETIRED || !model_may_forget(s, head, p->set))
            return CODE_OK;
        return CODE_APPEND;
    default:
        assert(0);
        return CODE_OK;
    }
}

static struct rec build(const struct state *s, unsigned i, uint8_t number)
{
    const struct proc *p = &s->procs[i];
    struct rec rec = s->log[p->seen];
    rec.nonce = (uint8_t)(i + 1);
    switch ((enum op)p->op) {
    case OP_JOIN:
        rec.past |= 1u << rec.token;
        rec.token = model_spec(i)->token;
        rec.attempt = number;
        rec.floor = 0;
        break;
    case OP_COMMIT:
        rec.entry[p->set] = ENTRY_LIVE | p->val;
        break;
    case OP_RETIRE:
        rec.entry[p->set] = ENTRY_RETIRED | (rec.entry[p->set] & ~ENTRY_STATUS);
        break;
    case OP_TOMB:
        rec.entry[p->set] = ENTRY_RETIRED;
        break;
    default:
        rec.entry[p->set] = 0;
        if (flaw(VARIANT_FLOOR) && rec.attempt == s->attempt[p->set / SAVES] &&
            rec.floor <= p->set % SAVES)
            rec.floor = p->set % SAVES + 1;
    }
    return rec;
}

/* The answer rests on record `base`, which is durable unless a flaw says otherwise. */
static void answer(struct explore *x, struct state *s, unsigned i, enum code code, uint8_t base)
{
    struct proc *p = &s->procs[i];
    enum op op = p->op;
    if (base < p->since)
        explore_fail(x, "LINEARIZABLE: an answer rests on less than was acknowledged before");
    /* An attempt's number is no promise in itself; what comes of a number that is used twice shows
     * in what is committed under it. */
    if (code == CODE_OK && op != OP_JOIN && base > s->acked_number)
        s->acked_number = base;
    if (code == CODE_OK && op == OP_COMMIT)
        s->acked |= 1u << p->set;
    p->op = OP_NONE;
    p->since = p->skip = 0;
    if (model_spec(i)->kind == GC)
        model_gc_answered(s, p, op, code);
    else if (model_spec(i)->kind == RETIRER)
        p->pc = PC_DONE;
    else
        model_writer_answered(s, i, op, code, base);
    p->seen = 0;
}

static void step_decided(struct explore *x, struct state *n, unsigned i, const char *how)
{
    struct proc *p = &n->procs[i];
    enum code code = decide(n, i);
    explore_say(x, "%s: %s(set %u): head is %u%s%s%s", model_name(i), op_names[p->op], p->set,
                p->seen, how, code == CODE_APPEND ? ", puts the next" : ": answers ",
                code_names[code]);
    if (code == CODE_APPEND)
        p->pc = PC_LINK;
    else
        answer(x, n, i, code, p->seen);
    model_emit(x, n);
}

/* Does the decision wait until the head is durable? */
static bool syncs(const struct state *s, unsigned i)
{
    if (model_log_is_durable(s))
        return false;
    if (decide(s, i) == CODE_APPEND)
        return !flaw(FLAW_APPEND_BEFORE_SYNC);
    return !flaw(s->procs[i].op == OP_JOIN ? FLAW_JOIN_BEFORE_SYNC : FLAW_ANSWER_BEFORE_SYNC);
}

static void step_read(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    p->seen = n.head;
    if (!syncs(&n, i)) {
        step_decided(x, &n, i, "");
        return;
    }
    explore_say(x, "%s: %s(set %u): head is %u, not durable", model_name(i), op_names[p->op],
                p->set, p->seen);
    p->pc = PC_FIX;
    model_emit(x, &n);
}

/* A put whose answer is lost: it happened, did not, or is still on its way. */
static void lose(struct explore *x, const struct state *s, unsigned i, uint8_t number,
                 const struct rec *rec)
{
    static const char *const fates[] = {"(made)", "(not made)", "(still under way)"};
    for (unsigned fate = 0; fate < 3; fate++) {
        struct state n = *s;
        if (fate == 2 && (!model_config->flight || s->flight_number))
            continue;
        n.lost_left--;
        n.procs[i].pc = PC_SETTLE;
        explore_say(x, "%s: %s(set %u): puts record %u, the answer is LOST %s", model_name(i),
                    op_names[s->procs[i].op], s->procs[i].set, number, fates[fate]);
        if (fate == 0)
            model_log_link(x, &n, number, rec);
        if (fate == 2) {
            n.flight = *rec;
            n.flight_number = number;
        }
        model_emit(x, &n);
    }
}

static void step_exists(struct explore *x, struct state *n, unsigned i, uint8_t number)
{
    struct proc *p = &n->procs[i];
    if (n->log[number].nonce == i + 1) {
        explore_say(x, "%s: finds record %u to be its own", model_name(i), number);
        p->pc = PC_SYNC; /* an earlier put of the same change arrived after all */
    } else if (flaw(FLAW_KEEPS_DECISION) && p->skip < 2) {
        explore_say(x, "%s: record %u is another's, tries the next", model_name(i), number);
        p->skip++;
    } else {
        explore_say(x, "%s: record %u is another's, reads again", model_name(i), number);
        p->pc = PC_READ;
    }
    model_emit(x, n);
}

static void step_link(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    uint8_t number = (uint8_t)(p->seen + 1 + p->skip);
    if (s->log[number].is && !flaw(FLAW_OVERWRITE)) {
        step_exists(x, &n, i, number);
        return;
    }
    struct rec rec = build(s, i, number);
    if (s->lost_left)
        lose(x, s, i, number, &rec);
    explore_say(x, "%s: %s(set %u): puts record %u%s", model_name(i), op_names[p->op], p->set,
                number, model_config->power ? " (visible)" : ": OK");
    model_log_link(x, &n, number, &rec);
    if (model_config->power)
        p->pc = PC_SYNC;
    else
        answer(x, &n, i, CODE_OK, number);
    model_emit(x, &n);
}

static void step_sync(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    uint8_t number = (uint8_t)(p->seen + 1 + p->skip);
    model_log_sync(&n);
    if (s->lost_left) {
        struct state lost = n;
        explore_say(x, "%s: %s(set %u): syncs record %u, the answer is LOST", model_name(i),
                    op_names[p->op], p->set, number);
        lost.lost_left--;
        lost.procs[i].pc = PC_SETTLE;
        model_emit(x, &lost);
    }
    explore_say(x, "%s: %s(set %u): syncs record %u: OK", model_name(i), op_names[p->op], p->set,
                number);
    answer(x, &n, i, CODE_OK, number);
    model_emit(x, &n);
}

static void step_settle(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    struct proc *p = &n.procs[i];
    uint8_t number = (uint8_t)(p->seen + 1 + p->skip);
    bool is_own =
        s->log[number].is && (s->log[number].nonce == i + 1 || flaw(FLAW_SETTLE_EXISTENCE));
    if (flaw(FLAW_TOMB_UNSETTLED) && p->op == OP_TOMB)
        is_own = true;
    if (s->lost_left) {
        struct state lost = n;
        explore_say(x, "%s: cannot read record %u back: unknown, tries again", model_name(i),
                    number);
        lost.lost_left--;
        lost.procs[i].pc = PC_READ;
        model_emit(x, &lost);
    }
    explore_say(x, "%s: reads record %u back: %s", model_name(i), number,
                is_own ? "its own" : "not its own, tries again");
    if (!is_own)
        p->pc = PC_READ;
    else if (!model_log_is_durable(s) && !flaw(FLAW_SETTLE_BEFORE_SYNC))
        p->pc = PC_SYNC;
    else
        answer(x, &n, i, CODE_OK, s->log[number].is ? number : p->seen);
    model_emit(x, &n);
}

void model_change_step(struct explore *x, const struct state *s, unsigned i)
{
    struct state n = *s;
    switch ((enum pc)s->procs[i].pc) {
    case PC_READ:
        step_read(x, s, i);
        break;
    case PC_FIX:
        model_log_sync(&n);
        step_decided(x, &n, i, ", made durable");
        break;
    case PC_LINK:
        step_link(x, s, i);
        break;
    case PC_SYNC:
        step_sync(x, s, i);
        break;
    default:
        step_settle(x, s, i);
    }
}
