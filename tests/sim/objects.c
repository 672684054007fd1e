/* objects.c - see objects.h. */
#include "objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "util/rng.h"
#include "test.h"

enum { VALUES_MAX = 4096, HEAD_BYTES = 8 };

static size_t sizes[VALUES_MAX];
static uint64_t values = SIM_EMPTY + 1;

uint64_t sim_values_mark(void)
{
    return values;
}

void sim_values_rewind(uint64_t mark)
{
    values = mark > SIM_EMPTY ? mark : SIM_EMPTY + 1;
}

uint64_t sim_value_new(size_t size)
{
    if (!size)
        return SIM_EMPTY;
    CHECK(size >= HEAD_BYTES && values < VALUES_MAX);
    sizes[values] = size;
    return values++;
}

size_t sim_value_size(uint64_t value)
{
    return value == SIM_EMPTY ? 0 : sizes[value];
}

/* Eight bytes of a value: its number first, then a function of both. */
static uint64_t word(uint64_t value, size_t at)
{
    struct weir_rng rng = {(value << 32) + at};
    return at ? weir_rng_next(&rng) : value;
}

void sim_value_fill(uint8_t *buf, uint64_t value, size_t off, size_t size)
{
    while (size) {
        uint64_t now = word(value, off / 8);
        size_t skip = off % 8, n = 8 - skip < size ? 8 - skip : size;
        memcpy(buf, (uint8_t *)&now + skip, n);
        buf += n;
        off += n;
        size -= n;
    }
}

/* Is this what sim_value_fill() would write? */
static bool is_value(const uint8_t *buf, uint64_t value, size_t off, size_t size)
{
    uint8_t part[4096];
    for (size_t n; size; buf += n, off += n, size -= n) {
        n = size < sizeof part ? size : sizeof part;
        sim_value_fill(part, value, off, n);
        if (memcmp(buf, part, n))
            return false;
    }
    return true;
}

uint64_t sim_value_of(const char *key, const uint8_t *buf, size_t size)
{
    uint64_t value = SIM_EMPTY;
    if (!size)
        return value;
    CHECK(size >= HEAD_BYTES);
    memcpy(&value, buf, HEAD_BYTES);
    if (value <= SIM_EMPTY || value >= values || sizes[value] != size) {
        fprintf(stderr, "'%s' has %zu bytes that nobody wrote\n", key, size);
        exit(1);
    }
    if (!is_value(buf, value, 0, size)) {
        fprintf(stderr, "'%s' is not exactly what was written\n", key);
        exit(1);
    }
    return value;
}

int sim_store_open(weir_store **out, uint64_t create_grace_s)
{
    return sim_store_open_at(out, "file://" SIM_STORE "?spare_min=8", create_grace_s);
}

int sim_store_open_at(weir_store **out, const char *path, uint64_t create_grace_s)
{
    weir_store_options opts;
    weir_store_options_init(&opts);
    opts.io = "inline";
    opts.depth = 2;
    opts.pool_bytes_max = 8 << 20;
    if (create_grace_s) {
        opts.flags = WEIR_STORE_CREATE;
        opts.grace_s = create_grace_s;
    }
    return weir_store_open(out, path, &opts);
}

/* The caller's memory, in pieces. */
static int write_pieces(weir_put *put, const struct sim_put *how, size_t size)
{
    size_t piece = how->piece ? how->piece : size;
    uint8_t *data = sim_alloc(piece);
    int code = 0;
    for (size_t at = 0, n; !code && at < size; at += n) {
        n = size - at < piece ? size - at : piece;
        sim_value_fill(data, how->value, at, n);
        code = weir_put_write(put, data, n);
    }
    free(data);
    return code;
}

/* The engine's memory, as it comes. */
static int write_in_place(weir_put *put, const struct sim_put *how, size_t size)
{
    int code = 0;
    for (size_t at = 0, n; !code && at < size; at += n) {
        void *buf;
        code = weir_put_buffer(put, &buf, &n);
        if (code)
            break;
        n = size - at < n ? size - at : n;
        sim_value_fill(buf, how->value, at, n);
        code = weir_put_advance(put, n);
    }
    return code;
}

int sim_put(weir_store *store, const char *key, const struct sim_put *how)
{
    size_t size = sim_value_size(how->value);
    weir_put_options opts;
    weir_put *put;
    weir_put_options_init(&opts);
    opts.block_bytes = how->block_bytes;
    opts.size_bytes = how->known ? size : 0;
    opts.meta = "m";
    opts.meta_bytes = 1;
    int code = weir_put_open(&put, store, key, &opts);
    if (code)
        return code;
    code = how->in_place ? write_in_place(put, how, size) : write_pieces(put, how, size);
    weir_put_result result = {0};
    if (!code)
        code = weir_put_commit(put, &result);
    if (!code)
        CHECK(result.size_bytes == size && result.level == WEIR_LEVEL_HOME);
    weir_put_close(put);
    return code;
}

int sim_get(weir_store *store, const char *key, uint64_t *value, weir_kind *kind)
{
    weir_object *obj;
    *value = SIM_ABSENT;
    int code = weir_object_open(&obj, store, key);
    if (code)
        return code;
    const weir_info *info = weir_object_info(obj);
    size_t size = info->size_bytes, got = 0;
    uint8_t *buf = sim_alloc(size);
    *kind = info->kind;
    code = weir_object_read(obj, buf, size, 0, &got);
    if (!code) {
        CHECK_EQ(got, size);
        *value = sim_value_of(key, buf, size);
    }
    weir_object_close(obj);
    free(buf);
    return code;
}

int sim_get_range(weir_store *store, const char *key, uint64_t expected, uint64_t off, size_t size)
{
    weir_object *obj;
    int code = weir_object_open(&obj, store, key);
    if (code)
        return code;
    uint8_t *buf = sim_alloc(size);
    size_t got = 0;
    code = weir_object_read(obj, buf, size, off, &got);
    CHECK(code || (got == size && is_value(buf, expected, off, size)));
    weir_object_close(obj);
    free(buf);
    return code;
}

void sim_text_clear(void)
{
    weir_fail_text(0, "");
}

void sim_text_check(int code)
{
    CHECK(code >= 0 || weir_error_text()[0]);
}
