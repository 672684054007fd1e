/* map.c - see map.h. One bit for each block says that it was checked; two threads that come to a
 * block at once both check it. `unchecked` is never less than the number of bits that are not set.
 */
#include "store/map.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "store/object.h"
#include "util/err.h"
#include "util/sys.h"

enum { WORD_BITS = 64 };

struct weir_map {
    weir_object *obj;
    void *data;
    uint64_t size;
    atomic_uint_fast64_t unchecked; /* blocks */
    atomic_uint_fast64_t checked[];
};

static int map_file(struct weir_map *map)
{
    struct weir_req req;
    if (!map->size) /* there is nothing to map */
        return 0;
    weir_req_init(&req, WEIR_OP_MAP);
    req.handle = map->obj->blob;
    req.len = map->size;
    int code = weir_tier_call(map->obj->store->tier, &req);
    if (!code)
        map->data = req.buf;
    return code;
}

int weir_object_map(struct weir_map **out, weir_object *obj)
{
    int code = weir_store_check(obj->store);
    if (code)
        return code;
    if (obj->info.kind != WEIR_KIND_SEALED)
        return weir_fail(ENOTSUP,
                         "'%s' is not Weir's own, and its owner may truncate it: it is "
                         "read, not mapped",
                         obj->key);
    if (obj->store->guard)
        return weir_fail(ENOTSUP,
                         "'%s' is read, not mapped: what was signed is checked when it is read, "
                         "and a mapping could change after that",
                         obj->key);
    uint64_t words = obj->sealed.seal.blocks / WORD_BITS + 1;
    struct weir_map *map = weir_alloc(sizeof *map + words * sizeof map->checked[0]);
    if (!map)
        return weir_fail_memory();
    map->obj = obj;
    map->size = obj->info.size_bytes;
    map->unchecked = obj->sealed.seal.blocks;
    code = map_file(map);
    if (code)
        free(map);
    else
        *out = map;
    return code;
}

void weir_map_close(struct weir_map *map)
{
    if (!map)
        return;
    if (map->data)
        weir_sys->unmap(map->data, map->size);
    free(map);
}

void weir_map_want_all(struct weir_map *map)
{
    if (map->data)
        weir_sys->map_all(map->data, map->size);
}

void weir_map_detach(struct weir_map *map)
{
    weir_handle_close(map->obj->blob);
    map->obj->blob = NULL;
}

const void *weir_map_data(const struct weir_map *map)
{
    return map->data;
}

static bool is_noted(const struct weir_map *map, uint64_t number)
{
    uint64_t word = atomic_load_explicit(&map->checked[number / WORD_BITS], memory_order_acquire);
    return word >> number % WORD_BITS & 1;
}

static int check_block(struct weir_map *map, uint64_t number)
{
    uint64_t bytes = map->obj->info.block_bytes;
    struct weir_range block = {number * bytes, (number + 1) * bytes};
    if (block.end > map->size)
        block.end = map->size;
    int code = weir_object_check(map->obj, (const char *)map->data + block.begin, &block);
    if (code)
        return code;
    uint64_t bit = (uint64_t)1 << number % WORD_BITS;
    if (!(atomic_fetch_or(&map->checked[number / WORD_BITS], bit) & bit))
        map->unchecked--;
    return 0;
}

bool weir_map_is_whole(const struct weir_map *map)
{
    return !atomic_load_explicit(&map->unchecked, memory_order_acquire);
}

int weir_map_check(struct weir_map *map, uint64_t off, uint64_t size)
{
    uint64_t bytes = map->obj->info.block_bytes;
    assert(off <= map->size && size <= map->size - off);
    if (!size || weir_map_is_whole(map))
        return 0;
    for (uint64_t number = off / bytes; number <= (off + size - 1) / bytes; number++) {
        int code = is_noted(map, number) ? 0 : check_block(map, number);
        if (code)
            return code;
    }
    return 0;
}

bool weir_map_is_checked(const struct weir_map *map, uint64_t off, uint64_t size)
{
    uint64_t bytes = map->obj->info.block_bytes, number = off / bytes;
    while (number * bytes < off + size && is_noted(map, number))
        number++;
    return number * bytes >= off + size;
}

void weir_map_forget(struct weir_map *map, uint64_t off, uint64_t size)
{
    uint64_t bytes = map->obj->info.block_bytes;
    if (!size || off > map->size || size > map->size - off)
        return;
    for (uint64_t number = off / bytes; number <= (off + size - 1) / bytes; number++) {
        uint64_t bit = (uint64_t)1 << number % WORD_BITS;
        map->unchecked++; /* too many for a moment, never too few */
        if (!(atomic_fetch_and(&map->checked[number / WORD_BITS], ~bit) & bit))
            map->unchecked--;
    }
}

bool weir_map_is_resident(const struct weir_map *map, uint64_t off, uint64_t size)
{
    return off <= map->size && size <= map->size - off &&
           weir_sys->map_resident((const char *)map->data + off, size) == 1;
}
