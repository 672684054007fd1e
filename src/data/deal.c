/* deal.c - see deal.h and order.h. */
#include "data/deal.h"

#include <assert.h>

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

/* Those of positions [0, end) of an epoch that are in the first `lanes` of all lanes. */
static uint64_t below(uint64_t end, uint64_t all, uint64_t lanes)
{
    uint64_t rest = end % all;
    return end / all * lanes + (rest < lanes ? rest : lanes);
}

/* Those before a position that are in the first `lanes` lanes. */
static uint64_t before(const struct weir_order *order, uint64_t position, uint64_t lanes)
{
    uint64_t n = weir_order_count(order), all = weir_order_lanes(order);
    lanes = lanes < all ? lanes : all;
    return position / n * below(n, all, lanes) + below(position % n, all, lanes);
}

/* Those of the batch that are in the first `lanes` lanes. */
static uint64_t in_first(const struct weir_dealing *dealing, uint64_t lanes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < dealing->count; i++) {
        const struct weir_deal_part *part = &dealing->parts[i];
        sum += before(part->order, part->end, lanes) - before(part->order, part->first, lanes);
    }
    return sum;
}

/* ---- one after the other ---- */

/* Goes to a part of a lane. */
static void enter(struct weir_dealing *dealing, uint64_t lane, uint32_t part)
{
    const struct weir_deal_part *in = &dealing->parts[part];
    dealing->lane = lane;
    dealing->part = part;
    dealing->past = before(in->order, in->first, lane + 1) - before(in->order, in->first, lane);
    uint64_t end = before(in->order, in->end, lane + 1) - before(in->order, in->end, lane);
    dealing->held = end - dealing->past;
}

void weir_deal_begin(struct weir_dealing *dealing, const struct weir_deal_part *parts,
                     uint32_t count, uint32_t rank, uint32_t ranks)
{
    uint64_t total = 0, low = 0, high = 1;
    for (uint32_t i = 0; i < count; i++) {
        assert(parts[i].first <= parts[i].end);
        total += parts[i].end - parts[i].first;
        uint64_t lanes = weir_order_lanes(parts[i].order);
        high = lanes > high ? lanes : high;
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

bool weir_deal_next(struct weir_dealing *dealing, uint32_t *part, uint64_t *position)
{
    if (!dealing->left)
        return false;
    while (dealing->at >= dealing->held) {
        bool is_last = dealing->part + 1 == dealing->count;
        dealing->at -= dealing->held;
        enter(dealing, dealing->lane + is_last, is_last ? 0 : dealing->part + 1);
    }
    const struct weir_order *order = dealing->parts[dealing->part].order;
    uint64_t n = weir_order_count(order), all = weir_order_lanes(order), lane = dealing->lane;
    uint64_t items = n / all + (lane < n % all), i = dealing->past + dealing->at++;
    *part = dealing->part;
    *position = i / items * n + i % items * all + lane;
    dealing->left--;
    return true;
}

void weir_deal(const struct weir_order *order, uint64_t position, uint64_t count, uint32_t rank,
               uint32_t ranks, uint64_t *out)
{
    assert(position <= UINT64_MAX - count);
    const struct weir_deal_part part = {order, position, position + count};
    struct weir_dealing dealing;
    uint32_t which;
    weir_deal_begin(&dealing, &part, 1, rank, ranks);
    while (weir_deal_next(&dealing, &which, out))
        out++;
}
