/* inode.c - see inode.h. */
#include "inode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct sim_inode *sim_inode_new(enum sim_type type, unsigned mode, int64_t mtime_ns)
{
    struct sim_inode *inode = sim_alloc(sizeof *inode);
    inode->type = type;
    inode->mode = mode;
    inode->mtime_ns = mtime_ns;
    inode->links = type == SIM_DIR ? 2 : 0;
    inode->live = sim_image_new();
    inode->synced = sim_image_share(inode->live);
    return inode;
}

static void changes_free(struct sim_inode *inode)
{
    for (size_t i = 0; i < inode->changes_count; i++)
        free(inode->changes[i].bytes);
    inode->changes_count = 0;
}

void sim_inode_free(struct sim_inode *inode)
{
    changes_free(inode);
    free(inode->changes);
    sim_image_drop(inode->live);
    sim_image_drop(inode->synced);
    free(inode->names.at);
    free(inode->synced_names.at);
    free(inode->ops.at);
    free(inode);
}

static void names_copy(struct sim_names *to, const struct sim_names *from)
{
    size_t size = from->count * sizeof *from->at;
    if (to->room < from->count) {
        free(to->at);
        to->at = sim_alloc(size);
        to->room = from->count;
    }
    if (size)
        memcpy(to->at, from->at, size);
    to->count = from->count;
}

struct sim_inode *sim_inode_copy(const struct sim_inode *inode)
{
    assert(!inode->changes_count && !inode->ops.count);
    struct sim_inode *copy = sim_alloc(sizeof *copy);
    *copy = (struct sim_inode){
        .type = inode->type,
        .mode = inode->mode,
        .links = inode->links,
        .parent = inode->parent,
        .mtime_ns = inode->mtime_ns,
        .live = sim_image_share(inode->live),
        .synced = sim_image_share(inode->live),
        .cookie = inode->cookie,
    };
    names_copy(&copy->names, &inode->names);
    names_copy(&copy->synced_names, &inode->names);
    return copy;
}

/* ---- changes ---- */

static void remember(struct sim_inode *inode, const void *bytes, uint64_t off, uint64_t size)
{
    inode->changes = sim_grow(inode->changes, inode->changes_count, &inode->changes_room,
                              sizeof *inode->changes);
    struct sim_change *change = &inode->changes[inode->changes_count++];
    *change = (struct sim_change){.off = off, .size = size};
    if (bytes) {
        change->bytes = sim_alloc(size);
        memcpy(change->bytes, bytes, size);
    }
}

void sim_inode_write(struct sim_inode *inode, const void *buf, size_t size, uint64_t off)
{
    assert(size);
    sim_image_write(&inode->live, buf, size, off);
    remember(inode, buf, off, size);
}

void sim_inode_resize(struct sim_inode *inode, uint64_t size)
{
    sim_image_resize(&inode->live, size);
    remember(inode, NULL, 0, size);
}

static struct sim_entry *find(const struct sim_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (!strcmp(names->at[i].name, name))
            return &names->at[i];
    return NULL;
}

unsigned sim_inode_find(const struct sim_inode *dir, const char *name)
{
    const struct sim_entry *entry = find(&dir->names, name);
    return entry ? entry->ino : 0;
}

static void names_set(struct sim_names *names, const struct sim_entry *set)
{
    struct sim_entry *entry = find(names, set->name);
    if (!set->ino) {
        if (entry)
            memmove(entry, entry + 1, (size_t)(names->at + --names->count - entry) * sizeof *entry);
        return;
    }
    if (!entry) {
        names->at = sim_grow(names->at, names->count, &names->room, sizeof *names->at);
        entry = &names->at[names->count++];
    }
    *entry = *set;
}

void sim_inode_name(struct sim_inode *dir, const char *name, unsigned ino)
{
    struct sim_entry op = {.ino = ino, .cookie = ++dir->cookie};
    struct sim_names *ops = &dir->ops;
    assert(strlen(name) < sizeof op.name);
    strcpy(op.name, name);
    names_set(&dir->names, &op);
    ops->at = sim_grow(ops->at, ops->count, &ops->room, sizeof *ops->at);
    ops->at[ops->count++] = op;
}

/* ---- syncing ---- */

static void apply(struct sim_image **image, const struct sim_change *change)
{
    if (change->bytes)
        sim_image_write(image, change->bytes, change->size, change->off);
    else
        sim_image_resize(image, change->size);
}

