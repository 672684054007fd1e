/* collect.c - gc of saves: what ledgers (ledger.h) have retired, and what nobody will ever commit.
 *
 * A save goes when it can never be live again, whoever is asleep with a commit in his hand:
 *  - a retired entry past the grace, which is forgotten after all of it is deleted,
 *  - a save of an attempt that is over and no entry: the log refuses it,
 *  - a save of the current attempt that is no entry and was left alone for longer than the grace:
 *    first the ledger's floor is raised to it, from when on the log refuses it, too.
 * The head on which that rests is made durable before anything is deleted, and a save that a reader
 * holds a lease on stays until the next time. A log that cannot be read protects its saves.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/drops.h"
#include "store/lease.h"
#include "store/ledger.h"
#include "util/err.h"
#include "util/sys.h"

/* One save that has something in the store. */
struct found {
    struct weir_save save;
    bool deleted, young;
};

struct sweep {
    struct weir_gc *gc;
    struct weir_ledger *ledger;
    struct weir_ledger_state state;
    bool settled;
    struct found *found;
    size_t count, room;
    bool is_stuck; /* somebody stands still with the store's lock: each save would wait for it */
    int worst;     /* of a save that could not be deleted */
    char text[WEIR_TEXT_MAX];
};

/* ---- what is there ---- */

static struct found *find(struct sweep *s, const struct weir_save *save)
{
    for (size_t i = s->count; i-- > 0;)
        if (weir_save_same(&s->found[i].save, save))
            return &s->found[i];
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 16;
        struct found *more = weir_realloc(s->found, room * sizeof *more);
        if (!more)
            return NULL;
        s->found = more;
        s->room = room;
    }
    s->found[s->count] = (struct found){.save = *save};
    return &s->found[s->count++];
}

/* Could it still be committed? Then its age matters. */
static bool is_open(const struct sweep *s, const struct weir_save *save)
{
    return save->attempt == s->state.attempt && save->number > s->state.floor &&
           !weir_ledger_find_save(&s->state, save);
}

static int take_note(struct sweep *s, const struct weir_save *save, int64_t time_ns)
{
    bool young = is_open(s, save) && !weir_gc_is_old(s->gc, time_ns, s->gc->grace_ns);
    pthread_mutex_lock(&s->gc->lock);
    struct found *found = find(s, save);
    if (found)
        found->young |= young;
    pthread_mutex_unlock(&s->gc->lock);
    return found ? 0 : weir_fail_memory();
}

static bool is_live(const struct sweep *s, const struct weir_save *save)
{
    const struct weir_ledger_entry *entry = weir_ledger_find_save(&s->state, save);
    return entry && !entry->retired_ns;
}

/* "<save>~/…", a node. */
static int note_node(void *arg, const char *dir, const char *name)
{
    struct sweep *s = arg;
    size_t size = strcspn(name, "/");
    char full[2 * WEIR_NAME_BYTES_MAX];
    struct weir_blob_stat stat;
    struct weir_save save;
    if (!name[size] || name[size - 1] != '~' || !weir_save_of_text(&save, name, size - 1) ||
        is_live(s, &save))
        return 0;
    snprintf(full, sizeof full, "%s%s", dir, name);
    int code = weir_store_stat(s->gc->store, full, &stat);
    if (code)
        return code == -ENOENT ? 0 : code;
    return take_note(s, &save, stat.time_ns);
}

/* The object of a seal, if the seal says that it is part of the save with this prefix: what else
 * stands below the name of a log, another log's saves among it, is not ours to judge. 1, 0 or
 * -errno. */
static int load_part(struct weir_gc *gc, const char *name, size_t prefix_size, char *key,
                     struct weir_sealed *sealed)
{
    if (strlen(name) >= WEIR_NAME_BYTES_MAX || !weir_key_of_name(key, name))
        return 0;
    int code = weir_sealed_load(sealed, gc->store, key);
    if (code)
        return code == -ENOENT ? 0 : code;
    if (sealed->seal.kind == WEIR_SEAL_OBJECT && sealed->seal.prefix_size == prefix_size)
        return 1;
    weir_sealed_free(sealed);
    return 0;
}

/* "<save>/…", a seal. A damaged one says nothing. */
static int note_object(void *arg, const char *dir, const char *name)
{
    struct sweep *s = arg;
    size_t size = strcspn(name, "/");
    char full[2 * WEIR_NAME_BYTES_MAX], key[WEIR_NAME_BYTES_MAX];
    struct weir_sealed sealed;
    struct weir_save save;
    if (!name[size] || !weir_save_of_text(&save, name, size) || is_live(s, &save))
        return 0;
    snprintf(full, sizeof full, "%s%s", dir + strlen(WEIR_DIR_SEAL), name);
    size_t prefix_size = strlen(dir) - strlen(WEIR_DIR_SEAL) + size;
    int code = load_part(s->gc, full, prefix_size, key, &sealed);
    if (code != 1)
        return code == -EBADMSG || code == -EPROTO ? 0 : code;
    code = take_note(s, &save, sealed.time_ns);
    weir_sealed_free(&sealed);
    return code;
}

