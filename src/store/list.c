/* list.c - what there is, for people and for tools: the union of the seals and of the plain files,
 * directory by directory, each sorted. One level of the tree is held for each level of depth, and
 * of many small directories beside each other some that come next.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/team.h"

enum {
    LEVELS_MAX = WEIR_KEY_BYTES_MAX / 2 + 1,
    /* Each look at a plain file waits for the disk, or for a server: where there are many, so many
     * threads look ahead, each at so many files at a time. */
    LOOKERS = 16,
    LOOK_FILES = 64,
    LOOK_FILES_MIN = 4 * LOOK_FILES, /* for fewer, threads are not worth it */
    LOOK_AHEAD = 64 * LOOK_FILES,
    /* The first so many of a directory that is read ahead are looked at as they are found: it may
     * turn out to be too large, and then that was in vain. */
    LOOK_EARLY = 16 * LOOK_FILES,
    /* Of directories, so many at first, for whoever wants but the first, and then twice as many
     * each time, while what was read and not entered yet has no more entries than this. */
    AHEAD_MIN = 8,
    AHEAD_MAX = 64,
    AHEAD_ITEMS_MAX = 1 << 18,
};

struct level;

struct item {
    char *name;
    bool is_dir, has_stat;
    bool is_odd; /* no key: only its name is told */
    weir_kind kind;
    struct weir_blob_stat stat; /* what was seen ahead */
    struct level *read;         /* a directory that was read ahead; else NULL */
};

struct level {
    char *dir; /* "" or "a/b/" */
    struct item *items;
    size_t count, room, next;
    size_t most; /* items that it may have; 0: any number */
    bool looks;  /* what they are is asked for with their names, one after the other */
    bool takes_odd;
    size_t looked; /* they were looked at up to here, */
    size_t read;   /* and directories were read ahead: */
    size_t ahead;  /* the next time so many; 0: none, they are large */
};

struct weir_list {
    weir_store *store;
    uint32_t flags;
    struct level *levels[LEVELS_MAX];
    unsigned depth;
    size_t ahead; /* entries of directories that were read ahead and not entered yet */
    bool single;  /* the prefix is an object, too: it comes first */
    weir_kind single_kind;
    char prefix[WEIR_KEY_BYTES_MAX + 2];
    char key[2 * WEIR_NAME_BYTES_MAX];
    weir_entry entry;
};

static void level_free(struct level *level)
{
    if (!level)
        return;
    for (size_t i = 0; i < level->count; i++) {
        level_free(level->items[i].read);
        free(level->items[i].name);
    }
    free(level->items);
    free(level->dir);
    free(level);
}

/* -E2BIG, without a text: it has more than it may. */
static int level_add(struct level *level, const char *name, bool is_dir, weir_kind kind,
                     const struct weir_blob_stat *stat)
{
    if (level->most && level->count == level->most)
        return -E2BIG;
    if (level->count == level->room) {
        size_t room = level->room ? 2 * level->room : 64;
        struct item *items = weir_realloc(level->items, room * sizeof *items);
        if (!items)
            return weir_fail_memory();
        level->items = items;
        level->room = room;
    }
    char *copy = weir_strdup(name);
    if (!copy)
        return weir_fail_memory();
    struct item *item = &level->items[level->count++];
    *item = (struct item){.name = copy, .is_dir = is_dir, .kind = kind, .has_stat = stat};
    if (stat)
        item->stat = *stat;
    return 0;
}

/* 1 if key has an object's seal, 0 if it has none (or a void), -errno. Damaged ones count: they
 * are listed, with their error. */
static int has_seal(weir_store *store, const char *key)
{
    char name[WEIR_NAME_BYTES_MAX];
    struct weir_blob_stat stat;
    weir_key_name(name, WEIR_DIR_SEAL, key);
    int code = weir_store_stat(store, name, &stat);
    if (code == -ENOENT)
        return 0;
    if (code || stat.size != WEIR_SEAL_VOID_BYTES)
        return code ? code : 1;
    struct weir_sealed found;
    code = weir_sealed_load(&found, store, key);
    if (code)
        return code == -ENOENT ? 0 : code == -EBADMSG ? 1 : code;
    bool is_void = found.seal.kind == WEIR_SEAL_VOID;
    weir_sealed_free(&found);
    return !is_void;
}

