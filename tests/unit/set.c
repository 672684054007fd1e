/* Group commits: parts from several writers become one entry of the log, whoever completes it. */
#include "saves.h"
#include "store/view.h"

static weir_store *store;
static struct weir_ledger *ledger;
static uint64_t attempt;

static const uint8_t token_a[WEIR_TOKEN_BYTES] = {1}, token_b[WEIR_TOKEN_BYTES] = {2};

static struct weir_save save_of(const char *name, uint64_t number, uint32_t parts)
{
    struct weir_save save = {.attempt = attempt, .number = number, .parts = parts};
    snprintf(save.name, sizeof save.name, "%s", name);
    return save;
}

static int put_part(const struct weir_save *save, uint32_t part, bool *committed)
{
    return save_part(store, ledger, save, part, "note", committed);
}

static void put_all(const struct weir_save *save)
{
    bool committed = false;
    for (uint32_t i = 0; i < save->parts; i++) {
        CHECK(!committed);
        OK(put_part(save, (i * 7) % save->parts, &committed));
    }
    CHECK(committed);
}

static void check_view(const char *name, uint32_t parts)
{
    struct weir_view *view;
    OK(weir_view_open(&view, ledger, name));
    CHECK_EQ(weir_view_entry(view)->save.parts, parts);
    for (uint32_t i = 0; i < parts; i++) {
        struct weir_part part;
        struct weir_ref ref;
        weir_object *obj;
        char text[64] = "", want[64];
        size_t got;
        OK(weir_view_part(view, i, &part));
        CHECK_EQ(part.number, i);
        CHECK_EQ(part.refs, 1);
        CHECK(part.note_size == 4 && !memcmp(part.note, "note", 4));
        const uint8_t *at = part.refs_at;
        weir_part_ref(&ref, &at);
        OK(weir_view_object(view, &ref, &obj));
        OK(weir_object_read(obj, text, sizeof text, 0, &got));
        snprintf(want, sizeof want, "rank-%u", i);
        CHECK(!strcmp(text, want));
        weir_object_close(obj);
    }
    weir_view_close(view);
}

static void every_size(void)
{
    for (uint32_t parts = 1; parts < 14; parts++) {
        char name[32];
        if (parts % 7 == 0)
            continue; /* the order above would repeat */
        snprintf(name, sizeof name, "of-%u", parts);
        struct weir_save save = save_of(name, parts, parts);
        put_all(&save);
        check_view(name, parts);
        check_view(NULL, parts);
    }
}

static void zombies_are_refused(void)
{
    struct weir_save save = save_of("zombie", 100, 2);
    uint64_t next, again;
    bool committed;
    OK(put_part(&save, 0, &committed));
    OK(weir_ledger_join(ledger, token_b, &next));
    CHECK(next > attempt);
    CHECK_EQ(put_part(&save, 1, &committed), -ESTALE);
    CHECK(!committed);
    CHECK_EQ(weir_ledger_join(ledger, token_a, &again), -ESTALE);
    OK(weir_ledger_join(ledger, token_b, &again));
    CHECK_EQ(again, next);
    attempt = next;
    check_view(NULL, 13);
}

static bool is_old_attempt(void *arg, const struct weir_ledger_entry *entry)
{
    (void)arg;
    return entry->save.attempt != attempt;
}

static void retired_is_deleted(void)
{
    weir_gc_result result;
    struct weir_view *view, *none;
    struct weir_set *set;
    size_t count;
    struct weir_save save = save_of("kept", 1, 3), stuck = save_of("stuck", 2, 3);
    bool committed;
    put_all(&save);
    OK(put_part(&stuck, 1, &committed));
    OK(weir_view_open(&view, ledger, "of-5"));
    OK(weir_ledger_retire(ledger, attempt, is_old_attempt, NULL, &count));
    CHECK_EQ(count, 12);
    CHECK_EQ(weir_view_open(&none, ledger, "of-4"), -ENOENT);
    OK(weir_gc(store, WEIR_GC_NOW, &result, NULL, NULL));
    CHECK_EQ(result.saves, 11 + 1 + 1); /* the zombie's, and the stuck one */
    weir_view_close(view);
    OK(weir_gc(store, WEIR_GC_NOW, &result, NULL, NULL));
    CHECK_EQ(result.saves, 1);
    OK(weir_gc(store, WEIR_GC_NOW, &result, NULL, NULL));
    CHECK_EQ(result.saves, 0);
    OK(weir_set_open(&set, ledger, &stuck));
    CHECK_EQ(weir_set_wait(set, 0, &committed), -ESTALE);
    CHECK(strstr(weir_error_text(), "given up, or retired and deleted"));
    weir_set_close(set);
    CHECK_EQ(put_part(&stuck, 0, &committed), 0);
    CHECK_EQ(put_part(&stuck, 1, &committed), 0);
    CHECK_EQ(put_part(&stuck, 2, &committed), -ESTALE);
    check_view("kept", 3);
}

/* "llama-1.1" looks like a save of an old attempt: but it is an object of somebody else, or the
 * name of another log, whose saves are not this log's. */
static void others_are_left_alone(void)
{
    weir_gc_result result;
    struct weir_ledger *outer = ledger;
    uint64_t outer_attempt = attempt;
    OK(put_try(store, "ckpt/run/llama-1.1/weights", 1000, 1, 4096));
    OK(weir_ledger_open(&ledger, store, "ckpt/run/llama-1.1"));
    OK(weir_ledger_join(ledger, token_a, &attempt));
    struct weir_save save = save_of("inner", 1, 3);
    put_all(&save);
    OK(weir_gc(store, WEIR_GC_NOW, &result, NULL, NULL));
    OK(weir_gc(store, WEIR_GC_NOW, &result, NULL, NULL));
    OK(weir_verify(store, "ckpt/run/llama-1.1/weights", NULL, NULL));
    check_view("inner", 3);
    weir_ledger_close(ledger);
    ledger = outer;
    attempt = outer_attempt;
    check_view("kept", 3);
}

int main(void)
{
    uint64_t records;
    store = store_at(tmpdir(), "inline");
    OK(weir_ledger_open(&ledger, store, "ckpt/run"));
    OK(weir_ledger_join(ledger, token_a, &attempt));
    CHECK_EQ(attempt, 1);
    RUN(every_size);
    RUN(zombies_are_refused);
    RUN(retired_is_deleted);
    RUN(others_are_left_alone);
    OK(weir_log_verify(weir_ledger_log(ledger), &records));
    CHECK(records > 15);
    weir_ledger_close(ledger);
    weir_store_close(store);
    return TEST_RESULT;
}
