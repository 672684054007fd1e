/* The order of samples: every sample once in each epoch, found alone, the same for every world,
 * and in windows as the reader will ask for them.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/mix.h"
#include "data/order.h"
#include "test.h"
#include "util/sys.h"

enum { SHARDS_MAX = 64 };

struct dataset {
    uint64_t samples[SHARDS_MAX], shards, count;
};

static struct dataset even(uint64_t shards, uint64_t each)
{
    struct dataset set = {.shards = shards, .count = shards * each};
    for (uint64_t i = 0; i < shards; i++)
        set.samples[i] = each;
    return set;
}

/* Shards of 0 to 2 * each - 1 samples, with empty ones at both ends. */
static struct dataset uneven(uint64_t shards, uint64_t each)
{
    struct dataset set = {.shards = shards};
    for (uint64_t i = 1; i + 1 < shards; i++) {
        set.samples[i] = i * 7919 % (2 * each);
        set.count += set.samples[i];
    }
    return set;
}

static struct weir_order *order_of(const struct dataset *set, uint64_t seed, uint32_t lanes,
                                   uint64_t window)
{
    struct weir_order *order;
    struct weir_order_options opts = {
        .shuffle = true, .seed = seed, .lanes = lanes, .window = window};
    OK(weir_order_open(&order, set->samples, set->shards, &opts));
    CHECK_EQ(weir_order_count(order), set->count);
    CHECK_EQ(weir_order_lanes(order), lanes);
    return order;
}

static struct weir_epoch *epoch_of(const struct weir_order *order, uint64_t number)
{
    struct weir_epoch *epoch;
    OK(weir_epoch_open(&epoch, order, number));
    return epoch;
}

/* The samples of an epoch; the caller frees them. */
static uint64_t *all_of(const struct weir_order *order, uint64_t number)
{
    uint64_t *out = calloc(weir_order_count(order), sizeof *out);
    struct weir_epoch *epoch = epoch_of(order, number);
    for (uint64_t k = 0; k < weir_order_count(order); k++)
        out[k] = weir_epoch_sample(epoch, k);
    weir_epoch_close(epoch);
    return out;
}

/* ---- one epoch ---- */

static bool is_same(const struct weir_window *a, const struct weir_window *b)
{
    return a->lane == b->lane && a->item == b->item && a->first == b->first &&
           a->count == b->count && a->shard == b->shard;
}

static void check_window(const struct weir_order *order, const struct weir_epoch *epoch, uint64_t k,
                         uint64_t window)
{
    struct weir_window at, other;
    uint64_t place, end_place, lanes = weir_order_lanes(order);
    uint64_t sample = weir_epoch_sample(epoch, k);
    weir_epoch_window(epoch, k, &at);
    CHECK_EQ(at.lane, k % lanes);
    CHECK(at.item <= k / lanes && k / lanes < at.item + at.count);
    CHECK(at.first <= sample && sample < at.first + at.count);
    CHECK(at.count <= window);
    CHECK_EQ(weir_order_shard(order, at.first, &place), at.shard);
    CHECK_EQ(weir_order_shard(order, at.first + at.count - 1, &end_place), at.shard);
    CHECK_EQ(end_place, place + at.count - 1);
    /* Its first and its last item say the same. */
    weir_epoch_window(epoch, at.item * lanes + at.lane, &other);
    CHECK(is_same(&at, &other));
    weir_epoch_window(epoch, (at.item + at.count - 1) * lanes + at.lane, &other);
    CHECK(is_same(&at, &other));
    CHECK_EQ(weir_window_sample(&other, k / lanes), sample);
}

static void check_epoch(const struct dataset *set, uint64_t seed, uint32_t lanes, uint64_t window)
{
    struct weir_order *order = order_of(set, seed, lanes, window);
    struct weir_epoch *epoch = epoch_of(order, seed % 3);
    bool *seen = calloc(set->count, 1);
    for (uint64_t k = 0; k < set->count; k++) {
        uint64_t sample = weir_epoch_sample(epoch, k);
        CHECK(sample < set->count && !seen[sample]);
        seen[sample] = true;
        check_window(order, epoch, k, window);
    }
    free(seen);
    weir_epoch_close(epoch);
    weir_order_close(order);
}

