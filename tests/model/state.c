/* state.c - the shared state of the model: records and nodes that are made by put-if-absent,
 * visible when linked and durable when their directory was synced; what a loss of power leaves of
 * them; and the steps that belong to nobody.
 */
#include <assert.h>
#include <string.h>

#include "model.h"

const struct config *model_config;
uint32_t model_flaws;
struct spec model_alone;

/* Where the steps of a run alone go; NULL: to the explorer. */
static struct state *alone_next;

const struct spec *model_spec(unsigned i)
{
    return i == PROCS - 1 ? &model_alone : &model_config->procs[i];
}

const char *model_name(unsigned i)
{
    static const char *const names[] = {"", "finisher", "retirer", "gc", "reader"};
    static char text[4][16];
    static unsigned turn;
    const struct spec *spec = model_spec(i);
    char *out = text[turn++ % 4];
    if (spec->kind == RANK)
        snprintf(out, sizeof text[0], "rank %c%u", '@' + spec->token, spec->part);
    else
        snprintf(out, sizeof text[0], "%s/%u", names[spec->kind], i);
    return out;
}

uint8_t model_slot(const struct state *s, uint8_t attempt)
{
    for (uint8_t slot = 0; slot < SLOTS; slot++)
        if (s->attempt[slot] == attempt)
            return slot;
    return SLOTS;
}

/* Whether a sync makes others durable, too, nobody relies on. */
void model_log_sync(struct state *s, uint8_t number)
{
    s->log[number].is = REC_DURABLE;
}

static void open_slot(struct state *s, uint8_t attempt, uint8_t token)
{
    uint8_t slot = model_slot(s, attempt);
    if (slot == SLOTS)
        slot = model_slot(s, 0);
    assert(slot < SLOTS && "more attempts than the model has room for");
    s->attempt[slot] = attempt;
    s->owner[slot] = token;
}

void model_log_link(struct explore *x, struct state *s, uint8_t number, const struct rec *rec)
{
    assert(number < RECORDS && "more records than the model has room for");
    s->log[number] = *rec;
    s->log[number].is = model_config->power ? REC_LINKED : REC_DURABLE;
    if (number > s->head)
        s->head = number;
    if (rec->attempt == number)
        open_slot(s, number, rec->token);
    model_check_linked(x, s, number);
}

void model_set_link(struct set *set, unsigned element, uint8_t val)
{
    uint16_t bit = (uint16_t)(1u << element);
    set->there |= bit;
    set->undead &= (uint16_t)~bit;
    set->val[element] = val;
    if (!model_config->power || element < LEAF)
        set->durable |= bit;
}

void model_set_delete(struct set *set, uint16_t elements)
{
    uint16_t gone = set->there & elements;
    if (model_config->power)
        set->undead |= gone & set->durable;
    set->there &= (uint16_t)~gone;
    set->durable &= (uint16_t)~gone;
}

uint16_t model_set_needed(void)
{
    return (uint16_t)(1u << ROOT | ((1u << model_config->parts) - 1));
}

static bool has(const struct set *set, uint16_t elements)
{
    return (set->there & elements) == elements;
}

bool model_set_is_complete(const struct set *set)
{
    bool two = has(set, 3u << LEAF), third = has(set, 4u << LEAF) || has(set, 1u << LONE);
    if (model_config->parts == 3)
        two = (two || has(set, 1u << INNER)) && third;
    return two || has(set, 1u << ROOT);
}

/* The contents of records that nobody will look at again, and of deleted elements, are cleared, so
 * that histories that differ only in them become one state. */
static void normalise(struct state *s)
{
    unsigned durable = s->head;
    while (s->log[durable].is != REC_DURABLE)
        durable--;
    uint32_t used = 1u << s->head | 1u << durable; /* the head after a loss of power */
    for (unsigned i = 0; i < PROCS; i++) {
        struct proc *p = &s->procs[i];
        if (p->pc == PC_DONE)
            *p = (struct proc){.pc = PC_DONE};
        if (p->pc >= PC_FIX && p->pc <= PC_SETTLE)
            used |= 15u << p->seen; /* what it decided on, and what it puts */
        else
            p->seen = 0;
        used |= 1u << p->held;
    }
    for (unsigned number = 1; number < s->head; number++)
        if (s->log[number].is == REC_DURABLE && !(used >> number & 1))
            s->log[number] = (struct rec){.is = REC_DURABLE};
    for (unsigned i = 0; i < SETS; i++)
        for (unsigned e = 0; e < ELEMENTS; e++)
            if (!((s->sets[i].there | s->sets[i].undead) >> e & 1))
                s->sets[i].val[e] = 0;
}

void model_emit(struct explore *x, struct state *s)
{
    if (alone_next) {
        if (alone_next->is_after_loss == UINT8_MAX)
            *alone_next = *s; /* the first step offered is the one taken */
        return;
    }
    normalise(s);
    explore_emit(x, s);
}

/* One step of the last process, nobody else moving; false: it has none. */
bool model_alone_step(struct explore *x, struct state *s)
{
    struct state next = {.is_after_loss = UINT8_MAX};
    const char *failed = x->failed;
    alone_next = &next;
    model_step(x, s, PROCS - 1);
    alone_next = NULL;
    x->failed = failed;
    if (next.is_after_loss == UINT8_MAX)
        return false;
    *s = next;
    return true;
}

