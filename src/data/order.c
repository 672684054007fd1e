/* order.c - see order.h. "Place" is a place in the epoch's sequence of all samples: permuted shards
 * end to end, lanes end to end.
 */
#include "data/order.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/min.h"
#include "util/perm.h"
#include "util/sys.h"

enum { LANES_MAX = 65536 };
/* 2^64 over the golden ratio: fractions of its multiples spread evenly, however many there are. */
#define SPREAD 0x9e3779b97f4a7c15u

/* What a key is for. */
enum purpose { FOR_SHARDS, FOR_WINDOWS, FOR_SAMPLES, FOR_PHASES, FOR_ROTATION, FOR_EVERYTHING };

struct weir_order {
    struct weir_order_options opts;
    uint64_t shards;
    uint64_t starts[]; /* the first sample of each shard; then N */
};

/* A shard, in its turn. */
struct turn {
    uint64_t place, sample; /* of its first sample: in the epoch's sequence, in the dataset */
    uint64_t shard;
};

struct weir_epoch {
    const struct weir_order *order;
    uint64_t keys[FOR_EVERYTHING + 1];
    struct weir_perm everything; /* of a full shuffle, which has no table */
    struct turn *turns;          /* then one at the end of all */
    /* Which turn place i << shift is in: so few shards are between two of them that finding one
     * touches two or three lines of memory, not one for each halving. */
    uint32_t *guide;
    unsigned shift;
};

/* ---- the dataset ---- */

static int check(const uint64_t *samples, uint64_t shards, const struct weir_order_options *opts)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < shards; i++)
        if (__builtin_add_overflow(sum, samples[i], &sum) || sum > INT64_MAX)
            return weir_fail(EFBIG, "the first %" PRIu64 " shards have 2^63 samples or more",
                             i + 1);
    if (shards > UINT32_MAX)
        return weir_fail(EFBIG, "%" PRIu64 " shards: use larger ones", shards);
    if (!sum)
        return weir_fail(EINVAL, "there are no samples in %" PRIu64 " shards", shards);
    if (!opts->lanes || opts->lanes > LANES_MAX)
        return weir_fail(EINVAL, "%" PRIu32 " lanes: use 1 to %d", opts->lanes, LANES_MAX);
    if (!opts->window)
        return weir_fail(EINVAL, "a window of 0 samples: use 1 or more");
    return 0;
}

int weir_order_open(struct weir_order **out, const uint64_t *samples, uint64_t shards,
                    const struct weir_order_options *opts)
{
    int code = check(samples, shards, opts);
    if (code)
        return code;
    struct weir_order *order = weir_alloc(sizeof *order + (shards + 1) * sizeof order->starts[0]);
    if (!order)
        return weir_fail_memory();
    order->opts = *opts;
    if (!opts->shuffle)
        order->opts.lanes = 1;
    order->shards = shards;
    order->starts[0] = 0;
    for (uint64_t i = 0; i < shards; i++)
        order->starts[i + 1] = order->starts[i] + samples[i];
    *out = order;
    return 0;
}

void weir_order_close(struct weir_order *order)
{
    free(order);
}

uint64_t weir_order_count(const struct weir_order *order)
{
    return order->starts[order->shards];
}

uint32_t weir_order_lanes(const struct weir_order *order)
{
    return order->opts.lanes;
}

uint64_t weir_order_shard(const struct weir_order *order, uint64_t sample, uint64_t *place)
{
    assert(sample < weir_order_count(order));
    uint64_t shard = 0;
    for (uint64_t left = order->shards; left > 1;) { /* the last that begins there or before */
        uint64_t half = left / 2;
        shard += order->starts[shard + half] <= sample ? half : 0; /* no branch to mispredict */
        left -= half;
    }
    *place = sample - order->starts[shard];
    return shard;
}

/* ---- one epoch ---- */

static bool is_full(const struct weir_order *order)
{
    return order->opts.shuffle && order->opts.window == UINT64_MAX;
}

