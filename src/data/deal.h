/* deal.h - the arithmetic of dealing, for one dataset (order.h) and for several (mix.h). Positions
 * count from the beginning of epoch 0 and go on over ends of epochs.
 */
#ifndef WEIR_DATA_DEAL_H
#define WEIR_DATA_DEAL_H

#include <stdint.h>

#include "data/order.h"

/* Where the piece of a rank begins in a batch. */
uint64_t weir_deal_first(uint64_t count, uint32_t rank, uint32_t ranks);
/* How many positions before this one are in the first `lanes` lanes. */
uint64_t weir_deal_before(const struct weir_order *order, uint64_t position, uint64_t lanes);
/* The i-th position of a lane; the lane is not empty. */
uint64_t weir_deal_at(const struct weir_order *order, uint64_t lane, uint64_t i);

#endif