/* The things that may or may not survive, one bit of `choice` each; returns how many there are. */
static unsigned survive(struct state *s, unsigned choice)
{
    unsigned bits = 0;
    for (unsigned number = 1; number <= s->head; number++)
        if (s->log[number].is == REC_LINKED && !(choice >> bits++ & 1))
            s->log[number] = (struct rec){0};
    for (unsigned i = 0; i < SETS; i++) {
        struct set *set = &s->sets[i];
        for (unsigned e = LEAF; e < ELEMENTS; e++)
            if (set->there & ~set->durable & 1u << e && !(choice >> bits++ & 1))
                set->there &= (uint16_t) ~(1u << e);
        static const uint16_t groups[] = {OBJECTS, LEAVES, TOPS};
        for (unsigned g = 0; g < 3; g++)
            if (set->undead & groups[g] && choice >> bits++ & 1)
                set->there |= set->undead & groups[g];
        set->undead = 0;
        set->durable = set->there;
    }
    return bits;
}

static void power_loss(struct explore *x, const struct state *s)
{
    struct state probe = *s;
    unsigned bits = survive(&probe, 0);
    assert(bits <= LOST_CHOICES_MAX && "more can be lost than is tried");
    for (unsigned choice = 0; choice < 1u << bits; choice++) {
        struct state n = *s;
        survive(&n, choice);
        explore_say(x, "POWER LOSS: of %u undecided names, choice %#x survives", bits, choice);
        while (n.head && !n.log[n.head].is)
            n.head--;
        for (uint8_t number = 1; number <= n.head; number++)
            if (n.log[number].is)
                model_log_sync(&n, number);
        for (unsigned i = 0; i < PROCS - 1; i++)
            if (!model_spec(i)->after_loss)
                n.procs[i].pc = PC_DONE;
        n.is_after_loss = 1;
        n.flight_number = n.lease = 0;
        n.flight = (struct rec){0};
        for (unsigned i = 0; i < SETS; i++) {
            if (status_of(&n.log[n.head], i) == ENTRY_LIVE)
                n.retired &= (uint8_t) ~(1u << i);
            if (!model_is_closed(&n, &n.log[n.head], i))
                n.given_up &= (uint8_t) ~(1u << i);
        }
        model_emit(x, &n);
    }
}

static void prepare(struct state *s)
{
    uint8_t root = model_config->parts == 3 ? 0x15 : 0x05;
    s->head = 2;
    s->log[1].is = REC_DURABLE;
    s->log[2] = (struct rec){.is = REC_DURABLE, .attempt = 1, .token = 1, .past = 1};
    s->log[2].entry[0] = ENTRY_LIVE | root;
    s->attempt[0] = s->owner[0] = 1;
    for (unsigned part = 0; part < model_config->parts; part++) {
        model_set_link(&s->sets[0], OBJECT + part, 1);
        model_set_link(&s->sets[0], LEAF + part, (uint8_t)(1u << 2 * part));
    }
    if (model_config->parts == 3) {
        model_set_link(&s->sets[0], INNER, 0x05);
        model_set_link(&s->sets[0], LONE, 0x10);
    }
    model_set_link(&s->sets[0], ROOT, root);
    s->sets[0].durable = s->sets[0].there;
    s->acked_number = 2;
    s->acked = 1;
}

void model_start(struct state *s)
{
    memset(s, 0, sizeof *s);
    s->log[0].is = REC_DURABLE;
    s->lost_left = model_config->lost;
    s->procs[PROCS - 1].pc = PC_DONE;
    for (unsigned i = 0; i < PROCS - 1; i++) {
        const struct spec *spec = model_spec(i);
        s->procs[i].left = spec->passes;
        if (spec->kind == RANK && !spec->token)
            s->procs[i].pc = PC_DONE; /* a place that the configuration leaves empty */
    }
    if (model_config->prepared)
        prepare(s);
    normalise(s);
}

void model_step(struct explore *x, const struct state *s, unsigned i)
{
    if (s->procs[i].pc >= PC_READ && s->procs[i].pc <= PC_SETTLE) {
        model_change_step(x, s, i);
        return;
    }
    switch (model_spec(i)->kind) {
    case RANK:
        model_rank_step(x, s, i);
        break;
    case FINISHER:
        model_finisher_step(x, s, i);
        break;
    case RETIRER:
        model_retirer_step(x, s, i);
        break;
    case GC:
        model_gc_step(x, s, i);
        break;
    case READER:
        model_reader_step(x, s, i);
        break;
    }
}

void model_expand(struct explore *x, const void *state)
{
    const struct state *s = state;
    for (unsigned i = 0; i < PROCS - 1; i++)
        if (s->procs[i].pc != PC_DONE && model_spec(i)->after_loss <= s->is_after_loss)
            model_step(x, s, i);
    if (s->flight_number) {
        struct state n = *s;
        explore_say(x, "a put of record %u that was thought lost arrives%s", s->flight_number,
                    s->log[s->flight_number].is ? ": too late" : "");
        n.flight_number = 0;
        n.flight = (struct rec){0};
        if (!s->log[s->flight_number].is)
            model_log_link(x, &n, s->flight_number, &s->flight);
        model_emit(x, &n);
    }
    if (model_config->power && !s->is_after_loss)
        power_loss(x, s);
}
