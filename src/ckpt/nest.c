/* nest.c - see nest.h. */
#include "ckpt/nest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/err.h"

/* Empty dicts in a list leave no trace: so a place may be beyond the end, but not far. */
enum { GAP_MAX = 64 };

static int contradiction(void)
{
    return weir_fail(EBADMSG, "the paths of its values contradict each other");
}

int weir_nest_begin(struct weir_nest *nest, struct weir_arena **arena)
{
    *nest = (struct weir_nest){.arena = arena, .root = weir_value_new(arena, WEIR_VALUE_DICT)};
    return nest->root ? 0 : weir_fail_memory();
}

static int place_in_list(struct weir_nest *nest, struct weir_value *list, uint64_t at,
                         struct weir_value *value)
{
    if (at > list->items.count + GAP_MAX)
        return contradiction();
    while (list->items.count <= at)
        if (!weir_value_add(nest->arena, list, weir_value_new(nest->arena, WEIR_VALUE_NONE)))
            return weir_fail_memory();
    if (list->items.at[at]->kind != WEIR_VALUE_NONE)
        return contradiction();
    list->items.at[at] = value;
    return 0;
}

/* Puts it below a key or a number. That a key is not there yet is for the caller to know. */
static int place(struct weir_nest *nest, struct weir_value *into, struct weir_value *key,
                 struct weir_value *value)
{
    uint64_t at;
    if (into->kind == WEIR_VALUE_LIST)
        return weir_value_uint(key, &at) ? place_in_list(nest, into, at, value) : contradiction();
    if (into->kind != WEIR_VALUE_DICT || key->kind != WEIR_VALUE_TEXT)
        return contradiction();
    return weir_value_add(nest->arena, into, key) && weir_value_add(nest->arena, into, value)
               ? 0
               : weir_fail_memory();
}

/* Adds a part to the path so that no two paths look alike. */
static int path_add(struct weir_nest *nest, const struct weir_value *key)
{
    char number[32];
    uint64_t at;
    if (weir_value_uint(key, &at)) {
        snprintf(number, sizeof number, "#%llu", (unsigned long long)at);
        weir_json_puts(&nest->path, number);
    } else if (key->kind == WEIR_VALUE_TEXT) {
        snprintf(number, sizeof number, "/%zu:", key->text.size);
        weir_json_puts(&nest->path, number);
        weir_json_put(&nest->path, key->text.at, key->text.size);
    } else {
        return contradiction();
    }
    return nest->path.failed ? weir_fail_memory() : 0;
}

/* The container at the path so far: what follows says whether it is a dict or a list. */
static int container_at(struct weir_nest *nest, struct weir_value *into, struct weir_value *key,
                        const struct weir_value *next, struct weir_value **out)
{
    void **known = weir_names_at(&nest->containers, nest->arena, nest->path.text, nest->path.size);
    if (!known)
        return weir_fail_memory();
    if (!*known) {
        struct weir_value *made = weir_value_new(
            nest->arena, next->kind == WEIR_VALUE_TEXT ? WEIR_VALUE_DICT : WEIR_VALUE_LIST);
        int code = made ? place(nest, into, key, made) : weir_fail_memory();
        if (code)
            return code;
        *known = made;
    }
    *out = *known;
    return 0;
}

int weir_nest_set(struct weir_nest *nest, const struct weir_value *path, struct weir_value *value)
{
    struct weir_value *into = nest->root;
    if (path->kind != WEIR_VALUE_TUPLE || !path->items.count)
        return contradiction();
    struct weir_value **keys = path->items.at;
    size_t last = path->items.count - 1;
    nest->path.size = 0;
    for (size_t i = 0; i < last; i++) {
        int code = path_add(nest, keys[i]);
        if (!code)
            code = container_at(nest, into, keys[i], keys[i + 1], &into);
        if (code)
            return code;
    }
    return place(nest, into, keys[last], value);
}

void weir_nest_end(struct weir_nest *nest)
{
    weir_names_free(&nest->containers);
    free(nest->path.text);
}
