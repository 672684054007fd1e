/* deeds.c - see deeds.h. */
#include "deeds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

struct sim_deed *sim_deed_begin(struct sim_deeds *deeds, const char *who, enum sim_deed_kind kind,
                                const struct weir_save *save)
{
    CHECK(deeds->count < SIM_DEEDS_MAX);
    struct sim_deed *deed = &deeds->at[deeds->count++];
    *deed = (struct sim_deed){.kind = kind, .who = who, .from = sim_book_head(), .open = true};
    if (save)
        deed->save = *save;
    if (kind == SIM_COMMIT) {
        deed->complete = true;
        for (uint32_t i = 0; i < save->parts; i++)
            deed->complete &= sim_part_is_there(save, i);
    }
    return deed;
}

void sim_deed_end(struct sim_deed *deed, int code, bool open)
{
    deed->code = code;
    deed->open = open;
    deed->to = sim_book_head();
}

static bool is_entry(const struct weir_ledger_state *s, const struct weir_save *save)
{
    return weir_ledger_find_save(s, save);
}

static bool is_past(const struct weir_ledger_state *s, unsigned incarnation)
{
    uint8_t token[WEIR_TOKEN_BYTES];
    sim_token(token, incarnation);
    for (size_t i = 0; i < s->past_count; i++)
        if (!memcmp(s->past[i], token, sizeof token))
            return true;
    return false;
}

static bool is_open(const struct weir_ledger_state *s, const struct weir_save *save)
{
    return s->attempt == save->attempt && s->floor < save->number;
}

static bool comes_before(const struct weir_save *a, const struct weir_save *b)
{
    return a->attempt < b->attempt || (a->attempt == b->attempt && a->number < b->number);
}

static bool join_fits(const struct sim_deed *d, const struct weir_ledger_state *s)
{
    uint8_t token[WEIR_TOKEN_BYTES];
    sim_token(token, d->incarnation);
    if (d->code == -ESTALE)
        return is_past(s, d->incarnation);
    return s->attempt == d->attempt && !memcmp(s->token, token, sizeof token);
}

static bool retire_fits(const struct sim_deed *d, const struct weir_ledger_state *s)
{
    if (d->code == -ESTALE)
        return d->attempt && s->attempt != d->attempt;
    for (size_t i = 0; i < s->count; i++)
        if (!s->entries[i].retired_ns && comes_before(&s->entries[i].save, &d->save))
            return false;
    return true;
}

static bool view_fits(const struct sim_deed *d, const struct weir_ledger_state *s)
{
    const struct weir_ledger_entry *entry = weir_ledger_find(s, d->name);
    return d->code ? !entry : entry && weir_save_same(&entry->save, &d->save);
}

/* Does this state give that answer? */
static bool fits(const struct sim_deed *d, const struct weir_ledger_state *s)
{
    switch (d->kind) {
    case SIM_JOIN:
        return join_fits(d, s);
    case SIM_COMMIT:
        if (d->claims)
            return is_entry(s, &d->save);
        return !is_entry(s, &d->save) && !is_open(s, &d->save); /* -ESTALE */
    case SIM_RETIRE:
        return retire_fits(d, s);
    case SIM_VIEW:
        return view_fits(d, s);
    default:
        return s->record.number == d->attempt;
    }
}

/* Is there anything to explain? */
static bool tells(const struct sim_deed *d)
{
    if (d->open || (d->code && d->code != -ESTALE && d->code != -ENOENT))
        return false;
    if (d->kind == SIM_COMMIT)
        return d->claims || d->code == -ESTALE;
    return d->kind != SIM_VIEW || d->code != -ESTALE; /* that one only says: look again */
}

static void complain(const struct sim_deed *d, const char *why)
{
    static const char *const kinds[] = {"join", "commit", "retire", "view", "read"};
    fprintf(stderr, "%s, %s of '%s-%llu.%llu' (attempt %llu), between %llu and %llu: %s: %s\n",
            d->who, kinds[d->kind], d->save.name, (unsigned long long)d->save.attempt,
            (unsigned long long)d->save.number, (unsigned long long)d->attempt,
            (unsigned long long)d->from, (unsigned long long)d->to,
            d->code ? strerrorname_np(-d->code) : "ok", why);
    exit(1);
}

/* All parts were there and the save was open all the time: whoever tried to finish it has to say
 * that it is committed. */
static void check_stuck(const struct sim_deed *d, const struct sim_book *book)
{
    bool tried = d->code == -EAGAIN || d->code == -ETIMEDOUT;
    if (d->kind != SIM_COMMIT || d->open || !tried || !d->complete)
        return;
    for (uint64_t i = d->from; i <= d->to; i++)
        if (!is_open(&book->states[i], &d->save))
            return;
    complain(d, "the set is stuck");
}

void sim_deeds_check(const struct sim_deeds *deeds, const struct sim_book *book)
{
    for (unsigned n = 0; n < deeds->count; n++) {
        const struct sim_deed *d = &deeds->at[n];
        check_stuck(d, book);
        bool explained = !tells(d);
        CHECK(!d->to || d->to <= book->head);
        for (uint64_t i = d->from; !explained && i <= d->to; i++)
            explained = fits(d, &book->states[i]);
        if (!explained)
            complain(d, "no state of the log explains that");
    }
}

void sim_deeds_check_durable(const struct sim_deeds *deeds, const struct sim_book *book)
{
    for (unsigned n = 0; n < deeds->count; n++) {
        const struct sim_deed *d = &deeds->at[n];
        bool acknowledged =
            !d->open && !d->code &&
            (d->kind == SIM_JOIN || d->kind == SIM_RETIRE || (d->kind == SIM_COMMIT && d->claims));
        bool is = !acknowledged;
        for (uint64_t i = d->from; !is && i <= d->to && i <= book->head; i++)
            is = fits(d, &book->states[i]);
        if (!is)
            complain(d, "it was acknowledged, and is lost");
    }
}
