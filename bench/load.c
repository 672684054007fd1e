/* load.c - one measurement of loading a checkpoint: a model like a transformer with its optimizer's
 * states, or many tiny tensors, into one allocation for each. Prints one line of JSON.
 *
 *   load save DIR RUN RANKS       each rank writes its rows of every tensor
 *   load read DIR RUN whole|rows|columns warm|fresh
 *
 * A run with "tiny" in its name has the tiny tensors.
 *
 * "rows" and "columns" load the first half of every matrix, as one of two ranks would. Memory is
 * "warm" if its pages were there before, and "fresh" as allocators give it. What was loaded is
 * compared with what was saved, after the clock has stopped.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "weir.h"

enum {
    HIDDEN = 2048,
    INNER = 4096,
    WORDS = 16384, /* of the vocabulary */
    LAYERS = 10,
    TINY = 100000,
    TENSORS_MAX = TINY,
    SOURCE_BYTES = 96 << 20, /* any tensor's bytes come from here */
    MEMORY_ALIGN = 64,       /* as PyTorch's allocator does */
    SAVE_WAIT_S = 600,
};

struct tensor {
    char name[64];
    const char *dtype;
    uint32_t ndim;
    uint64_t shape[2];
    size_t item_bytes;
};

static struct tensor tensors[TENSORS_MAX];
static size_t count;
static char *source;

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, weir_error_text());
    exit(1);
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct rusage usage(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use;
}

static double cpu_s(void)
{
    struct rusage use = usage();
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

/* ---- the model ---- */

static void add(const char *name, const char *dtype, size_t item_bytes, uint64_t rows,
                uint64_t columns)
{
    struct tensor *t = &tensors[count++];
    *t = (struct tensor){.dtype = dtype,
                         .item_bytes = item_bytes,
                         .ndim = columns ? 2 : 1,
                         .shape = {rows, columns}};
    snprintf(t->name, sizeof t->name, "%s", name);
}

/* A weight and the two states an optimizer keeps of it. */
static void add_weight(const char *name, uint64_t rows, uint64_t columns)
{
    char state[64];
    add(name, "BF16", 2, rows, columns);
    snprintf(state, sizeof state, "optim.%s.exp_avg", name);
    add(state, "F32", 4, rows, columns);
    snprintf(state, sizeof state, "optim.%s.exp_avg_sq", name);
    add(state, "F32", 4, rows, columns);
}

static void make_model(void)
{
    static const struct {
        const char *name;
        uint64_t rows, columns;
    } parts[] = {
        {"q", HIDDEN, HIDDEN},   {"k", HIDDEN / 4, HIDDEN}, {"v", HIDDEN / 4, HIDDEN},
        {"o", HIDDEN, HIDDEN},   {"gate", INNER, HIDDEN},   {"up", INNER, HIDDEN},
        {"down", HIDDEN, INNER}, {"norm1", HIDDEN, 0},      {"norm2", HIDDEN, 0},
    };
    add_weight("embed", WORDS, HIDDEN);
    for (int layer = 0; layer < LAYERS; layer++)
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            char name[32];
            snprintf(name, sizeof name, "layers.%d.%s", layer, parts[i].name);
            add_weight(name, parts[i].rows, parts[i].columns);
        }
}

static void make_tiny(void)
{
    for (int i = 0; i < TINY; i++) {
        char name[32];
        snprintf(name, sizeof name, "t.%06d", i);
        add(name, "F32", 4, 256, 0);
    }
}

/* Incompressible: xorshift64*. */
static void make_source(void)
{
    uint64_t x = 88172645463325252;
    source = malloc(2ul * SOURCE_BYTES);
    for (size_t i = 0; i < 2ul * SOURCE_BYTES / 8; i++) {
        x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
        ((uint64_t *)source)[i] = x * 0x2545f4914f6cdd1d;
    }
}

static size_t row_bytes(const struct tensor *t)
{
    return t->item_bytes * (t->ndim == 2 ? t->shape[1] : 1);
}

/* Where the bytes of a tensor are: the same for whoever saved it. */
static const char *source_of(const struct tensor *t)
{
    uint64_t sum = 1469598103934665603u;
    for (const char *c = t->name; *c; c++)
        sum = (sum ^ (uint8_t)*c) * 1099511628211u;
    size_t size = row_bytes(t) * t->shape[0];
    if (size > 2ul * SOURCE_BYTES)
        die("a tensor is too large");
    return source + sum % (2ul * SOURCE_BYTES - size + 1) / 8 * 8;
}

/* ---- saving ---- */

static void save_rank(weir_store *store, const char *run, uint32_t rank, uint32_t ranks,
                      weir_ckpt **ckpt, weir_saving **saving)
{
    static const uint8_t token[16] = {9};
    weir_ckpt_options opts;
    weir_tensor *list = calloc(count, sizeof *list);
    uint64_t(*dims)[4] = calloc(count, sizeof *dims);
    weir_ckpt_options_init(&opts);
    opts.rank = rank;
    opts.ranks = ranks;
    opts.token = token;
    opts.staging_bytes_max = 256 << 20;
    for (size_t i = 0; i < count; i++) {
        const struct tensor *t = &tensors[i];
        uint64_t first = t->shape[0] * rank / ranks, end = t->shape[0] * (rank + 1) / ranks;
        uint64_t *shape = dims[i], *offset = dims[i] + 2;
        shape[0] = end - first;
        shape[1] = t->shape[1];
        offset[0] = first;
        list[i] = (weir_tensor){.name = t->name,
                                .dtype = t->dtype,
                                .ndim = t->ndim,
                                .shape = shape,
                                .global_shape = t->shape,
                                .offset = offset,
                                .data = source_of(t) + first * row_bytes(t)};
    }
    if (weir_ckpt_open(ckpt, store, run, &opts) ||
        weir_ckpt_save(*ckpt, 1, list, count, NULL, saving))
        die("save");
    free(list);
    free(dims);
}

