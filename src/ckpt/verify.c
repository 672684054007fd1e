/* verify.c - every byte of a checkpoint is read and checked. What is damaged is named block by
 * block, with the tensors that lie there, and the rest is looked at all the same.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/restore.h"
#include "util/err.h"
#include "util/sys.h"

enum { WINDOW_BYTES = 16 << 20 };

struct check {
    weir_restore *restore;
    int (*damaged)(void *arg, const weir_damage *damage);
    weir_progress_fn progress;
    void *arg;
    uint8_t *window;
    int code; /* of the first damage, and its text */
    char text[WEIR_TEXT_MAX];
};

/* Tells of a damage whose text is this thread's. Answers 0, or -ECANCELED. */
static int tell(struct check *c, weir_damage *damage)
{
    damage->text = weir_fail_last();
    if (!c->code) {
        c->code = damage->code;
        snprintf(c->text, sizeof c->text, "%s", damage->text);
    }
    return c->damaged && c->damaged(c->arg, damage)
               ? weir_fail(ECANCELED, "verifying '%s' was stopped", c->restore->info.prefix)
               : 0;
}

static int progress(struct check *c, uint64_t bytes)
{
    return c->progress && c->progress(c->arg, bytes)
               ? weir_fail(ECANCELED, "verifying '%s' was stopped", c->restore->info.prefix)
               : 0;
}

/* The first tensor of which something is in those bytes of a part's file, and how many there are.
 */
static size_t tensors_in(const struct check *c, uint32_t part, weir_damage *damage)
{
    size_t count = 0;
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < c->restore->info.tensors; i++) {
        const struct weir_manifest_tensor *t = weir_manifest_at(c->restore->manifest, i);
        bool here = false;
        for (size_t k = 0; k < t->count; k++) {
            const struct weir_piece *p = &t->pieces[k];
            if (p->part != part || !p->bytes || p->begin >= damage->end ||
                p->begin + p->bytes <= damage->begin)
                continue;
            here = true;
            if (p->begin < first) {
                first = p->begin;
                damage->tensor = t->name;
            }
        }
        count += here;
    }
    return count;
}

/* One block, which cannot be read. */
static int tell_block(struct check *c, uint32_t part, bool is_file, weir_damage *damage)
{
    char text[WEIR_TEXT_MAX];
    snprintf(text, sizeof text, "%s", weir_fail_last());
    size_t count = is_file ? tensors_in(c, part, damage) : 0;
    if (count > 1)
        weir_fail(-damage->code, "%.2000s: tensor '%.200s' and %zu more", text, damage->tensor,
                  count - 1);
    else if (count)
        weir_fail(-damage->code, "%.2000s: tensor '%.200s'", text, damage->tensor);
    else
        weir_fail_text(damage->code, text);
    return tell(c, damage);
}

/* A window that cannot be read whole, block by block. */
static int check_blocks(struct check *c, weir_object *obj, uint32_t part, bool is_file,
                        uint64_t begin, uint64_t end)
{
    const weir_info *info = weir_object_info(obj);
    for (uint64_t at = begin; at < end; at += info->block_bytes) {
        weir_damage damage = {.key = info->key, .begin = at, .end = at + info->block_bytes};
        size_t got;
        if (damage.end > end)
            damage.end = end;
        damage.code = weir_object_read(obj, c->window, (size_t)(damage.end - at), at, &got);
        int code = damage.code == -ESTALE ? damage.code
                   : damage.code          ? tell_block(c, part, is_file, &damage)
                                          : 0;
        if (code)
            return code;
    }
    return 0;
}

static int check_object(struct check *c, weir_object *obj, uint32_t part, bool is_file)
{
    uint64_t size = weir_object_info(obj)->size_bytes;
    int code = 0;
    for (uint64_t at = 0; !code && at < size; at += WINDOW_BYTES) {
        uint64_t want = size - at < WINDOW_BYTES ? size - at : WINDOW_BYTES;
        size_t got;
        code = weir_object_read(obj, c->window, (size_t)want, at, &got);
        if (code && code != -ESTALE)
            code = check_blocks(c, obj, part, is_file, at, at + want);
        if (!code)
            code = progress(c, want);
    }
    return code;
}

/* Answers what is wrong with an object that a part names as a whole. */
static int open_ref(struct check *c, const struct weir_ref *ref, weir_object **out)
{
    struct weir_table *table;
    if (ref->kind == WEIR_REF_OBJECT)
        return weir_view_object(c->restore->view, ref, out);
    int code = weir_view_table(c->restore->view, ref, &table); /* all of it is read */
    if (!code)
        weir_table_close(table);
    return code;
}

/* What a part names: also its own manifest, which nobody has read if there is the merged one. */
static int check_part(struct check *c, uint32_t number)
{
    char key[WEIR_KEY_BYTES_MAX + 256];
    struct weir_part part;
    int code = weir_view_part(c->restore->view, number, &part);
    const uint8_t *at = part.refs_at;
    for (uint32_t i = 0; !code && i < part.refs; i++) {
        struct weir_ref ref;
        weir_object *obj = NULL;
        weir_part_ref(&ref, &at);
        snprintf(key, sizeof key, "%s/%s", c->restore->info.prefix, ref.name);
        weir_damage damage = {.key = key, .code = open_ref(c, &ref, &obj)};
        if (damage.code) {
            code = damage.code == -ESTALE ? damage.code : tell(c, &damage);
            continue;
        }
        if (obj)
            code = check_object(c, obj, number, weir_restore_is_file(&ref));
        weir_object_close(obj);
    }
    return code;
}

int weir_restore_verify(weir_restore *restore, int (*damaged)(void *arg, const weir_damage *damage),
                        weir_progress_fn progress_fn, void *arg)
{
    struct check c = {.restore = restore, .damaged = damaged, .progress = progress_fn, .arg = arg};
    int code = weir_store_check(restore->store);
    if (code)
        return code;
    c.window = weir_alloc(WINDOW_BYTES);
    if (!c.window)
        return weir_fail_memory();
    for (uint32_t i = 0; !code && i < restore->info.ranks; i++)
        code = check_part(&c, i);
    free(c.window);
    return code || !c.code ? code : weir_fail_text(c.code, c.text);
}