static void every_sample_once(void)
{
    struct dataset sets[] = {even(1, 1),    even(1, 5),     even(1, 1000), even(2, 1),
                             even(5, 100),  even(64, 16),   uneven(3, 1),  uneven(9, 3),
                             uneven(8, 40), uneven(64, 17), uneven(4, 500)};
    static const uint32_t lanes[] = {1, 2, 3, 7, 64, 1000, 65536};
    static const uint64_t windows[] = {1, 2, 3, 8, 17, 100, 999, UINT64_MAX - 1, UINT64_MAX};
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++)
        for (size_t l = 0; sets[s].count && l < sizeof lanes / sizeof lanes[0]; l++)
            for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++)
                check_epoch(&sets[s], s + l * 100 + w * 10000, lanes[l], windows[w]);
}

/* Windows of a lane follow each other without a gap and each is one shard's; a lane goes on to the
 * next shard when it is done with one. */
static void lanes_go_from_shard_to_shard(void)
{
    struct dataset set = even(40, 100);
    struct weir_order *order = order_of(&set, 3, 8, 16);
    struct weir_epoch *epoch = epoch_of(order, 0);
    for (uint64_t lane = 0; lane < 8; lane++) {
        bool done[40] = {false};
        uint64_t shard = UINT64_MAX;
        for (uint64_t item = 0; item < set.count / 8;) {
            struct weir_window window;
            weir_epoch_window(epoch, item * 8 + lane, &window);
            CHECK_EQ(window.item, item);
            item += window.count;
            if (window.shard == shard)
                continue;
            CHECK(!done[window.shard]);
            done[window.shard] = true;
            shard = window.shard;
        }
    }
    weir_epoch_close(epoch);
    weir_order_close(order);
}

/* Eight lanes in a row need eight windows in the time of one: about one in each eighth of it. */
static void windows_are_staggered(void)
{
    enum { ITEMS = 6400, WINDOW = 800, SPANS = ITEMS * 8 / WINDOW };
    struct dataset set = even(1, 64 * ITEMS);
    struct weir_order *order = order_of(&set, 11, 64, WINDOW);
    struct weir_epoch *epoch = epoch_of(order, 1);
    for (uint64_t lane = 0; lane + 8 <= 64; lane++) {
        uint32_t begin[SPANS] = {0};
        for (uint64_t l = lane; l < lane + 8; l++)
            for (uint64_t item = 0; item < ITEMS;) {
                struct weir_window window;
                weir_epoch_window(epoch, item * 64 + l, &window);
                begin[item * SPANS / ITEMS]++;
                item += window.count;
            }
        for (int i = 1; i < SPANS; i++) /* in the first, every lane begins */
            CHECK(begin[i] <= 4);       /* some are windows that were cut in two */
    }
    weir_epoch_close(epoch);
    weir_order_close(order);
}

static void without_shuffling(void)
{
    struct dataset set = uneven(9, 30);
    struct weir_order_options opts = {.lanes = 64, .window = 8};
    struct weir_order *order;
    OK(weir_order_open(&order, set.samples, set.shards, &opts));
    CHECK_EQ(weir_order_lanes(order), 1);
    struct weir_epoch *epoch = epoch_of(order, 5);
    for (uint64_t k = 0; k < set.count; k++) {
        CHECK_EQ(weir_epoch_sample(epoch, k), k);
        check_window(order, epoch, k, 8);
    }
    weir_epoch_close(epoch);
    weir_order_close(order);
}

/* Seeds, epochs, lanes and windows: another one is another order, and no part of it stays. */
static void others_are_others(void)
{
    struct dataset set = even(20, 500);
    struct weir_order *order = order_of(&set, 1, 16, 125), *other = order_of(&set, 2, 16, 125);
    uint64_t *a = all_of(order, 0), *b = all_of(order, 1), *c = all_of(other, 0);
    uint64_t *again = all_of(order, 0), same_epoch = 0, same_seed = 0;
    CHECK(!memcmp(a, again, set.count * sizeof *a));
    for (uint64_t k = 0; k < set.count; k++) {
        same_epoch += a[k] == b[k];
        same_seed += a[k] == c[k];
    }
    CHECK(same_epoch < 12 && same_seed < 12); /* one is expected */
    /* Windows are not all read from the shard's beginning, nor samples in their order. */
    uint64_t rising = 0;
    for (uint64_t k = 0; k + 16 < set.count; k++)
        rising += a[k] < a[k + 16];
    CHECK(rising > set.count * 45 / 100 && rising < set.count * 55 / 100);
    free(a);
    free(b);
    free(c);
    free(again);
    weir_order_close(order);
    weir_order_close(other);
}

