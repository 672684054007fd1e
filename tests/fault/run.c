/* run.c - see run.h. */
#include "run.h"

#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc.h"
#include "store/view.h"
#include "test.h"
#include "util/key.h"

enum { QUEUE = 2, TENSORS = 4 };
#define WAIT_NS (120ull * 1000000000)

/* ---- content ---- */

static uint64_t element(uint64_t life, uint64_t step, uint64_t tensor, uint64_t at)
{
    uint64_t x = ((life << 40) + (step << 8) + tensor) * 0x9e3779b97f4a7c15u + at;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 29;
}

/* How each tensor is cut: by rows, by columns, not at all (replicated), or not at all (of rank 0).
 */
static const char *const names[TENSORS] = {"rows", "columns", "replicated", "rng.of/rank 0"};

struct box {
    uint64_t offset[2], shape[2];
};

static struct box box_of(unsigned tensor, unsigned rank)
{
    struct box box = {{0, 0}, {ROWS, COLUMNS}};
    if (tensor < 2) {
        uint64_t whole = box.shape[tensor];
        box.offset[tensor] = whole * rank / RANKS;
        box.shape[tensor] = whole * (rank + 1) / RANKS - box.offset[tensor];
    }
    return box;
}

static void fill(uint64_t *out, unsigned tensor, unsigned rank, uint64_t life, uint64_t step)
{
    struct box box = box_of(tensor, rank);
    for (uint64_t i = 0; i < box.shape[0]; i++)
        for (uint64_t k = 0; k < box.shape[1]; k++)
            *out++ = element(life, step, tensor, (box.offset[0] + i) * COLUMNS + box.offset[1] + k);
}

/* ---- a rank ---- */

struct trainer {
    struct run *run;
    const struct rank *me;
    weir_store *store;
    weir_ckpt *ckpt;
    uint64_t *data[TENSORS];
    weir_saving *saving[QUEUE]; /* under way, oldest first */
    uint64_t step[QUEUE];
    unsigned count;
};

static int complain(struct trainer *t, const char *what, uint64_t step, int code)
{
    if (atomic_fetch_add(&t->run->complained, 1) == 0)
        snprintf(t->run->complaint, sizeof t->run->complaint,
                 "rank %u of life %u: %s step %" PRIu64 ": %d (%s): %s", t->me->rank, t->me->life,
                 what, step, code, strerrorname_np(-code), weir_error_text());
    return 1;
}

static int over(struct trainer *t)
{
    atomic_fetch_add(&t->run->refused, 1);
    return 0;
}

static void note_told(struct run *run, uint64_t step)
{
    unsigned long seen = atomic_load(&run->told);
    while (seen < step && !atomic_compare_exchange_weak(&run->told, &seen, step))
        ;
    atomic_fetch_add(&run->commits_told, 1);
}

/* Waits for the oldest: 0, -ESTALE when the life is over, 1 after a complaint. */
static int settle_oldest(struct trainer *t)
{
    int code = weir_saving_wait(t->saving[0], WEIR_LEVEL_HOME, WAIT_NS);
    if (!code)
        note_told(t->run, t->step[0]);
    else if (code != -ESTALE)
        return complain(t, "waiting for", t->step[0], code);
    weir_saving_close(t->saving[0]);
    t->saving[0] = t->saving[1];
    t->step[0] = t->step[1];
    t->count--;
    return code;
}

