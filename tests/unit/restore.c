/* Loading: any boxes of tensors of many dimensions, from whatever pieces, in one call; what is
 * damaged is named, and does not keep others from being loaded; a load can be stopped.
 */
#include <sys/file.h>

#include "stores.h"
#include "util/sys.h"

static weir_store *store;
static const char *dir;
static const uint8_t token[16] = {5};

/* ---- four dimensions ---- */

enum { DIMS = 4, CELLS = 5 * 6 * 7 * 4, BOXES = 6, RANKS = 4 };
static const uint64_t whole[DIMS] = {5, 6, 7, 4};
static uint32_t cells[CELLS];

static uint64_t cell_at(const uint64_t *at)
{
    uint64_t place = 0;
    for (int d = 0; d < DIMS; d++)
        place = place * whole[d] + at[d];
    return place;
}

/* Copies a box of all cells, element by element, as the slowest reader would. */
static uint64_t box_copy(uint32_t *out, const uint64_t *offset, const uint64_t *shape)
{
    uint64_t count = 0, i[DIMS];
    for (i[0] = 0; i[0] < shape[0]; i[0]++)
        for (i[1] = 0; i[1] < shape[1]; i[1]++)
            for (i[2] = 0; i[2] < shape[2]; i[2]++)
                for (i[3] = 0; i[3] < shape[3]; i[3]++) {
                    uint64_t at[DIMS];
                    for (int d = 0; d < DIMS; d++)
                        at[d] = offset[d] + i[d];
                    out[count++] = cells[cell_at(at)];
                }
    return count;
}

static weir_ckpt *ckpt_of(const char *run, uint32_t rank, uint32_t ranks)
{
    weir_ckpt_options opts;
    weir_ckpt *ckpt;
    weir_ckpt_options_init(&opts);
    opts.rank = rank;
    opts.ranks = ranks;
    opts.token = token;
    opts.staging_bytes_max = 8 << 20;
    OK(weir_ckpt_open(&ckpt, store, run, &opts));
    return ckpt;
}

static void saved(weir_ckpt *ckpt, weir_saving *saving)
{
    OK(weir_saving_wait(saving, WEIR_LEVEL_HOME, 60000000000ull));
    weir_saving_close(saving);
    weir_ckpt_close(ckpt);
}

/* Four ranks, of which each has a piece along one dimension. */
static void save_along(const char *run, uint32_t dim)
{
    weir_ckpt *ckpts[RANKS];
    weir_saving *savings[RANKS];
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        static uint32_t piece[CELLS];
        uint64_t offset[DIMS] = {0}, shape[DIMS];
        memcpy(shape, whole, sizeof shape);
        offset[dim] = whole[dim] * rank / RANKS;
        shape[dim] = whole[dim] * (rank + 1) / RANKS - offset[dim];
        box_copy(piece, offset, shape);
        const weir_tensor tensor = {.name = "w",
                                    .dtype = "I32",
                                    .ndim = DIMS,
                                    .shape = shape,
                                    .global_shape = whole,
                                    .offset = offset,
                                    .data = piece};
        ckpts[rank] = ckpt_of(run, rank, RANKS);
        OK(weir_ckpt_save(ckpts[rank], 1, &tensor, 1, NULL, &savings[rank]));
        OK(weir_saving_wait(savings[rank], WEIR_LEVEL_NODE, 60000000000ull));
    }
    for (uint32_t rank = 0; rank < RANKS; rank++)
        saved(ckpts[rank], savings[rank]);
}

static int count_bytes(void *arg, uint64_t more)
{
    *(uint64_t *)arg += more;
    return 0;
}

/* Several boxes in one call, which may have cells in common, or none. */
static void load_boxes(weir_restore *restore, struct rng *rng)
{
    static uint32_t got[BOXES][CELLS + 1], want[CELLS];
    uint64_t offset[BOXES][DIMS], shape[BOXES][DIMS], total = 0, bytes = 0;
    weir_slice slices[BOXES];
    for (int i = 0; i < BOXES; i++) {
        for (int d = 0; d < DIMS; d++) {
            bool full = rng_below(rng, 2);
            offset[i][d] = full ? 0 : rng_below(rng, whole[d]);
            shape[i][d] = full ? whole[d] : rng_below(rng, whole[d] - offset[i][d] + 1);
        }
        slices[i] = (weir_slice){0, offset[i], shape[i], got[i]};
    }
    memset(got, 0xff, sizeof got);
    OK(weir_restore_read(restore, slices, BOXES, count_bytes, &bytes));
    for (int i = 0; i < BOXES; i++) {
        uint64_t count = box_copy(want, offset[i], shape[i]);
        CHECK(!memcmp(got[i], want, count * sizeof want[0]));
        CHECK_EQ(got[i][count], UINT32_MAX);
        total += count * sizeof want[0];
    }
    CHECK_EQ(bytes, total);
}