static int look_in(struct sweep *s, const char *dir, weir_gc_fn fn)
{
    char top[2 * WEIR_NAME_BYTES_MAX];
    snprintf(top, sizeof top, "%s%s/", dir, weir_ledger_name(s->ledger));
    return weir_gc_each(s->gc, top, fn, s);
}

/* ---- what goes ---- */

/* Nothing is deleted because of a record that a power loss could take back. */
static int settle(struct sweep *s)
{
    int code = s->settled ? 0 : weir_log_settle(weir_ledger_log(s->ledger), &s->state.record);
    s->settled = !code;
    return code;
}

static int delete_object(void *arg, const char *dir, const char *name)
{
    struct weir_gc *gc = arg;
    char key[WEIR_NAME_BYTES_MAX], full[2 * WEIR_NAME_BYTES_MAX];
    const char *prefix = dir + strlen(WEIR_DIR_SEAL); /* and a slash */
    struct weir_sealed sealed;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    int code = load_part(gc, full, strlen(prefix) - 1, key, &sealed);
    if (code != 1)
        return code;
    uint64_t size = sealed.seal.size;
    weir_sealed_free(&sealed);
    code = gc->dry ? 0 : weir_remove_object(gc->store, key, gc->reuse, gc->drops);
    if (code)
        return code == -ENOENT ? 0 : code;
    weir_gc_count(gc, &gc->result.objects, 1);
    weir_gc_count(gc, &gc->result.bytes, size);
    return 0;
}

static int delete_objects(struct weir_gc *gc, const char *dir)
{
    bool many = weir_gc_threads(gc) > 1 && !gc->dry;
    gc->drops = many ? weir_drops_open(gc->store) : NULL;
    int code = weir_gc_each(gc, dir, delete_object, gc);
    weir_drops_close(gc->drops);
    gc->drops = NULL;
    return code;
}

static int delete_node(void *arg, const char *dir, const char *name)
{
    struct weir_gc *gc = arg;
    char full[2 * WEIR_NAME_BYTES_MAX];
    snprintf(full, sizeof full, "%s%s", dir, name);
    int code = gc->dry ? 0 : weir_store_drop(gc->store, full);
    return code == -ENOENT ? 0 : code;
}

/* All of a save. -EBUSY while somebody reads it. */
static int delete_all(struct sweep *s, const struct weir_save *save)
{
    char prefix[WEIR_KEY_BYTES_MAX + 1], dir[WEIR_NAME_BYTES_MAX + 8];
    struct weir_handle *lease = NULL;
    weir_ledger_prefix(s->ledger, save, prefix);
    int code = s->gc->dry ? 0 : settle(s);
    if (!code && !s->gc->dry)
        code = weir_lease_take(&lease, s->gc->store, prefix);
    if (code)
        return code;
    snprintf(dir, sizeof dir, "%s%s/", WEIR_DIR_SEAL, prefix);
    code = delete_objects(s->gc, dir);
    snprintf(dir, sizeof dir, "%s%s~/", WEIR_DIR_SET, prefix);
    if (!code)
        code = weir_gc_each(s->gc, dir, delete_node, s->gc);
    s->is_stuck = code == -EBUSY;
    weir_handle_close(lease);
    if (!code)
        s->gc->result.saves++;
    return code;
}

/* The same, but what cannot be deleted now is no reason to keep the other saves. */
static int delete_save(struct sweep *s, const struct weir_save *save, bool *deleted)
{
    int code = delete_all(s, save);
    *deleted = !code;
    if (code == -EBUSY)
        s->gc->result.young++;
    if (code != -EBADMSG && code != -EPROTO)
        return code == -EBUSY ? 0 : code;
    s->worst = code;
    weir_fail_in(code, "save '%s' of log '%s' stays", save->name, weir_ledger_name(s->ledger));
    snprintf(s->text, sizeof s->text, "%s", weir_fail_last());
    return 0;
}

static bool is_deleted(void *arg, const struct weir_ledger_entry *entry)
{
    struct sweep *s = arg;
    for (size_t i = 0; i < s->count; i++)
        if (s->found[i].deleted && weir_save_same(&s->found[i].save, &entry->save))
            return true;
    return false;
}

/* Retired entries, also those of which nothing is left. */
static int collect_retired(struct sweep *s)
{
    bool any = false;
    int code = 0;
    for (size_t i = 0; !code && !s->is_stuck && i < s->state.count; i++) {
        const struct weir_ledger_entry *entry = &s->state.entries[i];
        if (!entry->retired_ns)
            continue;
        if (!weir_gc_is_old(s->gc, (int64_t)entry->retired_ns, s->gc->retired_ns)) {
            s->gc->result.young++;
            continue;
        }
        struct found *found = find(s, &entry->save);
        if (!found)
            return weir_fail_memory();
        code = delete_save(s, &entry->save, &found->deleted);
        any |= found->deleted;
    }
    return !code && any && !s->gc->dry ? weir_ledger_forget(s->ledger, is_deleted, s) : code;
}

