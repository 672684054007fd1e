/* What ranks get of global batches: together the batch, whatever the world, across ends of epochs;
 * and what was delivered adds up.
 */
#include <stdint.h>

#include "data/digest.h"
#include "data/order.h"
#include "test.h"

static struct weir_order *order_of(uint64_t count, uint32_t lanes)
{
    struct weir_order *order;
    struct weir_order_options opts = {.shuffle = true, .seed = 5, .lanes = lanes, .window = 4};
    OK(weir_order_open(&order, &count, 1, &opts));
    return order;
}

struct at {
    uint64_t lane, position;
};

static int by_lane(const void *a, const void *b)
{
    const struct at *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

/* Against the definition: sort, cut. */
static void check_batch(const struct weir_order *order, uint64_t position, uint64_t count,
                        uint32_t ranks)
{
    uint64_t n = weir_order_count(order), lanes = weir_order_lanes(order), done = 0;
    struct at *sorted = calloc(count + 1, sizeof *sorted);
    uint64_t *out = calloc(count + 2, sizeof *out);
    for (uint64_t i = 0; i < count; i++)
        sorted[i] = (struct at){(position + i) % n % lanes, position + i};
    qsort(sorted, count, sizeof *sorted, by_lane);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint64_t share = weir_deal_count(count, rank, ranks);
        CHECK(share == count / ranks || share == count / ranks + 1);
        out[share] = 4711;
        weir_deal(order, position, count, rank, ranks, out);
        CHECK_EQ(out[share], 4711);
        for (uint64_t i = 0; i < share; i++)
            CHECK_EQ(out[i], sorted[done++].position);
    }
    CHECK_EQ(done, count);
    free(sorted);
    free(out);
}

static void sorted_and_cut(void)
{
    static const uint64_t counts[] = {1, 2, 10, 63, 64, 65, 1000};
    static const uint32_t lanes[] = {1, 2, 7, 64, 100};
    static const uint64_t batches[] = {0, 1, 3, 32, 64, 100, 257};
    static const uint32_t ranks[] = {1, 2, 3, 8, 65, 300};
    for (size_t n = 0; n < 7; n++)
        for (size_t l = 0; l < 5; l++) {
            struct weir_order *order = order_of(counts[n], lanes[l]);
            for (size_t b = 0; b < 7; b++)
                for (size_t r = 0; r < 6; r++)
                    for (uint64_t at = 0; at < 3 * counts[n] && at < 200; at += 1 + at / 3)
                        check_batch(order, at, batches[b], ranks[r]);
            weir_order_close(order);
        }
}

static struct weir_digest digest_of(uint64_t sample, const void *data, size_t size)
{
    uint8_t sum[WEIR_SUM_BYTES];
    weir_sum(sum, data, size);
    return weir_digest_of(sample, sum);
}

/* Batches of one size, also across ends of epochs; the world changes twice. What each epoch
 * delivered is every sample once, and its digest is that of an uninterrupted world of one. */
static void worlds(void)
{
    enum { COUNT = 1000, BATCH = 48, EPOCHS = 3 };
    static const uint32_t ranks[] = {8, 3, 7};
    struct weir_order *order = order_of(COUNT, 16);
    struct weir_digest expect = {0, 0}, got[EPOCHS + 1] = {{0, 0}};
    struct weir_epoch *epochs[EPOCHS + 1];
    for (uint64_t i = 0; i < COUNT; i++)
        weir_digest_add(&expect, digest_of(i, &i, sizeof i));
    for (uint64_t i = 0; i <= EPOCHS; i++)
        OK(weir_epoch_open(&epochs[i], order, i));
    for (uint64_t at = 0; at < EPOCHS * COUNT; at += BATCH) {
        uint32_t world = ranks[at / COUNT];
        uint64_t out[BATCH];
        struct weir_digest part[8][EPOCHS + 1] = {{{0, 0}}};
        for (uint32_t rank = 0; rank < world; rank++) {
            weir_deal(order, at, BATCH, rank, world, out);
            for (uint64_t i = 0; i < weir_deal_count(BATCH, rank, world); i++) {
                uint64_t epoch = out[i] / COUNT;
                uint64_t sample = weir_epoch_sample(epochs[epoch], out[i] % COUNT);
                weir_digest_add(&part[rank][epoch], digest_of(sample, &sample, sizeof sample));
            }
        }
        for (uint32_t rank = world; rank--;)
            for (uint64_t i = 0; i <= EPOCHS; i++)
                weir_digest_add(&got[i], part[rank][i]);
    }
    for (uint64_t i = 0; i < EPOCHS; i++)
        CHECK(got[i].low == expect.low && got[i].high == expect.high);
    for (uint64_t i = 0; i <= EPOCHS; i++)
        weir_epoch_close(epochs[i]);
    weir_order_close(order);
}

/* Batches of a multiple of the lanes: a rank reads the same lanes always. */
static void ranks_keep_their_lanes(void)
{
    struct weir_order *order = order_of(64 * 100, 64);
    for (uint64_t at = 0; at < 64 * 300; at += 128)
        for (uint32_t rank = 0; rank < 8; rank++) {
            uint64_t out[16];
            weir_deal(order, at, 128, rank, 8, out);
            for (int i = 0; i < 16; i++)
                CHECK_EQ(out[i] % 64 / 8, rank);
        }
    weir_order_close(order);
}

static void far_away(void)
{
    struct weir_order *order = order_of(1000000000000, 64);
    check_batch(order, 1000000000000000000, 1000, 7); /* epoch a million */
    check_batch(order, 999999999990, 100, 7);
    weir_order_close(order);
}

static void digests(void)
{
    struct weir_digest zero = digest_of(0, "", 0), one = digest_of(1, "", 0);
    struct weir_digest other = digest_of(0, "a", 1), sum = {UINT64_MAX, 7};
    CHECK(zero.low != one.low && zero.high != one.high);
    CHECK(zero.low != other.low && zero.high != other.high);
    weir_digest_add(&sum, (struct weir_digest){1, 1});
    CHECK(sum.low == 0 && sum.high == 9); /* carried */
    /* Samples 0 and 1 with each other's bytes; a sample twice, another never. */
    struct weir_digest right = digest_of(0, "x", 1), swapped = digest_of(1, "x", 1);
    weir_digest_add(&right, digest_of(1, "y", 1));
    weir_digest_add(&swapped, digest_of(0, "y", 1));
    CHECK(right.low != swapped.low);
    /* Part of what a state means. */
    CHECK_EQ(other.low, 4290676782773455473u);
    CHECK_EQ(other.high, 13251029252857124475u);
}

int main(void)
{
    RUN(sorted_and_cut);
    RUN(worlds);
    RUN(ranks_keep_their_lanes);
    RUN(far_away);
    RUN(digests);
    return TEST_RESULT;
}
