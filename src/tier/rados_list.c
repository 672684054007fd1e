/* rados_list.c - LIST. RADOS gives the names of a whole namespace, in no order, and knows no
 * directories. Names of the wanted level are passed on as they come. Directories come once for each
 * name below them, so they are gathered and given at the end, each once. If there are more than
 * memory is meant for, those of a share of all hashes are gathered, and the namespace is gone
 * through again for the rest. A `deep` listing needs none of that.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/rados.h"
#include "util/err.h"
#include "util/hash.h"
#include "util/sys.h"

enum { DIRS_MAX = 1 << 17 }; /* of at most a key's length: 4 MiB for names as people make them */

struct dir {
    uint64_t hash;
    char *name;
};

struct cursor {
    struct weir_handle handle;
    struct rados_tier *tier;
    char prefix[WEIR_NAME_BYTES_MAX];
    bool deep, is_open, any;
    bool is_giving; /* the directories, at the end of a pass */
    rados_list_ctx_t names;
    char held[WEIR_NAME_BYTES_MAX]; /* did not fit into the last page */
    uint64_t hash_begin, hash_end;  /* which directories this pass is about; the end counts */
    struct dir *dirs;               /* a table by hash; DIRS_MAX * 2 places */
    size_t dir_count, given;
};

bool weir_rados_name_is_hidden(const char *name)
{
    return !strncmp(name, WEIR_RADOS_PARTS, strlen(WEIR_RADOS_PARTS)) ||
           !strcmp(name, WEIR_RADOS_CLOCK);
}

static void dirs_clear(struct cursor *c, uint64_t from)
{
    for (size_t i = 0; c->dirs && i < 2 * DIRS_MAX; i++) {
        if (c->dirs[i].name && c->dirs[i].hash >= from) {
            free(c->dirs[i].name);
            c->dirs[i].name = NULL;
            c->dir_count--;
        }
    }
}

static void cursor_close(struct weir_handle *handle)
{
    struct cursor *c = (struct cursor *)handle;
    if (c->is_open)
        c->tier->lib->nobjects_list_close(c->names);
    dirs_clear(c, 0);
    free(c->dirs);
    free(c);
}

static int cursor_new(struct rados_tier *t, struct weir_req *req, struct cursor **out)
{
    struct cursor *c = weir_alloc(sizeof *c);
    if (!c)
        return weir_fail_memory();
    c->handle.close = cursor_close;
    c->tier = t;
    c->deep = req->deep;
    c->hash_end = UINT64_MAX;
    snprintf(c->prefix, sizeof c->prefix, "%s", req->name);
    req->handle = &c->handle;
    *out = c;
    return 0;
}

static struct dir *dir_place(struct cursor *c, uint64_t hash, const char *name)
{
    size_t at = hash % (2 * DIRS_MAX);
    while (c->dirs[at].name && (c->dirs[at].hash != hash || strcmp(c->dirs[at].name, name)))
        at = (at + 1) % (2 * DIRS_MAX);
    return &c->dirs[at];
}

/* Half of the hashes are enough for this pass. The table is made anew, for what leaves it would
 * tear holes into the ways to what stays. */
static int dirs_halve(struct cursor *c)
{
    struct dir *all = c->dirs;
    c->hash_end = c->hash_begin + (c->hash_end - c->hash_begin) / 2;
    c->dirs = weir_alloc(2 * DIRS_MAX * sizeof *c->dirs);
    if (!c->dirs) {
        c->dirs = all;
        return weir_fail_memory();
    }
    c->dir_count = 0;
    for (size_t i = 0; i < 2 * DIRS_MAX; i++) {
        if (!all[i].name)
            continue;
        if (all[i].hash > c->hash_end) {
            free(all[i].name);
            continue;
        }
        *dir_place(c, all[i].hash, all[i].name) = all[i];
        c->dir_count++;
    }
    free(all);
    return 0;
}

