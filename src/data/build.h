/* build.h - makes an index: every shard that no index knows is scanned, several at once, each in
 * one sequential read. What was found in whole shards is kept in the cache as parts, small indexes,
 * every second or so; whoever begins again after a kill goes on from those.
 */
#ifndef WEIR_DATA_BUILD_H
#define WEIR_DATA_BUILD_H

#include "data/cache.h"
#include "data/sources.h"
#include "data/survey.h"

enum { WEIR_BUILD_THREADS_MAX = 16 };

struct weir_build {
    struct weir_survey *survey;
    const struct weir_format *format;
    struct weir_sources *sources; /* it adds the parts that it makes */
    struct weir_cache *cache;
    const char *parts; /* where in the cache: "data/…/mds.part/"; NULL: keep none */
    bool must_keep;    /* a cache that has no room, or cannot be written to, is a failure */
    uint32_t threads;  /* 0: as many as there are processors */
    weir_data_progress_fn progress;
    void *progress_arg;
    uint64_t scanned; /* out: shards */
};

/* Makes the index, and puts it there; into the cache's memory, if `store` is the cache's and can
 * not take it. -EEXIST: somebody else has. */
int weir_build_index(struct weir_build *build, weir_store *store, const char *key,
                     const uint8_t fingerprint[WEIR_SHA256_BYTES]);

#endif
