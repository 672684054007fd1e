/* Checkpoints through the public interface: what is saved is loaded, whole or in other pieces; what
 * is not complete does not exist; what is surplus goes.
 */
#include "ckpt/ckpt.h"
#include "stores.h"
#include "util/err.h"
#include "util/sys.h"

static weir_store *store;
static const char *dir;
static const uint8_t token[16] = {7};

static weir_ckpt *ckpt_as(const char *run, uint32_t rank, uint32_t ranks, uint32_t keep)
{
    weir_ckpt_options opts;
    weir_ckpt *ckpt;
    weir_ckpt_options_init(&opts);
    opts.rank = rank;
    opts.ranks = ranks;
    opts.token = ranks > 1 ? token : NULL;
    opts.keep_last = keep;
    opts.retired_grace_s = 0;
    opts.staging_bytes_max = 8 << 20;
    OK(weir_ckpt_open(&ckpt, store, run, &opts));
    return ckpt;
}

static void save(weir_ckpt *ckpt, uint64_t step, const weir_tensor *tensors, size_t count,
                 weir_level level)
{
    weir_saving *saving;
    weir_save_options opts = {
        .struct_size = sizeof opts, .meta = "{\"step\": true}", .state = "[1]"};
    OK(weir_ckpt_save(ckpt, step, tensors, count, &opts, &saving));
    OK(weir_saving_wait(saving, level, 60000000000ull));
    weir_saving_close(saving);
}

/* A matrix of 4-byte elements, each of which says where it is. */
enum { ROWS = 60, COLUMNS = 35 };
static uint32_t matrix[ROWS][COLUMNS];

static void matrix_fill(void)
{
    for (uint32_t i = 0; i < ROWS; i++)
        for (uint32_t k = 0; k < COLUMNS; k++)
            matrix[i][k] = i << 16 | k;
}

static void one_rank(void)
{
    static const uint64_t shape[] = {ROWS, COLUMNS}, none[] = {0}, three[] = {3};
    static const uint8_t big[5 << 20] = {1, 2, 3};
    const uint64_t big_shape[] = {sizeof big};
    const weir_tensor tensors[] = {
        {.name = "w", .dtype = "I32", .ndim = 2, .shape = shape, .data = matrix},
        {.name = "scalar", .dtype = "F64", .ndim = 0, .data = matrix},
        {.name = "empty", .dtype = "BF16", .ndim = 1, .shape = none},
        {.name = "big", .dtype = "U8", .ndim = 1, .shape = big_shape, .data = big},
        {.name = "mask", .dtype = "BOOL", .ndim = 1, .shape = three, .data = "\1\0\1"},
    };
    weir_ckpt *ckpt = ckpt_as("one", 0, 1, 3);
    weir_restore *restore;
    CHECK_EQ(weir_restore_open(&restore, store, "one", WEIR_STEP_NEWEST), -ENOENT);
    save(ckpt, 10, tensors, 5, WEIR_LEVEL_HOME);
    OK(weir_restore_open(&restore, store, "one", WEIR_STEP_NEWEST));
    const weir_restore_info *info = weir_restore_info_get(restore);
    CHECK_EQ(info->step, 10);
    CHECK_EQ(info->tensors, 5);
    CHECK(!strcmp(info->meta, "{\"step\": true}"));
    char *state;
    OK(weir_restore_state(restore, 0, &state));
    CHECK(!strcmp(state, "[1]"));
    free(state);
    static uint32_t copy[ROWS][COLUMNS];
    static uint8_t big_copy[sizeof big];
    const weir_slice slices[] = {
        {.tensor = (size_t)weir_restore_find(restore, "w"), .data = copy},
        {.tensor = (size_t)weir_restore_find(restore, "big"), .data = big_copy},
    };
    OK(weir_restore_read(restore, slices, 2, NULL, NULL));
    CHECK(!memcmp(copy, matrix, sizeof copy) && !memcmp(big, big_copy, sizeof big));
    CHECK_EQ(weir_restore_find(restore, "nothing"), -ENOENT);
    weir_restore_close(restore);
    weir_ckpt_close(ckpt);
    CHECK(path_there(path_in(dir, "ckpt/one/10-1.1/model.safetensors")));
    CHECK(path_there(path_in(dir, "ckpt/one/10-1.1/model.safetensors.index.json")));
}

