/* items.c - see items.h. */
#include "cli/items.h"

#include <stdlib.h>
#include <string.h>

#include "util/err.h"

int items_add(struct items *items, const char *key, const char *path, uint64_t size_bytes)
{
    if (items->count == items->room) {
        size_t room = items->room ? 2 * items->room : 64;
        struct item *more = reallocarray(items->item, room, sizeof *more);
        if (!more)
            return weir_fail_memory();
        items->item = more;
        items->room = room;
    }
    struct item item = {
        .key = strdup(key), .path = path ? strdup(path) : NULL, .size_bytes = size_bytes};
    if (!item.key || (path && !item.path)) {
        free(item.key);
        return weir_fail_memory();
    }
    items->item[items->count++] = item;
    return 0;
}

int items_add_key(struct items *items, weir_store *store, const char *key, const char *path)
{
    weir_object *object;
    uint64_t size = 0;
    if (!weir_object_open(&object, store, key)) {
        size = weir_object_info(object)->size_bytes;
        weir_object_close(object);
    }
    return items_add(items, key, path, size);
}

int items_add_prefix(struct items *items, weir_store *store, const char *prefix, uint32_t flags)
{
    weir_list *list;
    const weir_entry *entry;
    int code = weir_list_open(&list, store, prefix, flags | WEIR_LIST_RECURSIVE);
    if (code)
        return code;
    while ((code = weir_list_next(list, &entry)) == 1)
        if ((code = items_add(items, entry->key, NULL, entry->size_bytes)))
            break;
    weir_list_close(list);
    return code;
}

void item_failed(struct item *item, int code)
{
    item->state = ITEM_FAILED;
    item->code = code;
    free(item->text);
    item->text = strdup(weir_error_text());
}

uint64_t items_bytes(const struct items *items)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < items->count; i++)
        bytes += items->item[i].size_bytes;
    return bytes;
}

void items_free(struct items *items)
{
    for (size_t i = 0; i < items->count; i++) {
        free(items->item[i].key);
        free(items->item[i].path);
        free(items->item[i].text);
        json_decref(items->item[i].detail);
    }
    free(items->item);
    *items = (struct items){0};
}
