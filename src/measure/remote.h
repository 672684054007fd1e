/* remote.h - the names that measuring gives its blobs, and removing what is below them. */
#ifndef WEIR_MEASURE_REMOTE_H
#define WEIR_MEASURE_REMOTE_H

#include "tier/tier.h"

/* Followed by 16 digits, which are by chance. */
#define WEIR_REMOTE_PREFIX "weir-bench-"
enum { WEIR_REMOTE_PREFIX_BYTES = sizeof WEIR_REMOTE_PREFIX + 16 };

/* Removes the blobs below such a prefix, those only that measuring makes; adds how many to *count.
 */
int weir_remote_sweep(struct weir_tier *tier, const char *prefix, uint64_t *count);

#endif
