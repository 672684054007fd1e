/* mds_index.h - reads what MosaicML Streaming says of shards: in index.json, and in the header of
 * each shard. Pure functions.
 */
#ifndef WEIR_DATA_MDS_INDEX_H
#define WEIR_DATA_MDS_INDEX_H

#include "data/mds_columns.h"

struct weir_mds_file {
    const char *name; /* NULL: there is none */
    uint64_t bytes;
};

/* A shard; what it points to is in the arena that it was read into. */
struct weir_mds_shard {
    struct weir_mds_columns columns;
    const char *compression; /* "zstd:7"; "": none */
    struct weir_mds_file raw, zip;
    uint64_t samples;
};

/* Calls fn for each shard, whose memory then goes; non-zero stops. -EINVAL and -ENOTSUP say what is
 * wrong with which shard. */
int weir_mds_index_read(const char *text, size_t size,
                        int (*fn)(void *arg, const struct weir_mds_shard *shard), void *arg);
/* The header's: columns only. */
int weir_mds_header_read(struct weir_mds_shard *out, struct weir_arena **arena, const char *text,
                         size_t size);

#endif
