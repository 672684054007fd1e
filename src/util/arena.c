/* arena.c - see arena.h. */
#include "util/arena.h"

#include <stdlib.h>

#include "util/sys.h"

/* The first block is small: most of what is read is. */
enum { FIRST_BYTES = 1 << 16, ARENA_BYTES = 1 << 20 };

void *weir_arena_take(struct weir_arena **arena, size_t size)
{
    size = (size + 7) & ~(size_t)7;
    if (!*arena || (*arena)->size - (*arena)->used < size) {
        size_t room = *arena ? ARENA_BYTES : FIRST_BYTES;
        room = size > room ? size : room;
        struct weir_arena *more = weir_alloc(sizeof *more + room);
        if (!more)
            return NULL;
        more->size = room;
        more->next = *arena;
        *arena = more;
    }
    void *at = (char *)(*arena)->words + (*arena)->used;
    (*arena)->used += size;
    return at;
}

void weir_arena_free(struct weir_arena *arena)
{
    for (struct weir_arena *next; arena; arena = next) {
        next = arena->next;
        free(arena);
    }
}
