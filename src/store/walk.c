/* walk.c - every file and every empty directory below a directory of the tier. Where a tier has no
 * directories, that is one listing. Else it is one directory at a time: those found on the way wait
 * in a list, so that one cursor is open whatever the depth.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "util/err.h"
#include "util/sys.h"

struct pending {
    struct pending *next;
    char path[]; /* relative to the top, with its '/' */
};

struct weir_walk {
    weir_store *store;
    const char *skip;
    char top[WEIR_NAME_BYTES_MAX];
    char dir[WEIR_NAME_BYTES_MAX]; /* being listed, relative to top */
    char full[2 * WEIR_NAME_BYTES_MAX];
    char name[2 * WEIR_NAME_BYTES_MAX];
    struct weir_handle *cursor;
    bool deep;         /* one listing for all */
    bool listing, any; /* any: the directory being listed is not empty */
    struct pending *pending;
    const char *page; /* the next entry */
    uint64_t left;
    char buf[16384];
};

int weir_walk_open(struct weir_walk **out, weir_store *store, const char *dir, const char *skip)
{
    struct weir_walk *walk = weir_alloc(sizeof *walk);
    if (!walk)
        return weir_fail_memory();
    walk->store = store;
    walk->skip = skip;
    snprintf(walk->top, sizeof walk->top, "%s", dir);
    walk->listing = walk->deep = true;
    *out = walk;
    return 0;
}

/* Asks for the next page; walk->left is 0 at the end of the directory. */
static int next_page(struct weir_walk *walk)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_LIST);
    snprintf(walk->full, sizeof walk->full, "%s%s", walk->top, walk->dir);
    req.name = walk->full;
    req.handle = walk->cursor;
    req.buf = walk->buf;
    req.len = sizeof walk->buf;
    req.deep = walk->deep;
    int code = weir_tier_call(walk->store->tier, &req);
    if (code == -ENOTSUP && walk->deep && !walk->cursor) {
        walk->deep = req.deep = false;
        code = weir_tier_call(walk->store->tier, &req);
    }
    walk->cursor = req.handle;
    if (code && code != -ENOENT) /* a directory that is gone is empty */
        return code;
    walk->page = walk->buf;
    walk->left = code ? 0 : req.result;
    return 0;
}

static void end_directory(struct weir_walk *walk)
{
    weir_handle_close(walk->cursor);
    walk->cursor = NULL;
    walk->any = false;
    struct pending *next = walk->pending;
    walk->listing = next != NULL;
    if (next) {
        walk->pending = next->next;
        snprintf(walk->dir, sizeof walk->dir, "%s", next->path);
        free(next);
    }
}

static int remember(struct weir_walk *walk)
{
    size_t size = strlen(walk->name) + 2;
    if (size > sizeof walk->dir)
        return 0; /* no key is that long: not ours */
    struct pending *p = weir_alloc(sizeof *p + size);
    if (!p)
        return weir_fail_memory();
    snprintf(p->path, size, "%s/", walk->name);
    p->next = walk->pending;
    walk->pending = p;
    return 0;
}

/* Is that what is to be left out, or below it? */
static bool is_skipped(const struct weir_walk *walk)
{
    size_t size = walk->skip ? strlen(walk->skip) : 0;
    return size && !strncmp(walk->name, walk->skip, size) &&
           (!walk->name[size] || walk->name[size] == '/');
}

int weir_walk_next(struct weir_walk *walk, const char **name)
{
    while (walk->listing) {
        if (!walk->left) {
            int code = next_page(walk);
            if (code)
                return code;
            if (walk->left)
                continue;
            bool empty = !walk->any && walk->dir[0];
            snprintf(walk->name, sizeof walk->name, "%s", walk->dir);
            end_directory(walk);
            if (!empty)
                continue;
            *name = walk->name;
            return 1;
        }
        walk->any = true;
        const char *entry = walk->page;
        walk->page += strlen(entry) + 1;
        walk->left--;
        snprintf(walk->name, sizeof walk->name, "%s%s", walk->dir, entry + 1);
        if (is_skipped(walk) && (walk->deep || entry[0] == 'd'))
            continue;
        if (entry[0] == 'f') {
            *name = walk->name;
            return 1;
        }
        int code = remember(walk);
        if (code)
            return code;
    }
    return 0;
}

void weir_walk_close(struct weir_walk *walk)
{
    if (!walk)
        return;
    weir_handle_close(walk->cursor);
    for (struct pending *p = walk->pending, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    free(walk);
}
