/* remove.c - removing an object. The order matters, because a crash may come anywhere and readers
 * and writers are about: the plain name first (without a seal it would look like somebody else's
 * file), then the seal, durably (from here on the object does not exist), then the data, then the
 * plain name once more, if the object's writer made it in between.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/store.h"
#include "util/err.h"

static void remove_alias(weir_store *store, const char *key, struct weir_handle *blob)
{
    struct weir_req req;
    if (!blob)
        return;
    weir_req_init(&req, WEIR_OP_REMOVE);
    req.name = key;
    req.handle = blob;
    weir_tier_call(store->tier, &req);
}

static int remove_seal(weir_store *store, const char *key, const struct weir_sealed *found)
{
    char name[WEIR_NAME_BYTES_MAX];
    struct weir_req req;
    weir_key_name(name, WEIR_DIR_SEAL, key);
    weir_req_init(&req, WEIR_OP_REMOVE_IF);
    req.name = name;
    req.buf = found->record;
    req.len = found->record_size;
    int code = weir_tier_call(store->tier, &req);
    if (code == -ENOENT || code == -ESTALE)
        return weir_fail(ENOENT, "'%s' was removed by somebody else meanwhile", key);
    if (code && req.doubt != WEIR_SURE) {
        weir_fail_in(code, "the outcome of removing '%s' is unknown", key);
        return -WEIR_EUNKNOWN;
    }
    return code;
}

static int remove_sealed(weir_store *store, const char *key, const struct weir_sealed *found)
{
    char data_name[WEIR_NAME_BYTES_MAX];
    struct weir_req req;
    snprintf(data_name, sizeof data_name, "%.*s", (int)found->seal.data_name_size,
             found->seal.data_name);
    weir_req_init(&req, WEIR_OP_OPEN);
    req.name = data_name;
    /* Missing data is no reason to keep a seal. */
    struct weir_handle *blob = weir_tier_call(store->tier, &req) ? NULL : req.handle;
    bool own = !strcmp(data_name, key);
    if (!own)
        remove_alias(store, key, blob);
    int code = remove_seal(store, key, found);
    if (!code) {
        weir_req_init(&req, WEIR_OP_REMOVE);
        req.name = data_name;
        weir_tier_call(store->tier, &req); /* what stays is unsealed: gc takes it */
        if (!own)
            remove_alias(store, key, blob);
    }
    weir_handle_close(blob);
    return code;
}

int weir_remove(weir_store *store, const char *key)
{
    struct weir_sealed found;
    int code = weir_store_check_writable(store);
    if (!code)
        code = weir_key_check(key);
    if (!code)
        code = weir_sealed_load(&found, store, key);
    if (!code && found.seal.kind == WEIR_SEAL_VOID) {
        weir_sealed_free(&found);
        code = -ENOENT;
    }
    if (code == -ENOENT) {
        struct weir_req req;
        weir_req_init(&req, WEIR_OP_STAT);
        req.name = key;
        if (weir_tier_call(store->tier, &req) == 0)
            return weir_fail(EPERM,
                             "'%s' is a plain file that Weir did not write: remove it with the "
                             "tools of its owner",
                             key);
        return weir_fail(ENOENT, "there is no object '%s' in '%s'", key, store->url);
    }
    if (code)
        return code;
    code = remove_sealed(store, key, &found);
    weir_sealed_free(&found);
    return code;
}
