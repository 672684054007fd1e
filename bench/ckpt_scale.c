/* ckpt_scale.c - one measurement of checkpoints of many ranks, for bench/ckpt_scale.py: RANKS ranks
 * of TENSORS tensors commit one checkpoint of tiny data, and it is loaded by three quarters as
 * many. Prints one line of JSON: seconds, requests, bytes of memory.
 *
 *   ckpt_scale DIR RANKS TENSORS
 *
 * Each tensor is cut into as many pieces as there are ranks, by rows, by columns or in a grid; one
 * of eight is replicated. The ranks are checkpointers of this process, one after the other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "ckpt/ckpt.h"

enum { TENSORS_MAX = 4096, ROWS_MAX = 32, READERS = 4, ELEMENT_BYTES = 2 };
#define RUN     "bench"
#define WAIT_NS (600ull * 1000000000)

static uint32_t ranks, tensors;

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "ckpt_scale: %s: %s\n", what, weir_error_text());
    exit(1);
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static uint64_t memory_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss;
}

/* ---- the tensors ---- */

struct box {
    uint64_t offset[2], shape[2];
};

/* Pieces of 2 x 2 elements: by rows, by columns, or in a grid of 8 pieces across. */
static struct box box_of(uint32_t tensor, uint32_t piece)
{
    uint64_t across = tensor % 3 == 0 ? 1 : tensor % 3 == 1 ? ranks : 8;
    return (struct box){{piece / across * 2, piece % across * 2}, {2, 2}};
}

static struct box whole_of(uint32_t tensor)
{
    struct box last = box_of(tensor, ranks - 1);
    uint64_t width = tensor % 3 == 2 ? 16 : last.offset[1] + 2;
    return (struct box){{0, 0}, {last.offset[0] + 2, width}};
}

static bool is_replicated(uint32_t tensor)
{
    return tensor % 8 == 7;
}

static uint16_t element(uint32_t tensor, uint64_t row, uint64_t column)
{
    return (uint16_t)(tensor * 31 + row * 7 + column);
}

static void fill(uint16_t *out, uint32_t tensor, const struct box *box)
{
    for (uint64_t i = 0; i < box->shape[0]; i++)
        for (uint64_t k = 0; k < box->shape[1]; k++)
            *out++ = element(tensor, box->offset[0] + i, box->offset[1] + k);
}

static void name_of(char name[64], uint32_t tensor)
{
    snprintf(name, 64, "model.layers.%u.block.weight", tensor);
}

/* ---- saving ---- */

static weir_ckpt *join(weir_store *store, uint32_t rank)
{
    static const uint8_t token[16] = {1};
    weir_ckpt_options opts;
    weir_ckpt *ckpt;
    weir_ckpt_options_init(&opts);
    opts.rank = rank;
    opts.ranks = ranks;
    opts.token = token;
    opts.staging_bytes_max = 4 << 20;
    if (weir_ckpt_open(&ckpt, store, RUN, &opts))
        die("open");
    return ckpt;
}

static void save_rank(weir_store *store, uint32_t rank)
{
    static weir_tensor list[TENSORS_MAX];
    static struct box boxes[TENSORS_MAX], wholes[TENSORS_MAX];
    static uint16_t data[TENSORS_MAX][4];
    static char names[TENSORS_MAX][64];
    static const struct box small = {{0, 0}, {2, 2}};
    for (uint32_t i = 0; i < tensors; i++) {
        bool copy = is_replicated(i);
        boxes[i] = copy ? small : box_of(i, rank);
        wholes[i] = whole_of(i);
        fill(data[i], i, &boxes[i]);
        name_of(names[i], i);
        list[i] = (weir_tensor){.name = names[i],
                                .dtype = "BF16",
                                .ndim = 2,
                                .shape = boxes[i].shape,
                                .global_shape = copy ? NULL : wholes[i].shape,
                                .offset = copy ? NULL : boxes[i].offset,
                                .data = data[i],
                                .replica = copy ? rank : 0,
                                .replicas = copy ? ranks : 0};
    }
    weir_ckpt *ckpt = join(store, rank);
    weir_saving *saving;
    if (weir_ckpt_save(ckpt, 1, list, tensors, NULL, &saving) ||
        weir_saving_wait(saving, rank + 1 < ranks ? WEIR_LEVEL_NODE : WEIR_LEVEL_HOME, WAIT_NS))
        die("save");
    weir_saving_close(saving);
    weir_ckpt_close(ckpt);
}

/* ---- loading ---- */

struct planned {
    uint64_t ranges, bytes;
};

static int count_range(void *arg, uint32_t part, uint64_t at, uint64_t size)
{
    struct planned *planned = arg;
    (void)part, (void)at;
    planned->ranges++;
    planned->bytes += size;
    return 0;
}

/* What reader number i of `count` wants: rows of every tensor, however that was cut. */
static void want(struct box *box, uint32_t tensor, uint32_t i, uint32_t count)
{
    static const struct box small = {{0, 0}, {2, 2}};
    *box = is_replicated(tensor) ? small : whole_of(tensor);
    unsigned along = box->shape[0] >= box->shape[1] ? 0 : 1;
    uint64_t all = box->shape[along];
    box->offset[along] = all * i / count;
    box->shape[along] = all * (i + 1) / count - box->offset[along];
}

