/* ahead.c - see ahead.h. */
#include "data/ahead.h"

#include <stdlib.h>

#include "util/sys.h"
#include "util/thread.h"

enum {
    THREADS = 32,
    PIECE_BYTES = 1 << 20, /* of samples in each piece, */
    PIECE_FILES = 64,      /* or so many, if each is a file */
    RANGE_PIECES = 32,     /* of one range: a slow taker does not hold up the others */
};

/* No more is loaded while so much waits to be taken. */
#define BYTES_MAX ((uint64_t)256 << 20)

struct weir_ahead_piece {
    struct weir_ahead_piece *next;
    struct weir_piece piece;
    uint64_t first, count; /* the samples that are wanted */
    bool is_loaded;
};

struct weir_ahead {
    const struct weir_supply *from;
    pthread_mutex_t lock;
    pthread_cond_t wanted; /* there may be something to load */
    pthread_cond_t loaded;
    struct weir_ahead_range *ranges; /* in the order in which they began */
    uint64_t held_bytes;
    bool is_closing;
    uint32_t threads;
    pthread_t thread[THREADS];
};

/* ---- loading ---- */

/* Plans a piece that begins where the range is: of one source shard, and not larger than it should
 * be, unless one sample is. A compressed shard comes as a whole. */
static int plan(struct weir_ahead_piece *p, const struct weir_supply *from,
                const struct weir_ahead_range *range)
{
    uint64_t number = weir_index_shard_of(from->index, range->at), bytes = 0, n = 0;
    uint64_t end = range->end;
    struct weir_index_shard shard;
    weir_index_shard(from->index, number, &shard);
    if (end > shard.first + shard.samples)
        end = shard.first + shard.samples;
    while (range->at + n < end && (shard.codec[0] || bytes < PIECE_BYTES) &&
           !(shard.is_files && n == PIECE_FILES)) {
        struct weir_place place;
        int code = weir_index_find(from->index, range->at + n, &place);
        if (code)
            return weir_sample_fail(from, range->at + n, code);
        bytes += place.size;
        n++;
    }
    p->first = range->at;
    p->count = n;
    return weir_piece_plan(&p->piece, from, number, range->at, n);
}

/* The next piece of a range, whose last it becomes; NULL and no more of the range if there can be
 * none. */
static struct weir_ahead_piece *add_piece(struct weir_ahead *ahead, struct weir_ahead_range *range)
{
    struct weir_ahead_piece *p = weir_alloc(sizeof *p);
    int code = p ? plan(p, ahead->from, range) : weir_fail_memory();
    if (code) {
        free(p);
        range->code = code;
        range->text = weir_strdup(weir_fail_last());
        range->at = range->end;
        pthread_cond_broadcast(&ahead->loaded);
        return NULL;
    }
    range->at += p->count;
    range->held++;
    ahead->held_bytes += p->piece.bytes;
    *(range->first ? &range->last->next : &range->first) = p;
    range->last = p;
    return p;
}

/* The next to load, or NULL: there is nothing, or too much waits to be taken. */
static struct weir_ahead_piece *find_work(struct weir_ahead *ahead)
{
    for (struct weir_ahead_range *r = ahead->ranges; r; r = r->next) {
        struct weir_ahead_piece *p = NULL;
        if (ahead->held_bytes < BYTES_MAX && r->at < r->end && r->held < RANGE_PIECES)
            p = add_piece(ahead, r);
        if (p)
            return p;
    }
    return NULL;
}

static void *load(void *arg)
{
    struct weir_ahead *ahead = arg;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->is_closing) {
        struct weir_ahead_piece *p = find_work(ahead);
        if (!p) {
            pthread_cond_wait(&ahead->wanted, &ahead->lock);
            continue;
        }
        pthread_mutex_unlock(&ahead->lock);
        struct weir_piece *piece = &p->piece;
        struct weir_cost cost = {0};
        int code = weir_pieces_load(&piece, 1, ahead->from, &cost);
        if (code)
            weir_piece_lost(piece, code);
        pthread_mutex_lock(&ahead->lock);
        p->is_loaded = true;
        pthread_cond_broadcast(&ahead->loaded);
    }
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

int weir_ahead_open(struct weir_ahead **out, const struct weir_supply *from)
{
    struct weir_ahead *ahead = weir_alloc(sizeof *ahead);
    int code = 0;
    if (!ahead)
        return weir_fail_memory();
    ahead->from = from;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->wanted, NULL);
    pthread_cond_init(&ahead->loaded, NULL);
    while (ahead->threads < THREADS && !code) {
        code = weir_thread_start(&ahead->thread[ahead->threads], "weir-ahead", load, ahead);
        ahead->threads += !code;
    }
    if (!ahead->threads) { /* fewer will do */
        weir_ahead_close(ahead);
        return code;
    }
    *out = ahead;
    return 0;
}

void weir_ahead_close(struct weir_ahead *ahead)
{
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->is_closing = true;
    pthread_cond_broadcast(&ahead->wanted);
    pthread_mutex_unlock(&ahead->lock);
    for (uint32_t i = 0; i < ahead->threads; i++)
        pthread_join(ahead->thread[i], NULL);
    pthread_cond_destroy(&ahead->loaded);
    pthread_cond_destroy(&ahead->wanted);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}

/* ---- taking ---- */

void weir_ahead_begin(struct weir_ahead *ahead, struct weir_ahead_range *range, uint64_t at,
                      uint64_t end)
{
    *range = (struct weir_ahead_range){.at = at, .end = end};
    pthread_mutex_lock(&ahead->lock);
    struct weir_ahead_range **to = &ahead->ranges;
    while (*to)
        to = &(*to)->next;
    *to = range;
    pthread_cond_broadcast(&ahead->wanted);
    pthread_mutex_unlock(&ahead->lock);
}

/* Waits until the first piece is loaded, or there is none. */
static struct weir_ahead_piece *await(struct weir_ahead *ahead,
                                      const struct weir_ahead_range *range)
{
    while (range->first ? !range->first->is_loaded : range->at < range->end)
        pthread_cond_wait(&ahead->loaded, &ahead->lock);
    return range->first;
}

/* Gives back the first piece, which is loaded. */
static void drop(struct weir_ahead *ahead, struct weir_ahead_range *range)
{
    struct weir_ahead_piece *p = range->first;
    range->first = p->next;
    range->held--;
    ahead->held_bytes -= p->piece.bytes;
    weir_piece_unload(&p->piece);
    free(p);
    pthread_cond_signal(&ahead->wanted);
}

int weir_ahead_next(struct weir_ahead *ahead, struct weir_ahead_range *range,
                    const struct weir_piece **out, uint64_t *first, uint64_t *count)
{
    pthread_mutex_lock(&ahead->lock);
    if (range->is_taking)
        drop(ahead, range);
    struct weir_ahead_piece *p = await(ahead, range);
    range->is_taking = p != NULL;
    pthread_mutex_unlock(&ahead->lock);
    if (!p)
        return range->code ? weir_fail_text(range->code, range->text ? range->text : "") : 0;
    *out = &p->piece;
    *first = p->first;
    *count = p->count;
    return 1;
}

void weir_ahead_end(struct weir_ahead *ahead, struct weir_ahead_range *range)
{
    struct weir_ahead_range **at = &ahead->ranges;
    pthread_mutex_lock(&ahead->lock);
    range->at = range->end;
    while (await(ahead, range))
        drop(ahead, range);
    while (*at != range)
        at = &(*at)->next;
    *at = range->next;
    pthread_mutex_unlock(&ahead->lock);
    free(range->text);
}
