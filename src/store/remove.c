/* remove.c - removing an object. The order matters, because a crash may come anywhere and readers
 * and writers are about: the plain name first (without a seal it would look like somebody else's
 * file) and then the seal, durably, in one request that no writer gets between; from here on the
 * object does not exist. Then the data.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/drops.h"
#include "store/store.h"
#include "util/err.h"

/* blob: the object's data, or NULL; with it the plain name goes, too. *reuse stays if no other name
 * of it can ever come back. */
static int remove_seal(weir_store *store, const char *key, const struct weir_sealed *found,
                       struct weir_handle *blob, bool *reuse)
{
    char name[WEIR_NAME_BYTES_MAX];
    struct weir_req req;
    weir_key_name(name, WEIR_DIR_SEAL, key);
    weir_req_init(&req, WEIR_OP_REMOVE_IF);
    req.name = name;
    req.buf = found->record;
    req.len = found->record_size;
    req.name2 = key;
    req.handle = blob;
    int code = weir_tier_call(store->tier, &req);
    *reuse &= req.reuse;
    if (code == -ENOENT || code == -ESTALE)
        return weir_fail(ENOENT, "'%s' was removed by somebody else meanwhile", key);
    if (code && req.doubt != WEIR_SURE) {
        weir_fail_in(code, "the outcome of removing '%s' is unknown", key);
        return -WEIR_EUNKNOWN;
    }
    return code;
}

/* What stays is unsealed: gc takes it. */
static void remove_data(weir_store *store, const char *name, bool reuse, struct weir_drops *drops)
{
    struct weir_req req;
    if (drops) {
        weir_drops_add(drops, name, reuse);
        return;
    }
    weir_req_init(&req, WEIR_OP_REMOVE);
    req.name = name;
    req.reuse = reuse;
    req.blind = true;
    weir_tier_call(store->tier, &req);
}

static int remove_sealed(weir_store *store, const char *key, const struct weir_sealed *found,
                         bool reuse, struct weir_drops *drops)
{
    char data_name[WEIR_NAME_BYTES_MAX];
    struct weir_handle *blob = NULL;
    snprintf(data_name, sizeof data_name, "%.*s", (int)found->seal.data_name_size,
             found->seal.data_name);
    int code = weir_store_blob_open(store, data_name, &blob, NULL, NULL);
    if (code && code != -ENOENT) /* missing data is no reason to keep a seal */
        return code;
    code = remove_seal(store, key, found, blob, &reuse);
    weir_handle_close(blob);
    if (code)
        return code;
    remove_data(store, data_name, reuse, drops);
    return 0;
}

/* Why there is nothing to remove; -EAGAIN: there may be now. */
static int no_object(weir_store *store, const char *key)
{
    struct weir_handle *blob;
    struct weir_blob_stat stat;
    int code = weir_foreign_open(&blob, &stat, store, key, NULL);
    if (code == -ENOENT)
        return weir_fail(ENOENT, "there is no object '%s' in '%s'", key, store->url);
    if (code == -EAGAIN)
        return weir_fail(EAGAIN, "'%s' keeps being removed and written again: try later", key);
    if (code)
        return code;
    weir_handle_close(blob);
    return weir_fail(EPERM,
                     "'%s' is a plain file that Weir did not write: remove it with the tools of "
                     "its owner",
                     key);
}

static int remove_once(weir_store *store, const char *key, bool reuse, struct weir_drops *drops)
{
    struct weir_sealed found;
    int code = weir_sealed_load(&found, store, key);
    if (code)
        return code == -ENOENT ? no_object(store, key) : code;
    code = found.seal.kind == WEIR_SEAL_VOID ? no_object(store, key)
                                             : remove_sealed(store, key, &found, reuse, drops);
    weir_sealed_free(&found);
    return code;
}

int weir_remove_object(weir_store *store, const char *key, bool reuse, struct weir_drops *drops)
{
    int code = weir_store_check_writable(store);
    if (!code)
        code = weir_key_check(key);
    if (code)
        return code;
    code = -EAGAIN;
    for (int looks = 0; code == -EAGAIN && looks < WEIR_LOOKS_MAX; looks++)
        code = remove_once(store, key, reuse, drops);
    if (code && !strstr(weir_fail_last(), key))
        weir_fail_in(code, "cannot remove '%s'", key);
    return code;
}

int weir_remove(weir_store *store, const char *key)
{
    return weir_remove_object(store, key, false, NULL);
}

int weir_remove_damaged(weir_store *store, const char *key)
{
    char name[WEIR_NAME_BYTES_MAX];
    struct weir_seal seal;
    uint8_t *record;
    size_t size;
    int code = weir_store_check_writable(store);
    if (!code)
        code = weir_key_check(key);
    if (code)
        return code;
    weir_key_name(name, WEIR_DIR_SEAL, key);
    code = weir_record_load(store, name, WEIR_RECORD_BYTES_MAX, &record, &size, NULL);
    if (code)
        return code == -ENOENT ? no_object(store, key) : code;
    bool damaged = weir_seal_decode(&seal, record, size, key) == -EBADMSG;
    if (!damaged)
        code = weir_fail(EINVAL, "the seal of '%s' is not damaged: remove it as usual", key);
    else if (weir_store_stat(store, key, NULL))
        code = weir_fail(EBUSY,
                         "'%s' has no plain name under which its bytes would stay: copy them from "
                         "'%s%s~…' to '%s' first",
                         key, WEIR_DIR_DATA, key, key);
    else
        code = weir_record_drop(store, name, record, size);
    free(record);
    return code;
}