static void load_rank(weir_restore *restore, uint32_t i, uint32_t count, bool read,
                      struct planned *planned)
{
    static weir_slice slices[TENSORS_MAX];
    static struct box boxes[TENSORS_MAX];
    static uint16_t data[TENSORS_MAX][64], expected[64];
    for (uint32_t k = 0; k < tensors; k++) {
        char name[64];
        name_of(name, k);
        want(&boxes[k], k, i, count);
        if (boxes[k].shape[0] * boxes[k].shape[1] > 64)
            die("too large a slice");
        slices[k] = (weir_slice){(size_t)weir_restore_find(restore, name), boxes[k].offset,
                                 boxes[k].shape, data[k]};
    }
    if (!read) {
        if (weir_restore_plan(restore, slices, tensors, count_range, planned))
            die("plan");
        return;
    }
    if (weir_restore_read(restore, slices, tensors, NULL, NULL))
        die("read");
    for (uint32_t k = 0; k < tensors; k++) {
        fill(expected, k, &boxes[k]);
        if (memcmp(expected, data[k], boxes[k].shape[0] * boxes[k].shape[1] * ELEMENT_BYTES))
            die("a reader got other bytes");
    }
}

/* ---- measuring ---- */

static uint64_t requests(weir_store *store)
{
    weir_stat_row rows[ROWS_MAX];
    uint64_t count = 0;
    int n = weir_store_stats(store, rows, ROWS_MAX);
    for (int i = 0; i < n; i++)
        count += rows[i].count;
    return count;
}

static weir_store *open_store(const char *dir)
{
    char url[4096];
    weir_store_options opts;
    weir_store *store;
    weir_store_options_init(&opts);
    opts.flags = WEIR_STORE_CREATE;
    snprintf(url, sizeof url, "file://%s?stats=1", dir);
    if (weir_store_open(&store, url, &opts))
        die(dir);
    return store;
}

struct opened {
    double seconds;
    uint64_t requests;
};

static struct opened open_restore(weir_store *store, weir_restore **restore)
{
    uint64_t before = requests(store);
    double start_s = now_s();
    if (weir_restore_open(restore, store, RUN, WEIR_STEP_NEWEST))
        die("restore");
    return (struct opened){now_s() - start_s, requests(store) - before};
}

/* The same without the merged manifest. */
static struct opened open_parts(weir_store *store)
{
    struct weir_ledger *ledger;
    struct weir_view *view;
    struct weir_manifest *manifest;
    uint64_t before = requests(store);
    double start_s = now_s();
    if (weir_ledger_open(&ledger, store, "ckpt/" RUN) || weir_view_open(&view, ledger, NULL) ||
        weir_manifest_merge(&manifest, view))
        die("merge");
    struct opened opened = {now_s() - start_s, requests(store) - before};
    weir_manifest_free(manifest);
    weir_view_close(view);
    weir_ledger_close(ledger);
    return opened;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: ckpt_scale DIR RANKS TENSORS");
    ranks = (uint32_t)atoi(argv[2]);
    tensors = (uint32_t)atoi(argv[3]);
    if (ranks % 8 || !tensors || tensors > TENSORS_MAX)
        die("RANKS is a multiple of 8, TENSORS at most 4096");
    weir_store *store = open_store(argv[1]);
    double start_s = now_s();
    for (uint32_t i = 0; i + 1 < ranks; i++)
        save_rank(store, i);
    double save_s = now_s() - start_s;
    start_s = now_s();
    save_rank(store, ranks - 1); /* it commits, and writes the indexes */
    double last_s = now_s() - start_s;
    uint64_t save_requests = requests(store), save_kib = memory_kib();

    weir_restore *restore;
    struct planned planned = {0};
    uint32_t readers = ranks * 3 / 4;
    struct opened opened = open_restore(store, &restore);
    uint64_t open_kib = memory_kib();
    start_s = now_s();
    for (uint32_t i = 0; i < readers; i++)
        load_rank(restore, i, readers, false, &planned);
    double plan_s = now_s() - start_s;
    start_s = now_s();
    for (uint32_t i = 0; i < READERS; i++)
        load_rank(restore, (readers - 1) * i / (READERS - 1), readers, true, NULL);
    double read_s = (now_s() - start_s) / READERS;
    weir_restore_close(restore);
    struct opened parts = open_parts(store);
    printf(
        "{\"ranks\": %u, \"tensors\": %u, \"readers\": %u, \"save_s\": %.6f, \"last_s\": %.6f, "
        "\"save_requests\": %llu, \"save_kib\": %llu, \"open_s\": %.6f, \"open_requests\": %llu, "
        "\"open_kib\": %llu, \"parts_s\": %.6f, \"parts_requests\": %llu, \"plan_s\": %.6f, "
        "\"ranges\": %llu, \"range_bytes\": %llu, \"read_s\": %.6f}\n",
        ranks, tensors, readers, save_s, last_s, (unsigned long long)save_requests,
        (unsigned long long)save_kib, opened.seconds, (unsigned long long)opened.requests,
        (unsigned long long)open_kib, parts.seconds, (unsigned long long)parts.requests, plan_s,
        (unsigned long long)planned.ranges, (unsigned long long)planned.bytes, read_s);
    weir_store_close(store);
    return 0;
}