/* The ranks of a grid: each has its block of the matrix, and all have the same bias. */
static void save_grid(const char *run, uint64_t step, uint32_t down, uint32_t across)
{
    static const uint32_t bias[] = {1, 2, 3, 4};
    static const uint64_t bias_shape[] = {4}, whole[] = {ROWS, COLUMNS};
    uint32_t ranks = down * across;
    weir_ckpt *ckpts[16];
    weir_saving *savings[16];
    for (uint32_t rank = 0; rank < ranks; rank++) {
        static uint32_t block[ROWS * COLUMNS];
        uint64_t top = ROWS * (rank / across) / down, bottom = ROWS * (rank / across + 1) / down;
        uint64_t left = COLUMNS * (rank % across) / across;
        uint64_t right = COLUMNS * (rank % across + 1) / across;
        const uint64_t shape[] = {bottom - top, right - left}, offset[] = {top, left};
        for (uint64_t i = top; i < bottom; i++)
            memcpy(block + (i - top) * shape[1], &matrix[i][left], 4 * shape[1]);
        const weir_tensor tensors[] = {
            {.name = "w",
             .dtype = "I32",
             .ndim = 2,
             .shape = shape,
             .global_shape = whole,
             .offset = offset,
             .data = block},
            {.name = "bias",
             .dtype = "I32",
             .ndim = 1,
             .shape = bias_shape,
             .data = bias,
             .replica = rank,
             .replicas = ranks},
        };
        ckpts[rank] = ckpt_as(run, rank, ranks, 0);
        OK(weir_ckpt_save(ckpts[rank], step, tensors, 2, NULL, &savings[rank]));
        OK(weir_saving_wait(savings[rank], WEIR_LEVEL_NODE, 60000000000ull));
        weir_restore *none;
        if (rank + 1 < ranks) /* not all are there: it does not exist */
            CHECK_EQ(weir_restore_open(&none, store, run, WEIR_STEP_NEWEST), -ENOENT);
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        OK(weir_saving_wait(savings[rank], WEIR_LEVEL_HOME, 60000000000ull));
        weir_saving_close(savings[rank]);
        weir_ckpt_close(ckpts[rank]);
    }
}

static void check_box(weir_restore *restore, uint64_t top, uint64_t left, uint64_t height,
                      uint64_t width)
{
    static uint32_t box[ROWS * COLUMNS];
    const uint64_t offset[] = {top, left}, shape[] = {height, width};
    const weir_slice slice = {(size_t)weir_restore_find(restore, "w"), offset, shape, box};
    memset(box, 0xff, sizeof box);
    OK(weir_restore_read(restore, &slice, 1, NULL, NULL));
    for (uint64_t i = 0; i < height; i++)
        CHECK(!memcmp(box + i * width, &matrix[top + i][left], 4 * width));
    CHECK(height * width == ROWS * COLUMNS || box[height * width] == UINT32_MAX);
}

