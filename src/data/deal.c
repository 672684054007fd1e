/* deal.c - see deal.h and order.h. */
#include "data/deal.h"

#include <assert.h>

#include "util/min.h"

uint64_t weir_deal_count(uint64_t count, uint32_t rank, uint32_t ranks)
{
    assert(rank < ranks);
    return count / ranks + (rank < count % ranks);
}

/* Where the piece of a rank begins. */
static uint64_t piece_first(uint64_t count, uint32_t rank, uint32_t ranks)
{
    uint64_t more = count % ranks;
    return count / ranks * rank + (rank < more ? rank : more);
}

/* ---- how many ---- */

static struct weir_deal_mark mark_of(const struct weir_deal_part *part, uint64_t position)
{
    uint64_t n = weir_order_count(part->order), rest = position % n;
    return (struct weir_deal_mark){position / n, rest / part->lanes, rest % part->lanes};
}

static void prepare(struct weir_deal_part *part)
{
    uint64_t n = weir_order_count(part->order);
    assert(part->first <= part->end);
    part->lanes = weir_order_lanes(part->order);
    part->rounds = n / part->lanes;
    part->rest = n % part->lanes;
    part->from = mark_of(part, part->first);
    part->to = mark_of(part, part->end);
}

/* Those before a position that are in the first `lanes` lanes. */
static uint64_t before(const struct weir_deal_part *part, const struct weir_deal_mark *mark,
                       uint64_t lanes)
{
    lanes = weir_min(lanes, part->lanes);
    return mark->epochs * (part->rounds * lanes + weir_min(part->rest, lanes)) +
           mark->rounds * lanes + weir_min(mark->lane, lanes);
}

/* Those of the batch that are in the first `lanes` lanes. */
static uint64_t in_first(const struct weir_dealing *dealing, uint64_t lanes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < dealing->count; i++) {
        const struct weir_deal_part *part = &dealing->parts[i];
        sum += before(part, &part->to, lanes) - before(part, &part->from, lanes);
    }
    return sum;
}

/* ---- one after the other ---- */

/* Goes to a part of a lane, of which `at` are behind us. */
static void enter(struct weir_dealing *dealing, uint64_t lane, uint32_t number)
{
    const struct weir_deal_part *part = &dealing->parts[number];
    const struct weir_deal_mark *from = &part->from, *to = &part->to;
    uint64_t items = lane < part->lanes ? part->rounds + (lane < part->rest) : 0;
    dealing->lane = lane;
    dealing->part = number;
    dealing->held = 0;
    if (!items)
        return;
    uint64_t first = from->rounds + (lane < from->lane), end = to->rounds + (lane < to->lane);
    dealing->held = (to->epochs - from->epochs) * items + end - first;
    dealing->items = items;
    dealing->epoch = from->epochs;
    dealing->item = first + dealing->at;
    if (dealing->item >= items) {
        dealing->epoch += dealing->item / items;
        dealing->item %= items;
    }
}

void weir_deal_begin(struct weir_dealing *dealing, struct weir_deal_part *parts, uint32_t count,
                     uint32_t rank, uint32_t ranks)
{
    uint64_t total = 0, low = 0, high = 1;
    for (uint32_t i = 0; i < count; i++) {
        prepare(&parts[i]);
        total += parts[i].end - parts[i].first;
        high = parts[i].lanes > high ? parts[i].lanes : high;
    }
    *dealing = (struct weir_dealing){
        .parts = parts, .count = count, .left = weir_deal_count(total, rank, ranks)};
    uint64_t first = piece_first(total, rank, ranks);
    while (high - low > 1) { /* the lane in which the piece begins */
        uint64_t middle = low + (high - low) / 2;
        if (in_first(dealing, middle) <= first)
            low = middle;
        else
            high = middle;
    }
    dealing->at = first - in_first(dealing, low);
    if (dealing->left)
        enter(dealing, low, 0);
}

bool weir_deal_next(struct weir_dealing *dealing, uint32_t *number, uint64_t *position)
{
    if (!dealing->left)
        return false;
    while (dealing->at >= dealing->held) {
        bool is_last = dealing->part + 1 == dealing->count;
        dealing->at -= dealing->held;
        enter(dealing, dealing->lane + is_last, is_last ? 0 : dealing->part + 1);
    }
    const struct weir_deal_part *part = &dealing->parts[dealing->part];
    *number = dealing->part;
    *position = dealing->epoch * weir_order_count(part->order) + dealing->item * part->lanes +
                dealing->lane;
    dealing->at++;
    if (++dealing->item == dealing->items) {
        dealing->item = 0;
        dealing->epoch++;
    }
    dealing->left--;
    return true;
}

void weir_deal(const struct weir_order *order, uint64_t position, uint64_t count, uint32_t rank,
               uint32_t ranks, uint64_t *out)
{
    assert(position <= UINT64_MAX - count);
    struct weir_deal_part part = {.order = order, .first = position, .end = position + count};
    struct weir_dealing dealing;
    uint32_t which;
    weir_deal_begin(&dealing, &part, 1, rank, ranks);
    while (weir_deal_next(&dealing, &which, out))
        out++;
}
