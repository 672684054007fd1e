/* offsets.h - the header that MDS and LitData have in common: u32 n | u32 off[n + 1],
 * little-endian, where sample i lies between two offsets. Pure but for the flow.
 */
#ifndef WEIR_DATA_OFFSETS_H
#define WEIR_DATA_OFFSETS_H

#include "data/format.h"

struct weir_offsets {
    uint64_t first, last; /* where the first sample begins, and the last one ends */
};
/* Calls fn for each sample. -EBADMSG unless there are shard->samples of them, which lie one behind
 * the other, behind the header and within shard->raw_bytes. */
int weir_offsets_scan(struct weir_offsets *out, struct weir_flow *flow,
                      const struct weir_shard_plan *shard, weir_sample_fn fn, void *arg);

#endif
