/* Several datasets as one sequence: shares exact over a block, every position of every part once
 * and in its order, dealt by lane whatever the world.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/mix.h"
#include "test.h"

static struct weir_mix *mix_of(const uint64_t *weights, uint32_t parts, uint64_t seed)
{
    struct weir_mix *mix;
    OK(weir_mix_open(&mix, weights, parts, seed));
    CHECK_EQ(weir_mix_parts(mix), parts);
    return mix;
}

static void largest_remainder(void)
{
    static const struct {
        uint32_t parts;
        uint64_t weights[4], shares[4];
    } known[] = {
        {1, {7}, {65536}},
        {2, {1, 1}, {32768, 32768}},
        {3, {1, 1, 1}, {21846, 21845, 21845}},
        {3, {70, 20, 10}, {45875, 13107, 6554}},
        {4, {6, 65536, 1, 1}, {6, 65528, 1, 1}},
        {2, {UINT64_MAX, UINT64_MAX}, {32768, 32768}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct weir_mix *mix = mix_of(known[i].weights, known[i].parts, i);
        for (uint32_t part = 0; part < known[i].parts; part++)
            CHECK_EQ(weir_mix_share(mix, part), known[i].shares[part]);
        weir_mix_close(mix);
    }
}

/* Over three blocks: a part's positions come in their order, none is left out, and each block has
 * the part's share of them. */
static void in_order(void)
{
    static const uint64_t weights[] = {500, 300, 199, 1};
    struct weir_mix *mix = mix_of(weights, 4, 77);
    uint64_t next[4] = {0};
    for (uint64_t at = 0; at < 3 * WEIR_MIX_SLOTS; at++) {
        for (uint32_t part = 0; part < 4; part++)
            CHECK_EQ(weir_mix_before(mix, at, part), next[part]);
        struct weir_mix_at found = weir_mix_find(mix, at);
        CHECK(found.part < 4);
        CHECK_EQ(found.position, next[found.part]++);
        for (uint32_t part = 0; (at + 1) % WEIR_MIX_SLOTS == 0 && part < 4; part++)
            CHECK_EQ(next[part], (at + 1) / WEIR_MIX_SLOTS * weir_mix_share(mix, part));
    }
    /* The same in a block that nobody has been near. */
    uint64_t far = (uint64_t)1 << 60;
    struct weir_mix_at found = weir_mix_find(mix, far + 12345);
    CHECK_EQ(weir_mix_before(mix, far + 12345, found.part), found.position);
    CHECK_EQ(weir_mix_before(mix, far + 12346, found.part), found.position + 1);
    weir_mix_close(mix);
}

/* In any stretch of a block, a part has its share, give or take as many as there are parts; and not
 * always at the same places. */
static void spread(void)
{
    enum { STRETCH = 512 };
    static const uint64_t weights[] = {60, 30, 10};
    struct weir_mix *mix = mix_of(weights, 3, 5), *other = mix_of(weights, 3, 6);
    uint64_t same_block = 0, same_seed = 0;
    for (uint64_t at = 0; at < WEIR_MIX_SLOTS; at += 97)
        for (uint32_t part = 0; at % WEIR_MIX_SLOTS + STRETCH < WEIR_MIX_SLOTS && part < 3;
             part++) {
            uint64_t got =
                weir_mix_before(mix, at + STRETCH, part) - weir_mix_before(mix, at, part);
            CHECK(llabs((long long)(got * 100) - (long long)(STRETCH * weights[part])) <= 400);
        }
    for (uint64_t at = 0; at < WEIR_MIX_SLOTS; at++) {
        uint32_t part = weir_mix_find(mix, at).part;
        same_block += part == weir_mix_find(mix, at + WEIR_MIX_SLOTS).part;
        same_seed += part == weir_mix_find(other, at).part;
    }
    /* 0.6^2 + 0.3^2 + 0.1^2 is expected of what is not related. */
    CHECK(same_block < WEIR_MIX_SLOTS / 100 * 50 && same_block > WEIR_MIX_SLOTS / 100 * 42);
    CHECK(same_seed < WEIR_MIX_SLOTS / 100 * 50 && same_seed > WEIR_MIX_SLOTS / 100 * 42);
    CHECK(weir_mix_seed(1, 0) != weir_mix_seed(1, 1) && weir_mix_seed(1, 0) != weir_mix_seed(2, 0));
    weir_mix_close(mix);
    weir_mix_close(other);
}

