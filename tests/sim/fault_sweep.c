/* fault_sweep.c - every operation, with every one of its system calls and allocations failing in
 * turn, in every way, once, twice and for ever; afterwards, with and without a power loss, the
 * store holds exactly what was acknowledged.
 *
 * Each case is run on a fresh copy of a store that has objects, other people's files and debris.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model.h"
#include "seeds.h"
#include "sim.h"
#include "store/seal.h"
#include "sweep.h"
#include "test.h"

enum {
    GRACE_S = 100,
    SMALL = 100,
    BLOCKS = 3 * 4096 + 5,    /* of 4 KiB each */
    LARGE = (1 << 20) + 9000, /* two transfers, direct I/O, preallocation */
};
#define HEX32 "00112233445566778899aabbccddeeff"

/* A store as it was left, and what is in it. */
struct prepared {
    struct sim_fs *disk;
    struct sim_model model;
};
static struct prepared small, large;
static uint64_t values_mark; /* the values above it are a case's own */

static struct sim_put put_of(size_t size)
{
    return (struct sim_put){.value = sim_value_new(size), .block_bytes = 4096};
}

static void plant_foreign(struct sim_model *model, const char *key, size_t size)
{
    static uint8_t bytes[BLOCKS];
    char path[128];
    struct sim_fact *fact = sim_model_fact(model, key);
    sim_fact_set(fact, sim_value_new(size));
    sim_value_fill(bytes, fact->may[0], 0, size);
    fact->foreign = true;
    snprintf(path, sizeof path, "%s/%s", SIM_STORE, key);
    sim_fs_plant(sim.fs, path, bytes, size);
}

static void plant_debris(void)
{
    static const char *const names[] = {".weir/tmp/" HEX32, ".weir/data/dead~" HEX32,
                                        ".weir/data/a~" HEX32, ".weir/data/d/e/dead~" HEX32};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", SIM_STORE, names[i]);
        sim_fs_plant(sim.fs, path, "debris", 6);
    }
    struct weir_seal seal = {.kind = WEIR_SEAL_VOID, .nonce = {1, 2, 3}};
    uint8_t *record;
    size_t size;
    OK(weir_seal_encode(&seal, &record, &size));
    sim_fs_plant(sim.fs, SIM_STORE "/.weir/seal/void~", record, size);
    free(record);
    sim_fs_plant_link(sim.fs, SIM_STORE "/sym");
}

static void prepare(struct prepared *out, bool with_large)
{
    struct sim_model *model = &out->model;
    weir_store *store;
    sim_start(1, NULL);
    OK(sim_store_open(&store, GRACE_S));
    struct sim_put how = put_of(SMALL);
    OK(sim_model_put(model, store, "a", &how));
    how = put_of(BLOCKS);
    OK(sim_model_put(model, store, "a/b", &how));
    how = put_of(SMALL);
    OK(sim_model_put(model, store, "d/e/f", &how));
    how = put_of(0);
    OK(sim_model_put(model, store, "empty", &how));
    how = put_of(with_large ? LARGE : SMALL);
    OK(sim_model_put(model, store, "big", &how));
    how = put_of(SMALL);
    OK(sim_model_put(model, store, "gone", &how));
    OK(sim_model_remove(model, store, "gone"));
    weir_store_close(store);
    plant_foreign(model, "foreign.bin", BLOCKS);
    plant_foreign(model, "f/g/foreign", SMALL);
    plant_debris();
    sim_fs_sync_all(sim.fs);
    out->disk = sim_fs_copy(sim.fs);
    out->disk->quirks.user = !with_large; /* once as anybody, once as root */
    sim_stop();
}

/* ---- the operations ---- */

static void put_as(struct sim_model *model, weir_store *store, const char *key, size_t size)
{
    struct sim_put how = put_of(size);
    sim_model_put(model, store, key, &how);
}

static void put_small(struct sim_model *model, weir_store *store)
{
    put_as(model, store, "small", SMALL);
}
static void put_nested(struct sim_model *model, weir_store *store)
{
    put_as(model, store, "new/directories/x", SMALL);
}
static void put_empty(struct sim_model *model, weir_store *store)
{
    put_as(model, store, "new/empty", 0);
}
static void put_blocks(struct sim_model *model, weir_store *store)
{
    put_as(model, store, "a/blocks", BLOCKS);
}
static void put_over_foreign(struct sim_model *model, weir_store *store)
{
    put_as(model, store, "f/g/foreign", SMALL);
}
static void put_again(struct sim_model *model, weir_store *store)
{
    put_as(model, store, "a", SMALL);
}
static void put_over_void(struct sim_model *model, weir_store *store)
{
    put_as(model, store, "void", SMALL);
}
static void put_beside_debris(struct sim_model *model, weir_store *store)
{
    put_as(model, store, "dead", SMALL);
}
static void put_large_unknown(struct sim_model *model, weir_store *store)
{
    struct sim_put how = {.value = sim_value_new(LARGE), .piece = 700000};
    sim_model_put(model, store, "large", &how);
}
static void put_large_known(struct sim_model *model, weir_store *store)
{
    struct sim_put how = {.value = sim_value_new(LARGE), .known = true, .in_place = true};
    sim_model_put(model, store, "new/large", &how);
}

