/* cache.h - where indexes of datasets are that cannot be kept beside the data: a store of this
 * user's, made when it is needed. Where none can be made there is one in memory, and the index is
 * made again by the next process.
 *
 *     data/<of which dataset>/mds-<fingerprint>.index      an index
 *     data/<of which dataset>/mds.part/<number>            parts of one in the making
 */
#ifndef WEIR_DATA_CACHE_H
#define WEIR_DATA_CACHE_H

#include "util/hash.h"
#include "weir.h"

struct weir_cache {
    weir_store *store;
    const char *kind; /* "file", or "mem" */
    char dir[64];     /* of the dataset: "data/<32 digits>/" */
};

/* given: a URL, or NULL for $WEIR_CACHE, $XDG_CACHE_HOME/weir or ~/.cache/weir. place and options
 * say which dataset it is. */
int weir_cache_open(struct weir_cache *out, const char *given, const char *place,
                    const char *options);
void weir_cache_close(struct weir_cache *cache);

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