/* A save that somebody finished while it was being given up is an entry by now. */
static int look_again(struct sweep *s)
{
    struct weir_ledger_state now;
    int code = weir_ledger_read(s->ledger, &now);
    if (code)
        return code;
    weir_state_free(&s->state);
    s->state = now;
    s->settled = false;
    return 0;
}

/* Of the current attempt, those that were left alone, but none that was begun after one that is
 * still being written. */
static int give_up(struct sweep *s)
{
    uint64_t floor = 0, active = UINT64_MAX;
    for (size_t i = 0; i < s->count; i++)
        if (s->found[i].young && s->found[i].save.number < active)
            active = s->found[i].save.number;
    for (size_t i = 0; i < s->count; i++) {
        const struct weir_save *save = &s->found[i].save;
        if (!is_open(s, save))
            continue;
        if (save->number >= active)
            s->gc->result.young++;
        else if (save->number > floor)
            floor = save->number;
    }
    if (!floor)
        return 0;
    if (s->gc->dry) {
        s->state.floor = floor;
        return 0;
    }
    int code = weir_ledger_give_up(s->ledger, s->state.attempt, floor);
    return code ? code : look_again(s);
}

static int collect_abandoned(struct sweep *s)
{
    int code = give_up(s);
    for (size_t i = 0; !code && !s->is_stuck && i < s->count; i++) {
        const struct weir_save *save = &s->found[i].save;
        bool over = save->attempt < s->state.attempt ||
                    (save->attempt == s->state.attempt && save->number <= s->state.floor);
        if (s->found[i].deleted || !over || weir_ledger_find_save(&s->state, save))
            continue;
        code = delete_save(s, save, &s->found[i].deleted);
    }
    return code;
}

static int collect_ledger(struct weir_gc *gc, const char *name)
{
    struct sweep s = {.gc = gc};
    int code = weir_ledger_open(&s.ledger, gc->store, name);
    if (code)
        return code;
    code = weir_ledger_read(s.ledger, &s.state);
    if (!code)
        code = weir_log_check_head(weir_ledger_log(s.ledger), &s.state.record);
    if (!code)
        code = look_in(&s, WEIR_DIR_SEAL, note_object);
    if (!code)
        code = look_in(&s, WEIR_DIR_SET, note_node);
    if (!code)
        code = collect_retired(&s);
    if (!code)
        code = collect_abandoned(&s);
    weir_state_free(&s.state);
    free(s.found);
    weir_ledger_close(s.ledger);
    return code || !s.worst ? code : weir_fail_text(s.worst, s.text);
}

/* The lease that a reader left. */
static int drop_lease(void *arg, const char *dir, const char *name)
{
    struct weir_gc *gc = arg;
    char key[WEIR_NAME_BYTES_MAX];
    struct weir_handle *lease;
    (void)dir;
    if (strlen(name) < sizeof key && weir_key_of_name(key, name) &&
        weir_lease_take(&lease, gc->store, key) == 0)
        weir_handle_close(lease);
    return 0;
}

static int no_log(void *arg, const char *dir, const char *name)
{
    (void)arg, (void)dir, (void)name;
    return 0;
}

struct all {
    struct weir_gc *gc;
    int worst;
    char text[WEIR_TEXT_MAX];
};

static int collect_one(void *arg, const char *name)
{
    struct all *all = arg;
    int code = collect_ledger(all->gc, name);
    if (!code || code == -ECANCELED)
        return code;
    all->worst = code; /* its saves stay; the others need not */
    snprintf(all->text, sizeof all->text, "%s", weir_fail_last());
    return 0;
}

int weir_gc_saves(struct weir_gc *gc)
{
    struct all all = {.gc = gc};
    int code = weir_ledger_each(gc->store, collect_one, &all);
    if (!code && !gc->dry)
        code = weir_gc_each(gc, WEIR_DIR_LEASE, drop_lease, gc);
    if (!code && !gc->dry) /* for the empty directories that the dead left */
        code = weir_gc_each(gc, WEIR_DIR_SET, no_log, gc);
    return code || !all.worst ? code : weir_fail_text(all.worst, all.text);
}

int weir_ledger_collect(weir_store *store, const char *ledger, uint64_t grace_ns,
                        weir_gc_result *result)
{
    struct weir_gc gc = {
        .store = store,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .reuse = true,
        .grace_ns = store->grace_ns,
        .retired_ns = grace_ns,
    };
    int code = weir_store_check_writable(store);
    if (!code)
        code = weir_store_now(store, &gc.now_ns);
    if (!code)
        code = collect_ledger(&gc, ledger);
    if (result)
        *result = gc.result;
    return code;
}
