/* A loader: the same global sequence for any number of ranks, workers and threads, from any
 * position, for every format and every kind of shuffle; what was delivered adds up.
 */
#include "shards.h"

enum { SHARDS = 5, EACH = 23, N = SHARDS * EACH, LONG = 2 * N + 31, MOST = 4 * N };

/* How a dataset is read. */
struct way {
    uint32_t flags, lanes;
    uint64_t window;
};
static const struct way ways[] = {
    {0, 0, 0},                            /* in order */
    {WEIR_LOADER_SHUFFLE, 7, 9},          /* windows cut shards, lanes cut windows */
    {WEIR_LOADER_SHUFFLE, 3, UINT64_MAX}, /* full */
    {WEIR_LOADER_SHUFFLE, 0, 0},          /* the defaults */
};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* The numbers that all ranks got, batch by batch, rank by rank; the sum of what they tell. */
struct got {
    uint64_t numbers[MOST];
    uint64_t count;
    uint64_t tallied[3];
    uint8_t digest[3][16];
};

struct world {
    uint64_t batch; /* of all ranks */
    uint32_t ranks, workers, threads;
};

static weir_loader *open_one(weir_data *data, const struct way *way, const struct world *world,
                             uint32_t rank, uint32_t worker, uint64_t position, uint64_t end)
{
    weir_loader *loader = NULL;
    weir_loader_options opts;
    weir_loader_options_init(&opts);
    opts.flags = way->flags;
    opts.lanes = way->lanes;
    opts.window = way->window;
    opts.seed = 5;
    opts.batch_size = world->batch / world->ranks;
    opts.rank = rank;
    opts.ranks = world->ranks;
    opts.worker = worker;
    opts.workers = world->workers;
    opts.threads = world->threads;
    opts.position = position;
    opts.end = end;
    OK(weir_loader_open(&loader, data, &opts));
    return loader;
}

static void add_tallies(struct got *got, const weir_loader *loader)
{
    weir_loader_part part;
    OK(weir_loader_part_get(loader, 0, &part));
    for (uint32_t i = 0; i < part.tallies_count; i++) {
        uint64_t epoch = part.tallies[i].epoch;
        CHECK(epoch < 3);
        got->tallied[epoch] += part.tallies[i].samples;
        add_sum(got->digest[epoch], part.tallies[i].digest);
    }
}

static bool take(struct got *got, weir_loader *loader, uint64_t position)
{
    weir_batch *batch;
    int code = weir_loader_next(loader, &batch, UINT64_MAX);
    if (code != 1) {
        CHECK_EQ(code, 0);
        return false;
    }
    const weir_batch_info *info = weir_batch_get(batch);
    CHECK_EQ(info->position, position);
    memcpy(got->numbers + got->count, info->numbers, info->samples * 8);
    got->count += info->samples;
    weir_batch_release(batch);
    return true;
}

/* Reads positions [position, end) as that world does, and adds what it got. */
static void read_all(struct got *got, weir_data *data, const struct way *way,
                     const struct world *world, uint64_t position, uint64_t end)
{
    weir_loader *loaders[64];
    uint32_t count = world->ranks * world->workers;
    for (uint32_t i = 0; i < count; i++)
        loaders[i] =
            open_one(data, way, world, i / world->workers, i % world->workers, position, end);
    for (uint64_t b = 0; position + b * world->batch < end; b++)
        for (uint32_t r = 0; r < world->ranks; r++)
            CHECK(take(got, loaders[r * world->workers + b % world->workers],
                       position + b * world->batch));
    for (uint32_t i = 0; i < count; i++) {
        CHECK(!take(got, loaders[i], 0));
        add_tallies(got, loaders[i]);
        weir_loader_close(loaders[i]);
    }
}

static void check_same(const struct got *a, const struct got *b)
{
    CHECK_EQ(a->count, b->count);
    CHECK(!memcmp(a->numbers, b->numbers, a->count * 8));
    CHECK(!memcmp(a->tallied, b->tallied, sizeof a->tallied));
    CHECK(!memcmp(a->digest, b->digest, sizeof a->digest));
}

/* Every sample once in each epoch; epochs differ if they are shuffled, their contents do not. */
static void check_epochs(const struct got *got, const struct way *way)
{
    CHECK_EQ(got->tallied[0], N);
    CHECK_EQ(got->tallied[1], N);
    CHECK_EQ(got->tallied[2], 31);
    CHECK(!memcmp(got->digest[0], got->digest[1], 16));
    CHECK(memcmp(got->digest[0], got->digest[2], 16));
    uint64_t seen[N] = {0};
    for (uint64_t i = 0; i < got->count; i++)
        seen[got->numbers[i]]++;
    for (uint64_t i = 0; i < N; i++)
        CHECK(seen[i] == 2 || seen[i] == 3);
    bool in_order = true;
    for (uint64_t i = 0; i < got->count; i++)
        in_order &= got->numbers[i] == i % N;
    CHECK_EQ(in_order, !way->flags);
}