static int dir_add(struct cursor *c, const char *name)
{
    uint8_t sum[WEIR_SUM_BYTES];
    uint64_t hash;
    weir_sum(sum, name, strlen(name));
    memcpy(&hash, sum, sizeof hash);
    if (hash < c->hash_begin || hash > c->hash_end)
        return 0;
    if (!c->dirs && !(c->dirs = weir_alloc(2 * DIRS_MAX * sizeof *c->dirs)))
        return weir_fail_memory();
    struct dir *place = dir_place(c, hash, name);
    if (place->name)
        return 0;
    *place = (struct dir){hash, weir_strdup(name)};
    if (!place->name)
        return weir_fail_memory();
    return ++c->dir_count == DIRS_MAX ? dirs_halve(c) : 0;
}

/* The next name below the prefix, without it, is then in c->held. 0: there is none. */
static int next_name(struct cursor *c)
{
    struct rados_tier *t = c->tier;
    size_t prefix = strlen(c->prefix);
    const char *name, *key, *space;
    int code;
    if (c->held[0])
        return 1;
    while (!(code = t->lib->nobjects_list_next(c->names, &name, &key, &space))) {
        size_t size = strlen(name);
        if (strncmp(name, c->prefix, prefix) || size == prefix || size >= sizeof c->held ||
            weir_rados_name_is_hidden(name))
            continue;
        snprintf(c->held, sizeof c->held, "%s", name + prefix);
        return 1;
    }
    return code == -ENOENT ? 0 : weir_rados_fail(t, code, "list", c->prefix);
}

/* Fills the page with names of this level. 1: it is full; 0: the namespace is at its end. */
static int give_names(struct cursor *c, struct weir_req *req, size_t *used)
{
    int code;
    while ((code = next_name(c)) == 1) {
        const char *name = c->held, *slash = c->deep ? NULL : strchr(c->held, '/');
        if (slash) {
            char dir[WEIR_NAME_BYTES_MAX];
            snprintf(dir, sizeof dir, "%.*s", (int)(slash - name), name);
            code = slash > name ? dir_add(c, dir) : 0;
            if (code)
                return code;
        } else if (!c->hash_begin && !weir_list_page_add(req, used, false, name)) {
            return 1;
        }
        c->held[0] = 0;
    }
    return code;
}

/* Gives the directories of this pass. 1: the page is full; 0: that was all. */
static int give_dirs(struct cursor *c, struct weir_req *req, size_t *used)
{
    for (; c->dirs && c->given < 2 * DIRS_MAX; c->given++) {
        const char *name = c->dirs[c->given].name;
        if (name && !weir_list_page_add(req, used, true, name))
            return 1;
    }
    dirs_clear(c, 0);
    return 0;
}

int weir_rados_list(struct rados_tier *t, struct weir_req *req)
{
    struct cursor *c = (struct cursor *)req->handle;
    size_t used = 0;
    int code = c ? 0 : cursor_new(t, req, &c);
    req->result = 0;
    while (!code) {
        if (c->is_giving) {
            code = give_dirs(c, req, &used);
            if (code || c->hash_end == UINT64_MAX)
                break;
            c->hash_begin = c->hash_end + 1;
            c->hash_end = UINT64_MAX;
            c->is_giving = false;
        }
        if (!c->is_open) {
            code = t->lib->nobjects_list_open(t->pool, &c->names);
            if (code)
                return weir_rados_fail(t, code, "list", c->prefix);
            c->is_open = true;
        }
        code = give_names(c, req, &used);
        if (code)
            break;
        t->lib->nobjects_list_close(c->names);
        c->is_open = false;
        c->is_giving = true;
        c->given = 0;
    }
    if (code < 0)
        return code;
    c->any |= req->result != 0;
    if (c->any || !c->prefix[0])
        return 0;
    return weir_fail(ENOENT, "there is nothing at '%s' in %s", c->prefix, t->label);
}
