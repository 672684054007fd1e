/* deal.c - what a rank gets of a global batch (order.h). Nothing is sorted: how many positions of a
 * lane come before a position is a formula, so a rank finds its piece alone.
 */
#include <assert.h>

#include "data/deal.h"

uint64_t weir_deal_count(uint64_t count, uint32_t rank, uint32_t ranks)
{
    assert(rank < ranks);
    return count / ranks + (rank < count % ranks);
}

uint64_t weir_deal_first(uint64_t count, uint32_t rank, uint32_t ranks)
{
    uint64_t more = count % ranks;
    return count / ranks * rank + (rank < more ? rank : more);
}

/* Those of positions [0, end) of an epoch that are in the first `lanes` lanes of all. */
static uint64_t below(uint64_t end, uint64_t all, uint64_t lanes)
{
    uint64_t rest = end % all;
    return end / all * lanes + (rest < lanes ? rest : lanes);
}

uint64_t weir_deal_before(const struct weir_order *order, uint64_t position, uint64_t lanes)
{
    uint64_t n = weir_order_count(order), all = weir_order_lanes(order);
    lanes = lanes < all ? lanes : all;
    return position / n * below(n, all, lanes) + below(position % n, all, lanes);
}

uint64_t weir_deal_at(const struct weir_order *order, uint64_t lane, uint64_t i)
{
    uint64_t n = weir_order_count(order), all = weir_order_lanes(order);
    uint64_t items = n / all + (lane < n % all);
    return i / items * n + i % items * all + lane;
}

/* How many of the batch are in the first `lanes` lanes. */
static uint64_t in_first(const struct weir_order *order, uint64_t position, uint64_t count,
                         uint64_t lanes)
{
    return weir_deal_before(order, position + count, lanes) -
           weir_deal_before(order, position, lanes);
}

/* The lane that has the batch's i-th position, when it is sorted. */
static uint64_t lane_of(const struct weir_order *order, uint64_t position, uint64_t count,
                        uint64_t i)
{
    uint64_t low = 0, high = weir_order_lanes(order);
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (in_first(order, position, count, middle) <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void weir_deal(const struct weir_order *order, uint64_t position, uint64_t count, uint32_t rank,
               uint32_t ranks, uint64_t *out)
{
    uint64_t share = weir_deal_count(count, rank, ranks);
    uint64_t first = weir_deal_first(count, rank, ranks);
    assert(position <= UINT64_MAX - count);
    if (!share)
        return;
    uint64_t lane = lane_of(order, position, count, first);
    for (uint64_t done = 0; done < share; lane++) {
        uint64_t start = in_first(order, position, count, lane);
        uint64_t end = in_first(order, position, count, lane + 1);
        uint64_t past =
            weir_deal_before(order, position, lane + 1) - weir_deal_before(order, position, lane);
        for (uint64_t i = first + done; i < end && done < share; i++)
            out[done++] = weir_deal_at(order, lane, past + i - start);
    }
}
