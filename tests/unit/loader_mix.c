/* A mixture of two formats: the same global sequence for any number of ranks, workers and threads,
 * from any position, and what was delivered of each dataset adds up.
 */
#include "shards.h"

enum { PARTS = 2, SHARDS = 3, EACH = 13, N = SHARDS * EACH, BATCH = 24, LONG = 8 * BATCH };

static weir_data *parts[PARTS];
static const uint64_t weights[PARTS] = {3, 1};

struct world {
    uint32_t ranks, workers, threads;
};
static const struct world worlds[] = {{1, 1, 1}, {1, 4, 2}, {2, 1, 3}, {2, 4, 1},
                                      {3, 1, 1}, {3, 4, 2}, {8, 1, 1}, {8, 4, 1}};
enum { WORLDS = sizeof worlds / sizeof worlds[0], EPOCHS_MOST = 8 };

/* What all ranks got: of which dataset each sample is, and its number there; and what they tell. */
struct got {
    uint64_t numbers[LONG], count;
    uint32_t parts[LONG];
    uint64_t tallied[PARTS][EPOCHS_MOST];
    uint8_t digests[PARTS][EPOCHS_MOST][16];
};

static weir_loader *open_one(const struct world *world, uint32_t i, uint64_t position, uint64_t end)
{
    weir_loader *loader = NULL;
    weir_loader_options opts;
    weir_loader_options_init(&opts);
    opts.flags = WEIR_LOADER_SHUFFLE;
    opts.lanes = 3;
    opts.window = 5;
    opts.seed = 5;
    opts.batch_size = BATCH / world->ranks;
    opts.rank = i / world->workers;
    opts.ranks = world->ranks;
    opts.worker = i % world->workers;
    opts.workers = world->workers;
    opts.threads = world->threads;
    opts.position = position;
    opts.end = end;
    OK(weir_loader_open_mix(&loader, parts, weights, PARTS, &opts));
    return loader;
}

static void take(struct got *got, weir_loader *loader, uint64_t position)
{
    weir_batch *batch;
    CHECK_EQ(weir_loader_next(loader, &batch, UINT64_MAX), 1);
    const weir_batch_info *info = weir_batch_get(batch);
    CHECK_EQ(info->position, position);
    memcpy(got->numbers + got->count, info->numbers, info->samples * sizeof *info->numbers);
    memcpy(got->parts + got->count, info->parts, info->samples * sizeof *info->parts);
    got->count += info->samples;
    weir_batch_release(batch);
}

static void add_tallies(struct got *got, const weir_loader *loader)
{
    for (uint32_t p = 0; p < PARTS; p++) {
        weir_loader_part part;
        OK(weir_loader_part_get(loader, p, &part));
        for (uint32_t i = 0; i < part.tallies_count; i++) {
            const weir_tally *tally = &part.tallies[i];
            CHECK(tally->epoch < EPOCHS_MOST);
            got->tallied[p][tally->epoch] += tally->samples;
            add_sum(got->digests[p][tally->epoch], tally->digest);
        }
    }
}

/* Reads positions [position, end) as that world does, and adds what it got. */
static void read_all(struct got *got, const struct world *world, uint64_t position, uint64_t end)
{
    weir_loader *loaders[32];
    uint32_t count = world->ranks * world->workers;
    for (uint32_t i = 0; i < count; i++)
        loaders[i] = open_one(world, i, position, end);
    for (uint64_t b = 0; position + b * BATCH < end; b++)
        for (uint32_t r = 0; r < world->ranks; r++)
            take(got, loaders[r * world->workers + b % world->workers], position + b * BATCH);
    for (uint32_t i = 0; i < count; i++) {
        add_tallies(got, loaders[i]);
        weir_loader_close(loaders[i]);
    }
}

/* Three of four samples are the first one's, and each of its epochs has each of its samples. */
static void check_whole(const struct got *got)
{
    uint64_t of[PARTS] = {0};
    CHECK_EQ(got->count, LONG);
    for (uint64_t i = 0; i < LONG; i++) {
        CHECK(got->parts[i] < PARTS && got->numbers[i] < N);
        of[got->parts[i]]++;
    }
    CHECK(of[0] >= LONG * 3 / 4 - 2 && of[0] <= LONG * 3 / 4 + 2);
    for (int p = 0; p < PARTS; p++)
        for (uint64_t e = 0; e < EPOCHS_MOST; e++) {
            uint64_t begun = e * N < of[p] ? of[p] - e * N : 0;
            CHECK_EQ(got->tallied[p][e], begun < N ? begun : N);
            if (begun >= N)
                CHECK(!memcmp(got->digests[p][e], got->digests[p][0], 16));
        }
}

static void every_world_gets_the_same(void)
{
    struct got whole = {0};
    read_all(&whole, &worlds[0], 0, LONG);
    check_whole(&whole);
    for (int i = 1; i < WORLDS; i++) {
        struct got other = {0};
        read_all(&other, &worlds[i], 0, LONG);
        CHECK(!memcmp(&whole, &other, sizeof whole));
    }
}

/* What was delivered up to a batch, by one world, and from there, by another, is the whole. */
static void any_batch_is_resumed_by_any_world(void)
{
    struct got whole = {0};
    read_all(&whole, &worlds[0], 0, LONG);
    for (uint64_t at = BATCH; at < LONG; at += BATCH)
        for (int i = 0; i < WORLDS; i++) {
            struct got both = {0};
            read_all(&both, &worlds[i], 0, at);
            read_all(&both, &worlds[(i + at / BATCH) % WORLDS], at, LONG);
            CHECK(!memcmp(&whole, &both, sizeof whole));
        }
}

int main(void)
{
    static const struct kind *const of[PARTS] = {&kinds[1], &kinds[2]}; /* compressed MDS, tars */
    for (int p = 0; p < PARTS; p++)
        parts[p] = shards_open(shards_make(of[p], SHARDS, EACH), of[p]);
    RUN(every_world_gets_the_same);
    RUN(any_batch_is_resumed_by_any_world);
    for (int p = 0; p < PARTS; p++)
        weir_data_close(parts[p]);
    return TEST_RESULT;
}