static int bench_save(const char *dir, const char *run, uint32_t ranks)
{
    weir_ckpt *ckpts[64];
    weir_saving *savings[64];
    weir_store_options opts;
    weir_store *store;
    weir_store_options_init(&opts);
    opts.flags = WEIR_STORE_CREATE;
    if (weir_store_open(&store, dir, &opts))
        die("open");
    make_source();
    for (uint32_t i = 0; i < ranks; i++) {
        save_rank(store, run, i, ranks, &ckpts[i], &savings[i]);
        if (weir_saving_wait(savings[i], WEIR_LEVEL_NODE, SAVE_WAIT_S * 1000000000ull))
            die("save");
    }
    for (uint32_t i = 0; i < ranks; i++) {
        if (weir_saving_wait(savings[i], WEIR_LEVEL_HOME, SAVE_WAIT_S * 1000000000ull))
            die("commit");
        weir_saving_close(savings[i]);
        weir_ckpt_close(ckpts[i]);
    }
    weir_store_close(store);
    return 0;
}

/* ---- loading ---- */

struct box {
    const struct tensor *tensor;
    uint64_t offset[2], shape[2];
    char *data;
};

/* The part of a tensor that a mode loads; a vector is loaded whole. */
static struct box box_of(const struct tensor *t, const char *mode)
{
    struct box box = {.tensor = t, .shape = {t->shape[0], t->shape[1]}};
    if (t->ndim == 2 && !strcmp(mode, "rows"))
        box.shape[0] /= 2;
    if (t->ndim == 2 && !strcmp(mode, "columns"))
        box.shape[1] /= 2;
    return box;
}

static size_t box_row_bytes(const struct box *box)
{
    return box->tensor->item_bytes * (box->tensor->ndim == 2 ? box->shape[1] : 1);
}

static size_t box_bytes(const struct box *box)
{
    return box_row_bytes(box) * box->shape[0];
}

static bool box_is_right(const struct box *box)
{
    const char *from = source_of(box->tensor);
    size_t size = box_row_bytes(box);
    for (uint64_t i = 0; i < box->shape[0]; i++)
        if (memcmp(box->data + i * size, from + i * row_bytes(box->tensor), size))
            return false;
    return true;
}

static void read_all(weir_store *store, const char *run, const struct box *boxes)
{
    weir_slice *slices = calloc(count, sizeof *slices);
    weir_restore *restore;
    if (weir_restore_open(&restore, store, run, WEIR_STEP_NEWEST))
        die("open");
    for (size_t i = 0; i < count; i++) {
        int64_t number = weir_restore_find(restore, boxes[i].tensor->name);
        if (number < 0)
            die("find");
        slices[i] = (weir_slice){(size_t)number, boxes[i].offset, boxes[i].shape, boxes[i].data};
    }
    if (weir_restore_read(restore, slices, count, NULL, NULL))
        die("read");
    weir_restore_close(restore);
    free(slices);
}

static int bench_read(const char *dir, const char *run, const char *mode, bool warm)
{
    weir_store *store;
    struct box *boxes = calloc(count, sizeof *boxes);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        boxes[i] = box_of(&tensors[i], mode);
        size_t size = box_bytes(&boxes[i]);
        boxes[i].data = aligned_alloc(MEMORY_ALIGN, size);
        if (!boxes[i].data)
            die("memory");
        if (warm)
            memset(boxes[i].data, 1, size);
        bytes += size;
    }
    long held_kib = usage().ru_maxrss;
    if (weir_store_open(&store, dir, NULL))
        die("open");
    double wall = now_s(), cpu = cpu_s();
    read_all(store, run, boxes);
    wall = now_s() - wall;
    cpu = cpu_s() - cpu;
    long more_kib = usage().ru_maxrss - held_kib - (warm ? 0 : (long)(bytes >> 10));
    weir_store_close(store);
    make_source();
    for (size_t i = 0; i < count; i++)
        if (!box_is_right(&boxes[i]))
            die(boxes[i].tensor->name);
    printf("{\"bytes\": %zu, \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"rss_kib\": %ld}\n", bytes,
           wall, cpu, more_kib);
    return 0;
}

int main(int argc, char **argv)
{
    bool tiny = argc > 3 && strstr(argv[3], "tiny");
    tiny ? make_tiny() : make_model();
    if (argc == 5 && !strcmp(argv[1], "save") && atoi(argv[4]) > 0 && atoi(argv[4]) <= 64)
        return bench_save(argv[2], argv[3], (uint32_t)atoi(argv[4]));
    if (argc == 6 && !strcmp(argv[1], "read"))
        return bench_read(argv[2], argv[3], argv[4], !strcmp(argv[5], "warm"));
    fprintf(stderr, "usage: load save DIR RUN RANKS | read DIR RUN whole|rows|columns warm|fresh\n"
                    "a RUN with \"tiny\" in its name has tiny tensors\n");
    return 2;
}
