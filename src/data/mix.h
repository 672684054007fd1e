/* mix.h - several datasets as one endless sequence, by weight: a position of the mixture is a
 * position in one part's own endless sequence of epochs. Computed, never stored, but for one table
 * of a block.
 *
 * A block is 65,536 slots, of which each part has its share, rounded by largest remainder: over a
 * block, shares are exact. A part's slots are spread over the block, one at a chance place in each
 * of as many equal stretches as it has slots. Each block is the same one, rotated by another
 * amount. The slots of a part are filled with its positions in their order, so that a stretch of
 * the mixture is a stretch of each part: what is true of one dataset (order.h) is true of each
 * part.
 *
 * What is computed here is part of a saved state's meaning: it is the same on every machine, and
 * changes never. All functions but open and close may be called by any thread.
 */
#ifndef WEIR_DATA_MIX_H
#define WEIR_DATA_MIX_H

#include <stdint.h>

#include "data/order.h"

enum { WEIR_MIX_SLOTS = 65536, WEIR_MIX_PARTS_MAX = 256 };

struct weir_mix;
/* Weights count relative to their sum. -EINVAL: a weight so small that its part has no slot. */
int weir_mix_open(struct weir_mix **out, const uint64_t *weights, uint32_t parts, uint64_t seed);
void weir_mix_close(struct weir_mix *mix);
uint32_t weir_mix_parts(const struct weir_mix *mix);
/* How many slots of a block are the part's. */
uint32_t weir_mix_share(const struct weir_mix *mix, uint32_t part);

/* The seed of a part's order: parts that are alike are not shuffled alike. */
uint64_t weir_mix_seed(uint64_t seed, uint32_t part);

struct weir_mix_at {
    uint32_t part;
    uint64_t position; /* of the part: position p is position p mod N of epoch p div N */
};
/* What is at a position of the mixture. */
struct weir_mix_at weir_mix_find(const struct weir_mix *mix, uint64_t position);
/* How many positions before this one are the part's: its next one, where this one is reached. */
uint64_t weir_mix_before(const struct weir_mix *mix, uint64_t position, uint32_t part);

/* What rank r of n gets of the global batch [position, position + count): sorted by lane, then by
 * part, then by position, so that a rank reads the same lanes of every part; out has room for
 * weir_deal_count(). orders: one for each part. */
void weir_mix_deal(const struct weir_mix *mix, const struct weir_order *const *orders,
                   uint64_t position, uint64_t count, uint32_t rank, uint32_t ranks,
                   struct weir_mix_at *out);

#endif
