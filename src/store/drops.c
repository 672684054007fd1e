/* drops.c - see drops.h. Answered removals come back through a queue, and are used again. */
#include "store/drops.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/sys.h"

enum { DROPS_MAX = 512 }; /* under way: 2 MiB, and a good share for every request of S3 */

struct drop {
    struct weir_req req;
    char name[WEIR_NAME_BYTES_MAX];
};

struct weir_drops {
    weir_store *store;
    pthread_mutex_t lock; /* of who takes from the queue */
    struct weir_queue queue;
    size_t used;
    struct drop drop[DROPS_MAX];
};

struct weir_drops *weir_drops_open(weir_store *store)
{
    struct weir_drops *drops = weir_alloc(sizeof *drops);
    if (!drops)
        return NULL;
    drops->store = store;
    pthread_mutex_init(&drops->lock, NULL);
    weir_queue_init(&drops->queue);
    return drops;
}

void weir_drops_close(struct weir_drops *drops)
{
    if (!drops)
        return;
    for (size_t i = 0; i < drops->used; i++)
        weir_queue_get(&drops->queue);
    weir_queue_destroy(&drops->queue);
    pthread_mutex_destroy(&drops->lock);
    free(drops);
}

static struct drop *take(struct weir_drops *drops)
{
    pthread_mutex_lock(&drops->lock);
    struct drop *drop = drops->used < DROPS_MAX ? &drops->drop[drops->used++]
                                                : weir_queue_get(&drops->queue)->owner;
    pthread_mutex_unlock(&drops->lock);
    return drop;
}

void weir_drops_add(struct weir_drops *drops, const char *name, bool reuse)
{
    struct drop *drop = take(drops);
    struct weir_req *req = &drop->req;
    snprintf(drop->name, sizeof drop->name, "%s", name);
    weir_req_init(req, WEIR_OP_REMOVE);
    req->owner = drop;
    req->name = drop->name;
    req->reuse = reuse;
    req->blind = true;
    weir_req_push(req, weir_queue_done, &drops->queue);
    weir_tier_submit(drops->store->tier, req);
}