static int lay_out(struct weir_epoch *epoch)
{
    const struct weir_order *order = epoch->order;
    uint64_t shards = order->shards, n = weir_order_count(order), place = 0;
    while (n >> epoch->shift > shards)
        epoch->shift++;
    uint64_t marks = (n >> epoch->shift) + 2;
    epoch->turns = weir_alloc((shards + 1) * sizeof *epoch->turns);
    epoch->guide = weir_alloc(marks * sizeof *epoch->guide);
    if (!epoch->turns || !epoch->guide)
        return weir_fail_memory();
    struct weir_perm perm;
    weir_perm_init(&perm, epoch->keys[FOR_SHARDS], shards);
    for (uint64_t i = 0; i < shards; i++) {
        uint64_t shard = order->opts.shuffle ? weir_perm_at(&perm, i) : i;
        epoch->turns[i] = (struct turn){place, order->starts[shard], shard};
        place += order->starts[shard + 1] - order->starts[shard];
    }
    epoch->turns[shards].place = n;
    uint32_t turn = 0;
    for (uint64_t i = 0; i < marks; i++) {
        while (turn + 1 < shards && epoch->turns[turn + 1].place <= i << epoch->shift)
            turn++;
        epoch->guide[i] = turn;
    }
    return 0;
}

int weir_epoch_open(struct weir_epoch **out, const struct weir_order *order, uint64_t number)
{
    struct weir_epoch *epoch = weir_alloc(sizeof *epoch);
    if (!epoch)
        return weir_fail_memory();
    uint64_t key = weir_perm_key(order->opts.seed, number);
    for (uint64_t i = 0; i <= FOR_EVERYTHING; i++)
        epoch->keys[i] = weir_perm_key(key, i);
    epoch->order = order;
    weir_perm_init(&epoch->everything, epoch->keys[FOR_EVERYTHING], weir_order_count(order));
    int code = is_full(order) ? 0 : lay_out(epoch);
    if (code)
        weir_epoch_close(epoch);
    else
        *out = epoch;
    return code;
}

void weir_epoch_close(struct weir_epoch *epoch)
{
    if (!epoch)
        return;
    free(epoch->turns);
    free(epoch->guide);
    free(epoch);
}

/* ---- finding a position ---- */

/* What a lane has of a shard. */
struct part {
    uint32_t lane;
    uint64_t lane_first; /* the lane's first place */
    uint64_t place;      /* where the position is */
    uint64_t first, end; /* places */
    const struct turn *turn;
};

/* The last turn that begins at the place or before: empty shards are passed over. */
static const struct turn *turn_of(const struct weir_epoch *epoch, uint64_t place)
{
    uint64_t mark = place >> epoch->shift, low = epoch->guide[mark];
    for (uint64_t left = epoch->guide[mark + 1] - low + 1; left > 1;) {
        uint64_t half = left / 2;
        low += epoch->turns[low + half].place <= place ? half : 0;
        left -= half;
    }
    return &epoch->turns[low];
}

static struct part part_of(const struct weir_epoch *epoch, uint64_t k)
{
    const struct weir_order *order = epoch->order;
    uint64_t n = weir_order_count(order), lanes = order->opts.lanes, lane = k % lanes;
    assert(k < n);
    uint64_t first = n / lanes * lane + weir_min(n % lanes, lane);
    uint64_t end = first + n / lanes + (lane < n % lanes);
    struct part part = {.lane = (uint32_t)lane, .lane_first = first, .place = first + k / lanes};
    part.turn = turn_of(epoch, part.place);
    part.first = part.turn->place > first ? part.turn->place : first;
    part.end = weir_min(part.turn[1].place, end);
    return part;
}

/* The window of a part that has its s-th turn in it, and where its bytes are. */
struct slot {
    uint64_t first, count; /* within the part: as they are delivered */
    uint64_t data;         /* within the part: as they lie in the shard */
};

/* A number below n, from 64 bits of chance. */
static uint64_t scaled(uint64_t chance, uint64_t n)
{
    return (uint64_t)((unsigned __int128)chance * n >> 64);
}

/* Windows were laid out as if the part were a ring: it begins `turned` behind the layout's
 * beginning. The window that is then in two pieces is two windows, in either order. */
static struct slot rotate(struct slot slot, uint64_t size, uint64_t at, uint64_t chance)
{
    uint64_t turned = scaled(chance, size), behind = slot.data + slot.count - turned;
    if (turned <= slot.data || turned >= slot.data + slot.count) {
        slot.data = (slot.data + size - turned) % size;
        return slot;
    }
    struct slot last = {slot.first, slot.count - behind, size - (slot.count - behind)};
    struct slot first = {slot.first, behind, 0};
    if (chance & 1)
        first.first += last.count;
    else
        last.first += first.count;
    return at >= first.first && at < first.first + first.count ? first : last;
}

