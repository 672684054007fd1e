/* Checkpoints of several ranks: who is missing is named, what does not fit together is not
 * committed and says why, what is replicated is written once, and a rank's failure is its own.
 */
#include <sys/resource.h>

#include "ckpt/ckpt.h"
#include "ckpt/cover.h"
#include "saves.h"
#include "store/store.h"

enum { RANKS_MAX = 4, ROWS = 8, COLUMNS = 6 };
#define SOON_NS 200000000ull
#define LONG_NS 300000000000ull

static weir_store *store;
static const char *dir;
static uint32_t matrix[ROWS * COLUMNS];

/* The ranks of one life, all in this process. */
struct world {
    const char *run;
    uint32_t ranks;
    weir_ckpt *ckpt[RANKS_MAX];
    weir_saving *saving[RANKS_MAX];
};

/* Its own part is written, and no other comes. */
static void is_alone(weir_saving *saving)
{
    OK(weir_saving_wait(saving, WEIR_LEVEL_NODE, LONG_NS));
    CHECK_EQ(weir_saving_wait(saving, WEIR_LEVEL_HOME, SOON_NS), -ETIMEDOUT);
}

static void world_open(struct world *w, const char *run, uint32_t ranks, uint8_t life)
{
    const uint8_t token[16] = {life, 9};
    *w = (struct world){.run = run, .ranks = ranks};
    for (uint32_t i = 0; i < ranks; i++) {
        weir_ckpt_options opts;
        weir_ckpt_options_init(&opts);
        opts.rank = i;
        opts.ranks = ranks;
        opts.token = token;
        opts.keep_last = 0;
        opts.staging_bytes_max = 4 << 20;
        OK(weir_ckpt_open(&w->ckpt[i], store, run, &opts));
    }
}

static void world_close(struct world *w)
{
    for (uint32_t i = 0; i < w->ranks; i++) {
        weir_saving_close(w->saving[i]);
        weir_ckpt_close(w->ckpt[i]);
    }
}

/* A piece of w: rows [top, bottom) of all columns. */
struct piece {
    uint64_t whole[2], offset[2], shape[2];
};

static weir_tensor rows_of(struct piece *p, uint64_t top, uint64_t bottom)
{
    *p = (struct piece){{ROWS, COLUMNS}, {top, 0}, {bottom - top, COLUMNS}};
    return (weir_tensor){.name = "w",
                         .dtype = "I32",
                         .ndim = 2,
                         .shape = p->shape,
                         .global_shape = p->whole,
                         .offset = p->offset,
                         .data = matrix + top * COLUMNS};
}

static void begin(struct world *w, uint32_t rank, uint64_t step, const weir_tensor *tensors,
                  size_t count)
{
    weir_saving_close(w->saving[rank]);
    w->saving[rank] = NULL;
    OK(weir_ckpt_save(w->ckpt[rank], step, tensors, count, NULL, &w->saving[rank]));
}

/* A save in which all is well. */
static void begin_good(struct world *w, uint32_t rank, uint64_t step)
{
    struct piece p;
    const weir_tensor t =
        rows_of(&p, ROWS * (uint64_t)rank / w->ranks, ROWS * (uint64_t)(rank + 1) / w->ranks);
    begin(w, rank, step, &t, 1);
}

/* All of them are told that, once all have published their parts. */
static void all_wait(struct world *w, int code, const char *text)
{
    for (uint32_t i = 0; i < w->ranks; i++) {
        weir_saving_wait(w->saving[i], WEIR_LEVEL_NODE, LONG_NS);
        CHECK_EQ(weir_saving_wait(w->saving[i], WEIR_LEVEL_HOME, code ? 0 : LONG_NS), code);
        if (code && !strstr(weir_error_text(), text))
            fprintf(stderr, "'%s' should be in: %s\n", text, weir_error_text());
        CHECK(!code || strstr(weir_error_text(), text));
    }
}

static void save_good(struct world *w, uint64_t step)
{
    for (uint32_t i = 0; i < w->ranks; i++)
        begin_good(w, i, step);
    all_wait(w, 0, NULL);
}

/* The newest step is that one, and w is whole. */
static void newest_is(const char *run, uint64_t step, uint64_t save)
{
    static uint32_t copy[ROWS * COLUMNS];
    weir_restore *restore;
    OK(weir_restore_open(&restore, store, run, WEIR_STEP_NEWEST));
    CHECK_EQ(weir_restore_info_get(restore)->step, step);
    if (save)
        CHECK_EQ(weir_restore_info_get(restore)->save, save);
    const weir_slice slice = {(size_t)weir_restore_find(restore, "w"), NULL, NULL, copy};
    memset(copy, 0xff, sizeof copy);
    OK(weir_restore_read(restore, &slice, 1, NULL, NULL));
    CHECK(!memcmp(copy, matrix, sizeof copy));
    weir_restore_close(restore);
}

