/* Checkpoints read as a stream of windows, for comparing and exporting: every byte once and in
 * order, for shapes that are cut in every dimension and tensors that share a window, from pieces of
 * any kind; and what a comparison says of them.
 */
#include <math.h>

#include "stores.h"

static weir_store *store;

enum { WINDOW = 16 << 20, TENSORS = 6 };

/* Larger than a window: whole rows of the first dimension, a row that is larger than a window, and
 * one whose inner dimensions are; then small ones, an empty one, and one of half bytes. */
static const struct {
    const char *name, *dtype;
    uint32_t ndim;
    uint64_t shape[3];
} kinds[TENSORS] = {
    {"a.rows", "U8", 2, {3000, 7001}},     {"b.row", "I16", 2, {2, 9000001}},
    {"c.inner", "U8", 3, {3, 5, 1300003}}, {"d.small", "U8", 1, {3}},
    {"e.empty", "F32", 2, {0, 5}},         {"f.half", "F4", 2, {5000, 14000}},
};

static uint8_t *bytes[TENSORS];
static size_t sizes[TENSORS];

static void fill(void)
{
    for (size_t i = 0; i < TENSORS; i++) {
        sizes[i] = !strcmp(kinds[i].dtype, "I16") ? 2 : !strcmp(kinds[i].dtype, "F32") ? 4 : 1;
        for (uint32_t d = 0; d < kinds[i].ndim; d++)
            sizes[i] *= kinds[i].shape[d];
        if (!strcmp(kinds[i].dtype, "F4"))
            sizes[i] /= 2;
        bytes[i] = data_buffer(sizes[i], 0);
        data_fill(bytes[i], sizes[i], i + 1, 0);
    }
}

/* Rank 0 has the first rows of everything that has some, rank 1 the others. */
static void save(const char *run, uint64_t step, uint32_t ranks)
{
    static const uint8_t token[16] = {9};
    weir_ckpt *ckpt[2];
    weir_saving *savings[2];
    for (uint32_t rank = 0; rank < ranks; rank++) {
        weir_tensor tensors[TENSORS];
        uint64_t offset[TENSORS][3] = {{0}}, shape[TENSORS][3];
        weir_ckpt_options opts;
        for (size_t i = 0; i < TENSORS; i++) {
            uint64_t rows = kinds[i].shape[0], half = rows / 2;
            memcpy(shape[i], kinds[i].shape, sizeof shape[i]);
            offset[i][0] = rank ? half : 0;
            shape[i][0] = ranks == 1 ? rows : rank ? rows - half : half;
            tensors[i] =
                (weir_tensor){.name = kinds[i].name,
                              .dtype = kinds[i].dtype,
                              .ndim = kinds[i].ndim,
                              .shape = shape[i],
                              .global_shape = kinds[i].shape,
                              .offset = offset[i],
                              .data = bytes[i] + (rows ? sizes[i] / rows * offset[i][0] : 0)};
        }
        weir_ckpt_options_init(&opts);
        opts.rank = rank;
        opts.ranks = ranks;
        opts.token = token;
        opts.keep_last = 0;
        OK(weir_ckpt_open(&ckpt[rank], store, run, &opts));
        OK(weir_ckpt_save(ckpt[rank], step, tensors, TENSORS, NULL, &savings[rank]));
        OK(weir_saving_wait(savings[rank], WEIR_LEVEL_NODE, 300000000000ull));
        weir_saving_close(savings[rank]);
    }
    for (uint32_t rank = 0; rank < ranks; rank++)
        weir_ckpt_close(ckpt[rank]);
}

/* ---- exporting ---- */

static struct {
    unsigned files;
    uint64_t size, at; /* of the file that is being written */
    uint64_t header;   /* of it, as its first bytes say */
    uint8_t *file;
} out;

static int on_begin(void *arg, const char *name, uint64_t size)
{
    (void)arg, (void)name;
    out.files++;
    out.size = size;
    out.at = 0;
    out.file = malloc(size);
    return 0;
}

static int on_write(void *arg, const void *some, size_t size)
{
    (void)arg;
    CHECK(size <= out.size - out.at);
    memcpy(out.file + out.at, some, size);
    out.at += size;
    return 0;
}

static int on_end(void *arg)
{
    (void)arg;
    CHECK_EQ(out.at, out.size);
    return 0;
}

/* In one file: the larger elements first, then by name. */
static void exporting(const char *run)
{
    static const weir_export_sink sink = {on_begin, on_write, on_end};
    static const size_t order[TENSORS] = {4, 1, 0, 2, 3, 5};
    weir_restore *restore;
    OK(weir_restore_open(&restore, store, run, WEIR_STEP_NEWEST));
    out.files = 0;
    OK(weir_restore_export(restore, 0, &sink, NULL));
    CHECK_EQ(out.files, 1);
    const uint8_t *at = out.file + out.size;
    for (size_t i = TENSORS; i-- > 0;) {
        at -= sizes[order[i]];
        CHECK(!memcmp(at, bytes[order[i]], sizes[order[i]]));
    }
    CHECK_EQ((at - out.file) % 4096, 0);
    free(out.file);
    weir_restore_close(restore);
}

static void from_one_rank(void)
{
    save("one", 1, 1);
    exporting("one");
}

static void from_two_ranks(void)
{
    save("two", 1, 2);
    exporting("two");
}

/* ---- comparing ---- */

static struct {
    unsigned calls, differing;
    char name[16];
    uint64_t elements, count, bytes;
    double max_abs;
} seen;

static int on_diff(void *arg, const weir_tensor_diff *diff)
{
    (void)arg;
    seen.calls++;
    if (diff->change == WEIR_CHANGE_NONE)
        return 0;
    CHECK_EQ(diff->change, WEIR_CHANGE_BYTES);
    seen.differing++;
    snprintf(seen.name, sizeof seen.name, "%s", diff->name);
    seen.elements = diff->elements;
    seen.count = diff->differing;
    seen.max_abs = diff->max_abs;
    return 0;
}

static int on_progress(void *arg, uint64_t more)
{
    (void)arg;
    seen.bytes += more;
    return 0;
}

static void compare(const char *run_a, const char *run_b)
{
    weir_restore *a, *b;
    memset(&seen, 0, sizeof seen);
    OK(weir_restore_open(&a, store, run_a, WEIR_STEP_NEWEST));
    OK(weir_restore_open(&b, store, run_b, WEIR_STEP_NEWEST));
    OK(weir_restore_diff(a, b, on_diff, on_progress, NULL));
    CHECK_EQ(seen.calls, TENSORS);
    CHECK_EQ(seen.bytes, 2 * weir_restore_info_get(a)->size_bytes);
    weir_restore_close(a);
    weir_restore_close(b);
}

/* The last element of a tensor that is cut, by a known difference. */
static void comparing(void)
{
    compare("one", "two");
    CHECK_EQ(seen.differing, 0);
    uint8_t *last = bytes[1] + sizes[1] - 2;
    last[0] ^= 8;
    save("one", 2, 1);
    compare("two", "one");
    CHECK_EQ(seen.differing, 1);
    CHECK(!strcmp(seen.name, "b.row"));
    CHECK(seen.elements == sizes[1] / 2 && seen.count == 1 && seen.max_abs == 8);
    last[0] ^= 8;
}

int main(void)
{
    store = store_at("mem:?size=1G", NULL);
    fill();
    RUN(from_one_rank);
    RUN(from_two_ranks);
    RUN(comparing);
    for (size_t i = 0; i < TENSORS; i++)
        data_free(bytes[i], 0);
    weir_store_close(store);
    return TEST_RESULT;
}
