/* cache.h - where indexes of datasets are that cannot be kept beside the data: a store of this
 * user's, made when it is needed. Where none can be made, or the one there is has no room or cannot
 * be written to, there is one in memory, and the index is made again by the next process.
 *
 *     data/<of which dataset>/mds-<fingerprint>.index      an index
 *     data/<of which dataset>/mds.part/<number>            parts of one in the making
 */
#ifndef WEIR_DATA_CACHE_H
#define WEIR_DATA_CACHE_H

#include <stdbool.h>

#include "util/err.h"
#include "util/hash.h"
#include "weir.h"

struct weir_cache {
    weir_store *store;
    weir_store *left; /* the one that could not be written to: what was found there is in use */
    bool in_memory;
    char dir[64]; /* of the dataset: "data/<32 digits>/" */
    int code;     /* for what it is in memory, */
    char why[WEIR_TEXT_MAX];
};

/* given: a URL, or NULL for $WEIR_CACHE, $XDG_CACHE_HOME/weir or ~/.cache/weir. place and options
 * say which dataset it is. */
int weir_cache_open(struct weir_cache *out, const char *given, const char *place,
                    const char *options);
void weir_cache_close(struct weir_cache *cache);
/* Is that code for want of room or permission? A cache is not to be relied on for either. */
bool weir_cache_is_shut(int code);
/* After `code` from the store: if it is shut, the cache is in memory from here on; else the code is
 * returned. */
int weir_cache_leave(struct weir_cache *cache, int code);
/* Why the index will not be there for the next process, naming the remedy; the code. */
int weir_cache_fail(const struct weir_cache *cache);

/* Keys within it. */
void weir_cache_key(const struct weir_cache *cache, const char *format,
                    const uint8_t fingerprint[WEIR_SHA256_BYTES], char out[WEIR_KEY_BYTES_MAX]);
void weir_cache_parts(const struct weir_cache *cache, const char *format,
                      char out[WEIR_KEY_BYTES_MAX]);
/* Some index of the dataset, whatever it was made of; format NULL: of any. -ENOENT. */
int weir_cache_any(const struct weir_cache *cache, const char *format,
                   char out[WEIR_KEY_BYTES_MAX]);
/* Removes the parts of that format, and its indexes but for `key`. What cannot be removed stays. */
void weir_cache_tidy(const struct weir_cache *cache, const char *format, const char *key);

#endif
