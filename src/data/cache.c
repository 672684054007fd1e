/* cache.c - see cache.h. */
#include "data/cache.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"

enum { DATASET_BYTES = 16, FINGERPRINT_BYTES = 16 }; /* of their digests, in names */

/* Where the cache is, unless somebody says otherwise; false: nobody knows. */
static bool default_place(char out[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *user = getenv("HOME");
    if (cache && *cache == '/')
        return snprintf(out, PATH_MAX, "%s/weir", cache) < PATH_MAX;
    if (user && *user == '/')
        return snprintf(out, PATH_MAX, "%s/.cache/weir", user) < PATH_MAX;
    return false;
}

bool weir_cache_is_shut(int code)
{
    return code == -ENOSPC || code == -EDQUOT || code == -EROFS || code == -EACCES ||
           code == -EPERM;
}

static int into_memory(struct weir_cache *cache, int code, const char *where)
{
    weir_store_options opts;
    weir_store_options_init(&opts);
    opts.flags = WEIR_STORE_CREATE;
    weir_fail_in(code, "%s%s%s cannot keep the index (name another with --cache or WEIR_CACHE)",
                 *where ? "the cache '" : "a cache", where, *where ? "'" : "");
    cache->code = code;
    snprintf(cache->why, sizeof cache->why, "%s", weir_fail_last());
    cache->in_memory = true;
    return weir_store_open(&cache->store, "mem:?size=16G", &opts); /* four billion samples */
}

/* A cache that was chosen may be memory, too. */
static void look_where(struct weir_cache *cache)
{
    weir_store_info info;
    if (weir_store_info_get(cache->store, &info) || strcmp(info.tier, "mem"))
        return;
    cache->in_memory = true;
    cache->code = -ENOTSUP;
    snprintf(cache->why, sizeof cache->why,
             "the cache '%s' is gone with this process (name another with --cache or WEIR_CACHE)",
             info.url);
}

static int open_store(struct weir_cache *cache, const char *given)
{
    char path[PATH_MAX] = "";
    weir_store_options opts;
    weir_store_options_init(&opts);
    opts.flags = WEIR_STORE_CREATE;
    if (!given)
        given = getenv("WEIR_CACHE");
    if (given && *given) {
        int code = weir_store_open(&cache->store, given, &opts);
        if (weir_cache_is_shut(code))
            return into_memory(cache, code, given);
        if (code)
            return weir_fail_in(code, "the cache for indexes");
        look_where(cache);
        return 0;
    }
    int code = default_place(path)
                   ? weir_store_open(&cache->store, path, &opts)
                   : weir_fail(ENOENT, "neither XDG_CACHE_HOME nor HOME is a directory's path");
    return code ? into_memory(cache, code, path) : 0;
}

int weir_cache_leave(struct weir_cache *cache, int code)
{
    if (!weir_cache_is_shut(code) || cache->left)
        return code;
    weir_store_info info = {.url = ""};
    char why[WEIR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", weir_fail_last());
    weir_store_info_get(cache->store, &info);
    weir_fail_text(code, why);
    cache->left = cache->store;
    cache->store = NULL;
    return into_memory(cache, code, info.url);
}

int weir_cache_fail(const struct weir_cache *cache)
{
    return weir_fail_text(cache->code, cache->why);
}

int weir_cache_open(struct weir_cache *out, const char *given, const char *place,
                    const char *options)
{
    struct weir_cache cache = {0};
    struct weir_sha256_stream stream;
    uint8_t digest[WEIR_SHA256_BYTES];
    char hex[2 * DATASET_BYTES + 1];
    int code = weir_sha256_begin(&stream);
    if (code)
        return code;
    weir_sha256_more(&stream, place, strlen(place) + 1);
    weir_sha256_more(&stream, options ? options : "", options ? strlen(options) : 0);
    weir_sha256_end(&stream, digest);
    weir_hex(hex, digest, DATASET_BYTES);
    snprintf(cache.dir, sizeof cache.dir, "data/%s/", hex);
    code = open_store(&cache, given);
    if (!code)
        *out = cache;
    return code;
}

void weir_cache_close(struct weir_cache *cache)
{
    weir_store_close(cache->store);
    weir_store_close(cache->left);
    cache->store = cache->left = NULL;
}

void weir_cache_key(const struct weir_cache *cache, const char *format,
                    const uint8_t fingerprint[WEIR_SHA256_BYTES], char out[WEIR_KEY_BYTES_MAX])
{
    char hex[2 * FINGERPRINT_BYTES + 1];
    weir_hex(hex, fingerprint, FINGERPRINT_BYTES);
    snprintf(out, WEIR_KEY_BYTES_MAX, "%s%s-%s.index", cache->dir, format, hex);
}

void weir_cache_parts(const struct weir_cache *cache, const char *format,
                      char out[WEIR_KEY_BYTES_MAX])
{
    snprintf(out, WEIR_KEY_BYTES_MAX, "%s%s.part/", cache->dir, format);
}

/* Is that key an index of the format? */
static bool is_index(const struct weir_cache *cache, const char *key, const char *format)
{
    char begin[WEIR_KEY_BYTES_MAX];
    size_t size = strlen(key), end = sizeof ".index" - 1;
    snprintf(begin, sizeof begin, "%s%s%s", cache->dir, format ? format : "", format ? "-" : "");
    return !strncmp(key, begin, strlen(begin)) && size > end && !strcmp(key + size - end, ".index");
}

int weir_cache_any(const struct weir_cache *cache, const char *format, char out[WEIR_KEY_BYTES_MAX])
{
    const weir_entry *entry;
    weir_list *list;
    bool found = false;
    int more = 0, code = weir_list_open(&list, cache->store, cache->dir, 0);
    if (code)
        return code;
    while (!found && (more = weir_list_next(list, &entry)) == 1) {
        found = !entry->is_dir && is_index(cache, entry->key, format);
        if (found)
            snprintf(out, WEIR_KEY_BYTES_MAX, "%s", entry->key);
    }
    weir_list_close(list);
    if (more < 0)
        return more;
    return found ? 0 : weir_fail(ENOENT, "there is no index in '%s'", cache->dir);
}

static void remove_below(const struct weir_cache *cache, const char *prefix, const char *format,
                         const char *but)
{
    const weir_entry *entry;
    weir_list *list;
    if (weir_list_open(&list, cache->store, prefix, 0))
        return;
    while (weir_list_next(list, &entry) == 1)
        if (!entry->is_dir && strcmp(entry->key, but) &&
            (!format || is_index(cache, entry->key, format)))
            weir_remove(cache->store, entry->key);
    weir_list_close(list);
}

void weir_cache_tidy(const struct weir_cache *cache, const char *format, const char *key)
{
    char parts[WEIR_KEY_BYTES_MAX];
    weir_cache_parts(cache, format, parts);
    remove_below(cache, parts, NULL, "");
    remove_below(cache, cache->dir, format, key);
}
