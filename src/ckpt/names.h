/* names.h - a hash table of names, for two uses: to give each name once (of two equal ones the
 * second becomes "w~2", the third "w~3"), and to find what belongs to a name. */
#ifndef WEIR_CKPT_NAMES_H
#define WEIR_CKPT_NAMES_H

#include <stddef.h>

#include "util/arena.h"

struct weir_name_slot;
struct weir_names {
    struct weir_name_slot *slots; /* a hash table, half empty */
    size_t count, room;
};

/* A copy in the arena, terminated, that nobody else has got; NULL: no memory. */
const char *weir_names_give(struct weir_names *names, struct weir_arena **arena, const char *name,
                            size_t size);
/* Where the pointer of a name is kept, NULL at first; valid until the next call. NULL: no memory.
 */
void **weir_names_at(struct weir_names *names, struct weir_arena **arena, const char *name,
                     size_t size);
void weir_names_free(struct weir_names *names);

#endif
