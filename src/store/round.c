/* round.c - gc goes through the names below a directory. On a tier that is far off many are looked
 * at at once, by a team; else one after another.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/team.h"

enum { NAMES_MAX = 256 }; /* between two looks at whether to go on */

struct round {
    struct weir_gc *gc;
    const char *dir;
    weir_gc_fn fn;
    void *arg;
    size_t count;
    char *name[NAMES_MAX];
};

uint32_t weir_gc_threads(const struct weir_gc *gc)
{
    unsigned lookers = gc->store->tier->lookers;
    return lookers ? lookers : 1;
}

void weir_gc_count(struct weir_gc *gc, uint64_t *counter, uint64_t more)
{
    pthread_mutex_lock(&gc->lock);
    *counter += more;
    pthread_mutex_unlock(&gc->lock);
}

/* Crashed writers leave directories, too. A writer whose directory goes makes it again. */
static void drop_directory(struct weir_gc *gc, const char *dir, const char *rest)
{
    char name[WEIR_NAME_BYTES_MAX];
    struct weir_req req;
    if (gc->dry)
        return;
    snprintf(name, sizeof name, "%s%s", dir, rest);
    weir_req_init(&req, WEIR_OP_REMOVE);
    req.name = name;
    req.off = gc->grace_ns;
    req.stat.time_ns = gc->now_ns;
    weir_tier_call(gc->store->tier, &req);
}

static int visit(void *arg, uint64_t i)
{
    struct round *round = arg;
    const char *name = round->name[i];
    if (name[strlen(name) - 1] != '/')
        return round->fn(round->arg, round->dir, name);
    drop_directory(round->gc, round->dir, name);
    return 0;
}

/* All that were gathered. */
static int visit_all(struct round *round)
{
    struct weir_gc *gc = round->gc;
    int code = weir_team_run(weir_gc_threads(gc), round->count, visit, round);
    if (!code && round->count && gc->progress && gc->progress(gc->progress_arg, round->count))
        code = weir_fail(ECANCELED, "gc of '%s' was stopped", gc->store->url);
    while (round->count)
        free(round->name[--round->count]);
    return code;
}

static int gather(struct round *round, const char *name)
{
    size_t most = weir_gc_threads(round->gc) > 1 ? NAMES_MAX : 1;
    char *copy = weir_strdup(name);
    if (!copy)
        return weir_fail_memory();
    round->name[round->count++] = copy;
    return round->count == most ? visit_all(round) : 0;
}

int weir_gc_each(struct weir_gc *gc, const char *dir, weir_gc_fn fn, void *arg)
{
    struct round round = {.gc = gc, .dir = dir, .fn = fn, .arg = arg};
    struct weir_walk *walk;
    const char *name;
    int more = 0, code = weir_walk_open(&walk, gc->store, dir, NULL);
    if (code)
        return code;
    while (!code && (more = weir_walk_next(walk, &name)) == 1)
        code = gather(&round, name);
    if (!code)
        code = more;
    weir_walk_close(walk);
    if (!code)
        return visit_all(&round);
    while (round.count)
        free(round.name[--round.count]);
    return code;
}
