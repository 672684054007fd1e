/* items.h - a list of objects to work on, and what became of each. */
#ifndef WEIR_CLI_ITEMS_H
#define WEIR_CLI_ITEMS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "weir.h"

enum item_state {
    ITEM_WAITING, /* not tried, or stopped before its end */
    ITEM_DONE,
    ITEM_SAME, /* there was nothing to do */
    ITEM_GONE, /* somebody removed it since it was listed */
    ITEM_FAILED,
};

struct item {
    char *key;
    char *path;          /* of the file beside it, or NULL */
    uint64_t size_bytes; /* as far as it is known */
    enum item_state state;
    const char *level; /* reached, or NULL; static */
    int code;          /* of a failure, with its text */
    char *text;
    json_t *detail; /* more fields for --json, or NULL */
};

struct items {
    struct item *item;
    size_t count, room;
};

/* Adds a copy. path may be NULL. */
int items_add(struct items *items, const char *key, const char *path, uint64_t size_bytes);
/* Adds an object of the store, with its size if that can be had: errors come when it is used. */
int items_add_key(struct items *items, weir_store *store, const char *key, const char *path);
/* Adds every object below prefix; WEIR_LIST_DETAIL: with sizes. */
int items_add_prefix(struct items *items, weir_store *store, const char *prefix, uint32_t flags);
/* Takes note of a failure whose text is this thread's. */
void item_failed(struct item *item, int code);
uint64_t items_bytes(const struct items *items);
void items_free(struct items *items);

#endif