static void other_pieces(void)
{
    static const uint32_t grids[][2] = {{1, 4}, {4, 1}, {2, 3}, {3, 2}, {7, 2}};
    struct rng rng = {1};
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++) {
        char run[32];
        weir_restore *restore;
        weir_tensor_info info;
        uint32_t bias[4] = {0};
        snprintf(run, sizeof run, "grid-%zu", g);
        save_grid(run, g + 1, grids[g][0], grids[g][1]);
        OK(weir_restore_open(&restore, store, run, g + 1));
        CHECK_EQ(weir_restore_info_get(restore)->ranks, grids[g][0] * grids[g][1]);
        check_box(restore, 0, 0, ROWS, COLUMNS);
        for (int i = 0; i < 200; i++) {
            uint64_t top = rng_below(&rng, ROWS), left = rng_below(&rng, COLUMNS);
            check_box(restore, top, left, 1 + rng_below(&rng, ROWS - top),
                      1 + rng_below(&rng, COLUMNS - left));
        }
        const weir_slice slice = {(size_t)weir_restore_find(restore, "bias"), NULL, NULL, bias};
        OK(weir_restore_tensor(restore, slice.tensor, &info));
        CHECK_EQ(info.pieces, 1); /* written once */
        OK(weir_restore_read(restore, &slice, 1, NULL, NULL));
        CHECK(bias[0] == 1 && bias[3] == 4);
        weir_restore_close(restore);
    }
}

/* Part 0 has only something to say, part 1 has the tensor, part 2 nothing at all: no empty files,
 * and nobody misses them. */
static void empty_parts(void)
{
    static const uint64_t shape[] = {ROWS, COLUMNS};
    const weir_tensor tensor = {
        .name = "w", .dtype = "I32", .ndim = 2, .shape = shape, .data = matrix};
    weir_restore *restore;
    for (uint32_t rank = 3; rank-- > 0;) {
        weir_ckpt *ckpt = ckpt_as("empty", rank, 3, 0);
        save(ckpt, 5, &tensor, rank == 1, rank ? WEIR_LEVEL_NODE : WEIR_LEVEL_HOME);
        weir_ckpt_close(ckpt);
    }
    OK(weir_restore_open(&restore, store, "empty", 5));
    CHECK(!strcmp(weir_restore_info_get(restore)->meta, "{\"step\": true}"));
    check_box(restore, 0, 0, ROWS, COLUMNS);
    weir_restore_close(restore);
    CHECK(!path_there(path_in(dir, "ckpt/empty/5-1.1/model-00001-of-00003.safetensors")));
    CHECK(path_there(path_in(dir, "ckpt/empty/5-1.1/model-00002-of-00003.safetensors")));
    CHECK(!path_there(path_in(dir, "ckpt/empty/5-1.1/model-00003-of-00003.safetensors")));
    CHECK(!path_there(path_in(dir, "ckpt/empty/5-1.1/manifest-00003")));
    CHECK(path_there(path_in(dir, "ckpt/empty/5-1.1/model.safetensors.index.json")));
}

/* One rank has begun a save more than the other: an agreed number brings them together. */
static void numbers(void)
{
    weir_ckpt *ahead = ckpt_as("numbers", 0, 2, 0), *behind = ckpt_as("numbers", 1, 2, 0);
    weir_restore *restore;
    save(ahead, 1, NULL, 0, WEIR_LEVEL_NODE);
    weir_save_options opts;
    weir_saving *saving[2];
    weir_save_options_init(&opts);
    opts.number = 7;
    OK(weir_ckpt_save(ahead, 2, NULL, 0, &opts, &saving[0]));
    OK(weir_ckpt_save(behind, 2, NULL, 0, &opts, &saving[1]));
    for (int i = 0; i < 2; i++) {
        OK(weir_saving_wait(saving[i], WEIR_LEVEL_HOME, 60000000000ull));
        weir_saving_close(saving[i]);
    }
    CHECK_EQ(weir_ckpt_save(ahead, 2, NULL, 0, &opts, NULL), -EINVAL);
    CHECK(strstr(weir_error_text(), "save 7 of run 'numbers' comes after save 7"));
    weir_ckpt_close(ahead);
    weir_ckpt_close(behind);
    CHECK_EQ(weir_restore_open(&restore, store, "numbers", 1), -ENOENT);
    OK(weir_restore_open(&restore, store, "numbers", 2));
    CHECK_EQ(weir_restore_info_get(restore)->save, 7);
    weir_restore_close(restore);
}

