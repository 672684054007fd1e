/* remote_left.c - tidying up on a tier: after a job, and after runs that were killed. */
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "measure/measure.h"
#include "measure/remote.h"
#include "util/err.h"
#include "util/sys.h"

enum { PAGE_BYTES = 1 << 16, DIGITS = 16, NAME_BYTES = 256 };

/* Calls fn for each entry of a directory: its type, and its name. */
static int each_entry(struct weir_tier *tier, const char *directory,
                      int (*fn)(void *arg, char type, const char *name), void *arg)
{
    char *page = weir_alloc(PAGE_BYTES);
    struct weir_handle *cursor = NULL;
    int code = page ? 0 : weir_fail_memory();
    uint64_t entries = 1;
    while (!code && entries) {
        struct weir_req req;
        weir_req_init(&req, WEIR_OP_LIST);
        req.name = directory;
        req.handle = cursor;
        req.buf = page;
        req.len = PAGE_BYTES;
        code = weir_tier_call(tier, &req);
        cursor = req.handle;
        entries = code ? 0 : req.result;
        const char *at = page;
        for (uint64_t i = 0; i < entries && !code; i++, at += strlen(at) + 1)
            code = fn(arg, *at, at + 1);
    }
    weir_handle_close(cursor);
    free(page);
    return code == -ENOENT ? 0 : code;
}

struct sweep {
    struct weir_tier *tier;
    const char *prefix;
    bool remove;
    uint64_t *count;
};

static int sweep_one(void *arg, char type, const char *base)
{
    struct sweep *sweep = arg;
    char name[NAME_BYTES];
    struct weir_req req;
    bool is_ours = !strncmp(base, "data-", 5) || !strncmp(base, "new-", 4);
    if (type != 'f' || !is_ours || strlen(base) > NAME_BYTES / 2)
        return 0;
    snprintf(name, sizeof name, "%s/%s", sweep->prefix, base);
    weir_req_init(&req, WEIR_OP_REMOVE);
    req.name = name;
    int code = weir_tier_call(sweep->tier, &req);
    *sweep->count += !code;
    return code == -ENOENT ? 0 : code;
}

int weir_remote_sweep(struct weir_tier *tier, const char *prefix, uint64_t *count)
{
    struct sweep sweep = {.tier = tier, .prefix = prefix, .count = count};
    char directory[NAME_BYTES];
    snprintf(directory, sizeof directory, "%s/", prefix);
    return each_entry(tier, directory, sweep_one, &sweep);
}

static bool is_ours(const char *name)
{
    size_t prefix = strlen(WEIR_REMOTE_PREFIX);
    return !strncmp(name, WEIR_REMOTE_PREFIX, prefix) && strlen(name) == prefix + DIGITS &&
           strspn(name + prefix, "0123456789abcdef") == DIGITS;
}

static int sweep_prefix(void *arg, char type, const char *name)
{
    struct sweep *sweep = arg;
    uint64_t files = 0;
    if (type != 'd' || !is_ours(name))
        return 0;
    ++*sweep->count;
    return sweep->remove ? weir_remote_sweep(sweep->tier, name, &files) : 0;
}

int weir_place_leftovers_tier(const struct weir_url *url, struct weir_io *io, bool remove,
                              uint64_t *count)
{
    struct weir_tier *tier = NULL;
    *count = 0;
    int code = weir_tier_open(&tier, url, io, false);
    if (code)
        return code;
    struct sweep sweep = {.tier = tier, .remove = remove, .count = count};
    code = each_entry(tier, "", sweep_prefix, &sweep);
    weir_tier_close(tier);
    return code;
}
