/* found.h - the samples of one shard, as they were found in it: what an index needs of it. */
#ifndef WEIR_DATA_FOUND_H
#define WEIR_DATA_FOUND_H

#include "data/shard.h"

struct weir_found {
    struct weir_shard shard; /* its strings are the plan's */
    struct weir_growing entries, marks;
};

/* What a shard's samples are looked for with. */
struct weir_finder {
    weir_store *store;
    const char *prefix;
    const struct weir_format *format;
    const void *schema;
    /* So many more bytes of the file are behind us; non-zero stops with -ECANCELED. */
    int (*progress)(void *arg, uint64_t more);
    void *arg;
};

/* Scans a shard, or goes by what its plan says. Any thread. -EBADMSG names the shard. */
int weir_found_scan(struct weir_found *out, const struct weir_finder *finder,
                    const struct weir_shard_plan *plan);
/* A shard of files, up to WEIR_INDEX_FILES plans in a row. */
int weir_found_files(struct weir_found *out, const struct weir_shard_plan *const *plans,
                     size_t count);
void weir_found_free(struct weir_found *found);

#endif
