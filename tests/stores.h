/* stores.h - what every test of the public interface does: open, put, get, and look into a store's
 * directory. Failures end the program.
 */
#ifndef WEIR_TESTS_STORES_H
#define WEIR_TESTS_STORES_H

#include <errno.h>
#include <stdbool.h>

#include "data.h"
#include "test.h"
#include "tmpdir.h"
#include "weir.h"

/* Creates the store if it is not there. io NULL: the best engine. */
static inline weir_store *store_at(const char *url, const char *io)
{
    weir_store *store = NULL;
    weir_store_options opts;
    weir_store_options_init(&opts);
    opts.flags = WEIR_STORE_CREATE;
    opts.io = io;
    OK(weir_store_open(&store, url, &opts));
    return store;
}

/* A smaller pool and any depth. */
static inline weir_store *store_sized(const char *url, const char *io, uint64_t pool_bytes,
                                      unsigned depth)
{
    weir_store *store = NULL;
    weir_store_options opts;
    weir_store_options_init(&opts);
    opts.flags = WEIR_STORE_CREATE;
    opts.io = io;
    opts.pool_bytes_max = pool_bytes;
    opts.depth = depth;
    OK(weir_store_open(&store, url, &opts));
    return store;
}

/* Ends the program as skipped where the engine cannot be had. */
static inline const char *engine_or_skip(int argc, char **argv)
{
    const char *engine = argc > 1 ? argv[1] : "threads";
    weir_store_options opts;
    weir_store *store;
    weir_store_options_init(&opts);
    opts.io = engine;
    int code = weir_store_open(&store, "mem:", &opts);
    if (code == -ENOTSUP)
        SKIP("%s", weir_error_text());
    OK(code);
    weir_store_close(store);
    return engine;
}

/* Puts `size` bytes of stream `seed`; returns what the commit returned. */
static inline int put_try(weir_store *store, const char *key, size_t size, uint64_t seed,
                          uint32_t block_bytes)
{
    weir_put *put;
    weir_put_options opts;
    weir_put_options_init(&opts);
    opts.block_bytes = block_bytes;
    int code = weir_put_open(&put, store, key, &opts);
    if (code)
        return code;
    uint8_t *data = data_buffer(size, 1);
    data_fill(data, size, seed, 0);
    code = weir_put_write(put, data, size);
    data_free(data, 1);
    if (!code)
        code = weir_put_commit(put, NULL);
    weir_put_close(put);
    return code;
}

static inline void put_seed(weir_store *store, const char *key, size_t size, uint64_t seed)
{
    OK(put_try(store, key, size, seed, 0));
}

/* The whole object is `size` bytes of stream `seed`. */
static inline void get_seed(weir_store *store, const char *key, size_t size, uint64_t seed)
{
    weir_object *obj;
    size_t got = 0;
    OK(weir_object_open(&obj, store, key));
    CHECK_EQ(weir_object_info(obj)->size_bytes, size);
    uint8_t *buf = data_buffer(size, 0);
    OK(weir_object_read(obj, buf, size, 0, &got));
    CHECK_EQ(got, size);
    CHECK(data_is(buf, size, seed, 0));
    data_free(buf, 0);
    weir_object_close(obj);
}

/* Opening it fails so. */
static inline int get_code(weir_store *store, const char *key)
{
    weir_object *obj;
    int code = weir_object_open(&obj, store, key);
    if (!code)
        weir_object_close(obj);
    return code;
}

/* Where the bytes of an object are, in a store that is a directory. */
static inline char *data_path(weir_store *store, const char *dir, const char *key)
{
    weir_object *obj;
    OK(weir_object_open(&obj, store, key));
    char *path = strdup(path_in(dir, weir_object_info(obj)->data_name));
    weir_object_close(obj);
    return path;
}

static inline char *seal_path(const char *dir, const char *key)
{
    char name[2048];
    snprintf(name, sizeof name, ".weir/seal/%s~", key);
    return strdup(path_in(dir, name));
}

#endif