static void boxes(void)
{
    struct rng rng = {1};
    for (uint32_t i = 0; i < CELLS; i++)
        cells[i] = i;
    for (uint32_t dim = 0; dim < DIMS; dim++) {
        char run[16];
        weir_restore *restore;
        snprintf(run, sizeof run, "along-%u", dim);
        save_along(run, dim);
        OK(weir_restore_open(&restore, store, run, 1));
        for (int i = 0; i < 200; i++)
            load_boxes(restore, &rng);
        weir_restore_close(restore);
    }
}

/* ---- elements smaller than a byte ---- */

static void half_bytes(void)
{
    static const uint64_t shape[] = {4, 3}, offset[] = {0, 0}, columns[] = {4, 2}, rows[] = {2, 3};
    static const uint64_t corner[] = {1, 2};
    const weir_tensor tensor = {
        .name = "w", .dtype = "F4", .ndim = 2, .shape = shape, .data = "\x12\x34\x56\x78\x9a\xbc"};
    weir_ckpt *ckpt = ckpt_of("half", 0, 1);
    weir_saving *saving;
    weir_restore *restore;
    char got[6];
    OK(weir_ckpt_save(ckpt, 1, &tensor, 1, NULL, &saving));
    saved(ckpt, saving);
    OK(weir_restore_open(&restore, store, "half", 1));
    OK(weir_restore_read(restore, &(weir_slice){0, offset, rows, got}, 1, NULL, NULL));
    CHECK(!memcmp(got, "\x12\x34\x56", 3));
    OK(weir_restore_read(restore, &(weir_slice){0, offset, corner, got}, 1, NULL, NULL));
    CHECK(!memcmp(got, "\x12", 1));
    CHECK_EQ(weir_restore_read(restore, &(weir_slice){0, offset, columns, got}, 1, NULL, NULL),
             -EINVAL);
    CHECK(strstr(weir_error_text(), "'w' does not begin at a whole byte"));
    weir_restore_close(restore);
}

/* ---- damage ---- */

enum { MIB = 1 << 20, TENSORS = 4, TENSOR_BYTES = 2 * MIB + 4096 };
static const char *const names[TENSORS] = {"a", "b", "c", "d"};

static void save_large(void)
{
    const uint64_t shape[] = {TENSOR_BYTES};
    weir_tensor tensors[TENSORS];
    for (uint64_t i = 0; i < TENSORS; i++) {
        uint8_t *data = data_buffer(TENSOR_BYTES, 0);
        data_fill(data, TENSOR_BYTES, i, 0);
        tensors[i] =
            (weir_tensor){.name = names[i], .dtype = "U8", .ndim = 1, .shape = shape, .data = data};
    }
    weir_ckpt *ckpt = ckpt_of("large", 0, 1);
    weir_saving *saving;
    OK(weir_ckpt_save(ckpt, 1, tensors, TENSORS, NULL, &saving));
    saved(ckpt, saving);
    for (int i = 0; i < TENSORS; i++)
        data_free((uint8_t *)tensors[i].data, 0);
}

static int load_large(weir_restore *restore, const size_t *which, size_t count, uint8_t **data)
{
    weir_slice slices[TENSORS];
    for (size_t i = 0; i < count; i++) {
        memset(data[i], 0xee, TENSOR_BYTES);
        slices[i] = (weir_slice){which[i], NULL, NULL, data[i]};
    }
    int code = weir_restore_read(restore, slices, count, NULL, NULL);
    for (size_t i = 0; !code && i < count; i++)
        CHECK(data_is(data[i], TENSOR_BYTES, which[i], 0));
    return code;
}

