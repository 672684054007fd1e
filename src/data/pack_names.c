/* pack_names.c - files of a tree, and their names. To a store an object is whole without a plain
 * name; a tree that people and other programs look into is not. So where a tier has such names, no
 * list is sealed before each of its files has its own, and what has lost it since has it again
 * where the same is packed again.
 */
#include <errno.h>
#include <string.h>

#include "data/pack_parts.h"
#include "store/store.h"
#include "util/err.h"

enum {
    /* Each waits a moment for a lock that others hold for moments only: about ten seconds. */
    SETTLE_TRIES_MAX = 200,
    PART_BYTES = 16384, /* of a list, read at once: several of the longest names */
};

_Static_assert(PART_BYTES > WEIR_KEY_BYTES_MAX, "a name is in one part");

static int fail_name(const char *key, int code)
{
    const char *why = strdupa(weir_fail_last());
    if (code == -EEXIST || code == -ENOTDIR || code == -EISDIR)
        return weir_fail(-code,
                         "'%s' is stored, but another file or directory has its name, or that of "
                         "a directory above it: %s",
                         key, why);
    return weir_fail(-code,
                     "'%s' is stored, but has no file of that name (the same command goes on once "
                     "it can): %s",
                     key, why);
}

static int settle(const weir_object *obj)
{
    int tries = 0, code = weir_object_check_name(obj);
    if (!code)
        return 0;
    do
        code = weir_object_settle(obj);
    while (code == -EBUSY && ++tries < SETTLE_TRIES_MAX);
    return code ? fail_name(weir_object_info(obj)->key, code) : 0;
}

static int give_name(const struct weir_packing *p, const char *name)
{
    char key[WEIR_KEY_BYTES_MAX + 1];
    weir_object *obj = NULL;
    uint64_t number;
    int code = weir_pack_key(key, p, name);
    if (!code)
        code = weir_object_open(&obj, p->store, key);
    if (!code)
        code = weir_pack_is_file(p, weir_object_info(obj), &number)
                   ? settle(obj)
                   : weir_fail(EEXIST, "'%s' was put there by another, in place of what was packed",
                               key);
    weir_object_close(obj);
    return code;
}

int weir_pack_put_file(struct weir_packing *p, const char *name, const struct weir_made *made,
                       uint64_t number)
{
    char meta[WEIR_PACK_META_BYTES];
    bool is_named = false;
    weir_pack_file_meta(meta, p, number);
    int code = weir_pack_put(p, name, made, meta, &is_named);
    return code || is_named || !weir_store_has_names(p->store) ? code : give_name(p, name);
}

/* Those of whole lines; *used: their bytes. */
static int give_names(const struct weir_packing *p, char *lines, size_t size, size_t *used)
{
    char *end;
    int code = 0;
    for (*used = 0; !code && (end = memchr(lines + *used, '\n', size - *used));
         *used = (size_t)(end - lines) + 1) {
        *end = 0;
        code = give_name(p, lines + *used);
    }
    return code;
}

int weir_pack_names(const struct weir_packing *p, weir_object *list)
{
    const weir_info *info = weir_object_info(list);
    char part[PART_BYTES];
    uint64_t at = 0;
    int code = 0;
    while (!code && weir_store_has_names(p->store) && at < info->size_bytes) {
        size_t got, used = 0;
        code = weir_object_read(list, part, sizeof part, at, &got);
        if (!code)
            code = give_names(p, part, got, &used);
        if (!code && !used)
            code = weir_fail(EBADMSG, "'%s' is no list of files", info->key);
        at += used;
    }
    return code == -ENOENT ? weir_fail(ENOENT,
                                       "%s: it was packed already, as '%s' says (remove that, too, "
                                       "and the same command puts back what it lists)",
                                       strdupa(weir_fail_last()), info->key)
                           : code;
}
