/* sources.h - indexes that may know a shard already: that of the dataset as it was, and the parts
 * that an index in the making leaves behind. One thread at a time.
 */
#ifndef WEIR_DATA_SOURCES_H
#define WEIR_DATA_SOURCES_H

#include "data/index.h"

struct weir_known {
    struct weir_index *index; /* owned */
    uint32_t *by_key;         /* its shards, sorted */
};
struct weir_sources {
    struct weir_known *source;
    size_t count, room;
};

/* Takes the index over, also when it fails. */
int weir_sources_add(struct weir_sources *sources, struct weir_index *index);
/* Adds those below that key of a store; what is damaged, or of another format, is removed. */
int weir_sources_load(struct weir_sources *sources, weir_store *store, const char *prefix,
                      const struct weir_format *format);
/* A shard that is just what the plan says: false if none has it. Borrowed. */
bool weir_sources_find(const struct weir_sources *sources, const struct weir_shard_plan *plan,
                       const struct weir_index **index, uint64_t *shard);
void weir_sources_free(struct weir_sources *sources);

#endif
