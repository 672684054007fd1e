/* ahead.c - see ahead.h. */
#include "data/ahead.h"

#include <stdlib.h>

#include "util/huge.h"
#include "util/sys.h"
#include "util/thread.h"

enum {
    THREADS = 32,
    PIECE_FILES = 96,       /* at most in a piece, */
    FILE_BYTES = 4096 + 64, /* that one takes beside what is in it */
    RANGE_PIECES = 32,      /* of one range, at most */
};

/* Of memory for a piece: one huge page, which is one piece for the device, too; or what one sample
 * takes. */
#define PIECE_BYTES WEIR_HUGE_BYTES

/* Pieces that are there, being loaded or being taken: no more are begun, but for ranges that have
 * hardly any. A compressed shard is one piece. */
#define BYTES_MAX ((uint64_t)24 << 20)

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

/* How many samples a piece has that begins at one: of one source shard, and not more than there is
 * room for, unless one sample is. A compressed shard comes as a whole. */
static int measure(const struct weir_supply *from, const struct weir_index_shard *shard,
                   uint64_t first, uint64_t end, uint64_t *count)
{
    uint64_t most = shard->is_files ? PIECE_FILES : UINT64_MAX, n = 0;
    uint64_t bytes = 0, begin = 0;
    if (end > shard->first + shard->samples)
        end = shard->first + shard->samples;
    if (shard->codec[0])
        n = end - first;
    while (first + n < end && n < most) {
        struct weir_place place;
        int code = weir_index_find(from->index, first + n, &place);
        if (code)
            return weir_sample_fail(from, first + n, code);
        begin = n ? begin : place.off;
        bytes = shard->is_files ? bytes + place.size + FILE_BYTES : place.off + place.size - begin;
        if (n && bytes > PIECE_BYTES - 2 * WEIR_PIECE_BLOCK)
            break;
        n++;
    }
    *count = n;
    return 0;
}

/* The piece of samples from `first` on, which may wait for the index; without the lock. */
static int plan(struct weir_ahead_piece **out, const struct weir_supply *from, uint64_t first,
                uint64_t end)
{
    struct weir_ahead_piece *p = weir_alloc(sizeof *p);
    uint64_t number = weir_index_shard_of(from->index, first);
    struct weir_index_shard shard;
    if (!p)
        return weir_fail_memory();
    weir_index_shard(from->index, number, &shard);
    p->first = first;
    int code = measure(from, &shard, first, end, &p->count);
    if (!code)
        code = weir_piece_plan(&p->piece, from, number, first, p->count);
    if (code)
        free(p);
    else
        *out = p;
    return code;
}

/* The next piece of a range, whose last it becomes; NULL and no more of the range if there can be
 * none. With the lock held, which it gives up meanwhile. */
static struct weir_ahead_piece *add_piece(struct weir_ahead *ahead, struct weir_ahead_range *range)
{
    struct weir_ahead_piece *p = NULL;
    range->is_planning = true;
    pthread_mutex_unlock(&ahead->lock);
    int code = plan(&p, ahead->from, range->at, range->end);
    pthread_mutex_lock(&ahead->lock);
    range->is_planning = false;
    if (code) {
        range->code = code;
        range->text = weir_strdup(weir_fail_last());
        range->at = range->end;
    } else if (range->is_over) {
        free(p);
        p = NULL;
    }
    if (!p) {
        pthread_cond_broadcast(&ahead->loaded); /* the taker may wait for this */
        return NULL;
    }
    range->at += p->count;
    range->held++;
    ahead->held_bytes += p->piece.bytes;
    *(range->first ? &range->last->next : &range->first) = p;
    range->last = p;
    return p;
}

static bool has_work(const struct weir_ahead *ahead, const struct weir_ahead_range *r)
{
    return !r->is_over && !r->is_planning && r->at < r->end && r->held < RANGE_PIECES &&
           (ahead->held_bytes < BYTES_MAX || r->held < WEIR_AHEAD_PIECES_MIN);
}

/* The first that something can be loaded for, or NULL. */
static struct weir_ahead_range *find_work(const struct weir_ahead *ahead)
{
    struct weir_ahead_range *r = ahead->ranges;
    while (r && !has_work(ahead, r))
        r = r->next;
    return r;
}

static void *load(void *arg)
{
    struct weir_ahead *ahead = arg;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->is_closing) {
        struct weir_ahead_range *range = find_work(ahead);
        if (!range) {
            pthread_cond_wait(&ahead->wanted, &ahead->lock);
            continue;
        }
        struct weir_ahead_piece *p = add_piece(ahead, range);
        if (!p)
            continue;
        pthread_cond_signal(&ahead->wanted); /* where one found something there may be more */
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

static bool is_awaited(const struct weir_ahead_range *range)
{
    if (range->first)
        return !range->first->is_loaded;
    return range->is_planning || (range->at < range->end && !range->is_over);
}

/* Waits until the first piece is loaded, or there is none. */
static struct weir_ahead_piece *await(struct weir_ahead *ahead,
                                      const struct weir_ahead_range *range)
{
    while (is_awaited(range))
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
        return range->code
                   ? weir_fail_text(range->code, range->text ? range->text : "there is no memory")
                   : 0;
    *out = &p->piece;
    *first = p->first;
    *count = p->count;
    return 1;
}

void weir_ahead_end(struct weir_ahead *ahead, struct weir_ahead_range *range)
{
    struct weir_ahead_range **at = &ahead->ranges;
    pthread_mutex_lock(&ahead->lock);
    range->is_over = true;
    while (await(ahead, range))
        drop(ahead, range);
    while (*at != range)
        at = &(*at)->next;
    *at = range->next;
    pthread_mutex_unlock(&ahead->lock);
    free(range->text);
}