/* Adds one entry of a LIST page, if it is a key: seals end in '~'. */
static int add_found(weir_store *store, struct level *level, char type, const char *found,
                     bool seals, const struct weir_blob_stat *stat)
{
    char name[WEIR_NAME_BYTES_MAX], key[2 * WEIR_NAME_BYTES_MAX];
    snprintf(name, sizeof name, "%s", found);
    if (type == 'f' && seals) {
        size_t size = strlen(name);
        if (size < 2 || name[size - 1] != '~')
            return 0;
        name[size - 1] = 0;
    }
    snprintf(key, sizeof key, "%s%s", level->dir, name);
    if (weir_key_check(key)) {
        if (!level->takes_odd || seals || weir_name_is_own(key))
            return 0;
        int code = level_add(level, name, type == 'd', WEIR_KIND_FOREIGN, NULL);
        if (!code)
            level->items[level->count - 1].is_odd = true;
        return code;
    }
    if (type == 'f' && seals) {
        int code = has_seal(store, key);
        if (code <= 0)
            return code;
    }
    return level_add(level, name, type == 'd', seals ? WEIR_KIND_SEALED : WEIR_KIND_FOREIGN, stat);
}

static int read_dir(weir_store *store, struct level *level, const char *top)
{
    char page[8192], name[2 * WEIR_NAME_BYTES_MAX];
    struct weir_req req;
    struct weir_handle *cursor = NULL;
    int code;
    snprintf(name, sizeof name, "%s%s", top, level->dir);
    do {
        weir_req_init(&req, WEIR_OP_LIST);
        req.name = name;
        req.handle = cursor;
        req.look = level->looks && !*top && level->count < LOOK_EARLY;
        req.buf = page;
        req.len = sizeof page;
        code = weir_tier_call(store->tier, &req);
        cursor = req.handle;
        const char *at = page, *found;
        for (uint64_t i = 0; !code && i < req.result; i++) {
            struct weir_blob_stat stat;
            bool has_stat;
            char type = weir_list_page_take(&at, &found, &stat, &has_stat);
            code = add_found(store, level, type, found, *top != 0, has_stat ? &stat : NULL);
        }
    } while (!code && req.result);
    weir_handle_close(cursor);
    return code == -ENOENT && *name ? 0 : code; /* but the root must be there */
}

static int by_name(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (!order)
        order = x->is_dir - y->is_dir;
    return order ? order : (int)x->kind - (int)y->kind; /* sealed before foreign */
}

/* Sorts, and drops what was found twice: a sealed object's plain name is not a foreign file. */
static void tidy(struct level *level)
{
    size_t kept = 0;
    if (level->count)
        qsort(level->items, level->count, sizeof *level->items, by_name);
    for (size_t i = 0; i < level->count; i++) {
        struct item *last = kept ? &level->items[kept - 1] : NULL;
        if (last && last->is_dir == level->items[i].is_dir &&
            !strcmp(last->name, level->items[i].name))
            free(level->items[i].name);
        else
            level->items[kept++] = level->items[i];
    }
    level->count = kept;
}

/* All that is in a directory. -E2BIG: that is more than `most`, if that is not 0. */
static int read_level(struct level *level, const weir_list *list, const char *dir, size_t most,
                      bool looks)
{
    *level = (struct level){.dir = weir_strdup(dir),
                            .most = most,
                            .looks = looks,
                            .takes_odd = list->flags & WEIR_LIST_ODD,
                            .ahead = AHEAD_MIN};
    if (!level->dir)
        return weir_fail_memory();
    int code = read_dir(list->store, level, WEIR_DIR_SEAL);
    return code ? code : read_dir(list->store, level, "");
}

/* ---- looking ahead ---- */

/* One that cannot be seen is looked at again when it is its turn, and then says why. */
static void look_at(weir_store *store, struct level *level, size_t begin, size_t end)
{
    char key[2 * WEIR_NAME_BYTES_MAX];
    for (size_t i = begin; i < end; i++) {
        struct item *item = &level->items[i];
        if (item->is_dir || item->has_stat || item->is_odd || item->kind != WEIR_KIND_FOREIGN)
            continue;
        snprintf(key, sizeof key, "%s%s", level->dir, item->name);
        item->has_stat = !weir_store_stat(store, key, &item->stat);
    }
}

