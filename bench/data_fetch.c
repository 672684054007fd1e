/* data_fetch.c - how much the nodes of a cluster fetch for one epoch, simulated, for
 * bench/data_order.py. Prints one line of JSON.
 *
 *   data_fetch lanes|turns|full NODES SHARDS SHARD_SAMPLES LANES WINDOW CACHE_SHARDS RANK_BATCH ODD
 *
 * lanes: as order.h says. turns: the same windows, all of them permuted, dealt to the ranks in
 * turn. full: a full shuffle. Each node has 8 ranks and a cache of whole shards, the least recently
 * used of which goes first; what is not there is fetched whole. Beside it: what is fetched if a
 * node fetches no more than the windows it needs. ODD is taken off the global batch, so that
 * nothing divides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/deal.h"
#include "data/order.h"
#include "util/perm.h"
#include "weir.h"

enum { NODE_RANKS = 8 };

static uint32_t nodes, shards;
static uint64_t *sizes; /* of the shards, in samples */

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "data_fetch: %s: %s\n", what, weir_error_text());
    exit(1);
}

static void *take(uint64_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        die("no memory");
    return memory;
}

/* ---- a node's cache: a ring of the shards it has, the latest first, around entry `shards` ---- */

struct cache {
    uint32_t *next, *prev;
    uint64_t used, room, fetched, needed; /* samples */
    bool *had;
    uint64_t distinct; /* shards it ever had */
};

static void leave(struct cache *cache, uint32_t shard)
{
    cache->next[cache->prev[shard]] = cache->next[shard];
    cache->prev[cache->next[shard]] = cache->prev[shard];
    cache->next[shard] = UINT32_MAX;
}

static void use(struct cache *cache, uint32_t shard)
{
    cache->needed++;
    if (cache->next[shards] == shard)
        return;
    if (cache->next[shard] != UINT32_MAX) {
        leave(cache, shard);
    } else {
        cache->fetched += sizes[shard];
        cache->used += sizes[shard];
        cache->distinct += !cache->had[shard];
        cache->had[shard] = true;
        while (cache->used > cache->room && cache->prev[shards] != shards) {
            cache->used -= sizes[cache->prev[shards]];
            leave(cache, cache->prev[shards]);
        }
    }
    cache->next[shard] = cache->next[shards];
    cache->prev[shard] = shards;
    cache->prev[cache->next[shards]] = shard;
    cache->next[shards] = shard;
}

static struct cache *open_caches(uint64_t room)
{
    struct cache *caches = take(nodes, sizeof *caches);
    for (uint32_t i = 0; i < nodes; i++) {
        caches[i].room = room;
        caches[i].next = take(shards + 1, sizeof(uint32_t));
        caches[i].prev = take(shards + 1, sizeof(uint32_t));
        caches[i].had = take(shards, sizeof(bool));
        memset(caches[i].next, 0xff, (shards + 1) * sizeof(uint32_t));
        caches[i].next[shards] = caches[i].prev[shards] = shards;
    }
    return caches;
}

/* ---- the ways to deal ---- */

/* What is fetched if only windows are: each when a node comes to it. */
static uint64_t windows_fetched;

static void by_lanes(struct cache *caches, const struct weir_order *order, uint64_t batch)
{
    uint64_t n = weir_order_count(order), lanes = weir_order_lanes(order);
    uint32_t ranks = nodes * NODE_RANKS;
    struct weir_window *now = take(lanes, sizeof *now);       /* of each lane */
    uint64_t *fetched = take(lanes * nodes, sizeof *fetched); /* the item behind a node's window */
    struct weir_epoch *epoch;
    if (weir_epoch_open(&epoch, order, 0))
        die("cannot open the epoch");
    for (uint64_t at = 0; at < n; at += batch)
        for (uint32_t rank = 0; rank < ranks; rank++) {
            struct weir_deal_part part = {
                .order = order, .first = at, .end = at + batch < n ? at + batch : n};
            struct weir_dealing dealing;
            uint32_t which, node = rank / NODE_RANKS;
            uint64_t k;
            weir_deal_begin(&dealing, &part, 1, rank, ranks);
            while (weir_deal_next(&dealing, &which, &k)) {
                struct weir_window *w = &now[k % lanes];
                if (!w->count || k / lanes < w->item || k / lanes >= w->item + w->count)
                    weir_epoch_window(epoch, k, w);
                use(&caches[node], (uint32_t)w->shard);
                uint64_t *behind = &fetched[node * lanes + k % lanes];
                if (*behind != w->item + w->count)
                    windows_fetched += w->count;
                *behind = w->item + w->count;
            }
        }
    weir_epoch_close(epoch);
    free(now);
    free(fetched);
}

