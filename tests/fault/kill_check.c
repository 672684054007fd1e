/* kill_check.c - what a fresh process finds after a round: every acknowledged object exact, one
 * winner a key, nothing that nobody wrote, and after a gc nothing but that.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "disk.h"
#include "kill.h"
#include "proc.h"
#include "test.h"

static struct kill_test *test;

/* What is listed and verified. */
static struct {
    unsigned count;
    struct thing objects[HISTORY_PROCS * HISTORY_OPS];
} found;

static const struct content *found_at(const char *key)
{
    for (unsigned i = 0; i < found.count; i++)
        if (!strcmp(found.objects[i].key, key))
            return &found.objects[i].what;
    return NULL;
}

static void note_found(weir_store *store, const weir_entry *entry)
{
    char key[KEY_ROOM];
    struct content what;
    snprintf(key, sizeof key, "%s", entry->key);
    CHECK_EQ(entry->kind, WEIR_KIND_SEALED);
    OK(entry->error);
    OK(content_get(&what, store, key));
    CHECK_EQ(entry->size_bytes, what.size);
    CHECK(history_allows(&test->history, key, &what));
    CHECK(found.count < sizeof found.objects / sizeof found.objects[0]);
    CHECK(!found_at(key));
    strcpy(found.objects[found.count].key, key);
    found.objects[found.count++].what = what;
    test->tally.listed++;
}

static void find_all(weir_store *store)
{
    weir_list *list;
    const weir_entry *entry;
    int code;
    OK(weir_list_open(&list, store, "", WEIR_LIST_RECURSIVE | WEIR_LIST_DETAIL));
    while ((code = weir_list_next(list, &entry)) == 1)
        if (!entry->is_dir)
            note_found(store, entry);
    CHECK_EQ(code, 0);
    weir_list_close(list);
}

/* What is not listed must not be there, nor be owed. */
static void check_absent(const char *key, void *arg)
{
    struct content what;
    if (found_at(key))
        return;
    CHECK_EQ(content_get(&what, arg, key), -ENOENT);
    CHECK(history_allows(&test->history, key, NULL));
}

static void count_doubts(void)
{
    for (unsigned p = 0; p < WRITERS; p++)
        for (unsigned i = 0; i < atomic_load(&test->history.count[p]); i++) {
            const struct op *op = &test->history.ops[p][i];
            const struct content *there = found_at(op->key);
            if (op->kind != OP_PUT || atomic_load(&op->done))
                continue;
            if (there && content_same(*there, op->what))
                test->tally.doubt_there++;
            else
                test->tally.doubt_gone++;
        }
}

static void collect(weir_store *store)
{
    weir_gc_result result;
    OK(weir_gc(store, WEIR_GC_NOW, &result, NULL, NULL));
    test->tally.collected += result.objects;
    test->tally.temporaries += result.temporaries;
    test->tally.voids += result.voids_placed;
    test->tally.links += result.links_restored;
    CHECK_EQ(disk_debris(store, test->world->root), 0);
    CHECK_EQ(disk_plain_missing(store, test->world->root), 0);
}

/* Most objects go, by the front door; the rest must survive the next round. */
static void thin_out(weir_store *store, struct dice *dice, bool all)
{
    struct world *world = test->world;
    world->count = 0;
    for (unsigned i = 0; i < found.count; i++) {
        if (all || world->count == WORLD_OBJECTS || !dice_one_in(dice, 4))
            OK(weir_remove(store, found.objects[i].key));
        else
            world->objects[world->count++] = found.objects[i];
    }
    if (all)
        CHECK(disk_is_bare(world->root));
}

int check_main(void *arg)
{
    test = arg;
    struct dice dice = {mix(mix(test->seed, test->round), ROLES)};
    const char *engine = engine_pick(dice_next(&dice));
    weir_store *store = store_must_open(test->world->root, engine, WEIR_STORE_CREATE, GRACE_S);
    find_all(store);
    history_keys(&test->history, check_absent, store);
    CHECK(history_reads_allowed(&test->history));
    count_doubts();
    collect(store);
    for (unsigned i = 0; i < found.count; i++)
        OK(content_expect(store, found.objects[i].key, found.objects[i].what));
    thin_out(store, &dice, dice_one_in(&dice, 10));
    weir_store_close(store);
    return 0;
}