/* A name comes with the commit, moves to a later one, and keeps it; a bad one is refused. */
static void names(void)
{
    static const uint64_t shape[] = {ROWS, COLUMNS};
    const weir_tensor tensor = {
        .name = "w", .dtype = "I32", .ndim = 2, .shape = shape, .data = matrix};
    weir_ckpt *ckpt = ckpt_as("named", 0, 1, 1);
    weir_restore *restore;
    weir_save_options opts;
    weir_saving *saving;
    weir_save_options_init(&opts);
    opts.name = "best";
    for (uint64_t step = 1; step <= 2; step++) {
        OK(weir_ckpt_save(ckpt, step, &tensor, 1, &opts, &saving));
        OK(weir_saving_wait(saving, WEIR_LEVEL_HOME, 60000000000ull));
        weir_saving_close(saving);
    }
    save(ckpt, 3, &tensor, 1, WEIR_LEVEL_HOME);
    OK(weir_ckpt_wait(ckpt, 0, UINT64_MAX));
    OK(weir_restore_open_named(&restore, store, "named", "best"));
    CHECK_EQ(weir_restore_info_get(restore)->step, 2);
    weir_restore_close(restore);
    CHECK_EQ(weir_restore_open(&restore, store, "named", 1), -ENOENT);
    opts.name = "12";
    CHECK_EQ(weir_ckpt_save(ckpt, 4, &tensor, 1, &opts, NULL), -EINVAL);
    weir_ckpt_close(ckpt);
}

static void retention(void)
{
    static const uint64_t shape[] = {ROWS, COLUMNS};
    const weir_tensor tensor = {
        .name = "w", .dtype = "I32", .ndim = 2, .shape = shape, .data = matrix};
    weir_ckpt *ckpt = ckpt_as("kept", 0, 1, 2);
    weir_restore *restore, *old;
    save(ckpt, 1, &tensor, 1, WEIR_LEVEL_HOME);
    OK(weir_restore_open(&old, store, "kept", 1));
    for (uint64_t step = 2; step <= 6; step++)
        save(ckpt, step, &tensor, 1, WEIR_LEVEL_HOME);
    save(ckpt, 6, &tensor, 1, WEIR_LEVEL_HOME); /* the same step again is another save */
    weir_ckpt_close(ckpt);
    CHECK_EQ(weir_restore_open(&restore, store, "kept", 4), -ENOENT);
    CHECK_EQ(weir_restore_open(&restore, store, "kept", 5), -ENOENT);
    OK(weir_restore_open(&restore, store, "kept", WEIR_STEP_NEWEST));
    CHECK_EQ(weir_restore_info_get(restore)->step, 6);
    CHECK_EQ(weir_restore_info_get(restore)->save, 7);
    weir_restore_close(restore);
    check_box(old, 0, 0, ROWS, COLUMNS); /* in use: it stays */
    weir_restore_close(old);
    CHECK(!path_there(path_in(dir, "ckpt/kept/3-1.3")));
}

/* Neighbours are read together; the error names the one whose bytes are damaged. */
static void damage(void)
{
    static const uint64_t shape[] = {ROWS, COLUMNS}, big_shape[] = {5 << 20};
    static uint8_t big[5 << 20];
    static uint32_t a[ROWS][COLUMNS], c[ROWS][COLUMNS];
    const weir_tensor tensors[] = {
        {.name = "a", .dtype = "I32", .ndim = 2, .shape = shape, .data = matrix},
        {.name = "b", .dtype = "U8", .ndim = 1, .shape = big_shape, .data = big},
        {.name = "c", .dtype = "I32", .ndim = 2, .shape = shape, .data = matrix},
    };
    const weir_slice slices[] = {{0, NULL, NULL, a}, {2, NULL, NULL, c}, {1, NULL, NULL, big}};
    weir_ckpt *ckpt = ckpt_as("damaged", 0, 1, 0);
    weir_restore *restore;
    save(ckpt, 1, tensors, 3, WEIR_LEVEL_HOME);
    weir_ckpt_close(ckpt);
    char *path = data_path(store, dir, "ckpt/damaged/1-1.1/model.safetensors");
    int fd = file_force_open(path);
    fd_flip(fd, 8 * (5 << 19));
    close(fd);
    free(path);
    OK(weir_restore_open(&restore, store, "damaged", 1));
    OK(weir_restore_read(restore, slices, 2, NULL, NULL));
    CHECK(!memcmp(a, matrix, sizeof a) && !memcmp(c, matrix, sizeof c));
    CHECK_EQ(weir_restore_read(restore, slices, 3, NULL, NULL), -EBADMSG);
    CHECK(strstr(weir_error_text(), "tensor 'b': 'ckpt/damaged/1-1.1/model.safetensors' is"));
    weir_restore_close(restore);
}