static void check_worlds(weir_data *data, const struct way *way)
{
    static const uint32_t ranks[] = {1, 2, 3, 8}, workers[] = {1, 4}; /* "none" is one, too */
    const struct world one = {24, 1, 1, 3};
    struct got first = {0};
    read_all(&first, data, way, &one, 0, LONG);
    check_epochs(&first, way);
    for (int i = 0; i < 8; i++) {
        struct world world = {24, ranks[i / 2], workers[i % 2], 1 + (uint32_t)i % 3};
        struct got other = {0};
        read_all(&other, data, way, &world, 0, LONG);
        check_same(&first, &other);
    }
}

static void every_world_gets_the_same(void)
{
    for (int k = 0; k < KINDS; k++) {
        weir_data *data = shards_open(shards_make(&kinds[k], SHARDS, EACH), &kinds[k]);
        CHECK_EQ(weir_data_count(data), N);
        for (int w = 0; w < WAYS; w++)
            check_worlds(data, &ways[w]);
        weir_data_close(data);
    }
}

/* A global batch has the same samples, however large: those of a batch are sorted by lane. */
static void batches_may_have_any_size(void)
{
    weir_data *data = shards_open(shards_make(&kinds[0], SHARDS, EACH), &kinds[0]);
    for (uint64_t batch = 1; batch < 3 * N; batch = batch * 2 + 1) {
        struct got got = {0};
        read_all(&got, data, &ways[1], &(struct world){batch, 1, 1, 2}, 0, LONG);
        check_epochs(&got, &ways[1]);
    }
    weir_data_close(data);
}

/* What was delivered up to a position, by one world, and from there, by another, is the whole. */
static void check_resumed(weir_data *data, const struct way *way, int k)
{
    static const struct world worlds[] = {
        {24, 1, 1, 1}, {24, 1, 2, 1}, {24, 1, 4, 1}, {24, 2, 1, 1}, {24, 2, 2, 1}, {24, 2, 4, 1},
        {24, 3, 1, 2}, {24, 3, 2, 1}, {24, 3, 4, 1}, {24, 8, 1, 1}, {24, 8, 2, 1}, {24, 8, 4, 1}};
    struct got whole = {0};
    read_all(&whole, data, way, &worlds[0], 0, LONG);
    for (uint64_t at = 0; at <= N + 24; at += 24) { /* by each of them, for some k */
        size_t i = at / 24 + (size_t)k;
        struct got parts = {0};
        read_all(&parts, data, way, &worlds[i % 12], 0, at);
        read_all(&parts, data, way, &worlds[(i + 5) % 12], at, LONG);
        check_same(&whole, &parts);
    }
    for (uint64_t at = 1 + (uint64_t)k % 4; at < N;
         at += 4) { /* of every four, by one of the ways */
        struct got parts = {0};
        read_all(&parts, data, way, &worlds[0], 0, at);
        read_all(&parts, data, way, &worlds[0], at, LONG);
        check_epochs(&parts, way);
    }
}

static void any_position_is_resumed_by_any_world(void)
{
    for (int k = 0; k < KINDS; k++) {
        weir_data *data = shards_open(shards_make(&kinds[k], SHARDS, EACH), &kinds[k]);
        for (int w = 0; w < WAYS; w++)
            check_resumed(data, &ways[w], k + w);
        weir_data_close(data);
    }
}

/* The token files of a directory as objects of a store. */
static const char *sealed(const char *dir)
{
    const char *root = tmp_path("store");
    weir_store *store = store_at(root, NULL);
    for (uint32_t i = 0; i < SHARDS; i++) {
        char name[64];
        uint8_t data[(EACH * 10 + 1) * 2];
        weir_put *put;
        weir_put_options how;
        weir_put_options_init(&how);
        how.block_bytes = 4096;
        snprintf(name, sizeof name, "tokens/t%03u.bin", i);
        FILE *file = fopen(path_in(dir, name + 7), "r");
        CHECK(file && fread(data, 1, sizeof data, file) == sizeof data && !fclose(file));
        OK(weir_put_open(&put, store, name, &how));
        OK(weir_put_write(put, data, sizeof data));
        OK(weir_put_commit(put, NULL));
        weir_put_close(put);
    }
    weir_store_close(store);
    return path_in(root, "tokens");
}

