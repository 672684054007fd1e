/* sources.c - see sources.h. */
#include "data/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"

static int by_key(const void *a, const void *b, void *arg)
{
    struct weir_index_shard x, y;
    weir_index_shard(arg, *(const uint32_t *)a, &x);
    weir_index_shard(arg, *(const uint32_t *)b, &y);
    return strcmp(x.key, y.key);
}

int weir_sources_add(struct weir_sources *sources, struct weir_index *index)
{
    if (sources->count == sources->room) {
        size_t room = sources->room ? 2 * sources->room : 16;
        struct weir_known *more = weir_realloc(sources->source, room * sizeof *more);
        if (!more) {
            weir_index_close(index);
            return weir_fail_memory();
        }
        sources->source = more;
        sources->room = room;
    }
    uint64_t shards = weir_index_shards(index);
    uint32_t *order = weir_alloc(shards * sizeof *order);
    if (!order) {
        weir_index_close(index);
        return weir_fail_memory();
    }
    for (uint32_t i = 0; i < shards; i++)
        order[i] = i;
    if (shards)
        qsort_r(order, shards, sizeof *order, by_key, index);
    sources->source[sources->count++] = (struct weir_known){index, order};
    return 0;
}

static int load_one(struct weir_sources *sources, weir_store *store, const char *key,
                    const struct weir_format *format)
{
    struct weir_index *index;
    int code = weir_index_open(&index, store, key);
    if (code == -ENOENT || code == -EPROTO)
        return 0; /* removed meanwhile; or somebody else's */
    if (!code && weir_index_format(index) == format)
        return weir_sources_add(sources, index);
    if (!code)
        weir_index_close(index);
    if (code && code != -EBADMSG)
        return code;
    weir_remove(store, key); /* it costs its shards' scan, and nothing else */
    return 0;
}

int weir_sources_load(struct weir_sources *sources, weir_store *store, const char *prefix,
                      const struct weir_format *format)
{
    const weir_entry *entry;
    weir_list *list;
    int more = 0, code = weir_list_open(&list, store, prefix, 0);
    if (code)
        return code == -ENOENT ? 0 : code;
    while (!code && (more = weir_list_next(list, &entry)) == 1)
        if (!entry->is_dir)
            code = load_one(sources, store, entry->key, format);
    weir_list_close(list);
    return code ? code : more;
}

static bool is_same(const struct weir_index_shard *shard, const struct weir_shard_plan *plan)
{
    return !shard->is_files && !strcmp(shard->codec, plan->codec) &&
           shard->file_bytes == plan->file_bytes && shard->time_ns == plan->time_ns &&
           shard->marks_stamp == plan->marks_stamp &&
           (plan->samples == UINT64_MAX || plan->samples == shard->samples);
}

static bool find_in(const struct weir_known *source, const struct weir_shard_plan *plan,
                    uint64_t *out)
{
    uint64_t low = 0, high = weir_index_shards(source->index);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct weir_index_shard shard;
        weir_index_shard(source->index, source->by_key[middle], &shard);
        int order = strcmp(shard.key, plan->key);
        if (!order) {
            *out = source->by_key[middle];
            return is_same(&shard, plan);
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool weir_sources_find(const struct weir_sources *sources, const struct weir_shard_plan *plan,
                       const struct weir_index **index, uint64_t *shard)
{
    for (size_t i = sources->count; i > 0; i--)
        if (find_in(&sources->source[i - 1], plan, shard)) {
            *index = sources->source[i - 1].index;
            return true;
        }
    return false;
}

void weir_sources_free(struct weir_sources *sources)
{
    for (size_t i = 0; i < sources->count; i++) {
        weir_index_close(sources->source[i].index);
        free(sources->source[i].by_key);
    }
    free(sources->source);
    *sources = (struct weir_sources){0};
}
