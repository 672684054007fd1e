/* view.c - see view.h. */
#include "store/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/lease.h"
#include "util/err.h"
#include "util/sys.h"

struct weir_view {
    struct weir_ledger *ledger;
    weir_store *store;
    struct weir_ledger_entry entry;
    bool given; /* the entry is the caller's: the log cannot be asked */
    struct weir_handle *lease;
    struct weir_node root;
    uint8_t *bytes;
    const uint8_t **parts; /* where each begins */
    char prefix[WEIR_KEY_BYTES_MAX + 1];
};

/* Is the entry still live? 0, or -ESTALE. */
static int still_live(struct weir_view *view)
{
    struct weir_ledger_state state;
    int code = view->given ? 0 : weir_ledger_read(view->ledger, &state);
    if (code || view->given)
        return code;
    const struct weir_ledger_entry *entry = weir_ledger_find_save(&state, &view->entry.save);
    bool live = entry && !entry->retired_ns;
    if (live)
        view->entry = *entry;
    weir_state_free(&state);
    return live ? 0
                : weir_fail(ESTALE, "'%s' was retired meanwhile: open the newest again",
                            view->prefix);
}

/* Something of the save is not there. Was it retired, or is it damaged? */
static int gone(struct weir_view *view, const char *name)
{
    int code = still_live(view);
    return code
               ? code
               : weir_fail(EBADMSG, "'%s' is committed, but '%s' is not there", view->prefix, name);
}

static int find(struct weir_view *view, const char *name)
{
    struct weir_ledger_state state;
    int code = weir_ledger_read(view->ledger, &state);
    if (code)
        return code;
    const struct weir_ledger_entry *entry = weir_ledger_find(&state, name);
    if (entry)
        view->entry = *entry;
    else if (name)
        code =
            weir_fail(ENOENT, "there is no '%s' in log '%s'", name, weir_ledger_name(view->ledger));
    else
        code =
            weir_fail(ENOENT, "nothing is committed in log '%s'", weir_ledger_name(view->ledger));
    weir_state_free(&state);
    return code;
}

static int load_parts(struct weir_view *view)
{
    int code = weir_set_root(view->ledger, &view->entry, &view->root, &view->bytes);
    if (code)
        return code == -ENOENT ? gone(view, "the root of its set") : code;
    view->parts = weir_alloc(view->root.parts * sizeof *view->parts);
    if (!view->parts)
        return weir_fail_memory();
    const uint8_t *at = view->root.list;
    for (uint32_t i = 0; i < view->root.parts; i++) {
        struct weir_part part;
        view->parts[i] = at;
        weir_node_part(&part, &at); /* the node was checked when it was decoded */
    }
    return 0;
}

/* Takes view over, of which only the ledger and the entry's save are known. */
static int open_entry(struct weir_view **out, struct weir_view *view)
{
    weir_ledger_prefix(view->ledger, &view->entry.save, view->prefix);
    int code = weir_lease_share(&view->lease, view->store, view->prefix);
    /* Only who looks again with the lease in hand knows that gc was not before. */
    if (!code)
        code = still_live(view);
    if (!code)
        code = load_parts(view);
    if (code)
        weir_view_close(view);
    else
        *out = view;
    return code;
}

static struct weir_view *view_new(struct weir_ledger *ledger)
{
    struct weir_view *view = weir_alloc(sizeof *view);
    if (view) {
        view->ledger = ledger;
        view->store = weir_ledger_store(ledger);
    }
    return view;
}

int weir_view_open(struct weir_view **out, struct weir_ledger *ledger, const char *name)
{
    struct weir_view *view = view_new(ledger);
    if (!view)
        return weir_fail_memory();
    int code = find(view, name);
    if (!code)
        return open_entry(out, view);
    weir_view_close(view);
    return code;
}

int weir_view_open_save(struct weir_view **out, struct weir_ledger *ledger,
                        const struct weir_save *save)
{
    struct weir_view *view = view_new(ledger);
    if (!view)
        return weir_fail_memory();
    view->entry.save = *save;
    return open_entry(out, view);
}

int weir_view_open_entry(struct weir_view **out, struct weir_ledger *ledger,
                         const struct weir_ledger_entry *entry)
{
    struct weir_view *view = view_new(ledger);
    if (!view)
        return weir_fail_memory();
    view->entry = *entry;
    view->given = true;
    return open_entry(out, view);
}

void weir_view_close(struct weir_view *view)
{
    if (!view)
        return;
    weir_handle_close(view->lease);
    free(view->bytes);
    free(view->parts);
    free(view);
}

const struct weir_ledger_entry *weir_view_entry(const struct weir_view *view)
{
    return &view->entry;
}

const char *weir_view_prefix(const struct weir_view *view)
{
    return view->prefix;
}

weir_store *weir_view_store(const struct weir_view *view)
{
    return view->store;
}

int weir_view_part(struct weir_view *view, uint32_t number, struct weir_part *out)
{
    if (number >= view->root.parts)
        return weir_fail(EINVAL, "part %u of '%s': it has %u", number, view->prefix,
                         view->root.parts);
    const uint8_t *at = view->parts[number];
    return weir_node_part(out, &at);
}

static int ref_key(struct weir_view *view, const struct weir_ref *ref,
                   char key[WEIR_KEY_BYTES_MAX + 1])
{
    int size = snprintf(key, WEIR_KEY_BYTES_MAX + 1, "%s/%s", view->prefix, ref->name);
    return size <= WEIR_KEY_BYTES_MAX
               ? weir_key_check(key)
               : weir_fail(ENAMETOOLONG, "'%s/%s' is too long for a key", view->prefix, ref->name);
}

int weir_view_object(struct weir_view *view, const struct weir_ref *ref, weir_object **out)
{
    char key[WEIR_KEY_BYTES_MAX + 1];
    uint8_t digest[WEIR_SHA256_BYTES];
    weir_object *obj;
    int code = ref_key(view, ref, key);
    if (!code)
        code = weir_object_open(&obj, view->store, key);
    if (code)
        return code == -ENOENT ? gone(view, ref->name) : code;
    weir_object_digest(obj, digest);
    if (memcmp(digest, ref->digest, sizeof digest)) {
        weir_object_close(obj);
        return weir_fail(EBADMSG, "'%s' is not what log '%s' committed: its seal is another one",
                         key, weir_ledger_name(view->ledger));
    }
    *out = obj;
    return 0;
}

int weir_view_table(struct weir_view *view, const struct weir_ref *ref, struct weir_table **out)
{
    char key[WEIR_KEY_BYTES_MAX + 1];
    int code = ref_key(view, ref, key);
    if (!code)
        code = weir_table_open(out, view->store, key, ref->digest);
    return code == -ENOENT ? gone(view, ref->name) : code;
}