static int look_at_some(void *arg, uint64_t part)
{
    const weir_list *list = arg;
    struct level *level = list->levels[list->depth - 1];
    size_t begin = level->next + part * LOOK_FILES, end = begin + LOOK_FILES;
    look_at(list->store, level, begin, end < level->looked ? end : level->looked);
    return 0;
}

/* Looks at the next ones at once; not at all there are, for whoever wants but the first. */
static void look_ahead(weir_list *list, struct level *level)
{
    size_t left = level->count - level->next, count = left < LOOK_AHEAD ? left : LOOK_AHEAD;
    level->looked = level->next + count;
    if (list->flags & WEIR_LIST_DETAIL && count >= LOOK_FILES_MIN)
        weir_team_run(LOOKERS, (count + LOOK_FILES - 1) / LOOK_FILES, look_at_some, list);
}

/* Directories of a level that are read at once. */
struct reading {
    const weir_list *list;
    const struct level *level;
    struct item *dirs[AHEAD_MAX];
    size_t count;
    _Atomic bool has_large;
};

/* What fails fails again when it is its turn. */
static int read_one(void *arg, uint64_t i)
{
    struct reading *reading = arg;
    const weir_list *list = reading->list;
    struct item *item = reading->dirs[i];
    char dir[2 * WEIR_NAME_BYTES_MAX];
    struct level *level = weir_alloc(sizeof *level);
    if (!level)
        return 0;
    snprintf(dir, sizeof dir, "%s%s/", reading->level->dir, item->name);
    bool looks = list->flags & WEIR_LIST_DETAIL;
    int code = read_level(level, list, dir, LOOK_AHEAD, looks);
    if (code) {
        reading->has_large |= code == -E2BIG;
        level_free(level);
        return 0;
    }
    tidy(level);
    if (looks) {
        look_at(list->store, level, 0, level->count);
        level->looked = level->count;
    }
    item->read = level;
    return 0;
}

/* Reads directories of a level that come next, if they are many, and as long as they are small:
 * what is large is read and looked at alone, when it is its turn. */
static void read_ahead(weir_list *list, struct level *level, size_t from)
{
    struct reading reading = {.list = list, .level = level};
    size_t i = from;
    if (!level->ahead || from < level->read || list->ahead > AHEAD_ITEMS_MAX)
        return;
    for (; i < level->count && reading.count < level->ahead; i++)
        if (level->items[i].is_dir && !level->items[i].is_odd)
            reading.dirs[reading.count++] = &level->items[i];
    level->read = i;
    level->ahead = level->ahead < AHEAD_MAX ? 2 * level->ahead : AHEAD_MAX;
    if (reading.count >= AHEAD_MIN)
        weir_team_run(LOOKERS, reading.count, read_one, &reading);
    for (size_t k = 0; k < reading.count; k++)
        list->ahead += reading.dirs[k]->read ? reading.dirs[k]->read->count : 0;
    if (reading.has_large)
        level->ahead = 0;
}

/* ---- the whole ---- */

/* Goes into a directory: one that was read ahead, if it is given. */
static int enter(weir_list *list, const char *dir, struct level *read)
{
    struct level *level = read ? read : weir_alloc(sizeof *level);
    if (!level)
        return weir_fail_memory();
    int code = read ? 0 : read_level(level, list, dir, 0, false);
    /* In place of a plain directory there may be a link that cannot be followed: what is sealed
     * below it is listed. */
    if (code == -ELOOP && (list->depth || level->count))
        code = 0;
    if (code) {
        level_free(level);
        return code;
    }
    if (!read)
        tidy(level);
    list->levels[list->depth++] = level;
    return 0;
}

static void leave(weir_list *list)
{
    level_free(list->levels[--list->depth]);
}

static int find_single(weir_list *list)
{
    int code = has_seal(list->store, list->prefix);
    if (code < 0)
        return code;
    list->single = code;
    list->single_kind = WEIR_KIND_SEALED;
    if (code)
        return 0;
    code = weir_store_stat(list->store, list->prefix, NULL);
    list->single = !code;
    list->single_kind = WEIR_KIND_FOREIGN;
    return code == -ENOENT || code == -ELOOP ? 0 : code;
}

