/* names.c - see names.h. */
#include "ckpt/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/bytes.h"
#include "util/hash.h"
#include "util/sys.h"

enum { SUFFIX_BYTES = 24 };

struct weir_name_slot {
    const char *name;
    size_t size;
    union {
        uint64_t next; /* the number that the next equal name gets */
        void *pointer;
    };
};

/* Its slot, or the free one where it would be. */
static struct weir_name_slot *find(const struct weir_names *names, const char *name, size_t size)
{
    uint8_t sum[WEIR_SUM_BYTES];
    weir_sum(sum, name, size);
    for (size_t i = (size_t)weir_load_le(sum, 8);; i++) {
        struct weir_name_slot *slot = &names->slots[i % names->room];
        if (!slot->name || (slot->size == size && !memcmp(slot->name, name, size)))
            return slot;
    }
}

static int make_room(struct weir_names *names)
{
    if (2 * names->count < names->room)
        return 0;
    struct weir_names more = {.room = names->room ? 2 * names->room : 256, .count = names->count};
    more.slots = weir_alloc(more.room * sizeof *more.slots);
    if (!more.slots)
        return -1;
    for (size_t i = 0; i < names->room; i++)
        if (names->slots[i].name)
            *find(&more, names->slots[i].name, names->slots[i].size) = names->slots[i];
    free(names->slots);
    *names = more;
    return 0;
}

const char *weir_names_give(struct weir_names *names, struct weir_arena **arena, const char *name,
                            size_t size)
{
    char *copy = weir_arena_take(arena, size + SUFFIX_BYTES);
    if (!copy || make_room(names))
        return NULL;
    if (size)
        memcpy(copy, name, size);
    struct weir_name_slot *slot = find(names, name, size), *base = slot;
    size_t length = size;
    while (slot->name) {
        length = size + (size_t)snprintf(copy + size, SUFFIX_BYTES, "~%llu",
                                         (unsigned long long)base->next++);
        slot = find(names, copy, length);
    }
    *slot = (struct weir_name_slot){.name = copy, .size = length, .next = 2};
    names->count++;
    return copy;
}

void **weir_names_at(struct weir_names *names, struct weir_arena **arena, const char *name,
                     size_t size)
{
    if (make_room(names))
        return NULL;
    struct weir_name_slot *slot = find(names, name, size);
    if (slot->name)
        return &slot->pointer;
    char *copy = weir_arena_take(arena, size + 1);
    if (!copy)
        return NULL;
    memcpy(copy, name, size);
    *slot = (struct weir_name_slot){.name = copy, .size = size};
    names->count++;
    return &slot->pointer;
}

void weir_names_free(struct weir_names *names)
{
    free(names->slots);
    *names = (struct weir_names){0};
}
