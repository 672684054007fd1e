/* slab.c - see slab.h. */
#include "data/slab.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "util/err.h"
#include "util/huge.h"
#include "util/sys.h"
#include "util/thread.h"

enum {
    STEPS = 8,          /* sizes between two powers of two: mostly at most an eighth is wasted */
    SIZE_MIN = 1 << 14, /* a mapping for less is not worth its entry in the kernel's table */
    LARGE_BYTES_MIN = 1 << 20,
};

struct weir_slabs {
    pthread_mutex_t lock;
    struct weir_slab *kept; /* the last one given back first: it is the warmest */
    struct weir_slab *lent, **lent_tail;
    struct weir_slab *spent; /* lent, and of no use */
    uint64_t bytes_max, taken, kept_bytes, lent_count, peak;
    uint64_t lent_bytes; /* of those two lists */
    uint64_t holders;    /* slabs that are out, and the owner */
    unsigned generation; /* of fork(): in a child, nobody may ever unlock the lock */
};

int weir_slabs_open(struct weir_slabs **out, uint64_t bytes_max)
{
    struct weir_slabs *pool = weir_alloc(sizeof *pool);
    if (!pool)
        return weir_fail_memory();
    pthread_mutex_init(&pool->lock, NULL);
    pool->lent_tail = &pool->lent;
    pool->bytes_max = bytes_max;
    pool->holders = 1;
    pool->generation = weir_fork_generation();
    *out = pool;
    return 0;
}

static void unmap(struct weir_slab *slab)
{
    munmap(slab->data, slab->room);
    free(slab);
}

/* With the lock held: takes off those of the kept ones that are beyond the bound; the caller unmaps
 * them. */
static struct weir_slab *surplus(struct weir_slabs *pool)
{
    struct weir_slab *out = NULL, **at = &pool->kept;
    uint64_t others = pool->taken + pool->lent_bytes, seen = 0;
    uint64_t bytes = others < pool->bytes_max ? pool->bytes_max - others : 0;
    while (*at) {
        struct weir_slab *slab = *at;
        seen += slab->room;
        if (seen <= bytes) {
            at = &slab->next;
            continue;
        }
        seen -= slab->room;
        *at = slab->next;
        pool->kept_bytes -= slab->room;
        slab->next = out;
        out = slab;
    }
    return out;
}

/* To those who lent them; without the lock. */
static void return_all(struct weir_slab *slab)
{
    for (struct weir_slab *next; slab; slab = next) {
        next = slab->next;
        slab->release(slab->owner);
        free(slab);
    }
}

static void unmap_all(struct weir_slab *slab)
{
    for (struct weir_slab *next; slab; slab = next) {
        next = slab->next;
        unmap(slab);
    }
}