/* ---- dealing ---- */

enum { PARTS = 5 };
/* Lanes that have nothing, and lanes that others do not have, before and behind any of them. */
static const uint64_t counts[PARTS] = {5, 1000, 3, 64, 5};
static const uint32_t lanes[PARTS] = {16, 7, 64, 16, 1};

static void open_orders(struct weir_order **orders)
{
    for (uint32_t i = 0; i < PARTS; i++) {
        struct weir_order_options opts = {.shuffle = i != PARTS - 1,
                                          .seed = weir_mix_seed(1, i),
                                          .lanes = lanes[i],
                                          .window = 8};
        OK(weir_order_open(&orders[i], &counts[i], 1, &opts));
    }
}

struct dealt {
    uint64_t lane;
    struct weir_mix_at at;
};

static int by_lane(const void *a, const void *b)
{
    const struct dealt *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->at.part != y->at.part)
        return x->at.part < y->at.part ? -1 : 1;
    return (x->at.position > y->at.position) - (x->at.position < y->at.position);
}

/* Against the definition: sort, cut. */
static void check_batch(const struct weir_mix *mix, const struct weir_order *const *orders,
                        uint64_t position, uint64_t count, uint32_t ranks)
{
    struct dealt *sorted = calloc(count + 1, sizeof *sorted);
    struct weir_mix_at *out = calloc(count + 2, sizeof *out);
    uint64_t done = 0;
    for (uint64_t i = 0; i < count; i++) {
        sorted[i].at = weir_mix_find(mix, position + i);
        uint32_t part = sorted[i].at.part;
        sorted[i].lane = sorted[i].at.position % counts[part] % weir_order_lanes(orders[part]);
    }
    qsort(sorted, count, sizeof *sorted, by_lane);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint64_t share = weir_deal_count(count, rank, ranks);
        out[share].part = 4711;
        weir_mix_deal(mix, orders, position, count, rank, ranks, out);
        CHECK_EQ(out[share].part, 4711);
        for (uint64_t i = 0; i < share; i++, done++) {
            CHECK_EQ(out[i].part, sorted[done].at.part);
            CHECK_EQ(out[i].position, sorted[done].at.position);
        }
    }
    CHECK_EQ(done, count);
    free(sorted);
    free(out);
}

static void sorted_and_cut(void)
{
    static const uint64_t weights[PARTS] = {5, 70, 10, 10, 5}, batches[] = {0, 1, 7, 16, 100, 3000};
    static const uint32_t ranks[] = {1, 2, 3, 8, 61};
    struct weir_order *orders[PARTS];
    struct weir_mix *mix = mix_of(weights, PARTS, 9);
    open_orders(orders);
    for (size_t b = 0; b < sizeof batches / sizeof batches[0]; b++)
        for (size_t r = 0; r < sizeof ranks / sizeof ranks[0]; r++)
            for (uint64_t at = 0; at < 2 * WEIR_MIX_SLOTS; at += 1 + at / 2)
                check_batch(mix, (const struct weir_order *const *)orders, at, batches[b],
                            ranks[r]);
    for (uint32_t i = 0; i < PARTS; i++)
        weir_order_close(orders[i]);
    weir_mix_close(mix);
}

