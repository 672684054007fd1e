/* shelf.h - shards that stay open between reads: to open one means to read its seal, and many
 * windows of a shard are read one after the other. One that is taken is the taker's alone, since an
 * object is read by one thread at a time. Only Weir's own are kept: a foreign file may change, and
 * opening it again is how that is noticed. At most 64 are kept in a process. Any thread.
 */
#ifndef WEIR_DATA_SHELF_H
#define WEIR_DATA_SHELF_H

#include <stdint.h>

#include "weir.h"

struct weir_shelf;

int weir_shelf_open(struct weir_shelf **out);
void weir_shelf_close(struct weir_shelf *shelf);

/* The shard, if it is there; else NULL. */
weir_object *weir_shelf_take(struct weir_shelf *shelf, uint64_t shard);
/* Keeps it for the next, or closes it. */
void weir_shelf_give(struct weir_shelf *shelf, uint64_t shard, weir_object *obj);

#endif