int weir_list_open(weir_list **out, weir_store *store, const char *prefix, uint32_t flags)
{
    char dir[WEIR_KEY_BYTES_MAX + 3] = "";
    int code = weir_store_check(store);
    if (!code)
        code = weir_prefix_check(prefix);
    if (code)
        return code;
    weir_list *list = weir_alloc(sizeof *list);
    if (!list)
        return weir_fail_memory();
    list->store = store;
    list->flags = flags;
    size_t size = strlen(prefix);
    bool slash = size && prefix[size - 1] == '/';
    snprintf(list->prefix, sizeof list->prefix, "%.*s", (int)(size - slash), prefix);
    if (size)
        snprintf(dir, sizeof dir, "%s/", list->prefix);
    if (size && !slash)
        code = find_single(list);
    if (!code)
        code = enter(list, dir, NULL);
    if (!code && size && !list->single && !list->levels[0]->count)
        code = weir_fail(ENOENT, "there is no object and no directory '%s' in '%s'", prefix,
                         store->url);
    if (code)
        weir_list_close(list);
    else
        *out = list;
    return code;
}

static void detail(weir_list *list, weir_entry *entry, const struct item *item)
{
    if (entry->kind == WEIR_KIND_SEALED) {
        struct weir_sealed found;
        entry->error = weir_sealed_load(&found, list->store, entry->key);
        if (entry->error)
            return;
        entry->size_bytes = found.seal.size;
        entry->time_ns = found.seal.time_ns;
        weir_sealed_free(&found);
        return;
    }
    struct weir_blob_stat stat = {0};
    if (item && item->has_stat)
        stat = item->stat;
    else
        entry->error = weir_store_stat(list->store, entry->key, &stat);
    entry->size_bytes = stat.size;
    entry->time_ns = (uint64_t)stat.time_ns;
}

/* Why the name is no key. */
static int odd_fault(const weir_list *list, const struct item *item)
{
    char key[2 * WEIR_NAME_BYTES_MAX], text[WEIR_TEXT_MAX + 16];
    snprintf(key, sizeof key, "%.*s", (int)(strlen(list->key) - item->is_dir), list->key);
    int code = weir_key_check(key);
    snprintf(text, sizeof text, "%s: rename it", weir_fail_last());
    return weir_fail_text(code, text);
}

/* `item` is where it was found, or NULL. 0: it was removed meanwhile, go on. */
static int give(weir_list *list, const weir_entry **entry, weir_kind kind, const struct item *item)
{
    list->entry = (weir_entry){.key = list->key, .kind = kind, .is_dir = item && item->is_dir};
    if (item && item->is_odd)
        list->entry.error = odd_fault(list, item);
    else if (!list->entry.is_dir && list->flags & WEIR_LIST_DETAIL)
        detail(list, &list->entry, item);
    *entry = &list->entry;
    return list->entry.error != -ENOENT && list->entry.error != -ESTALE;
}

int weir_list_next(weir_list *list, const weir_entry **entry)
{
    int code = weir_store_check(list->store);
    if (code)
        return code;
    if (list->single) {
        list->single = false;
        snprintf(list->key, sizeof list->key, "%s", list->prefix);
        if (give(list, entry, list->single_kind, NULL))
            return 1;
    }
    while (list->depth) {
        struct level *level = list->levels[list->depth - 1];
        if (level->next == level->count) {
            leave(list);
            continue;
        }
        if (level->next == level->looked)
            look_ahead(list, level);
        struct item *item = &level->items[level->next++];
        snprintf(list->key, sizeof list->key, "%s%s%s", level->dir, item->name,
                 item->is_dir ? "/" : "");
        if (!item->is_dir || item->is_odd || !(list->flags & WEIR_LIST_RECURSIVE)) {
            if (give(list, entry, item->kind, item))
                return 1;
            continue;
        }
        if (list->depth == LEVELS_MAX)
            continue; /* no key is that deep */
        read_ahead(list, level, level->next - 1);
        struct level *read = item->read;
        item->read = NULL;
        list->ahead -= read ? read->count : 0;
        code = enter(list, list->key, read);
        if (code)
            return code;
    }
    return 0;
}

void weir_list_close(weir_list *list)
{
    if (!list)
        return;
    while (list->depth)
        leave(list);
    free(list);
}