static void nothing_is(const char *run)
{
    weir_restore *restore;
    CHECK_EQ(weir_restore_open(&restore, store, run, WEIR_STEP_NEWEST), -ENOENT);
}

/* ---- who is missing ---- */

static void missing_ranks(void)
{
    struct world w;
    world_open(&w, "missing", 4, 1);
    begin_good(&w, 0, 1);
    begin_good(&w, 2, 1);
    OK(weir_saving_wait(w.saving[0], WEIR_LEVEL_NODE, LONG_NS));
    OK(weir_saving_wait(w.saving[2], WEIR_LEVEL_NODE, LONG_NS));
    is_alone(w.saving[0]);
    CHECK(strstr(weir_error_text(), "parts 1, 3 of 'ckpt/missing/1-1.1' are missing"));
    begin_good(&w, 1, 1);
    OK(weir_saving_wait(w.saving[1], WEIR_LEVEL_NODE, LONG_NS));
    CHECK_EQ(weir_saving_wait(w.saving[2], WEIR_LEVEL_HOME, 0), -ETIMEDOUT);
    CHECK(strstr(weir_error_text(), "part 3 of 'ckpt/missing/1-1.1' is missing"));
    nothing_is("missing");
    begin_good(&w, 3, 1);
    all_wait(&w, 0, NULL);
    newest_is("missing", 1, 1);
    world_close(&w);
}

/* ---- what does not fit together ---- */

/* Two ranks; what the second one has is the case's. Nobody is told that it is committed. */
static void refused(struct world *w, uint64_t step, const weir_tensor *first,
                    const weir_tensor *second, const char *text)
{
    begin(w, 0, step, first, 1);
    OK(weir_saving_wait(w->saving[0], WEIR_LEVEL_NODE, LONG_NS));
    begin(w, 1, step, second, 1);
    CHECK_EQ(weir_saving_wait(w->saving[1], WEIR_LEVEL_HOME, LONG_NS), -EBADMSG);
    all_wait(w, -EBADMSG, text);
    CHECK(strstr(weir_error_text(), "is not committed"));
}

/* As Python waits. */
static int wait_in_slices(weir_saving *saving)
{
    int code = -ETIMEDOUT;
    for (int i = 0; code == -ETIMEDOUT && i < 15000; i++)
        code = weir_saving_wait(saving, WEIR_LEVEL_HOME, 20000000);
    return code;
}

static void misfits(void)
{
    struct world w;
    struct piece p, q;
    world_open(&w, "misfit", 2, 1);
    weir_tensor a = rows_of(&p, 0, 4), b = rows_of(&q, 4, 8);
    b.dtype = "F32";
    refused(&w, 1, &a, &b, "ranks 0 and 1 do not agree on the dtype or shape of tensor 'w'");
    b = rows_of(&q, 4, 8);
    q.whole[0] = ROWS + 1;
    refused(&w, 2, &a, &b, "ranks 0 and 1 do not agree");
    b = rows_of(&q, 3, 8);
    refused(&w, 3, &a, &b,
            "pieces of tensor 'w' overlap: [0:4,0:6] of rank 0, [3:8,0:6] of rank 1");
    b = rows_of(&q, 5, 8);
    refused(&w, 4, &a, &b, "nobody has [4:5,0:6] of tensor 'w'");
    b = rows_of(&q, 4, 8);
    q.shape[1] = 2; /* the left part of it only */
    refused(&w, 5, &a, &b, "nobody has [4:8,2:6] of tensor 'w'");
    b = rows_of(&q, 4, 8);
    b.name = "v";
    refused(&w, 6, &a, &b, "nobody has [0:4,0:6] of tensor 'v'");
    nothing_is("misfit");
    OK(weir_remove(store, "ckpt/misfit/6-1.6/refused.txt")); /* as if he who found it had died */
    CHECK_EQ(weir_saving_wait(w.saving[0], WEIR_LEVEL_HOME, 0), -ETIMEDOUT);
    CHECK_EQ(wait_in_slices(w.saving[0]), -EBADMSG);
    CHECK(strstr(weir_error_text(), "nobody has [0:4,0:6] of tensor 'v'"));
    CHECK(path_there(path_in(dir, "ckpt/misfit/6-1.6/refused.txt")));
    save_good(&w, 7); /* nobody is worse off for it */
    newest_is("misfit", 7, 7);
    b = rows_of(&q, 0, 4); /* what two have alike is one piece */
    weir_tensor twice[2] = {a, rows_of(&p, 4, 8)};
    struct piece r;
    twice[0] = rows_of(&r, 0, 4);
    begin(&w, 0, 8, twice, 2);
    begin(&w, 1, 8, &b, 1);
    all_wait(&w, 0, NULL);
    newest_is("misfit", 8, 8);
    world_close(&w);
}