/* Who keeps the handle of a save that failed, and does not ask, is told by the next save, or when
 * he asks the checkpointer; once. */
static void unasked(void)
{
    static const uint64_t shape[] = {2, 2};
    const weir_tensor t = {.name = "w", .dtype = "I32", .ndim = 2, .shape = shape, .data = matrix};
    weir_ckpt *ckpt = ckpt_as("unasked", 0, 1, 3), *newer = ckpt_as("unasked", 0, 1, 3);
    weir_saving *kept[3];
    for (uint64_t i = 0; i < 3; i++) { /* each must fail: there is a newer life of the run */
        OK(weir_ckpt_save(ckpt, i + 1, &t, 1, NULL, &kept[i]));
        OK(weir_ckpt_wait(ckpt, 0, UINT64_MAX));
        if (i == 0) {
            CHECK_EQ(weir_ckpt_save(ckpt, 9, &t, 1, NULL, NULL), -ESTALE);
            CHECK(strstr(weir_error_text(), "an earlier save failed"));
        }
        if (i == 1)
            CHECK_EQ(weir_ckpt_failure(ckpt), -ESTALE);
        if (i == 2)
            CHECK_EQ(weir_saving_wait(kept[i], WEIR_LEVEL_NODE, 0), -ESTALE);
        OK(weir_ckpt_failure(ckpt)); /* it is heard */
    }
    for (int i = 0; i < 3; i++)
        weir_saving_close(kept[i]);
    OK(weir_ckpt_failure(ckpt));
    weir_ckpt_close(ckpt);
    weir_ckpt_close(newer);
}

/* Two tensors that would have one name in the file. */
static void one_name_twice(void)
{
    static const uint64_t whole[] = {4}, half[] = {2}, zero[] = {0};
    const weir_tensor tensors[] = {
        {.name = "w",
         .dtype = "I32",
         .ndim = 1,
         .shape = half,
         .global_shape = whole,
         .offset = zero,
         .data = matrix},
        {.name = "w!", .dtype = "I32", .ndim = 1, .shape = half, .data = matrix}, /* between them */
        {.name = "w[0:2]", .dtype = "I32", .ndim = 1, .shape = half, .data = matrix},
    };
    weir_ckpt *ckpt = ckpt_as("one-name", 0, 1, 3);
    CHECK_EQ(weir_ckpt_save(ckpt, 1, tensors, 3, NULL, NULL), -EINVAL);
    CHECK(strstr(weir_error_text(), "'w[0:2]' is given twice"));
    weir_ckpt_close(ckpt);
}