/* Ends with the last holder; called with the lock held, which it gives up. */
static void let_go(struct weir_slabs *pool)
{
    uint64_t left = --pool->holders;
    pthread_mutex_unlock(&pool->lock);
    if (left)
        return;
    unmap_all(pool->kept);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void weir_slabs_close(struct weir_slabs *pool)
{
    if (!pool || pool->generation != weir_fork_generation())
        return;
    pthread_mutex_lock(&pool->lock);
    pool->bytes_max = 0;
    struct weir_slab *gone = surplus(pool), *lent = pool->lent, *spent = pool->spent;
    pool->lent = pool->spent = NULL;
    let_go(pool);
    unmap_all(gone);
    return_all(lent);
    return_all(spent);
}

size_t weir_slab_room(size_t size)
{
    size_t step = SIZE_MIN / STEPS;
    if (size <= SIZE_MIN)
        return SIZE_MIN;
    if (size > SIZE_MAX / 2)
        return size; /* nobody has so much: weir_slab_take() says it */
    while (step * 2 * STEPS < size)
        step *= 2;
    size = (size + step - 1) / step * step;
    /* Whole huge pages, where that takes no more than another step, or there would be none: what is
     * read into single pages is hundreds of pieces for a device, and comes at a third of its
     * rate. */
    size_t huge = weir_huge_room(size);
    bool is_one = huge == WEIR_HUGE_BYTES && size > huge / 2;
    return is_one || huge - size <= step ? huge : size;
}

/* The smallest that will do, unless it is far too large, or what it has too much is beyond the
 * bound; of equal ones the warmest. */
static struct weir_slab *find_kept(struct weir_slabs *pool, size_t room)
{
    struct weir_slab **best = NULL;
    uint64_t others = pool->taken + pool->lent_bytes;
    uint64_t most = others < pool->bytes_max ? pool->bytes_max - others : 0;
    for (struct weir_slab **at = &pool->kept; *at; at = &(*at)->next)
        if ((*at)->room >= room && (*at)->room / 2 <= room &&
            ((*at)->room == room || (*at)->room <= most) && (!best || (*at)->room < (*best)->room))
            best = at;
    if (!best)
        return NULL;
    struct weir_slab *slab = *best;
    *best = slab->next;
    pool->kept_bytes -= slab->room;
    return slab;
}

static void *map_small(size_t room)
{
    void *data = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

/* New memory is made by whoever takes it, at once: later it would be made page by page, and where
 * a read lands in it, by the one thread that all reads go through. */
static struct weir_slab *map_new(size_t room)
{
    struct weir_slab *slab = weir_alloc(sizeof *slab);
    if (!slab)
        return NULL;
    slab->room = room;
    slab->data = room >= LARGE_BYTES_MIN ? weir_huge_map(room) : map_small(room);
    if (!slab->data) {
        free(slab);
        return NULL;
    }
    if (room >= LARGE_BYTES_MIN)
        madvise(slab->data, room, MADV_POPULATE_WRITE); /* where the kernel knows that */
    return slab;
}

/* With the lock held. */
static void note_peak(struct weir_slabs *pool)
{
    uint64_t bytes = pool->taken + pool->kept_bytes + pool->lent_bytes;
    if (bytes > pool->peak)
        pool->peak = bytes;
}

struct weir_slab *weir_slab_take(struct weir_slabs *pool, size_t size)
{
    if (size > SIZE_MAX / 2) {
        weir_fail_memory();
        return NULL;
    }
    size_t room = weir_slab_room(size);
    struct weir_slab *gone = NULL;
    pthread_mutex_lock(&pool->lock);
    struct weir_slab *slab = find_kept(pool, room);
    pool->taken += slab ? slab->room : room;
    pool->holders++;
    gone = surplus(pool);
    note_peak(pool);
    pthread_mutex_unlock(&pool->lock);
    unmap_all(gone);
    if (!slab)
        slab = map_new(room);
    if (slab) {
        slab->pool = pool;
        return slab;
    }
    pthread_mutex_lock(&pool->lock);
    pool->taken -= room;
    let_go(pool);
    weir_fail_memory();
    return NULL;
}

static uint64_t room_of_all(const struct weir_slab *slab)
{
    uint64_t sum = 0;
    for (; slab; slab = slab->next)
        sum += slab->room;
    return sum;
}

int weir_slabs_lend(struct weir_slabs *pool, void *data, size_t size, void (*release)(void *owner),
                    void *owner)
{
    struct weir_slab *slab = weir_alloc(sizeof *slab);
    if (!slab)
        return weir_fail_memory();
    *slab = (struct weir_slab){
        .data = data, .room = size, .pool = pool, .release = release, .owner = owner};
    pthread_mutex_lock(&pool->lock);
    struct weir_slab *spent = pool->spent;
    pool->spent = NULL;
    *pool->lent_tail = slab;
    pool->lent_tail = &slab->next;
    pool->lent_count++;
    pool->lent_bytes += size - room_of_all(spent);
    struct weir_slab *gone = surplus(pool);
    note_peak(pool);
    pthread_mutex_unlock(&pool->lock);
    unmap_all(gone);
    return_all(spent);
    return 0;
}

uint64_t weir_slabs_lent(struct weir_slabs *pool)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t count = pool->lent_count;
    pthread_mutex_unlock(&pool->lock);
    return count;
}

/* With the lock held: the one lent first, or NULL. Its bytes stay counted. */
static struct weir_slab *pop_lent(struct weir_slabs *pool)
{
    struct weir_slab *slab = pool->lent;
    if (!slab)
        return NULL;
    pool->lent = slab->next;
    if (!pool->lent)
        pool->lent_tail = &pool->lent;
    pool->lent_count--;
    return slab;
}

struct weir_slab *weir_slab_take_lent(struct weir_slabs *pool, size_t size)
{
    struct weir_slab *slab;
    pthread_mutex_lock(&pool->lock);
    while ((slab = pop_lent(pool)) && slab->room < size) {
        slab->next = pool->spent; /* its owner is not called here, on any thread */
        pool->spent = slab;
    }
    if (slab) {
        slab->next = NULL;
        pool->holders++;
        pool->lent_bytes -= slab->room;
        pool->taken += slab->room;
    }
    pthread_mutex_unlock(&pool->lock);
    return slab ? slab : weir_slab_take(pool, size);
}

void weir_slab_give(struct weir_slab *slab)
{
    if (!slab || slab->pool->generation != weir_fork_generation())
        return;
    struct weir_slabs *pool = slab->pool;
    struct weir_slab *gone = NULL;
    pthread_mutex_lock(&pool->lock);
    pool->taken -= slab->room;
    if (slab->release) {
        let_go(pool);
        slab->next = NULL;
        return_all(slab);
        return;
    }
    if (pool->taken + pool->lent_bytes + pool->kept_bytes + slab->room <= pool->bytes_max) {
        slab->next = pool->kept;
        pool->kept = slab;
        pool->kept_bytes += slab->room;
    } else {
        slab->next = NULL;
        gone = slab;
    }
    let_go(pool);
    unmap_all(gone);
}

uint64_t weir_slabs_peak(struct weir_slabs *pool)
{
    if (pool->generation != weir_fork_generation())
        return pool->peak;
    pthread_mutex_lock(&pool->lock);
    uint64_t peak = pool->peak;
    pthread_mutex_unlock(&pool->lock);
    return peak;
}