static void replicas(void)
{
    enum { COUNT = 12, BYTES = 100000 };
    static const uint8_t data[BYTES];
    static const uint64_t shape[] = {BYTES};
    struct world w;
    char names[COUNT][8];
    uint64_t sum = 0;
    weir_tensor tensors[COUNT];
    world_open(&w, "replicas", 4, 1);
    for (uint32_t rank = 0; rank < 4; rank++) {
        for (unsigned i = 0; i < COUNT; i++) {
            snprintf(names[i], sizeof names[i], "r%u", i);
            tensors[i] = (weir_tensor){.name = names[i],
                                       .dtype = "U8",
                                       .ndim = 1,
                                       .shape = shape,
                                       .data = data,
                                       .replica = rank,
                                       .replicas = 4};
        }
        begin(&w, rank, 1, tensors, COUNT);
    }
    all_wait(&w, 0, NULL);
    unsigned writers = 0;
    for (uint32_t rank = 0; rank < 4; rank++) {
        weir_ckpt_stats stats;
        weir_ckpt_stats_get(w.ckpt[rank], &stats);
        sum += stats.bytes;
        writers += stats.bytes > BYTES;
    }
    CHECK(sum >= COUNT * BYTES && sum < COUNT * BYTES + 4 * 8192); /* once, and the headers */
    CHECK(writers > 1);                                            /* and not all by one rank */
    for (uint32_t rank = 0; rank < 4; rank++) /* one of them does not have all */
        begin(&w, rank, 2, tensors, rank == 2 ? COUNT - 1 : COUNT);
    for (uint32_t rank = 0; rank < 4; rank++)
        weir_saving_wait(w.saving[rank], WEIR_LEVEL_NODE, LONG_NS);
    all_wait(&w, -EBADMSG, "do not agree on a tensor that is replicated");
    world_close(&w);
}

/* ---- one step, several saves ---- */

static void same_step(void)
{
    struct world w, again;
    world_open(&w, "same", 2, 1);
    save_good(&w, 5);
    matrix[3] ^= 1;
    save_good(&w, 5); /* in one life: the one begun last is the one */
    newest_is("same", 5, 2);
    const char *index = "ckpt/same/5-1.1/model.safetensors.index.json";
    struct weir_save first = {.name = "5", .attempt = 1, .number = 1, .parts = 2};
    for (uint32_t i = 0; i < 2; i++) /* what comes with the commits is done */
        OK(weir_ckpt_wait(w.ckpt[i], 0, UINT64_MAX));
    OK(weir_remove(store, index));
    weir_ckpt_put_indexes(store, "same", &first); /* of this one, not of the newest of the step */
    CHECK(path_there(path_in(dir, index)));
    matrix[3] ^= 1;
    world_open(&again, "same", 2, 2);
    save_good(&again, 5); /* in another life */
    newest_is("same", 5, 1);
    for (uint32_t i = 0; i < 2; i++) { /* the old one is over */
        begin_good(&w, i, 6);
        weir_saving_wait(w.saving[i], WEIR_LEVEL_NODE, LONG_NS);
    }
    all_wait(&w, -ESTALE, "ckpt/same");
    newest_is("same", 5, 1);
    world_close(&w);
    world_close(&again);
}

/* Two processes that both take themselves for rank 0: one of them is told, nothing is mixed. */
static void two_coordinators(void)
{
    struct world w, twin;
    world_open(&w, "twins", 2, 1);
    world_open(&twin, "twins", 2, 1);
    begin_good(&w, 0, 1);
    OK(weir_saving_wait(w.saving[0], WEIR_LEVEL_NODE, LONG_NS));
    matrix[0] ^= 1;
    begin_good(&twin, 0, 1);
    matrix[0] ^= 1;
    CHECK_EQ(weir_saving_wait(twin.saving[0], WEIR_LEVEL_HOME, LONG_NS), -EEXIST);
    begin_good(&w, 1, 1);
    all_wait(&w, 0, NULL);
    newest_is("twins", 1, 1);
    world_close(&w);
    world_close(&twin);
}