/* The bytes, if it answers 0, are checked where they are read. */
static void get(struct sim_model *model, weir_store *store, const char *key)
{
    uint64_t value;
    weir_kind kind;
    const struct sim_fact *fact = sim_model_fact(model, key);
    sim_text_clear();
    int code = sim_get(store, key, &value, &kind);
    sim_text_check(code);
    CHECK(code != -EBADMSG);
    CHECK(code || value == fact->may[0]);
    CHECK(code != -ENOENT || fact->may[0] == SIM_ABSENT);
}

static void get_whole(struct sim_model *model, weir_store *store)
{
    get(model, store, "a/b");
}
static void get_large(struct sim_model *model, weir_store *store)
{
    get(model, store, "big");
}
static void get_missing(struct sim_model *model, weir_store *store)
{
    get(model, store, "gone");
}
static void get_foreign_twice(struct sim_model *model, weir_store *store)
{
    get(model, store, "foreign.bin"); /* learns */
    get(model, store, "foreign.bin"); /* checks */
}
static void get_range(struct sim_model *model, weir_store *store)
{
    uint64_t value = sim_model_fact(model, "a/b")->may[0];
    sim_text_clear();
    int code = sim_get_range(store, "a/b", value, 5000, 6000);
    sim_text_check(code);
    CHECK(code != -EBADMSG && code != -ENOENT);
}

static void remove_one(struct sim_model *model, weir_store *store)
{
    sim_model_remove(model, store, "a");
}
static void remove_nested(struct sim_model *model, weir_store *store)
{
    sim_model_remove(model, store, "d/e/f");
}
static void remove_foreign(struct sim_model *model, weir_store *store)
{
    int code = sim_model_remove(model, store, "foreign.bin");
    CHECK(code && (sim.fault.kind || code == -EPERM));
    CHECK(code != -EPERM || !strstr(weir_error_text(), "Input/output"));
}

static void gc_with(weir_store *store, uint32_t flags)
{
    sim_text_clear();
    sim_text_check(weir_gc(store, flags, NULL, NULL, NULL));
}
static void gc(struct sim_model *model, weir_store *store)
{
    (void)model;
    gc_with(store, 0);
}
static void gc_now(struct sim_model *model, weir_store *store)
{
    (void)model;
    gc_with(store, WEIR_GC_NOW);
}
static void gc_dry(struct sim_model *model, weir_store *store)
{
    (void)model;
    gc_with(store, WEIR_GC_DRY_RUN);
}

static void list(struct sim_model *model, weir_store *store)
{
    weir_list *list;
    const weir_entry *entry;
    sim_text_clear();
    int code = weir_list_open(&list, store, "", WEIR_LIST_RECURSIVE | WEIR_LIST_DETAIL);
    sim_text_check(code);
    if (code)
        return;
    while ((code = weir_list_next(list, &entry)) == 1)
        CHECK(
            !strcmp(entry->key, "sym") || /* a link that leads nowhere is listed, too */
            (sim_model_fact(model, entry->key)->may[0] != SIM_ABSENT && entry->error != -EBADMSG));
    sim_text_check(code);
    weir_list_close(list);
}

static void verify(struct sim_model *model, weir_store *store)
{
    (void)model;
    sim_text_clear();
    int code = weir_verify(store, "big", NULL, NULL);
    sim_text_check(code);
    CHECK(code != -EBADMSG && code != -ENOENT);
}

static void info(struct sim_model *model, weir_store *store)
{
    weir_store_info info;
    (void)model;
    sim_text_clear();
    sim_text_check(weir_store_info_get(store, &info));
}

/* A handle of its own, opened while things fail. */
static void open_it(struct sim_model *model, weir_store *store)
{
    weir_store *other;
    (void)model, (void)store;
    sim_text_clear();
    int code = sim_store_open(&other, 0);
    sim_text_check(code);
    if (!code)
        weir_store_close(other);
}

enum {
    READS = 1,  /* changes nothing that a power loss could take */
    LARGER = 2, /* needs the large object */
    HEAVY = 4,  /* takes long: once and for ever, but not twice */
};

