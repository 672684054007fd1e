/* value.c - see value.h. */
#include "ckpt/value.h"

#include <string.h>

struct weir_value *weir_value_new(struct weir_arena **arena, enum weir_value_kind kind)
{
    struct weir_value *value = weir_arena_take(arena, sizeof *value);
    if (value)
        value->kind = kind;
    return value;
}

struct weir_value *weir_value_text(struct weir_arena **arena, const char *text, size_t size)
{
    struct weir_value *value = weir_value_new(arena, WEIR_VALUE_TEXT);
    if (value) {
        value->text.at = text;
        value->text.size = size;
    }
    return value;
}

bool weir_value_add(struct weir_arena **arena, struct weir_value *list, struct weir_value *item)
{
    if (!item)
        return false;
    if (list->items.count == list->items.room) {
        size_t room = list->items.room ? 2 * list->items.room : 4;
        struct weir_value **more = weir_arena_take(arena, room * sizeof *more);
        if (!more)
            return false;
        if (list->items.count)
            memcpy(more, list->items.at, list->items.count * sizeof *more);
        list->items.at = more;
        list->items.room = room;
    }
    list->items.at[list->items.count++] = item;
    return true;
}

bool weir_value_is_text(const struct weir_value *value, const char *text)
{
    size_t size = strlen(text);
    return value && value->kind == WEIR_VALUE_TEXT && value->text.size == size &&
           !memcmp(value->text.at, text, size);
}

struct weir_value *weir_value_get(const struct weir_value *dict, const char *key)
{
    if (!dict || (dict->kind != WEIR_VALUE_DICT && dict->kind != WEIR_VALUE_ORDERED))
        return NULL;
    for (size_t i = 0; i + 1 < dict->items.count; i += 2)
        if (weir_value_is_text(dict->items.at[i], key))
            return dict->items.at[i + 1];
    return NULL;
}

bool weir_value_is_global(const struct weir_value *value, const char *name)
{
    size_t size = strlen(name);
    return value && value->kind == WEIR_VALUE_GLOBAL && value->text.size == size &&
           !memcmp(value->text.at, name, size);
}

bool weir_value_is_object(const struct weir_value *value, const char *name)
{
    return value && value->kind == WEIR_VALUE_OBJECT &&
           weir_value_is_global(value->object.global, name);
}

bool weir_value_uint(const struct weir_value *value, uint64_t *out)
{
    if (!value || value->kind != WEIR_VALUE_INT || value->number < 0)
        return false;
    *out = (uint64_t)value->number;
    return true;
}