/* ---- a rank's failure ---- */

/* The file of a rank that died before its part. */
static void put_file_alone(const char *prefix, const char *name)
{
    char key[200];
    weir_put_options opts;
    weir_put *put;
    weir_put_options_init(&opts);
    opts.flags = WEIR_PUT_OF_SAVE(prefix);
    snprintf(key, sizeof key, "%s/%s", prefix, name);
    OK(weir_put_open(&put, store, key, &opts));
    OK(weir_put_write(put, "died", 4));
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
}

static void died_before_its_part(void)
{
    struct world w, next;
    world_open(&w, "died", 2, 1);
    begin_good(&w, 0, 1);
    put_file_alone("ckpt/died/1-1.1", "model-00002-of-00002.safetensors");
    is_alone(w.saving[0]);
    CHECK(strstr(weir_error_text(), "part 1 of"));
    nothing_is("died");
    world_open(&next, "died", 2, 2);
    save_good(&next, 1);
    newest_is("died", 1, 1);
    world_close(&w);
    world_close(&next);
    CHECK(path_there(path_in(dir, "ckpt/died/1-1.1")));
    OK(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    CHECK(!path_there(path_in(dir, "ckpt/died/1-1.1")));
    newest_is("died", 1, 1);
}

/* Rank 1 of 2, which has nothing to save, publishes its part and dies. */
static void put_part_alone(const char *prefix)
{
    char name[WEIR_NAME_BYTES_MAX];
    uint8_t note[WEIR_COVER_BYTES], payload[WEIR_PART_PAYLOAD_BYTES_MAX], *bytes;
    struct weir_cover cover = {0};
    enum weir_doubt doubt;
    size_t size, leaf_size;
    weir_cover_encode(&cover, note);
    OK(weir_part_encode(payload, &size, NULL, 0, note, sizeof note));
    OK(weir_node_leaf(2, 1, payload, size, &bytes, &leaf_size));
    snprintf(name, sizeof name, "%s%s~/0.1", WEIR_DIR_SET, prefix);
    OK(weir_record_put(store, name, bytes, leaf_size, 0, &doubt));
    free(bytes);
}

/* Who waits commits what others left, with all that comes with a commit. */
static void died_before_the_commit(void)
{
    struct world w;
    struct piece p;
    const weir_tensor t = rows_of(&p, 0, ROWS);
    world_open(&w, "late", 2, 1);
    begin(&w, 0, 1, &t, 1);
    OK(weir_saving_wait(w.saving[0], WEIR_LEVEL_NODE, LONG_NS));
    put_part_alone("ckpt/late/1-1.1");
    nothing_is("late");
    OK(wait_in_slices(w.saving[0]));
    newest_is("late", 1, 1);
    CHECK(path_there(path_in(dir, "ckpt/late/1-1.1/model.safetensors.index.json")));
    CHECK(path_there(path_in(dir, "ckpt/late/1-1.1/manifest")));
    world_close(&w);
}

/* More ranks than a process may have files open. */
static void many_files(void)
{
    enum { MANY = 300, OPEN_MAX = 290 };
    static uint8_t data[MANY], copy[MANY];
    static const uint64_t whole[] = {MANY}, one[] = {1};
    const uint8_t token[16] = {1};
    struct rlimit old, low;
    weir_restore *restore;
    for (uint32_t i = 0; i < MANY; i++) {
        const uint64_t offset[] = {i};
        weir_ckpt_options opts;
        weir_ckpt *ckpt;
        data[i] = (uint8_t)(i * 7 + 1);
        const weir_tensor t = {.name = "t",
                               .dtype = "U8",
                               .ndim = 1,
                               .shape = one,
                               .global_shape = whole,
                               .offset = offset,
                               .data = &data[i]};
        weir_ckpt_options_init(&opts);
        opts.rank = i;
        opts.ranks = MANY;
        opts.token = token;
        opts.staging_bytes_max = 4 << 20;
        OK(weir_ckpt_open(&ckpt, store, "many", &opts));
        OK(weir_ckpt_save(ckpt, 1, &t, 1, NULL, NULL));
        weir_ckpt_close(ckpt);
    }
    OK(weir_restore_open(&restore, store, "many", 1));
    CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
    low = old;
    low.rlim_cur = OPEN_MAX; /* one or two each of 128 files, and those of the store */
    CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
    const weir_slice slice = {0, NULL, NULL, copy};
    for (int i = 0; i < 2; i++) {
        memset(copy, 0, sizeof copy);
        OK(weir_restore_read(restore, &slice, 1, NULL, NULL));
        CHECK(!memcmp(copy, data, sizeof copy));
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
    weir_restore_close(restore);
}

static void cancelled(void)
{
    struct world w;
    struct piece p;
    world_open(&w, "cancel", 2, 1);
    weir_ckpt_options opts;
    weir_ckpt_options_init(&opts);
    const uint8_t token[16] = {1, 9};
    opts.token = token;
    opts.rank = 1;
    opts.ranks = 2;
    opts.keep_last = 0;
    opts.rate_bytes_per_s = 1 << 20; /* slow enough to be caught at it, on any machine */
    weir_ckpt_close(w.ckpt[1]);
    OK(weir_ckpt_open(&w.ckpt[1], store, "cancel", &opts));
    enum { BYTES = 24 << 20 };
    static uint8_t big[BYTES];
    static const uint64_t shape[] = {BYTES};
    const weir_tensor tensors[] = {
        rows_of(&p, 4, 8),
        {.name = "big", .dtype = "U8", .ndim = 1, .shape = shape, .data = big},
    };
    begin_good(&w, 0, 1);
    begin(&w, 1, 1, tensors, 2);
    weir_saving_cancel(w.saving[1]);
    CHECK_EQ(weir_saving_wait(w.saving[1], WEIR_LEVEL_HOME, LONG_NS), -ECANCELED);
    is_alone(w.saving[0]);
    CHECK(strstr(weir_error_text(), "part 1 of"));
    nothing_is("cancel");
    save_good(&w, 2); /* and the next one is whole */
    newest_is("cancel", 2, 2);
    world_close(&w);
}

/* An error that nobody asked about is answered by the next save; the other rank knows nothing of
 * all that, and the save after it is whole again. */
static void unheard(void)
{
    struct world w;
    struct piece p;
    const weir_tensor t = rows_of(&p, 4, 8);
    world_open(&w, "unheard", 2, 1);
    save_good(&w, 1);
    put_file_alone("ckpt/unheard/2-1.2", "model-00002-of-00002.safetensors"); /* so it must fail */
    begin_good(&w, 0, 2);
    OK(weir_saving_wait(w.saving[0], WEIR_LEVEL_NODE, LONG_NS));
    begin(&w, 1, 2, &t, 1);
    while (weir_saving_wait(w.saving[1], WEIR_LEVEL_MEMORY, 0))
        ;
    weir_saving_close(w.saving[1]); /* unasked */
    w.saving[1] = NULL;
    int code = 0;
    uint64_t step = 3;
    while (!code) { /* the failure may take a moment */
        begin_good(&w, 0, step);
        code = weir_ckpt_save(w.ckpt[1], step++, &t, 1, NULL, NULL);
    }
    CHECK_EQ(code, -EEXIST);
    CHECK(strstr(weir_error_text(), "an earlier save failed") &&
          strstr(weir_error_text(), "ckpt/unheard/2-1.2"));
    save_good(&w, step);
    newest_is("unheard", step, step);
    world_close(&w);
}

/* Pieces of one name that are not of one tensor are refused at once. */
static void one_rank_against_itself(void)
{
    struct world w;
    struct piece p, q, r;
    world_open(&w, "self", 2, 1);
    weir_tensor t[] = {rows_of(&p, 0, 2), rows_of(&q, 2, 4), rows_of(&r, 0, 2)};
    CHECK_EQ(weir_ckpt_save(w.ckpt[0], 1, t, 3, NULL, NULL), -EINVAL);
    CHECK(strstr(weir_error_text(), "'w[0:2,0:6]' is given twice"));
    t[1].ndim = 1;
    CHECK_EQ(weir_ckpt_save(w.ckpt[0], 2, t, 2, NULL, NULL), -EINVAL);
    CHECK(strstr(weir_error_text(), "'w' is given with two dtypes or shapes"));
    world_close(&w);
}

int main(void)
{
    dir = tmpdir();
    store = store_at(dir, NULL);
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        matrix[i] = i * 0x01000193u;
    RUN(missing_ranks);
    RUN(misfits);
    RUN(replicas);
    RUN(same_step);
    RUN(two_coordinators);
    RUN(died_before_its_part);
    RUN(died_before_the_commit);
    RUN(many_files);
    RUN(cancelled);
    RUN(unheard);
    RUN(one_rank_against_itself);
    weir_store_close(store);
    return TEST_RESULT;
}
