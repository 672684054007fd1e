/* deal.h - dealing of global batches of one dataset (order.h) or of several (mix.h): sorted by
 * lane, then by part, then by position, and cut into equal pieces. Nothing is sorted: how many
 * positions of a lane come before a position is a formula, so a rank finds its piece alone.
 */
#ifndef WEIR_DATA_DEAL_H
#define WEIR_DATA_DEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "data/order.h"

/* What a batch has of a dataset: positions [first, end), which go on over ends of epochs. */
struct weir_deal_part {
    const struct weir_order *order;
    uint64_t first, end;
};

/* Dealing to one rank: weir_deal_begin(), then weir_deal_next() until it is false. */
struct weir_dealing {
    const struct weir_deal_part *parts; /* borrowed */
    uint32_t count;
    uint64_t left;       /* of the rank's piece */
    uint32_t part;       /* where we are: a part of a lane, */
    uint64_t lane;       /* */
    uint64_t held, past; /* how many of it are in the batch, how many came before the batch, */
    uint64_t at;         /* and how many of those that it holds are behind us */
};

void weir_deal_begin(struct weir_dealing *dealing, const struct weir_deal_part *parts,
                     uint32_t count, uint32_t rank, uint32_t ranks);
/* The next one: of which part, and its position there. False: that was all. */
bool weir_deal_next(struct weir_dealing *dealing, uint32_t *part, uint64_t *position);

#endif