static int save(struct trainer *t, uint64_t step)
{
    static const uint64_t whole[2] = {ROWS, COLUMNS};
    struct box boxes[TENSORS];
    weir_tensor tensors[TENSORS];
    unsigned count = t->me->rank ? TENSORS - 1 : TENSORS;
    char state[100], meta[100];
    for (unsigned i = 0; i < count; i++) {
        boxes[i] = box_of(i, t->me->rank);
        fill(t->data[i], i, t->me->rank, t->me->life, step);
        tensors[i] = (weir_tensor){.name = names[i],
                                   .dtype = "I64",
                                   .ndim = 2,
                                   .shape = boxes[i].shape,
                                   .global_shape = i < 2 ? whole : NULL,
                                   .offset = i < 2 ? boxes[i].offset : NULL,
                                   .data = t->data[i],
                                   .replica = i == 2 ? t->me->rank : 0,
                                   .replicas = i == 2 ? RANKS : 0};
    }
    snprintf(meta, sizeof meta, "{\"life\": %u, \"step\": %" PRIu64 "}", t->me->life, step);
    snprintf(state, sizeof state, "[%u, %u, %" PRIu64 "]", t->me->life, t->me->rank, step);
    weir_save_options opts = {.struct_size = sizeof opts, .meta = meta, .state = state};
    if (t->me->rank)
        opts.meta = NULL;
    int code = weir_ckpt_save(t->ckpt, step, tensors, count, &opts, &t->saving[t->count]);
    if (code == -ESTALE) /* an earlier one was told that the life is over */
        return code;
    if (code)
        return complain(t, "saving", step, code);
    for (unsigned i = 0; i < count; i++) /* the snapshot is taken: this is the next step's */
        memset(t->data[i], 0xee, ROWS * COLUMNS * sizeof *t->data[i] / 16);
    t->step[t->count++] = step;
    return 0;
}

static int resume(struct trainer *t, uint64_t *step)
{
    weir_restore *restore;
    int code = weir_restore_open(&restore, t->store, RUN_NAME, WEIR_STEP_NEWEST);
    *step = code ? 0 : weir_restore_info_get(restore)->step;
    if (!code)
        weir_restore_close(restore);
    return code == -ENOENT ? 0 : code;
}

int rank_main(void *arg)
{
    const struct rank *me = arg;
    struct trainer t = {.run = me->run, .me = me};
    uint8_t token[16] = {(uint8_t)me->life, (uint8_t)(me->life >> 8), 1};
    weir_ckpt_options opts;
    uint64_t step, saved = 0;
    t.store = store_must_open(me->run->root, engine_pick(me->rank), 0, 0);
    for (unsigned i = 0; i < TENSORS; i++)
        CHECK((t.data[i] = malloc(ROWS * COLUMNS * sizeof **t.data)));
    weir_ckpt_options_init(&opts);
    opts.rank = me->rank;
    opts.ranks = RANKS;
    opts.token = token;
    opts.queue_max = QUEUE;
    opts.keep_last = KEEP_LAST;
    opts.retired_grace_s = 0;
    opts.staging_bytes_max = 6 << 20; /* less than a snapshot: it goes through in pieces */
    int code = weir_ckpt_open(&t.ckpt, t.store, RUN_NAME, &opts);
    if (code == -ESTALE)
        return over(&t);
    if (code)
        return complain(&t, "joining", 0, code);
    code = resume(&t, &step);
    if (code)
        return complain(&t, "resuming", 0, code);
    atomic_fetch_add(&me->run->ready, 1);
    while (!code && (!me->saves_max || saved++ < me->saves_max)) {
        code = save(&t, ++step);
        if (!code && t.count == QUEUE)
            code = settle_oldest(&t);
    }
    while (!code && t.count)
        code = settle_oldest(&t);
    if (code == -ESTALE)
        over(&t);
    while (t.count)
        weir_saving_close(t.saving[--t.count]);
    weir_ckpt_close(t.ckpt);
    weir_store_close(t.store);
    for (unsigned i = 0; i < TENSORS; i++)
        free(t.data[i]);
    return code == 1;
}

/* ---- what must be found ---- */

/* All tensors, read in one call: whole, and once more in boxes that no rank wrote. */
static void check_tensors(weir_restore *restore, uint64_t life, uint64_t step)
{
    static uint64_t data[TENSORS][ROWS][COLUMNS], part[ROWS][3];
    static const uint64_t offset[2] = {0, 129}, shape[2] = {ROWS, 3};
    weir_slice slices[TENSORS];
    CHECK_EQ(weir_restore_info_get(restore)->tensors, TENSORS);
    memset(data, 0xff, sizeof data);
    for (unsigned i = 0; i < TENSORS; i++) {
        int64_t at = weir_restore_find(restore, names[i]);
        CHECK(at >= 0);
        slices[i] = (weir_slice){.tensor = (size_t)at, .data = data[i]};
    }
    OK(weir_restore_read(restore, slices, TENSORS, NULL, NULL));
    for (unsigned i = 0; i < TENSORS; i++)
        for (uint64_t at = 0; at < ROWS * COLUMNS; at++)
            CHECK(data[i][at / COLUMNS][at % COLUMNS] == element(life, step, i, at));
    slices[0].offset = offset;
    slices[0].shape = shape;
    slices[0].data = part;
    OK(weir_restore_read(restore, slices, 1, NULL, NULL));
    for (uint64_t i = 0; i < ROWS; i++)
        CHECK(!memcmp(part[i], &data[0][i][129], sizeof part[i]));
}