void sim_inode_sync(struct sim_inode *inode)
{
    size_t kept = 0;
    for (size_t i = 0; i < inode->changes_count; i++) {
        if (inode->changes[i].dropped) {
            inode->changes[kept++] = inode->changes[i];
            continue;
        }
        apply(&inode->synced, &inode->changes[i]);
        free(inode->changes[i].bytes);
    }
    inode->changes_count = kept;
    if (!kept) {
        sim_image_drop(inode->synced);
        inode->synced = sim_image_share(inode->live);
    }
    names_copy(&inode->synced_names, &inode->names);
    inode->ops.count = 0;
}

void sim_inode_sync_failed(struct sim_inode *inode)
{
    for (size_t i = 0; i < inode->changes_count; i++)
        inode->changes[i].dropped = true;
}

/* ---- power loss ---- */

enum fate { LOSE_ALL, KEEP_ALL, KEEP_SOME };

static enum fate draw(struct weir_rng *rng)
{
    return (enum fate)weir_rng_below(rng, 3);
}

/* Writes those sectors of a change that survive. */
static void keep_sectors(struct sim_image **image, const struct sim_change *change,
                         struct weir_rng *rng)
{
    for (uint64_t at = 0, n; at < change->size; at += n) {
        n = SIM_SECTOR - (change->off + at) % SIM_SECTOR;
        if (n > change->size - at)
            n = change->size - at;
        if (weir_rng_next(rng) & 1)
            sim_image_write(image, change->bytes + at, n, change->off + at);
    }
}

/* A size the file had at some point since the last sync. */
static uint64_t draw_size(const struct sim_inode *inode, struct weir_rng *rng)
{
    uint64_t size = inode->synced->size;
    size_t until = weir_rng_below(rng, inode->changes_count + 1);
    for (size_t i = 0; i < until; i++) {
        const struct sim_change *change = &inode->changes[i];
        if (!change->bytes)
            size = change->size;
        else if (change->off + change->size > size)
            size = change->off + change->size;
    }
    return size;
}

static void crash_file(struct sim_inode *inode, struct weir_rng *rng)
{
    struct sim_image *now = sim_image_share(inode->synced);
    enum fate fate = draw(rng);
    if (fate == KEEP_SOME) {
        uint64_t size = draw_size(inode, rng);
        for (size_t i = 0; i < inode->changes_count; i++) {
            const struct sim_change *change = &inode->changes[i];
            if (change->bytes)
                keep_sectors(&now, change, rng);
            else if (change->size < now->size && weir_rng_next(rng) & 1)
                sim_image_resize(&now, change->size);
        }
        sim_image_resize(&now, size);
    } else if (fate == KEEP_ALL) {
        for (size_t i = 0; i < inode->changes_count; i++)
            apply(&now, &inode->changes[i]);
    }
    sim_image_drop(inode->live);
    inode->live = now;
}

static bool same(const struct sim_names *ops, size_t a, size_t b)
{
    return !strcmp(ops->at[a].name, ops->at[b].name);
}

/* For each name that changed, the operations on it up to a point of its own survive. */
static void crash_dir(struct sim_inode *dir, struct weir_rng *rng)
{
    const struct sim_names *ops = &dir->ops;
    enum fate fate = draw(rng);
    if (fate == KEEP_ALL)
        return;
    names_copy(&dir->names, &dir->synced_names);
    for (size_t i = 0; fate == KEEP_SOME && i < ops->count; i++) {
        size_t before = 0, count = 0;
        for (size_t j = 0; j < ops->count; j++) {
            before += j < i && same(ops, i, j);
            count += same(ops, i, j);
        }
        if (before)
            continue;
        size_t until = weir_rng_below(rng, count + 1);
        for (size_t j = i; until && j < ops->count; j++) {
            if (!same(ops, i, j))
                continue;
            names_set(&dir->names, &ops->at[j]);
            until--;
        }
    }
}

void sim_inode_crash(struct sim_inode *inode, struct weir_rng *rng)
{
    if (inode->changes_count)
        crash_file(inode, rng);
    if (inode->ops.count)
        crash_dir(inode, rng);
    changes_free(inode); /* those a failed sync dropped, too: there is nothing left to tell */
    sim_inode_sync(inode);
}
