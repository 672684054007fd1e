/* deal.h - dealing of global batches of one dataset (order.h) or of several (mix.h): sorted by
 * lane, then by part, then by position, and cut into equal pieces. Nothing is sorted: how many
 * positions of a lane come before a position is a formula, so a rank finds its piece alone.
 */
#ifndef WEIR_DATA_DEAL_H
#define WEIR_DATA_DEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "data/order.h"

/* Where a position is: behind so many epochs, then so many rounds of all lanes, at this lane. */
struct weir_deal_mark {
    uint64_t epochs, rounds, lane;
};

/* What a batch has of a dataset: positions [first, end), which go on over ends of epochs. */
struct weir_deal_part {
    const struct weir_order *order;
    uint64_t first, end;
    /* Made by weir_deal_begin(), so that nothing is divided for each position: */
    struct weir_deal_mark from, to;
    uint64_t lanes, rounds, rest; /* an epoch is so many rounds of all lanes, and one of `rest` */
};

/* Dealing to one rank: weir_deal_begin(), then weir_deal_next() until it is false. */
struct weir_dealing {
    const struct weir_deal_part *parts; /* borrowed */
    uint32_t count;
    uint64_t left; /* of the rank's piece */
    uint32_t part; /* where we are: a part of a lane, */
    uint64_t lane; /* */
    uint64_t held; /* how many of it are in the batch, */
    uint64_t at;   /* how many of those are behind us, */
    uint64_t epoch, item, items; /* and which comes next: of those the lane has in that epoch */
};

/* Fills the parts in, which stay until the end. */
void weir_deal_begin(struct weir_dealing *dealing, struct weir_deal_part *parts, uint32_t count,
                     uint32_t rank, uint32_t ranks);
/* The next one: of which part, and its position there. False: that was all. */
bool weir_deal_next(struct weir_dealing *dealing, uint32_t *part, uint64_t *position);

#endif
