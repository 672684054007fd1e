/* order.h - the order of samples: computed, never stored. Pure functions over a small table.
 *
 * An epoch permutes the shards and lays them end to end; this sequence of all samples is cut into L
 * lanes of equal length (the first ones longer by one where it does not divide). Where a lane
 * crosses shards, each part of a shard in it is cut into windows, which are permuted within the
 * part; the samples of a window are permuted within it. Position k of the epoch is item k div L of
 * lane k mod L. So storage sees windows, large and in one piece; a node that reads some lanes needs
 * only their shards, one after the other; and any position is found alone.
 *
 * A part that is not longer than a window is one window. In a longer one, windows end where the
 * lane's item has a certain remainder modulo the window, its phase, and where the part ends: the
 * first and the last window of a part may be shorter, and one may be cut in two, since windows
 * are laid out from any sample of the part on, over its end, to make all samples alike. Phases
 * are spread evenly over any lanes in a row, so that a node needs its next windows one by one,
 * not all at the same step. (Ends of parts are not staggered: with shards of one size of which a
 * whole number makes a lane, all lanes go to their next shard together.)
 *
 * A global batch is `count` positions in a row; sorted by lane, it is cut into equal pieces for the
 * ranks. Positions go on over the end of an epoch: position p is position p mod N of epoch p div N.
 *
 * Without shuffling there is one lane, and position k is sample k; windows are cut from the
 * beginning of each shard.
 *
 * What is computed here is part of a saved state's meaning: it is the same on every machine, and
 * changes never. All functions but open and close may be called by any thread.
 */
#ifndef WEIR_DATA_ORDER_H
#define WEIR_DATA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "util/perm.h"

struct weir_order_options {
    bool shuffle;
    uint64_t seed;
    uint32_t lanes;  /* 1 to 65536 */
    uint64_t window; /* samples; UINT64_MAX: everything, a full shuffle: one window over all shards,
                        and its samples are anywhere */
};

struct weir_order;
/* samples: of each shard, copied; some may be 0, but not all. -EINVAL, -EFBIG (2^63 samples). */
int weir_order_open(struct weir_order **out, const uint64_t *samples, uint64_t shards,
                    const struct weir_order_options *opts);
void weir_order_close(struct weir_order *order);
uint64_t weir_order_count(const struct weir_order *order); /* N */
uint32_t weir_order_lanes(const struct weir_order *order); /* L; 1 without shuffling */
/* In which shard a sample is, and at which place in it. */
uint64_t weir_order_shard(const struct weir_order *order, uint64_t sample, uint64_t *place);

/* One epoch: the table of its shards' order, shared by all threads that read it. The order must
 * live longer. */
struct weir_epoch;
int weir_epoch_open(struct weir_epoch **out, const struct weir_order *order, uint64_t number);
void weir_epoch_close(struct weir_epoch *epoch);
/* Which sample is at position k < N: its number in the dataset. */
uint64_t weir_epoch_sample(const struct weir_epoch *epoch, uint64_t k);

/* A window: samples [first, first + count) of the dataset, all of one shard, which are items
 * [item, item + count) of a lane, in some order. */
struct weir_window {
    uint32_t lane;
    uint64_t item;
    uint64_t first, count;
    uint64_t shard;
    bool is_shuffled;
    struct weir_perm perm; /* of its samples, if so */
};
/* The window in which position k is. In a full shuffle, count is 1: the sample alone. */
void weir_epoch_window(const struct weir_epoch *epoch, uint64_t k, struct weir_window *out);
/* The sample that is this item of the lane, one of the window: what weir_epoch_sample() says of its
 * position, in a fraction of the time. */
uint64_t weir_window_sample(const struct weir_window *window, uint64_t item);

/* ---- ranks ---- */

/* How many of a global batch's positions rank r of n gets: the same for all where n divides. */
uint64_t weir_deal_count(uint64_t count, uint32_t rank, uint32_t ranks);
/* Those of the global batch [position, position + count): sorted by lane, then by position; out has
 * room for weir_deal_count(). Positions go on over ends of epochs. Costs nothing for what others
 * get. */
void weir_deal(const struct weir_order *order, uint64_t position, uint64_t count, uint32_t rank,
               uint32_t ranks, uint64_t *out);

#endif