static void check_open(weir_restore *restore, uint64_t *step)
{
    const weir_restore_info *info = weir_restore_info_get(restore);
    unsigned life;
    uint64_t of_meta;
    CHECK_EQ(info->ranks, RANKS);
    CHECK_EQ(sscanf(info->meta, "{\"life\": %u, \"step\": %" SCNu64 "}", &life, &of_meta), 2);
    CHECK_EQ(of_meta, info->step);
    for (unsigned i = 0; i < RANKS; i++) {
        char *state, want[100];
        snprintf(want, sizeof want, "[%u, %u, %" PRIu64 "]", life, i, of_meta);
        OK(weir_restore_state(restore, i, &state));
        CHECK(!strcmp(state, want));
        free(state);
    }
    check_tensors(restore, life, info->step);
    *step = info->step;
}

static bool is_noted(const struct run *run, const struct weir_save *save)
{
    for (unsigned i = 0; i < run->old_count; i++)
        if (run->old[i].attempt == save->attempt && run->old[i].number == save->number)
            return true;
    return false;
}

/* A life that is over commits nothing any more. */
static void check_old(struct run *run, weir_store *store, bool note)
{
    struct weir_ledger *ledger;
    struct weir_ledger_state state;
    OK(weir_ledger_open(&ledger, store, RUN_LOG));
    OK(weir_ledger_read(ledger, &state));
    run->old_count = note ? 0 : run->old_count;
    for (size_t i = 0; i < state.count; i++) {
        const struct weir_save *save = &state.entries[i].save;
        if (save->attempt == state.attempt)
            continue;
        if (note) {
            CHECK(run->old_count < OLD_MAX);
            run->old[run->old_count].attempt = save->attempt;
            run->old[run->old_count++].number = save->number;
        }
        if (!is_noted(run, save))
            printf("step %s was committed by attempt %" PRIu64 ", which was over\n", save->name,
                   save->attempt);
        CHECK(is_noted(run, save));
    }
    weir_state_free(&state);
    weir_ledger_close(ledger);
}

int run_note_old(void *arg)
{
    struct run *run = arg;
    weir_store *store = store_must_open(run->root, NULL, 0, 0);
    check_old(run, store, true);
    weir_store_close(store);
    return 0;
}

int run_check(void *arg)
{
    struct run *run = arg;
    uint64_t told = atomic_load(&run->told), step = 0;
    weir_store *store = store_must_open(run->root, NULL, 0, 0);
    weir_restore *restore;
    int code = weir_restore_open(&restore, store, RUN_NAME, WEIR_STEP_NEWEST);
    CHECK(!code || (code == -ENOENT && !told));
    if (!code) {
        check_open(restore, &step);
        weir_restore_close(restore);
        run->checks++;
    }
    if (step < told || step < run->checked_step)
        printf("step %" PRIu64 " is the newest; told was %" PRIu64 ", seen was %" PRIu64 "\n", step,
               told, run->checked_step);
    CHECK(step >= told && step >= run->checked_step);
    check_old(run, store, false);
    run->checked_step = step;
    weir_store_close(store);
    return 0;
}

/* ---- what must not be found ---- */

/* What a store consists of when nothing is left over: the objects and nodes of the live saves. */
struct wanted {
    char prefix[KEEP_LAST][WEIR_KEY_BYTES_MAX + 1];
    char keys[KEEP_LAST * (3 * RANKS + 3)][WEIR_KEY_BYTES_MAX + 1];
    unsigned saves, count;
};

