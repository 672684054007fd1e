/* Collecting by many threads at once, as on a tier that is far off: all that is debris goes and is
 * counted once, all that is live stays, and it can be stopped. */
#include "saves.h"
#include "store/store.h"

enum { DEBRIS = 600, PARTS = 48, KEPT = 12, FILES = 100, LOOKERS = 8, ROUNDS_MAX = 100 };

static weir_store *store;
static const char *dir;

static const struct weir_save save = {.attempt = 1, .number = 1, .name = "s", .parts = PARTS + 1};

static void make_debris(void)
{
    for (unsigned i = 0; i < DEBRIS; i++) {
        char name[128];
        snprintf(name, sizeof name, ".weir/data/k%u~%032x", i % FILES, i);
        file_write(path_in(dir, name), "debris", 6);
    }
}

/* All parts but the last: nobody will commit it. */
static void make_save(void)
{
    struct weir_ledger *ledger;
    const uint8_t token[WEIR_TOKEN_BYTES] = {7};
    uint64_t attempt;
    bool committed;
    OK(weir_ledger_open(&ledger, store, "run"));
    OK(weir_ledger_join(ledger, token, &attempt));
    CHECK_EQ(attempt, save.attempt);
    for (uint32_t i = 0; i < PARTS; i++)
        OK(save_part(store, ledger, &save, i, "", &committed));
    weir_ledger_close(ledger);
}

static void fresh_store(void)
{
    weir_store_close(store);
    dir = tmp_path("store");
    store = store_at(dir, NULL);
    store->tier->lookers = LOOKERS;
    for (unsigned i = 0; i < KEPT; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%u", i);
        put_seed(store, key, 1000, i);
    }
    make_debris();
    make_save();
}

static void all_is_kept(void)
{
    for (unsigned i = 0; i < KEPT; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%u", i);
        get_seed(store, key, 1000, i);
    }
}

static int count_up(void *arg, uint64_t more)
{
    *(uint64_t *)arg += more;
    return 0;
}

static void everything_goes(void)
{
    weir_gc_result result;
    uint64_t seen = 0;
    fresh_store();
    OK(weir_gc(store, WEIR_GC_NOW | WEIR_GC_DRY_RUN, &result, NULL, NULL));
    CHECK_EQ(result.objects, DEBRIS + PARTS);
    uint64_t objects = 0, saves = 0;
    for (int i = 0; i < ROUNDS_MAX; i++) { /* what was locked is left to the next */
        OK(weir_gc(store, WEIR_GC_NOW, &result, count_up, &seen));
        objects += result.objects;
        saves += result.saves;
        if (!result.objects && !result.saves && !result.voids_removed)
            break;
    }
    CHECK_EQ(objects, DEBRIS + PARTS);
    CHECK_EQ(saves, 1);
    CHECK(seen >= DEBRIS + PARTS);
    all_is_kept();
    CHECK_EQ(tree_files(path_in(dir, ".weir/data")), KEPT);
    CHECK_EQ(tree_files(path_in(dir, ".weir/seal")), KEPT);
}

static int stop(void *arg, uint64_t more)
{
    *(uint64_t *)arg += more;
    return 1;
}

static void it_can_be_stopped(void)
{
    uint64_t seen = 0;
    fresh_store();
    CHECK_EQ(weir_gc(store, WEIR_GC_NOW, NULL, stop, &seen), -ECANCELED);
    CHECK(seen < DEBRIS);
    all_is_kept();
    CHECK(tree_files(path_in(dir, ".weir/data")) > DEBRIS / 2);
}

int main(void)
{
    RUN(everything_goes);
    RUN(it_can_be_stopped);
    weir_store_close(store);
    return TEST_RESULT;
}