static void failures(void)
{
    static const uint64_t shape[] = {2, 2}, huge[] = {UINT64_MAX, 2};
    weir_tensor t = {.name = "w", .dtype = "I32", .ndim = 2, .shape = shape, .data = matrix};
    const weir_tensor twice[] = {t, t};
    weir_ckpt_options opts;
    weir_ckpt *ckpt = ckpt_as("wrong", 0, 1, 3), *other;
    weir_saving *saving;
    CHECK_EQ(weir_ckpt_save(ckpt, 1, twice, 2, NULL, NULL), -EINVAL);
    CHECK(strstr(weir_error_text(), "'w' is given twice"));
    t.dtype = "F31";
    CHECK_EQ(weir_ckpt_save(ckpt, 1, &t, 1, NULL, NULL), -EINVAL);
    t.dtype = "I32";
    t.shape = huge;
    CHECK_EQ(weir_ckpt_save(ckpt, 1, &t, 1, NULL, NULL), -EINVAL);
    t.shape = shape;
    t.data = NULL;
    CHECK_EQ(weir_ckpt_save(ckpt, 1, &t, 1, NULL, NULL), -EINVAL);
    t.data = matrix;
    other = ckpt_as("wrong", 0, 1, 3); /* a new life of the run */
    OK(weir_ckpt_save(ckpt, 1, &t, 1, NULL, &saving));
    CHECK_EQ(weir_saving_wait(saving, WEIR_LEVEL_HOME, 60000000000ull), -ESTALE);
    weir_saving_close(saving);
    OK(weir_ckpt_save(ckpt, 2, &t, 1, NULL, NULL)); /* nobody asks */
    int code = 0;
    for (uint64_t step = 3; !code && step < 10; step++)
        code = weir_ckpt_save(ckpt, step, &t, 1, NULL, NULL);
    CHECK_EQ(code, -ESTALE);
    CHECK(strstr(weir_error_text(), "an earlier save failed"));
    weir_ckpt_close(ckpt);
    weir_ckpt_close(other);
    weir_ckpt_options_init(&opts);
    opts.ranks = 2;
    CHECK_EQ(weir_ckpt_open(&other, store, "x", &opts), -EINVAL);
    opts.ranks = 0;
    CHECK_EQ(weir_ckpt_open(&other, store, "x", &opts), -EINVAL);
    weir_ckpt_options_init(&opts);
    CHECK_EQ(weir_ckpt_open(&other, store, "../x", &opts), -EINVAL);
}

/* A reader fails, and its thread is slow to say so: the writer, which gets no more, commits nothing
 * of what it has. */
static struct weir_sys slow;
static _Thread_local bool has_failed;

static uint64_t late_now(enum weir_clock clock)
{
    if (has_failed)
        weir_sys_real.sleep_ns(300000000);
    return weir_sys_real.now_ns(clock);
}

static int read_half(void *arg, const weir_tensor *tensor, uint64_t begin, void *buf, size_t size)
{
    (void)arg;
    (void)tensor;
    memset(buf, 7, size);
    has_failed = begin >= 2 << 20;
    return has_failed ? weir_fail(EIO, "the second half is unreadable") : 0;
}

static void a_reader_fails(void)
{
    static const uint64_t shape[] = {4 << 20};
    const weir_tensor tensor = {
        .name = "w", .dtype = "U8", .ndim = 1, .shape = shape, .data = "not looked at"};
    const struct weir_ckpt_reader reader = {read_half, NULL};
    weir_restore *restore;
    weir_ckpt *ckpt = ckpt_as("half", 0, 1, 0);
    weir_saving *saving;
    CHECK_EQ(weir_ckpt_save_read(ckpt, 1, &tensor, 1, NULL, &reader, &saving), -EIO);
    has_failed = false;
    CHECK(strstr(weir_fail_last(), "second half"));
    weir_ckpt_close(ckpt);
    CHECK(!path_there(path_in(dir, "ckpt/half/1-1.1/model.safetensors")));
    CHECK_EQ(weir_restore_open(&restore, store, "half", WEIR_STEP_NEWEST), -ENOENT);
}

int main(void)
{
    slow = weir_sys_real; /* before there is a thread */
    slow.now_ns = late_now;
    weir_sys = &slow;
    dir = tmpdir();
    store = store_at(dir, NULL);
    matrix_fill();
    RUN(one_rank);
    RUN(other_pieces);
    RUN(empty_parts);
    RUN(numbers);
    RUN(names);
    RUN(retention);
    RUN(damage);
    RUN(unasked);
    RUN(one_name_twice);
    RUN(failures);
    RUN(a_reader_fails);
    weir_store_close(store);
    return TEST_RESULT;
}