/* Some shards' windows in another order, one after the other to the ranks; then the next shards. */
static void in_turns(struct cache *caches, uint32_t group, uint64_t window)
{
    struct weir_perm perm, windows;
    uint64_t *firsts = take(group + 1, sizeof *firsts), turn = 0;
    weir_perm_init(&perm, 1, shards);
    for (uint32_t at = 0; at < shards; at += group) {
        uint32_t held = shards - at < group ? shards - at : group;
        for (uint32_t i = 0; i < held; i++)
            firsts[i + 1] = firsts[i] + (sizes[weir_perm_at(&perm, at + i)] + window - 1) / window;
        weir_perm_init(&windows, weir_perm_key(2, at), firsts[held]);
        for (uint64_t i = 0; i < firsts[held]; i++, turn++) {
            uint64_t which = weir_perm_at(&windows, i);
            uint32_t in = 0, node = (uint32_t)(turn % (nodes * NODE_RANKS)) / NODE_RANKS;
            while (firsts[in + 1] <= which)
                in++;
            uint32_t shard = (uint32_t)weir_perm_at(&perm, at + in);
            uint64_t left = sizes[shard] - (which - firsts[in]) * window;
            left = left < window ? left : window;
            windows_fetched += left;
            for (uint64_t k = 0; k < left; k++)
                use(&caches[node], shard);
        }
    }
    free(firsts);
}

/* ---- the whole ---- */

static struct weir_order *open_order(uint32_t lanes, uint64_t window)
{
    struct weir_order *order;
    struct weir_order_options opts = {.shuffle = true, .seed = 1, .lanes = lanes, .window = window};
    if (weir_order_open(&order, sizes, shards, &opts))
        die("cannot open the order");
    return order;
}

int main(int argc, char **argv)
{
    if (argc != 10)
        die("see the head of this file");
    nodes = (uint32_t)atoi(argv[2]);
    shards = (uint32_t)atoi(argv[3]);
    uint64_t each = strtoull(argv[4], NULL, 10), window = strtoull(argv[6], NULL, 10), n = 0;
    uint64_t rank_batch = strtoull(argv[8], NULL, 10), odd = strtoull(argv[9], NULL, 10);
    uint32_t lanes = (uint32_t)atoi(argv[5]);
    sizes = take(shards, sizeof *sizes);
    for (uint32_t i = 0; i < shards; i++) /* half to one and a half of the mean */
        n += sizes[i] = each / 2 + weir_perm_key(3, i) % (each + 1);
    struct cache *caches = open_caches(strtoull(argv[7], NULL, 10) * each);
    struct weir_order *order = open_order(lanes, strcmp(argv[1], "full") ? window : UINT64_MAX);
    if (!strcmp(argv[1], "turns"))
        in_turns(caches, lanes, window);
    else
        by_lanes(caches, order, rank_batch * nodes * NODE_RANKS - odd);

    uint64_t fetched = 0, needed = 0, distinct = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        fetched += caches[i].fetched;
        needed += caches[i].needed;
        distinct += caches[i].distinct;
    }
    if (needed != n)
        die("not every sample was delivered once");
    printf("{\"nodes\": %u, \"samples\": %llu, \"shards_ratio\": %.4f, \"windows_ratio\": %.4f, "
           "\"nodes_per_shard\": %.3f}\n",
           nodes, (unsigned long long)n, (double)fetched / (double)n,
           (double)windows_fetched / (double)n, (double)distinct / shards);
    weir_order_close(order);
    return 0;
}
