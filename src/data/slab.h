/* slab.h - memory for samples and batches, taken and given back by any thread, kept for the next
 * taker: touching new memory costs as much as copying into it. Page-aligned.
 *
 * The pool counts what is taken, lent, and kept. It keeps nothing that would bring the sum over
 * its bound; takers look at the count themselves before they take (a bound that could fail a taker
 * would stop the batch that everybody waits for). It lives until its owner has closed it and the
 * last slab is back: a batch may outlive its loader. In a forked child, giving back does nothing.
 *
 * Others may lend memory of theirs, each piece for one slab: it goes back to them, and is never
 * used twice. Who has lent it is called by whoever gives the slab back, lends more, or closes. He
 * may wait for a lock of his own meanwhile (Python's), under which he asks for ours: so nobody
 * holds a lock who does one of these three.
 */
#ifndef WEIR_DATA_SLAB_H
#define WEIR_DATA_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_slabs;

struct weir_slab {
    uint8_t *data;
    size_t room;
    struct weir_slabs *pool;
    struct weir_slab *next;
    void (*release)(void *owner); /* of what was lent; else NULL */
    void *owner;
};

int weir_slabs_open(struct weir_slabs **out, uint64_t bytes_max);
void weir_slabs_close(struct weir_slabs *pool);

/* Bytes that a slab for so many has. */
size_t weir_slab_room(size_t size);
/* At least `size` bytes, of which nothing is known; NULL and a text when there is no memory. */
struct weir_slab *weir_slab_take(struct weir_slabs *pool, size_t size);
/* Memory to be used once. Calls release(owner) when it is not needed any more, and only if this
 * succeeded. */
int weir_slabs_lend(struct weir_slabs *pool, void *data, size_t size, void (*release)(void *owner),
                    void *owner);
uint64_t weir_slabs_lent(struct weir_slabs *pool);
/* Of what was lent, if there is any that is large enough (smaller ones that came before it are of
 * no use, and go back); else as weir_slab_take(). */
struct weir_slab *weir_slab_take_lent(struct weir_slabs *pool, size_t size);
/* Takes NULL. */
void weir_slab_give(struct weir_slab *slab);

/* Bytes taken, lent and kept, at most, so far. */
uint64_t weir_slabs_peak(struct weir_slabs *pool);

#endif