static uint64_t window_slots(uint64_t size, uint64_t head, uint64_t window)
{
    return 1 + (size - head + window - 1) / window;
}

/* Turn s is `head` long if it is the first, what is left if it is the last, else a window. As
 * windows have other turns than they lie in the shard, short ones lie anywhere: what lies before
 * one is whole windows, less what the short ones before it lack. Were the layout not rotated, a
 * shard's first and last samples would be in short windows too often. */
static struct slot slot_of(const struct weir_epoch *epoch, const struct part *part)
{
    const struct weir_order_options *opts = &epoch->order->opts;
    uint64_t size = part->end - part->first, at = part->place - part->first, window = opts->window;
    if (size <= window)
        return (struct slot){0, size, 0};
    if (!opts->shuffle) {
        uint64_t first = at - at % window;
        return (struct slot){first, weir_min(window, size - first), first};
    }
    uint64_t spread = epoch->keys[FOR_PHASES] + part->lane * SPREAD;
    uint64_t phase = scaled(spread, window);
    uint64_t head = (phase + window - (part->first - part->lane_first) % window) % window;
    head = head ? head : window;
    uint64_t slots = window_slots(size, head, window),
             turn = at < head ? 0 : 1 + (at - head) / window;
    uint64_t tail = size - head - (slots - 2) * window;

    struct weir_perm perm;
    weir_perm_init(&perm, weir_perm_key(epoch->keys[FOR_WINDOWS], part->first), slots);
    uint64_t lies = weir_perm_at(&perm, turn);
    struct slot slot = {.first = turn ? head + (turn - 1) * window : 0, .data = lies * window};
    slot.count = turn ? weir_min(window, size - slot.first) : head;
    if (weir_perm_at(&perm, 0) < lies)
        slot.data -= window - head;
    if (weir_perm_at(&perm, slots - 1) < lies)
        slot.data -= window - tail;
    return rotate(slot, size, at, weir_perm_key(epoch->keys[FOR_ROTATION], part->first));
}

/* The sample that lies at the part's beginning. */
static uint64_t part_sample(const struct part *part)
{
    return part->turn->sample + part->first - part->turn->place;
}

uint64_t weir_window_sample(const struct weir_window *window, uint64_t item)
{
    uint64_t i = item - window->item;
    return window->first + (window->is_shuffled ? weir_perm_at(&window->perm, i) : i);
}

static void window_of(const struct weir_epoch *epoch, uint64_t k, struct weir_window *out)
{
    struct part part = part_of(epoch, k);
    struct slot slot = slot_of(epoch, &part);
    *out = (struct weir_window){.lane = part.lane,
                                .item = part.first - part.lane_first + slot.first,
                                .first = part_sample(&part) + slot.data,
                                .count = slot.count,
                                .shard = part.turn->shard,
                                .is_shuffled = epoch->order->opts.shuffle};
    if (out->is_shuffled)
        weir_perm_init(&out->perm,
                       weir_perm_key(epoch->keys[FOR_SAMPLES], part.first + slot.first),
                       slot.count);
}

uint64_t weir_epoch_sample(const struct weir_epoch *epoch, uint64_t k)
{
    const struct weir_order *order = epoch->order;
    struct weir_window window;
    assert(k < weir_order_count(order));
    if (!order->opts.shuffle)
        return k;
    if (is_full(order))
        return weir_perm_at(&epoch->everything, k);
    window_of(epoch, k, &window);
    return weir_window_sample(&window, k / order->opts.lanes);
}

void weir_epoch_window(const struct weir_epoch *epoch, uint64_t k, struct weir_window *out)
{
    const struct weir_order *order = epoch->order;
    uint64_t place;
    if (!is_full(order)) {
        window_of(epoch, k, out);
        return;
    }
    *out = (struct weir_window){.lane = (uint32_t)(k % order->opts.lanes),
                                .item = k / order->opts.lanes,
                                .first = weir_epoch_sample(epoch, k),
                                .count = 1};
    out->shard = weir_order_shard(order, out->first, &place);
}
