/* A batch counts as delivered when it has reached who uses it, where a loader is told to wait for
 * that; until then a loader that is opened from the state begins with it.
 */
#include "shards.h"

enum { SHARDS = 3, EACH = 20, N = SHARDS * EACH, BATCH = 25 }; /* the third one is of two epochs */

static weir_loader *open_at(weir_data *data, uint64_t position)
{
    weir_loader *loader = NULL;
    weir_loader_options opts;
    weir_loader_options_init(&opts);
    opts.flags = WEIR_LOADER_SHUFFLE | WEIR_LOADER_HELD;
    opts.batch_size = BATCH;
    opts.seed = 3;
    opts.lanes = 4;
    opts.position = position;
    OK(weir_loader_open(&loader, data, &opts));
    return loader;
}

static void take(weir_loader *loader, int count, uint64_t last[BATCH])
{
    for (int i = 0; i < count; i++) {
        weir_batch *batch = NULL;
        CHECK_EQ(weir_loader_next(loader, &batch, UINT64_MAX), 1);
        memcpy(last, weir_batch_get(batch)->numbers, BATCH * sizeof *last);
        weir_batch_release(batch);
    }
}

/* What a loader delivered of an epoch; nothing is as good as 0 samples. */
static weir_tally tally_of(const weir_loader *loader, uint64_t epoch)
{
    weir_loader_part part;
    OK(weir_loader_part_get(loader, 0, &part));
    for (uint32_t i = 0; i < part.tallies_count; i++)
        if (part.tallies[i].epoch == epoch)
            return part.tallies[i];
    return (weir_tally){.epoch = epoch};
}

static uint64_t position_of(const weir_loader *loader)
{
    weir_loader_state state;
    weir_loader_state_get(loader, &state);
    return state.position;
}

static void check_same(const weir_loader *one, const weir_loader *two)
{
    CHECK_EQ(position_of(one), position_of(two));
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        weir_tally a = tally_of(one, epoch), b = tally_of(two, epoch);
        CHECK(!memcmp(&a, &b, sizeof a));
    }
}

static void held(int batches)
{
    weir_data *data = shards_open(shards_make(&kinds[0], SHARDS, EACH), &kinds[0]);
    weir_loader *loader = open_at(data, 0), *shorter = open_at(data, 0);
    uint64_t last[BATCH], again[BATCH];
    take(loader, batches, last);
    take(shorter, batches - 1, again);
    uint64_t begin = (uint64_t)(batches - 1) * BATCH;
    weir_loader_reached(shorter, begin);
    weir_loader_reached(loader, begin); /* the ones before: not the last, which begins there */
    CHECK_EQ(position_of(loader), begin);
    check_same(loader, shorter);
    weir_loader *next = open_at(data, begin);
    take(next, 1, again);
    CHECK(!memcmp(last, again, sizeof last));
    weir_loader_close(next);
    weir_loader_reached(loader, begin + 1);
    CHECK_EQ(position_of(loader), begin + BATCH);
    take(shorter, 1, again);
    weir_loader_reached(shorter, begin + 1);
    check_same(loader, shorter);
    weir_loader_close(loader);
    weir_loader_close(shorter);
    weir_data_close(data);
}

static void the_first(void)
{
    held(1);
}

static void one_of_two_epochs(void)
{
    held(3);
}

int main(void)
{
    RUN(the_first);
    RUN(one_of_two_epochs);
    return TEST_RESULT;
}
