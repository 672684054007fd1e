/* maps.c - see maps.h. */
#include "data/maps.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "data/dataset.h"
#include "util/err.h"
#include "util/sys.h"

/* The kernel allows a process 65,530 mappings. */
enum { MAPS_MAX = 16384 };

struct entry {
    weir_object *obj;
    struct weir_map *map;
    uint32_t users;
    bool is_refused; /* a foreign file, or no file at all */
};

struct weir_maps {
    pthread_mutex_t lock;
    uint64_t shards, mapped;
    uint64_t hand; /* goes round for one that nobody uses */
    struct entry entries[];
};

int weir_maps_open(struct weir_maps **out, uint64_t shards)
{
    struct weir_maps *maps = NULL;
    if (shards < SIZE_MAX / 2 / sizeof maps->entries[0])
        maps = weir_alloc(sizeof *maps + shards * sizeof maps->entries[0]);
    if (!maps)
        return weir_fail_memory();
    pthread_mutex_init(&maps->lock, NULL);
    maps->shards = shards;
    *out = maps;
    return 0;
}

static void close_entry(struct entry *entry)
{
    weir_map_close(entry->map);
    weir_object_close(entry->obj);
    entry->map = NULL;
    entry->obj = NULL;
}

void weir_maps_close(struct weir_maps *maps)
{
    if (!maps)
        return;
    for (uint64_t i = 0; i < maps->shards; i++)
        close_entry(&maps->entries[i]);
    pthread_mutex_destroy(&maps->lock);
    free(maps);
}

/* With the lock held: takes one off that nobody uses, for the caller to close; or there is none. */
static struct entry evict(struct weir_maps *maps)
{
    for (uint64_t tried = 0; maps->mapped >= MAPS_MAX && tried < maps->shards; tried++) {
        struct entry *entry = &maps->entries[maps->hand++ % maps->shards];
        if (!entry->map || entry->users)
            continue;
        struct entry gone = *entry;
        entry->map = NULL;
        entry->obj = NULL;
        maps->mapped--;
        return gone;
    }
    return (struct entry){0};
}

static void map_shard(struct entry *out, const weir_data *data, const struct weir_place *place)
{
    int code = weir_data_object(data, place, false, &out->obj);
    if (!code)
        code = weir_object_map(&out->map, out->obj);
    if (!code) {
        if (weir_index_format(weir_data_index(data))->is_flat)
            weir_map_want_all(out->map);
        weir_map_detach(out->map);
        return;
    }
    weir_object_close(out->obj);
    *out = (struct entry){.is_refused = code == -ENOTSUP};
}

struct weir_map *weir_maps_take(struct weir_maps *maps, const weir_data *data,
                                const struct weir_place *place)
{
    struct entry *entry = &maps->entries[place->shard], fresh = {0}, gone;
    pthread_mutex_lock(&maps->lock);
    bool is_known = entry->map || entry->is_refused;
    if (!is_known) {
        pthread_mutex_unlock(&maps->lock);
        map_shard(&fresh, data, place);
        pthread_mutex_lock(&maps->lock);
    }
    gone = fresh;
    if (!entry->map && !entry->is_refused) { /* else another thread was faster */
        gone = evict(maps);
        *entry = fresh;
        maps->mapped += fresh.map != NULL;
    }
    struct weir_map *map = entry->map;
    entry->users += map != NULL;
    pthread_mutex_unlock(&maps->lock);
    close_entry(&gone);
    return map;
}

void weir_maps_give(struct weir_maps *maps, uint64_t shard)
{
    pthread_mutex_lock(&maps->lock);
    maps->entries[shard].users--;
    pthread_mutex_unlock(&maps->lock);
}
