/* ledger_check.c - what a fresh process finds after a round: every record a legal step, every
 * answer possible, every live save whole and of one incarnation; and at the end, after a gc,
 * nothing but that.
 */
#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ledger.h"
#include "proc.h"
#include "test.h"

struct checker {
    struct ledger_test *t;
    weir_store *store;
    struct weir_ledger *ledger;
    struct weir_ledger_state state; /* the newest */
};

/* ---- the log ---- */

static void state_at(struct checker *c, uint64_t number, struct weir_ledger_state *out)
{
    struct weir_log_record record = {0};
    *out = (struct weir_ledger_state){0};
    if (!number)
        return;
    OK(weir_log_read(weir_ledger_log(c->ledger), number, &record));
    OK(weir_state_decode(out, record.state, record.state_size));
    out->record = record;
}

/* The records since the last round. */
static void follow_log(struct checker *c)
{
    struct steps *steps = &c->t->steps;
    struct weir_ledger_state before, after;
    weir_state_free(&c->state);
    OK(weir_ledger_read(c->ledger, &c->state));
    state_at(c, steps->head, &before);
    while (steps->head < c->state.record.number) {
        state_at(c, steps->head + 1, &after);
        CHECK(!memcmp(after.record.parent, before.record.digest, WEIR_SHA256_BYTES));
        const char *fault = log_follow(steps, &before, &after);
        if (fault)
            printf("IMPOSSIBLE: record %" PRIu64 ": %s\n", after.record.number, fault);
        CHECK(!fault);
        weir_state_free(&before);
        before = after;
    }
    weir_state_free(&before);
}

/* ---- saves ---- */

static void verify_entry(struct checker *c, const struct weir_ledger_entry *entry)
{
    const struct step *joined = &c->t->steps.steps[entry->save.attempt];
    struct mark want = {joined->incarnation, entry->save.attempt, entry->save.number, 0};
    char prefix[WEIR_KEY_BYTES_MAX + 1];
    struct weir_node root;
    uint8_t *bytes;
    weir_ledger_prefix(c->ledger, &entry->save, prefix);
    CHECK_EQ(joined->kind, STEP_JOIN);
    OK(weir_set_root(c->ledger, entry, &root, &bytes));
    CHECK_EQ(root.parts, entry->save.parts);
    const uint8_t *at = root.list;
    for (uint32_t i = 0; i < root.parts; i++) {
        struct weir_part part;
        OK(weir_node_part(&part, &at));
        OK(part_check(c->store, NULL, prefix, &part, &want));
    }
    free(bytes);
    c->t->tally.verified++;
}

static void verify_live(struct checker *c)
{
    for (size_t i = 0; i < c->state.count; i++)
        if (!c->state.entries[i].retired_ns)
            verify_entry(c, &c->state.entries[i]);
}

static void open_all(struct checker *c, struct ledger_test *t)
{
    struct dice dice = {mix(mix(t->seed, t->round), ROLES)};
    c->t = t;
    c->store = store_must_open(t->root, engine_pick(dice_next(&dice)), 0, 0);
    OK(weir_ledger_open(&c->ledger, c->store, LEDGER_NAME));
}

static void close_all(struct checker *c)
{
    weir_state_free(&c->state);
    weir_ledger_close(c->ledger);
    weir_store_close(c->store);
}

int check_round(void *test)
{
    struct checker c = {0};
    open_all(&c, test);
    follow_log(&c);
    CHECK(calls_check(&c.t->calls, &c.t->steps));
    verify_live(&c);
    close_all(&c);
    return 0;
}

/* ---- the end ---- */

/* The save that a name "<ledger>/<save>/…" or "<ledger>/<save>~/…" belongs to is live. */
static bool is_of_live(struct checker *c, const char *name)
{
    size_t skip = strlen(LEDGER_NAME "/");
    if (strncmp(name, LEDGER_NAME "/", skip))
        return false;
    size_t size = strcspn(name + skip, "/");
    struct weir_save save;
    if (!size || !weir_save_of_text(&save, name + skip, size - (name[skip + size - 1] == '~')))
        return false;
    const struct weir_ledger_entry *entry = weir_ledger_find_save(&c->state, &save);
    return entry && !entry->retired_ns;
}

static bool begins(const char *name, const char *dir)
{
    return !strncmp(name, dir, strlen(dir));
}

static bool may_stay(struct checker *c, const char *name)
{
    static const char *const places[] = {WEIR_DIR_SEAL, WEIR_DIR_DATA, WEIR_DIR_SET};
    if (!strcmp(name, WEIR_NAME_STORE) || !strcmp(name, ".weir/lock"))
        return true;
    if (begins(name, WEIR_DIR_LOG LEDGER_NAME "~/"))
        return true;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (begins(name, places[i]))
            return is_of_live(c, name + strlen(places[i]));
    return !begins(name, ".weir/") && is_of_live(c, name);
}

/* What may be empty: what is not a save's, and what people see. */
static bool is_lasting_dir(const char *name)
{
    const char *below = begins(name, ".weir/") ? strchr(name + strlen(".weir/"), '/') : NULL;
    return !below || !begins(below + 1, LEDGER_NAME "/");
}

/* Prints what should not be there; returns how much that is. */
static unsigned debris(struct checker *c)
{
    char *const roots[] = {c->t->root, NULL};
    size_t skip = strlen(c->t->root) + 1;
    unsigned faults = 0;
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    CHECK(fts);
    for (FTSENT *entry; (entry = fts_read(fts));) {
        if (entry->fts_level <= 0)
            continue;
        if (entry->fts_info != FTS_DP)
            entry->fts_parent->fts_number++;
        if (entry->fts_info == FTS_D ||
            (entry->fts_info == FTS_DP &&
             (entry->fts_number || is_lasting_dir(entry->fts_path + skip))))
            continue;
        if (entry->fts_info == FTS_F && may_stay(c, entry->fts_path + skip))
            continue;
        printf("DEBRIS: %s\n", entry->fts_path);
        faults++;
    }
    fts_close(fts);
    fflush(stdout);
    return faults;
}

static bool is_any(void *arg, const struct weir_ledger_entry *entry)
{
    (void)arg, (void)entry;
    return true;
}

int check_end(void *test)
{
    struct checker c = {0};
    weir_gc_result result;
    uint64_t records;
    size_t count;
    open_all(&c, test);
    follow_log(&c);
    OK(weir_log_verify(weir_ledger_log(c.ledger), &records));
    CHECK_EQ(records, c.state.record.number);
    OK(weir_gc(c.store, WEIR_GC_NOW, &result, NULL, NULL));
    c.t->tally.saves_collected += result.saves;
    follow_log(&c);
    CHECK_EQ(debris(&c), 0);
    verify_live(&c);
    /* And when all of it is retired, nothing stays but the log. */
    OK(weir_ledger_retire(c.ledger, 0, is_any, NULL, &count));
    OK(weir_gc(c.store, WEIR_GC_NOW, &result, NULL, NULL));
    CHECK_EQ(result.saves, count);
    follow_log(&c);
    CHECK_EQ(c.state.count, 0);
    CHECK_EQ(debris(&c), 0);
    CHECK(calls_check(&c.t->calls, &c.t->steps));
    OK(weir_log_verify(weir_ledger_log(c.ledger), &records));
    CHECK_EQ(records, c.state.record.number);
    close_all(&c);
    return 0;
}