static void want(struct wanted *w, const char *prefix, const char *name)
{
    CHECK(w->count < sizeof w->keys / sizeof w->keys[0]);
    snprintf(w->keys[w->count++], sizeof w->keys[0], "%s/%s", prefix, name);
}

static void want_save(struct wanted *w, struct weir_ledger *ledger,
                      const struct weir_ledger_entry *entry)
{
    struct weir_view *view;
    OK(weir_view_open_save(&view, ledger, &entry->save));
    const char *prefix = strcpy(w->prefix[w->saves++], weir_view_prefix(view));
    for (uint32_t i = 0; i < entry->save.parts; i++) {
        struct weir_part part;
        OK(weir_view_part(view, i, &part));
        const uint8_t *at = part.refs_at;
        for (uint32_t k = 0; k < part.refs; k++) {
            struct weir_ref ref;
            weir_part_ref(&ref, &at);
            want(w, prefix, ref.name);
        }
    }
    want(w, prefix, "model.safetensors.index.json");
    want(w, prefix, "manifest");
    weir_view_close(view);
}

static bool begins(const char *name, const char *dir)
{
    return !strncmp(name, dir, strlen(dir));
}

/* The key, or for a node the save, that a file of the store belongs to; NULL: it should not be. */
static const char *owner_of(const char *name, char key[WEIR_NAME_BYTES_MAX])
{
    uint8_t nonce[WEIR_NONCE_BYTES];
    if (begins(name, WEIR_DIR_DATA))
        return weir_key_of_data_name(key, nonce, name + strlen(WEIR_DIR_DATA)) ? key : NULL;
    if (begins(name, WEIR_DIR_SEAL))
        return weir_key_of_name(key, name + strlen(WEIR_DIR_SEAL)) ? key : NULL;
    return begins(name, ".weir/") ? NULL : name;
}

static bool may_stay(const struct wanted *w, const char *name)
{
    char key[WEIR_NAME_BYTES_MAX], nodes[WEIR_KEY_BYTES_MAX + 32];
    if (!strcmp(name, WEIR_NAME_STORE) || !strcmp(name, ".weir/lock") ||
        begins(name, WEIR_DIR_LOG RUN_LOG "~/"))
        return true;
    for (unsigned i = 0; i < w->saves; i++) {
        snprintf(nodes, sizeof nodes, "%s%s~/", WEIR_DIR_SET, w->prefix[i]);
        if (begins(name, nodes))
            return true;
    }
    const char *owner = owner_of(name, key);
    for (unsigned i = 0; owner && i < w->count; i++)
        if (!strcmp(owner, w->keys[i]))
            return true;
    return false;
}

static unsigned debris(struct run *run, const struct wanted *w)
{
    char *const roots[] = {run->root, NULL};
    size_t skip = strlen(run->root) + 1;
    unsigned faults = 0;
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    CHECK(fts);
    for (FTSENT *entry; (entry = fts_read(fts));)
        if (entry->fts_level > 0 && entry->fts_info == FTS_F &&
            !may_stay(w, entry->fts_path + skip)) {
            printf("DEBRIS: %s\n", entry->fts_path);
            faults++;
        }
    fts_close(fts);
    fflush(stdout);
    return faults;
}

int run_check_end(void *arg)
{
    static struct wanted wanted;
    struct run *run = arg;
    struct weir_ledger *ledger;
    struct weir_ledger_state state;
    weir_store *store = store_must_open(run->root, NULL, 0, 0);
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    OK(weir_ledger_open(&ledger, store, RUN_LOG));
    OK(weir_ledger_read(ledger, &state));
    CHECK_EQ(state.count, KEEP_LAST); /* and nothing retired */
    for (size_t i = 0; i < state.count; i++) {
        weir_restore *restore;
        uint64_t step = strtoull(state.entries[i].save.name, NULL, 10);
        CHECK(!state.entries[i].retired_ns);
        OK(weir_restore_open(&restore, store, RUN_NAME, step));
        check_open(restore, &step);
        weir_restore_close(restore);
        want_save(&wanted, ledger, &state.entries[i]);
    }
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL)); /* the leases of just now */
    CHECK_EQ(debris(run, &wanted), 0);
    weir_state_free(&state);
    weir_ledger_close(ledger);
    weir_store_close(store);
    return 0;
}