static void damage(void)
{
    static const size_t all[] = {2, 0, 3, 1}, others[] = {3, 0};
    uint8_t *data[TENSORS];
    weir_restore *restore;
    for (int i = 0; i < TENSORS; i++)
        data[i] = data_buffer(TENSOR_BYTES, i % 2);
    save_large();
    OK(weir_restore_open(&restore, store, "large", 1));
    OK(load_large(restore, all, TENSORS, data));
    const char *file = "ckpt/large/1-1.1/model.safetensors";
    char *path = data_path(store, dir, file);
    int fd = file_force_open(path);
    /* The files begin their data at 4 KiB: block 3 has the end of "b" and the begin of "c". */
    uint64_t at = 4096 + TENSOR_BYTES + MIB;
    fd_flip(fd, at * 8);
    fd_drop_cache(fd);
    CHECK_EQ(load_large(restore, all, TENSORS, data), -EBADMSG);
    CHECK(strstr(weir_error_text(), "cannot load tensor 'b'"));
    CHECK(strstr(weir_error_text(), file));
    CHECK(strstr(weir_error_text(), "(bytes 3145728-4194303)"));
    OK(load_large(restore, others, 2, data));
    fd_flip(fd, at * 8);
    OK(load_large(restore, all, TENSORS, data));
    weir_restore_close(restore);
    close(fd);
    free(path);
    for (int i = 0; i < TENSORS; i++)
        data_free(data[i], i % 2);
}

static int stop_third(void *arg, uint64_t more)
{
    CHECK(more);
    return ++*(int *)arg == 3;
}

static void stopped(void)
{
    weir_restore *restore;
    int calls = 0;
    uint8_t *data = data_buffer(TENSOR_BYTES, 1);
    OK(weir_restore_open(&restore, store, "large", 1));
    const weir_slice slice = {.tensor = 0, .data = data};
    CHECK_EQ(weir_restore_read(restore, &slice, 1, stop_third, &calls), -ECANCELED);
    CHECK(strstr(weir_error_text(), "loading 'ckpt/large/1-1.1' was stopped"));
    CHECK_EQ(calls, 3);
    weir_restore_close(restore);
    data_free(data, 1);
}

/* ---- a training that saves and prunes meanwhile ---- */

static weir_ckpt *training;
static _Thread_local unsigned overtakers; /* of the one who opens, not of those who tidy up */

static void save_step(uint64_t step)
{
    uint64_t value = step;
    weir_saving *saving;
    const weir_tensor tensor = {
        .name = "value", .dtype = "U64", .data = &value, .ndim = 1, .shape = (uint64_t[]){1}};
    OK(weir_ckpt_save(training, step, &tensor, 1, NULL, &saving));
    OK(weir_saving_wait(saving, WEIR_LEVEL_HOME, 60000000000ull));
    weir_saving_close(saving);
}

/* Before a reader has its lease, its save is no longer the newest, and gone. */
static int overtaken_flock(int fd, int operation)
{
    static uint64_t newest = 1;
    if ((operation & LOCK_SH) && overtakers) {
        unsigned left = overtakers - 1;
        overtakers = 0; /* not within itself */
        save_step(++newest);
        OK(weir_ckpt_remove(store, "live", newest - 1, 0, 0, NULL, NULL, NULL));
        overtakers = left;
    }
    return weir_sys_real.flock(fd, operation);
}

static void overtaken(void)
{
    weir_restore *restore;
    training = ckpt_of("live", 0, 1);
    save_step(1);
    overtakers = 2;
    OK(weir_restore_open(&restore, store, "live", WEIR_STEP_NEWEST));
    CHECK_EQ(overtakers, 0);
    CHECK_EQ(weir_restore_info_get(restore)->step, 3);
    weir_restore_close(restore);
    overtakers = 1;
    CHECK_EQ(weir_restore_open(&restore, store, "live", 3), -ENOENT);
    weir_ckpt_close(training);
}

int main(void)
{
    struct weir_sys table = weir_sys_real;
    table.flock = overtaken_flock;
    weir_sys = &table; /* before there is a thread */
    dir = tmpdir();
    store = store_at(dir, NULL);
    RUN(boxes);
    RUN(half_bytes);
    RUN(damage);
    RUN(stopped);
    RUN(overtaken);
    weir_store_close(store);
    return TEST_RESULT;
}
