/* shelf.c - see shelf.h. */
#include "data/shelf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "util/err.h"
#include "util/sys.h"

enum {
    PLACES = 64,  /* as many as there are lanes by default; each holds up to two descriptors */
    SAME_MAX = 8, /* of one shard, for as many threads: each has its seal in memory */
};

/* On all shelves: descriptors are the process's, and a mixture has many datasets. */
static atomic_uint shelved;

struct place {
    weir_object *obj;
    uint64_t shard, given; /* when: the one that lies there longest makes room */
};

struct weir_shelf {
    pthread_mutex_t lock;
    uint64_t gives;
    struct place places[PLACES];
};

int weir_shelf_open(struct weir_shelf **out)
{
    struct weir_shelf *shelf = weir_alloc(sizeof *shelf);
    if (!shelf)
        return weir_fail_memory();
    pthread_mutex_init(&shelf->lock, NULL);
    *out = shelf;
    return 0;
}

void weir_shelf_close(struct weir_shelf *shelf)
{
    if (!shelf)
        return;
    for (int i = 0; i < PLACES; i++)
        if (shelf->places[i].obj) {
            weir_object_close(shelf->places[i].obj);
            shelved--;
        }
    pthread_mutex_destroy(&shelf->lock);
    free(shelf);
}

weir_object *weir_shelf_take(struct weir_shelf *shelf, uint64_t shard)
{
    weir_object *obj = NULL;
    pthread_mutex_lock(&shelf->lock);
    for (int i = 0; i < PLACES && !obj; i++) {
        struct place *place = &shelf->places[i];
        if (place->obj && place->shard == shard) {
            obj = place->obj;
            place->obj = NULL;
            shelved--;
        }
    }
    pthread_mutex_unlock(&shelf->lock);
    return obj;
}

/* Where it may lie: a free place, or that of the one that lies there longest; NULL: nowhere. */
static struct place *find_place(struct weir_shelf *shelf, uint64_t shard)
{
    struct place *best = &shelf->places[0];
    int same = 0;
    for (int i = 0; i < PLACES; i++) {
        struct place *place = &shelf->places[i];
        same += place->obj && place->shard == shard;
        if (best->obj && (!place->obj || place->given < best->given))
            best = place;
    }
    if (same >= SAME_MAX)
        return NULL;
    if (best->obj)
        return best;
    if (shelved++ < PLACES)
        return best;
    shelved--;
    return NULL;
}

void weir_shelf_give(struct weir_shelf *shelf, uint64_t shard, weir_object *obj)
{
    if (weir_object_info(obj)->kind == WEIR_KIND_SEALED) {
        pthread_mutex_lock(&shelf->lock);
        struct place *place = find_place(shelf, shard);
        if (place) {
            weir_object *gone = place->obj;
            *place = (struct place){obj, shard, ++shelf->gives};
            obj = gone;
        }
        pthread_mutex_unlock(&shelf->lock);
    }
    weir_object_close(obj);
}
