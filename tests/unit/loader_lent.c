/* Memory that a loader's caller lends for its batches: each piece is used for one batch and goes
 * back once, whatever becomes of the batch or the loader, and what is in it is the same.
 */
#include <stdatomic.h>

#include "shards.h"

enum { SHARDS = 3, EACH = 40, N = SHARDS * EACH, BATCH = 8, BYTES = 1 << 16 };

struct piece {
    _Alignas(64) char data[BYTES];
    atomic_int returned;
    bool is_used;
};

static struct piece pieces[64];
static size_t lent;

static void give_back(void *owner)
{
    ((struct piece *)owner)->returned++;
}

static weir_loader *open_one(weir_data *data)
{
    weir_loader *loader = NULL;
    weir_loader_options opts;
    weir_loader_options_init(&opts);
    opts.flags = WEIR_LOADER_SHUFFLE;
    opts.batch_size = BATCH;
    opts.seed = 3;
    opts.end = N;
    opts.prefetch = 4;
    OK(weir_loader_open(&loader, data, &opts));
    return loader;
}

static void lend(weir_loader *loader, uint64_t size)
{
    struct piece *piece = &pieces[lent++];
    CHECK(lent <= 64 && size <= BYTES);
    *piece = (struct piece){0};
    OK(weir_loader_lend(loader, piece->data, size, give_back, piece));
}

static void lend_all(weir_loader *loader)
{
    uint64_t size;
    while ((size = weir_loader_wants(loader)))
        lend(loader, size);
}

static weir_batch *next(weir_loader *loader)
{
    weir_batch *batch = NULL;
    CHECK_EQ(weir_loader_next(loader, &batch, UINT64_MAX), 1);
    return batch;
}

static void check_batch(const weir_batch *batch, uint64_t numbers[BATCH])
{
    const weir_batch_info *info = weir_batch_get(batch);
    CHECK_EQ(info->samples, BATCH);
    memcpy(numbers, info->numbers, sizeof(uint64_t[BATCH]));
    for (size_t c = 0; c < info->columns_count; c++) {
        const weir_column *column = &info->columns[c];
        CHECK((uintptr_t)column->data % 64 == 0);
        for (int i = 0; i < BATCH && !strcmp(column->name, "id"); i++)
            CHECK_EQ(((int64_t *)column->data)[i], info->numbers[i]);
    }
}

static int count_returned(void)
{
    int count = 0;
    for (size_t i = 0; i < lent; i++) {
        CHECK(pieces[i].returned <= 1);
        count += pieces[i].returned;
    }
    return count;
}

/* All but what was being made before anything could be lent is in memory of ours, each batch in
 * another piece, and is what it is without. */
static void batches_are_made_in_it(void)
{
    weir_data *data = shards_open(shards_make(&kinds[0], SHARDS, EACH), &kinds[0]);
    weir_loader *plain = open_one(data), *loader = open_one(data);
    int used = 0;
    lent = 0;
    for (int b = 0; b < N / BATCH; b++) {
        lend_all(loader);
        weir_batch *batch = next(loader), *expected = next(plain);
        uint64_t numbers[BATCH], same[BATCH];
        check_batch(batch, numbers);
        check_batch(expected, same);
        CHECK(!memcmp(numbers, same, sizeof same));
        const weir_batch_info *info = weir_batch_get(batch);
        struct piece *piece = info->owner;
        CHECK(!weir_batch_get(expected)->owner);
        CHECK(piece && info->data == piece->data && !piece->is_used && !piece->returned);
        piece->is_used = true;
        used++;
        weir_batch_release(batch);
        weir_batch_release(expected);
        CHECK_EQ(piece->returned, 1);
        CHECK_EQ(count_returned(), used);
    }
    CHECK((int)lent > used); /* some were lent for batches that never came */
    weir_loader_close(plain);
    weir_loader_close(loader);
    CHECK_EQ(count_returned(), (int)lent);
    weir_data_close(data);
}

static void a_batch_outlives_its_loader(void)
{
    weir_data *data = shards_open(shards_make(&kinds[0], SHARDS, EACH), &kinds[0]);
    weir_loader *loader = open_one(data);
    uint64_t numbers[BATCH], still[BATCH];
    lent = 0;
    lend_all(loader);
    CHECK_EQ(lent, 5); /* prefetch, and one */
    weir_batch *batch = next(loader);
    check_batch(batch, numbers);
    weir_loader_close(loader);
    CHECK_EQ(count_returned(), (int)lent - 1);
    check_batch(batch, still);
    CHECK(!memcmp(numbers, still, sizeof still));
    weir_batch_release(batch);
    CHECK_EQ(count_returned(), (int)lent);
    weir_data_close(data);
}

/* What is too small is of no use: it goes back with the next lending, and more is wanted then. */
static void too_small(void)
{
    weir_data *data = shards_open(shards_make(&kinds[0], SHARDS, EACH), &kinds[0]);
    weir_loader *loader = open_one(data);
    lent = 0;
    lend(loader, 64);
    weir_batch *batch = next(loader);
    uint64_t numbers[BATCH];
    CHECK(!weir_batch_get(batch)->owner);
    check_batch(batch, numbers);
    CHECK(weir_loader_wants(loader) >= weir_batch_get(batch)->size);
    weir_batch_release(batch);
    CHECK_EQ(count_returned(), 0);
    lend(loader, BYTES);
    CHECK_EQ(pieces[0].returned, 1);
    weir_loader_close(loader);
    CHECK_EQ(count_returned(), 2);
    weir_data_close(data);
}

static void what_is_refused(void)
{
    weir_data *data = shards_open(shards_make(&kinds[0], SHARDS, EACH), &kinds[0]);
    weir_loader *loader = open_one(data);
    struct piece *piece = &pieces[0];
    *piece = (struct piece){0};
    CHECK_EQ(weir_loader_lend(loader, piece->data + 8, 4096, give_back, piece), -EINVAL);
    CHECK(strstr(weir_fail_last(), "aligned to 64"));
    CHECK_EQ(weir_loader_lend(loader, NULL, 4096, give_back, piece), -EINVAL);
    CHECK_EQ(weir_loader_lend(loader, piece->data, 4096, NULL, piece), -EINVAL);
    CHECK_EQ(weir_loader_lend(loader, piece->data, 4096, give_back, NULL), -EINVAL);
    weir_loader_close(loader);
    CHECK_EQ(piece->returned, 0);
    weir_data_close(data);
}

int main(void)
{
    RUN(batches_are_made_in_it);
    RUN(a_batch_outlives_its_loader);
    RUN(too_small);
    RUN(what_is_refused);
    return TEST_RESULT;
}