static const struct operation {
    const char *name;
    void (*run)(struct sim_model *model, weir_store *store);
    unsigned flags;
} operations[] = {
    {"put small", put_small, 0},
    {"put into new directories", put_nested, 0},
    {"put empty", put_empty, 0},
    {"put blocks", put_blocks, 0},
    {"put over a foreign file", put_over_foreign, 0},
    {"put over an object", put_again, 0},
    {"put over a void", put_over_void, 0},
    {"put beside debris", put_beside_debris, 0},
    {"put large, length unknown", put_large_unknown, HEAVY},
    {"put large, length known", put_large_known, HEAVY},
    {"get", get_whole, READS},
    {"get large", get_large, READS | LARGER},
    {"get what is not there", get_missing, READS},
    {"get a foreign file", get_foreign_twice, 0},
    {"get a range", get_range, READS},
    {"remove", remove_one, 0},
    {"remove nested", remove_nested, 0},
    {"remove a foreign file", remove_foreign, 0},
    {"gc", gc, 0},
    {"gc now", gc_now, 0},
    {"gc dry", gc_dry, READS},
    {"list", list, READS},
    {"verify", verify, READS | LARGER},
    {"info", info, READS},
    {"open", open_it, READS},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* ---- the sweep ---- */

static void run(const void *arg, const struct sim_fault *fault, bool power_loss,
                struct sim_census *census)
{
    const struct operation *op = arg;
    const struct prepared *from = op->flags & LARGER ? &large : &small;
    static struct sim_model model; /* too large for comfort on a stack */
    weir_store *store;
    model = from->model;
    sim_values_rewind(values_mark);
    sim_start(2, sim_fs_copy(from->disk));
    sim.clock_ns = 10 * GRACE_S * 1000000000ull; /* the debris is old */
    OK(sim_store_open(&store, 0));
    sim.calls = sim.allocs = 0;
    sim.fault = *fault;
    op->run(&model, store);
    weir_store_close(store);
    sim_census_take(census);
    sim.fault = (struct sim_fault){0};
    CHECK_EQ(sim_fs_open_count(sim.fs), 0);
    if (power_loss)
        sim_reboot(fault->first);

    OK(sim_store_open(&store, 0));
    sim_model_check(&model, store);
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    sim_model_audit(&model); /* and so all that could be read still can be */
    put_as(&model, store, "afterwards", SMALL);
    CHECK(sim_model_fact(&model, "afterwards")->may[0] != SIM_ABSENT);
    weir_store_close(store);
    CHECK_EQ(sim_fs_open_count(sim.fs), 0);
    sim_stop();
}

/* Making a store: afterwards it is whole, or can be made. */
static void run_create(const struct sim_fault *fault, bool power_loss, struct sim_census *census)
{
    static struct sim_model model;
    weir_store *store;
    model = (struct sim_model){0};
    sim_values_rewind(0);
    sim_start(3, NULL);
    sim.fault = *fault;
    sim_text_clear();
    int code = sim_store_open(&store, GRACE_S);
    sim_text_check(code);
    if (!code)
        weir_store_close(store);
    sim_census_take(census);
    sim.fault = (struct sim_fault){0};
    CHECK_EQ(sim_fs_open_count(sim.fs), 0);
    if (power_loss)
        sim_reboot(fault->first);
    OK(sim_store_open(&store, code ? GRACE_S : 0));
    put_as(&model, store, "first", SMALL);
    CHECK(sim_model_fact(&model, "first")->may[0] != SIM_ABSENT);
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    sim_model_audit(&model);
    sim_model_check(&model, store);
    weir_store_close(store);
    sim_stop();
}

static void creating(void)
{
    static const struct sim_fault none;
    static struct sim_census census;
    sim_scene(0, "creating, nothing failing");
    run_create(&none, false, &census);
    for (uint64_t n = 1; n <= census.calls; n++)
        for (enum sim_fault_kind kind = SIM_FAULT_EIO; kind < SIM_FAULT_MEMORY; kind++)
            for (uint64_t i = 0; i < 4; i++) {
                struct sim_fault fault = {kind, n, i & 1 ? SIM_FOREVER : 1};
                if (!sim_fault_fits(kind, census.trace[n - 1]))
                    continue;
                uint64_t number = sim_case_next();
                if (!sim_case_wanted(number, 1))
                    continue;
                sim_scene(number, "creating: %s at call %llu", sim_fault_name(kind),
                          (unsigned long long)n);
                run_create(&fault, i & 2, NULL);
            }
}

int main(void)
{
    sim_seeds_init();
    prepare(&small, false);
    prepare(&large, true);
    values_mark = sim_values_mark();
    for (size_t i = 0; i < OPERATIONS; i++) {
        const struct operation *op = &operations[i];
        sim_sweep(&(struct sim_sweep){.name = op->name,
                                      .run = run,
                                      .op = op,
                                      .reads = op->flags & READS,
                                      .twice = !(op->flags & HEAVY)});
    }
    RUN(creating);
    printf("%llu cases in all\n", (unsigned long long)sim_cases());
    sim_fs_free(small.disk);
    sim_fs_free(large.disk);
    return TEST_RESULT;
}
