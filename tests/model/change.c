/* change.c - one change of the ledger (change_once() of ledger.c, append and settle of log.c): read
 * the head, decide; make the head durable before the next number is put behind it, and before the
 * answer that there is nothing to do; settle an answer that was lost by reading back.
 */
#include <assert.h>

#include "model.h"

static const char *const op_names[] = {"", "join", "commit", "retire", "forget", "give up"};
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
    return head->attempt == s->attempt[set / SAVES] && number_of(set) <= head->floor;
}

static enum code decide_commit(const struct state *s, const struct proc *p, const struct rec *head)
{
    uint8_t entry = head->entry[p->set];
    if (entry)
        return (entry & ~ENTRY_STATUS) == p->val ? CODE_OK : CODE_EXISTS;
    if (head->attempt != s->attempt[p->set / SAVES] && !flaw(FLAW_NO_FENCE))
        return CODE_STALE;
    return model_is_closed(s, head, p->set) && !flaw(FLAW_FLOOR_IGNORED) ? CODE_STALE : CODE_APPEND;
}

/* The retired entries among those that p has deleted. */
static uint8_t to_forget(const struct proc *p, const struct rec *head)
{
    uint8_t sets = 0;
    for (unsigned set = 0; set < SETS; set++)
        if (p->deleted >> set & 1 && status_of(head, set) == ENTRY_RETIRED)
            sets |= (uint8_t)(1u << set);
    return sets;
}

static enum code decide(const struct state *s, unsigned i)
{
    const struct proc *p = &s->procs[i];
    const struct rec *head = &s->log[p->seen];
    uint8_t token = model_spec(i)->token;
    switch ((enum op)p->op) {
    case OP_JOIN:
        if (head->token == token)
            return CODE_OK;
        return head->past >> token & 1 && !flaw(FLAW_PAST_REJOINS) ? CODE_STALE : CODE_APPEND;
    case OP_COMMIT:
        return decide_commit(s, p, head);
    case OP_RETIRE:
        return status_of(head, p->set) == ENTRY_LIVE ? CODE_APPEND : CODE_OK;
    case OP_FORGET:
        return to_forget(p, head) ? CODE_APPEND : CODE_OK;
    case OP_GIVE_UP:
        if (head->attempt != s->log[p->held].attempt || head->floor >= p->floor)
            return CODE_OK;
        return CODE_APPEND;
    default:
        assert(0);
        return CODE_OK;
    }
}

static void forget(const struct state *s, const struct proc *p, struct rec *rec)
{
    uint8_t sets = to_forget(p, rec);
    for (unsigned set = 0; set < SETS; set++) {
        if (!(sets >> set & 1))
            continue;
        rec->entry[set] = 0;
        if (rec->attempt == s->attempt[set / SAVES] && number_of(set) > rec->floor &&
            !flaw(FLAW_FORGET_KEEPS_FLOOR))
            rec->floor = number_of(set);
    }
}

static uint8_t nonce_of(const struct state *s, unsigned i)
{
    return (uint8_t)(i + 1 + 16u * s->procs[i].turn);
}

static struct rec build(const struct state *s, unsigned i, uint8_t number)
{
    const struct proc *p = &s->procs[i];
    struct rec rec = s->log[p->seen];
    rec.nonce = nonce_of(s, i);
    switch ((enum op)p->op) {
    case OP_JOIN:
        rec.past |= 1u << rec.token;
        rec.token = model_spec(i)->token;
        rec.attempt = number;
        if (!flaw(FLAW_JOIN_KEEPS_FLOOR))
            rec.floor = 0;
        break;
    case OP_COMMIT:
        rec.entry[p->set] = ENTRY_LIVE | p->val;
        break;
    case OP_RETIRE:
        rec.entry[p->set] = ENTRY_RETIRED | (rec.entry[p->set] & ~ENTRY_STATUS);
        break;
    case OP_FORGET:
        forget(s, p, &rec);
        break;
    default:
        rec.floor = p->floor;
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
        model_gc_answered(x, s, p, op);
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

/* Does the decision wait until the head is durable? A refusal promises nothing. */
static bool syncs(const struct state *s, unsigned i)
{
    const struct proc *p = &s->procs[i];
    enum code code = decide(s, i);
    if (s->log[p->seen].is == REC_DURABLE)
        return false;
    if (code == CODE_APPEND)
        return !flaw(FLAW_APPEND_BEFORE_SYNC);
    return code == CODE_OK &&
           !flaw(p->op == OP_JOIN ? FLAW_JOIN_BEFORE_SYNC : FLAW_ANSWER_BEFORE_SYNC);
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
    bool keeps = flaw(FLAW_KEEPS_DECISION) && p->skip < 2;
    explore_say(x, "%s: record %u is another's, %s", model_name(i), number,
                keeps ? "tries the next" : "reads again");
    if (keeps)
        p->skip++;
    else
        p->pc = PC_READ;
    model_emit(x, n);
}

/* Nobody can say whether the record was put, or whether it is durable. */
static void unknown(struct state *s, unsigned i)
{
    struct proc *p = &s->procs[i];
    p->turn++;
    if (model_spec(i)->kind == GC)
        model_gc_end_pass(p);
    else if (p->op == OP_COMMIT)
        model_writer_unknown(s, i);
    else
        p->pc = PC_READ;
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
    if (s->lost_left) {
        struct state failed = *s;
        explore_say(x, "%s: cannot sync record %u: unknown", model_name(i), number);
        failed.lost_left--;
        unknown(&failed, i);
        model_emit(x, &failed);
    }
    model_log_sync(&n, number);
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
    const struct rec *there = &s->log[number];
    bool is_own = there->is && (there->nonce == nonce_of(s, i) || flaw(FLAW_SETTLE_EXISTENCE));
    if (s->lost_left) {
        struct state lost = n;
        explore_say(x, "%s: cannot read record %u back: unknown", model_name(i), number);
        lost.lost_left--;
        unknown(&lost, i);
        model_emit(x, &lost);
    }
    explore_say(x, "%s: reads record %u back: %s", model_name(i), number,
                is_own      ? "its own"
                : there->is ? "another's, tries again"
                            : "not there: unknown");
    if (!is_own && there->is)
        p->pc = PC_READ;
    else if (!is_own)
        unknown(&n, i);
    else if (there->is == REC_LINKED && !flaw(FLAW_SETTLE_BEFORE_SYNC))
        p->pc = PC_SYNC;
    else
        answer(x, &n, i, CODE_OK, number);
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
        model_log_sync(&n, s->procs[i].seen);
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