/* The world changes; every position of every part is delivered once. */
static void every_position_once(void)
{
    enum { BATCH = 60, BATCHES = 120 };
    static const uint64_t weights[PARTS] = {5, 70, 10, 10, 5};
    static const uint32_t ranks[] = {4, 7, 1};
    struct weir_order *orders[PARTS];
    struct weir_mix *mix = mix_of(weights, PARTS, 10);
    static bool seen[PARTS][BATCH * BATCHES];
    open_orders(orders);
    for (uint64_t at = 0; at < BATCH * BATCHES; at += BATCH)
        for (uint32_t rank = 0, world = ranks[at / BATCH % 3]; rank < world; rank++) {
            struct weir_mix_at out[BATCH];
            weir_mix_deal(mix, (const struct weir_order *const *)orders, at, BATCH, rank, world,
                          out);
            for (uint64_t i = 0; i < weir_deal_count(BATCH, rank, world); i++) {
                CHECK(!seen[out[i].part][out[i].position]);
                seen[out[i].part][out[i].position] = true;
            }
        }
    for (uint32_t part = 0; part < PARTS; part++)
        for (uint64_t i = 0; i < BATCH * BATCHES; i++)
            CHECK_EQ(seen[part][i], i < weir_mix_before(mix, BATCH * BATCHES, part));
    for (uint32_t i = 0; i < PARTS; i++)
        weir_order_close(orders[i]);
    weir_mix_close(mix);
}

/* A rank of eight has its eighth of every part's lanes and some at the cuts, which move with where
 * a batch begins and ends in each part; never all of them. */
static void ranks_keep_their_lanes(void)
{
    enum { BATCH = 512, RANKS = 8, LANES = 64, MIXED = 3 };
    static const uint64_t weights[] = {70, 25, 5}, count = LANES * 1000;
    struct weir_order_options opts = {.shuffle = true, .lanes = LANES, .window = 8};
    struct weir_mix *mix = mix_of(weights, MIXED, 10);
    struct weir_order *orders[MIXED];
    bool used[RANKS][MIXED][LANES] = {{{false}}};
    for (uint32_t i = 0; i < MIXED; i++)
        OK(weir_order_open(&orders[i], &count, 1, &opts));
    for (uint64_t at = 0; at < BATCH * 300; at += BATCH)
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            struct weir_mix_at out[BATCH / RANKS];
            weir_mix_deal(mix, (const struct weir_order *const *)orders, at, BATCH, rank, RANKS,
                          out);
            for (uint32_t i = 0; i < BATCH / RANKS; i++)
                used[rank][out[i].part][out[i].position % count % LANES] = true;
        }
    for (uint32_t rank = 0; rank < RANKS; rank++)
        for (uint32_t part = 0; part < MIXED; part++) {
            uint32_t lanes = 0;
            for (uint32_t lane = 0; lane < LANES; lane++)
                lanes += used[rank][part][lane];
            CHECK(lanes >= 8 && lanes <= 16);
        }
    for (uint32_t i = 0; i < MIXED; i++)
        weir_order_close(orders[i]);
    weir_mix_close(mix);
}

/* What a saved state relies on: written down once, never another. */
static void same_for_ever(void)
{
    static const uint64_t weights[] = {5, 3, 2};
    struct weir_mix *mix = mix_of(weights, 3, 12345);
    uint64_t sum = 0;
    for (uint64_t at = 0; at < 2 * WEIR_MIX_SLOTS; at++) {
        struct weir_mix_at found = weir_mix_find(mix, at);
        sum = (sum * 31 + found.part) * 31 + found.position;
    }
    CHECK_EQ(sum, 7050419048146962878u);
    weir_mix_close(mix);
}

static void refused(void)
{
    static const uint64_t none[2] = {0, 0}, little[2] = {1, 1000000}, many[257] = {1};
    struct weir_mix *mix = NULL;
    CHECK_EQ(weir_mix_open(&mix, none, 2, 0), -EINVAL);
    CHECK_EQ(weir_mix_open(&mix, none, 0, 0), -EINVAL);
    CHECK_EQ(weir_mix_open(&mix, little, 2, 0), -EINVAL);
    CHECK_EQ(weir_mix_open(&mix, many, 257, 0), -EINVAL);
    CHECK(!mix);
}

int main(void)
{
    RUN(largest_remainder);
    RUN(in_order);
    RUN(spread);
    RUN(sorted_and_cut);
    RUN(every_position_once);
    RUN(ranks_keep_their_lanes);
    RUN(same_for_ever);
    RUN(refused);
    return TEST_RESULT;
}
