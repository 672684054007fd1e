/* arena.h - memory that only grows and is freed at once: what a manifest's rows or the values of a
 * foreign file point to. Zeroed, and aligned for 8-byte words.
 */
#ifndef WEIR_UTIL_ARENA_H
#define WEIR_UTIL_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct weir_arena {
    struct weir_arena *next;
    size_t size, used;
    uint64_t words[];
};

/* NULL when there is no memory; *arena is NULL at first. */
void *weir_arena_take(struct weir_arena **arena, size_t size);
void weir_arena_free(struct weir_arena *arena);

#endif