static void token_files_of_weir_are_mapped(void)
{
    const struct kind *tokens = &kinds[KINDS - 1];
    const char *dir = shards_make(tokens, SHARDS, EACH);
    weir_data *plain = shards_open(dir, tokens), *mapped = shards_open(sealed(dir), tokens);
    const struct world one = {24, 1, 1, 3}, two = {24, 2, 2, 2};
    for (int w = 0; w < WAYS; w++) {
        struct got read = {0}, seen = {0}, shared = {0};
        read_all(&read, plain, &ways[w], &one, 0, LONG);
        read_all(&seen, mapped, &ways[w], &one, 0, LONG);
        read_all(&shared, mapped, &ways[w], &two, 0, LONG);
        check_same(&read, &seen);
        check_same(&read, &shared);
    }
    weir_loader *loader = open_one(mapped, &ways[1], &one, 0, 0, 0, UINT64_MAX);
    weir_loader_stats stats;
    struct got got = {0};
    CHECK(take(&got, loader, 0));
    weir_loader_stats_get(loader, &stats);
    CHECK_EQ(stats.reads, 0);
    weir_loader_close(loader);
    weir_data_close(plain);
    weir_data_close(mapped);
}

static void where_it_is_counts_what_was_delivered(void)
{
    weir_data *data = shards_open(shards_make(&kinds[0], SHARDS, EACH), &kinds[0]);
    weir_loader *loader =
        open_one(data, &ways[1], &(struct world){10, 2, 1, 2}, 1, 0, 0, UINT64_MAX);
    weir_loader_state state;
    weir_loader_part part;
    for (uint64_t i = 0; i < 30; i++) {
        weir_loader_state_get(loader, &state);
        CHECK_EQ(state.position, 10 * i);
        OK(weir_loader_part_get(loader, 0, &part));
        uint64_t samples = 0;
        for (uint32_t t = 0; t < part.tallies_count; t++)
            samples += part.tallies[t].samples;
        CHECK_EQ(samples, 5 * i);
        CHECK_EQ(part.samples, N);
        CHECK_EQ(part.lanes, 7);
        CHECK_EQ(part.window, 9);
        weir_batch *batch;
        CHECK_EQ(weir_loader_next(loader, &batch, UINT64_MAX), 1);
        weir_batch_release(batch);
    }
    CHECK_EQ(weir_loader_part_get(loader, 1, &part), -EINVAL);
    weir_loader_close(loader);
    weir_data_close(data);
}

/* What loaders of a world tell of the epochs, added up: the last ones. */
struct told {
    weir_tally tallies[WEIR_TALLIES_MAX];
    uint32_t count;
};

static void tell(struct told *told, const weir_loader *loader, uint64_t first_epoch)
{
    weir_loader_part part;
    OK(weir_loader_part_get(loader, 0, &part));
    for (uint32_t i = 0; i < part.tallies_count; i++) {
        const weir_tally *from = &part.tallies[i];
        CHECK(!i || from->epoch > from[-1].epoch);
        if (from->epoch < first_epoch)
            continue;
        weir_tally *to = &told->tallies[from->epoch - first_epoch];
        to->epoch = from->epoch;
        to->samples += from->samples;
        add_sum(to->digest, from->digest);
    }
    told->count += part.tallies_count;
}

/* Batches that are several epochs, which come in the order of lanes: each world tells the same of
 * the last epochs, which are complete but for the one that goes on. */
static void the_last_epochs_are_told(void)
{
    enum { FEW = 5, BATCHES = 4 };
    static const struct world worlds[] = {
        {48, 1, 1, 1}, {48, 2, 1, 2}, {48, 3, 2, 1}, {48, 8, 4, 1}};
    uint64_t end = BATCHES * 48, last = (end - 1) / FEW, first = last - WEIR_TALLIES_MAX + 1;
    weir_data *data = shards_open(shards_make(&kinds[0], 1, FEW), &kinds[0]);
    struct told told[4] = {0};
    for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
        const struct world *world = &worlds[w];
        for (uint32_t i = 0; i < world->ranks * world->workers; i++) {
            struct got got = {0};
            uint32_t worker = i % world->workers;
            weir_loader *loader =
                open_one(data, &ways[1], world, i / world->workers, worker, 0, end);
            for (uint64_t b = worker; b < BATCHES; b += world->workers)
                CHECK(take(&got, loader, b * world->batch));
            tell(&told[w], loader, first);
            weir_loader_close(loader);
        }
        for (uint32_t i = 0; i < WEIR_TALLIES_MAX; i++) {
            const weir_tally *tally = &told[w].tallies[i];
            CHECK_EQ(tally->epoch, first + i);
            CHECK_EQ(tally->samples, tally->epoch < last ? FEW : end - last * FEW);
            CHECK(!memcmp(tally->digest, told[0].tallies[i].digest, 16));
        }
    }
    CHECK_EQ(told[0].count, WEIR_TALLIES_MAX);
    weir_data_close(data);
}

int main(void)
{
    RUN(every_world_gets_the_same);
    RUN(batches_may_have_any_size);
    RUN(any_position_is_resumed_by_any_world);
    RUN(token_files_of_weir_are_mapped);
    RUN(where_it_is_counts_what_was_delivered);
    RUN(the_last_epochs_are_told);
    return TEST_RESULT;
}
