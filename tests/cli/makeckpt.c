/* makeckpt STORE RUN STEP RANKS SEED META COLUMNS [KIND] - saves one checkpoint of a small model by
 * so many ranks, in a life of the run of its own: what the tests of `weir ckpt` look at. Ranks have
 * rows of "w" and of "big", which has that many columns; element i of "w" is i + SEED. KIND "more"
 * has another tensor, "less" lacks one, "wide" has another shape.
 */
#include "stores.h"

#include "util/sys.h"

enum { ROWS = 12, COLUMNS = 10, BIG_ROWS = 24 };

static float w[ROWS][COLUMNS];
static uint16_t half[8], brain[8];
static uint8_t mask[3] = {1, 0, 1}, eight[4];
static int64_t count[1];
static uint8_t *big;
static uint64_t large[] = {BIG_ROWS, 0};

static void fill(unsigned seed)
{
    for (unsigned i = 0; i < ROWS * COLUMNS; i++)
        (&w[0][0])[i] = (float)(i + seed);
    for (unsigned i = 0; i < 8; i++) {
        half[i] = (uint16_t)(0x3c00 + seed);  /* 1 + seed / 1024 */
        brain[i] = (uint16_t)(0x3f80 + seed); /* 1 + seed / 128 */
    }
    for (unsigned i = 0; i < 4; i++)
        eight[i] = (uint8_t)(0x38 + seed); /* 1 + seed / 8 */
    count[0] = -(int64_t)seed;
    size_t size = large[0] * large[1] * 8;
    big = malloc(size);
    for (size_t i = 0; i < size; i++)
        big[i] = (uint8_t)(i * 7 + (i >> 12));
    big[size / 2] ^= (uint8_t)seed;
}

/* The rows of a tensor that a rank has. */
static weir_tensor rows_of(const char *name, const char *dtype, const void *data,
                           const uint64_t whole[2], size_t width, uint32_t rank, uint32_t ranks,
                           uint64_t space[4])
{
    uint64_t first = whole[0] * rank / ranks, last = whole[0] * (rank + 1) / ranks;
    space[0] = first, space[1] = 0;
    space[2] = last - first, space[3] = whole[1];
    return (weir_tensor){.name = name,
                         .dtype = dtype,
                         .ndim = 2,
                         .shape = space + 2,
                         .global_shape = whole,
                         .offset = space,
                         .data = (const char *)data + first * whole[1] * width};
}

static weir_tensor list_of(const char *name, const char *dtype, const void *data,
                           const uint64_t *size, uint32_t rank, uint32_t ranks)
{
    return (weir_tensor){.name = name,
                         .dtype = dtype,
                         .ndim = 1,
                         .shape = size,
                         .data = data,
                         .replica = rank,
                         .replicas = ranks};
}

static size_t tensors_of(weir_tensor *t, uint32_t rank, uint32_t ranks, const char *kind)
{
    static uint64_t space[2][4];
    static const uint64_t small[] = {ROWS, COLUMNS};
    static const uint64_t wide[] = {COLUMNS, ROWS};
    static const uint64_t one[] = {1}, three[] = {3}, four[] = {4}, eights[] = {8};
    size_t n = 0;
    t[n++] = rows_of("w", "F32", w, strcmp(kind, "wide") ? small : wide, 4, rank, ranks, space[0]);
    t[n++] = rows_of("model.layers.0.big", "F64", big, large, 8, rank, ranks, space[1]);
    t[n++] = list_of("model.layers.0.half", "F16", half, eights, rank, ranks);
    t[n++] = list_of("model.layers.1.brain", "BF16", brain, eights, rank, ranks);
    t[n++] = list_of("a.mask", "BOOL", mask, three, rank, ranks);
    t[n++] = list_of("eight", "F8_E4M3", eight, four, rank, ranks);
    if (strcmp(kind, "less"))
        t[n++] = list_of("count", "I64", count, one, rank, ranks);
    if (!strcmp(kind, "more"))
        t[n++] = list_of("new", "U8", mask, three, rank, ranks);
    return n;
}

int main(int argc, char **argv)
{
    CHECK(argc == 8 || argc == 9);
    uint32_t ranks = (uint32_t)strtoul(argv[4], NULL, 10);
    const char *meta = argv[6], *kind = argc > 8 ? argv[8] : "";
    large[1] = strtoull(argv[7], NULL, 10);
    weir_store *store = store_at(argv[1], NULL);
    weir_ckpt *ckpt[64];
    uint8_t token[16];
    weir_ckpt_options opts;
    CHECK(ranks && ranks <= 64);
    fill((unsigned)strtoul(argv[5], NULL, 10));
    OK(weir_sys->random(token, sizeof token));
    weir_ckpt_options_init(&opts);
    opts.ranks = ranks;
    opts.token = token;
    opts.keep_last = 0;
    for (opts.rank = 0; opts.rank < ranks; opts.rank++) {
        weir_tensor tensors[16];
        weir_saving *saving;
        OK(weir_ckpt_open(&ckpt[opts.rank], store, argv[2], &opts));
        size_t n = tensors_of(tensors, opts.rank, ranks, kind);
        weir_save_options how = {.struct_size = sizeof how, .meta = meta, .state = "{}"};
        OK(weir_ckpt_save(ckpt[opts.rank], strtoull(argv[3], NULL, 10), tensors, n, &how, &saving));
        OK(weir_saving_wait(saving, WEIR_LEVEL_NODE, 60000000000ull));
        weir_saving_close(saving);
    }
    for (uint32_t i = 0; i < ranks; i++)
        weir_ckpt_close(ckpt[i]);
    free(big);
    weir_store_close(store);
    return TEST_RESULT;
}