/* A sum over an epoch that a saved state relies on: written down once, never another. */
static void same_for_ever(void)
{
    static const struct {
        uint32_t lanes;
        uint64_t window, sum;
    } known[] = {{64, 32, 14884703152261503737u},
                 {1, 1000, 9272992141130821871u},
                 {5, UINT64_MAX, 18402468497392370683u}};
    struct dataset set = uneven(30, 100);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct weir_order *order = order_of(&set, 12345, known[i].lanes, known[i].window);
        uint64_t *all = all_of(order, 3), sum = 0;
        for (uint64_t k = 0; k < set.count; k++)
            sum = sum * 31 + all[k];
        CHECK_EQ(sum, known[i].sum);
        free(all);
        weir_order_close(order);
    }
}

/* A trillion samples in one file, and in a hundred thousand. */
static void huge(void)
{
    enum { MANY = 100000 };
    uint64_t *samples = calloc(MANY, sizeof *samples), one = 1000000000000;
    for (uint64_t i = 0; i < MANY; i++)
        samples[i] = one / MANY;
    for (int many = 0; many < 2; many++) {
        struct weir_order *order;
        struct weir_order_options opts = {
            .shuffle = true, .seed = 1, .lanes = 64, .window = 1 << 16};
        OK(weir_order_open(&order, many ? samples : &one, many ? MANY : 1, &opts));
        struct weir_epoch *epoch = epoch_of(order, 0);
        for (uint64_t i = 0; i < 1000; i++)
            check_window(order, epoch, (i * 998244353) % one, 1 << 16);
        check_window(order, epoch, one - 1, 1 << 16);
        weir_epoch_close(epoch);
        weir_order_close(order);
    }
    free(samples);
}

static void refused(void)
{
    static const uint64_t none[2] = {0, 0}, much[2] = {INT64_MAX, 1}, wraps[2] = {UINT64_MAX, 2};
    uint64_t one = 1;
    struct weir_order *order = NULL;
    struct weir_order_options opts = {.shuffle = true, .lanes = 64, .window = 8};
    CHECK_EQ(weir_order_open(&order, none, 2, &opts), -EINVAL);
    CHECK_EQ(weir_order_open(&order, none, 0, &opts), -EINVAL);
    CHECK_EQ(weir_order_open(&order, much, 2, &opts), -EFBIG);
    CHECK_EQ(weir_order_open(&order, wraps, 2, &opts), -EFBIG);
    opts.lanes = 0;
    CHECK_EQ(weir_order_open(&order, &one, 1, &opts), -EINVAL);
    opts.lanes = 65537;
    CHECK_EQ(weir_order_open(&order, &one, 1, &opts), -EINVAL);
    opts.lanes = 1;
    opts.window = 0;
    CHECK_EQ(weir_order_open(&order, &one, 1, &opts), -EINVAL);
    CHECK(!order);
}

/* ---- without memory ---- */

static int allocations_left;

static void *failing_realloc(void *ptr, size_t size)
{
    return allocations_left-- > 0 ? realloc(ptr, size) : NULL;
}

/* Every allocation fails in turn: nothing is left behind, and the last try works. */
static void no_memory(void)
{
    struct weir_sys failing = weir_sys_real;
    struct weir_order_options opts = {.shuffle = true, .lanes = 4, .window = 8};
    struct dataset set = even(5, 100);
    uint64_t weights[2] = {1, 2};
    int order_code = -1, epoch_code = -1, mix_code = -1;
    failing.realloc = failing_realloc;
    weir_sys = &failing;
    for (int n = 0; order_code || epoch_code || mix_code; n++) {
        struct weir_order *order = NULL;
        struct weir_epoch *epoch = NULL;
        struct weir_mix *mix = NULL;
        CHECK(n < 10);
        allocations_left = n;
        order_code = weir_order_open(&order, set.samples, set.shards, &opts);
        epoch_code = order ? weir_epoch_open(&epoch, order, 0) : -ENOMEM;
        mix_code = weir_mix_open(&mix, weights, 2, 1);
        CHECK(order_code ? order_code == -ENOMEM && !order : order != NULL);
        CHECK(epoch_code ? epoch_code == -ENOMEM && !epoch : epoch != NULL);
        CHECK(mix_code ? mix_code == -ENOMEM && !mix : mix != NULL);
        weir_mix_close(mix);
        weir_epoch_close(epoch);
        weir_order_close(order);
    }
    weir_sys = &weir_sys_real;
}

int main(void)
{
    RUN(every_sample_once);
    RUN(lanes_go_from_shard_to_shard);
    RUN(windows_are_staggered);
    RUN(without_shuffling);
    RUN(others_are_others);
    RUN(same_for_ever);
    RUN(huge);
    RUN(refused);
    RUN(no_memory);
    return TEST_RESULT;
}
