/* gc.c - collecting what crashed and losing writers left: temporaries, and data without a seal.
 *
 * Data is debris when no seal names it and it is older than the store's grace, by the tier's own
 * clock. Its writer may be asleep, not dead; so before the bytes go, the key is claimed by a void
 * seal, which that writer can no longer replace (and on its own a writer refuses to seal after half
 * the grace). Where another seal stands at the key, that one does the same. The bytes go only while
 * it stands. Voids are removed when they have outlived every request that could have been in
 * flight; a writer that seals even after that (a paused machine) looks for its data then (put.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "util/err.h"
#include "util/sys.h"

bool weir_gc_is_old(const struct weir_gc *gc, int64_t time_ns, uint64_t age_ns)
{
    return gc->now_ns >= time_ns && (uint64_t)(gc->now_ns - time_ns) >= age_ns;
}

/* ---- temporaries ---- */

static int sweep(struct weir_gc *gc)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_SWEEP);
    /* The writer of one that is older than half the grace is, too, and will not seal. So the
     * temporary file of a seal goes before the data that it would make live can be debris: a
     * writer that stood still just before its link finds it gone. */
    req.off = gc->grace_ns / 2;
    req.dry = gc->dry;
    int code = weir_tier_call(gc->store->tier, &req);
    if (code)
        return code;
    gc->now_ns = req.stat.time_ns;
    gc->result.temporaries = req.result;
    gc->result.young += req.len;
    gc->result.spare_bytes = req.stat.size;
    return 0;
}

/* ---- data ---- */

/* A live object whose plain name is gone gets it back; people may have moved it, or a crash came
 * before it was made. */
static void restore_alias(struct weir_gc *gc, const char *key, const char *data_name)
{
    struct weir_sealed found;
    if (gc->dry || weir_store_stat(gc->store, key, NULL) != -ENOENT ||
        weir_sealed_load(&found, gc->store, key))
        return;
    bool same = found.seal.kind == WEIR_SEAL_OBJECT &&
                found.seal.data_name_size == strlen(data_name) &&
                !memcmp(found.seal.data_name, data_name, found.seal.data_name_size);
    /* The writer of the seal may not have come to sync it, and may never. */
    if (same &&
        !weir_store_alias(gc->store, key, data_name, found.record, found.record_size, false))
        weir_gc_count(gc, &gc->result.links_restored, 1);
    weir_sealed_free(&found);
}

static int place_void(struct weir_gc *gc, const char *key)
{
    struct weir_seal seal = {.kind = WEIR_SEAL_VOID, .time_ns = weir_sys->now_ns(WEIR_CLOCK_REAL)};
    char name[WEIR_NAME_BYTES_MAX];
    uint8_t *record;
    size_t size;
    int code = weir_sys->random(seal.nonce, sizeof seal.nonce);
    if (code)
        return weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
    code = weir_seal_encode(&seal, &record, &size);
    if (code)
        return code;
    weir_key_name(name, WEIR_DIR_SEAL, key);
    code = weir_record_put(gc->store, name, record, size, 0, NULL);
    free(record);
    if (!code)
        weir_gc_count(gc, &gc->result.voids_placed, 1);
    return code;
}

/* Is the data of `nonce` the one that key's seal names? 1: live; 0: a seal or a void stands there
 * that does not name it; -ENOENT: nothing stands there. A damaged seal protects everything. */
static int is_live(struct weir_gc *gc, const char *key, const uint8_t *nonce,
                   struct weir_sealed *found)
{
    int code = weir_sealed_load(found, gc->store, key);
    if (code == -EBADMSG || code == -EPROTO)
        return 1;
    if (code)
        return code;
    code =
        found->seal.kind == WEIR_SEAL_OBJECT && !memcmp(found->seal.nonce, nonce, WEIR_NONCE_BYTES);
    if (code)
        weir_sealed_free(found);
    return code;
}

/* Removes debris for as long as what stands at its key does, and keeps its writer from sealing it:
 * a void is cleared after a while, another's object may be removed at any time. */
static int remove_claimed(struct weir_gc *gc, const char *key, const char *name,
                          const struct weir_sealed *found)
{
    char guard[WEIR_NAME_BYTES_MAX];
    struct weir_req req;
    weir_key_name(guard, WEIR_DIR_SEAL, key);
    weir_req_init(&req, WEIR_OP_REMOVE);
    req.name = name;
    req.guard = guard;
    req.buf = found->record;
    req.len = found->record_size;
    return weir_tier_call(gc->store->tier, &req);
}

/* Claims the key of debris and removes it. 1: it came to life; -ENOENT, -ESTALE: things come and go
 * at that key; -EBUSY: somebody stands still with the store's lock. */
static int claim(struct weir_gc *gc, const char *key, const uint8_t *nonce, const char *name)
{
    struct weir_sealed found;
    int code = is_live(gc, key, nonce, &found);
    if (code == -ENOENT) {
        code = place_void(gc, key);
        if (!code || code == -EEXIST)
            code = is_live(gc, key, nonce, &found);
    }
    if (code)
        return code;
    code = remove_claimed(gc, key, name, &found);
    weir_sealed_free(&found);
    return code;
}

static int collect_data(void *arg, const char *dir, const char *rest)
{
    struct weir_gc *gc = arg;
    (void)dir;
    char key[WEIR_NAME_BYTES_MAX], name[WEIR_NAME_BYTES_MAX];
    uint8_t nonce[WEIR_NONCE_BYTES];
    struct weir_sealed found;
    struct weir_blob_stat stat;
    if (!weir_key_of_data_name(key, nonce, rest))
        return 0; /* not a name of ours: leave it alone */
    snprintf(name, sizeof name, "%s%s", WEIR_DIR_DATA, rest);
    int code = is_live(gc, key, nonce, &found);
    if (!code)
        weir_sealed_free(&found);
    if (code == 1)
        restore_alias(gc, key, name);
    if (code && code != -ENOENT)
        return code < 0 ? code : 0;
    code = weir_store_stat(gc->store, name, &stat);
    if (code)
        return code == -ENOENT ? 0 : code;
    if (!weir_gc_is_old(gc, stat.time_ns, gc->grace_ns)) {
        weir_gc_count(gc, &gc->result.young, 1);
        return 0;
    }
    if (!gc->dry) {
        code = claim(gc, key, nonce, name);
        if (code == 1 || code == -ENOENT || code == -ESTALE || code == -EBUSY)
            return 0; /* the next gc tries again */
        if (code)
            return code;
    }
    weir_gc_count(gc, &gc->result.objects, 1);
    weir_gc_count(gc, &gc->result.bytes, stat.size);
    return 0;
}

/* ---- voids and what was learned ---- */

static int collect_void(void *arg, const char *dir, const char *rest)
{
    struct weir_gc *gc = arg;
    (void)dir;
    char key[WEIR_NAME_BYTES_MAX], name[WEIR_NAME_BYTES_MAX];
    struct weir_blob_stat stat;
    struct weir_sealed found;
    if (!weir_key_of_name(key, rest))
        return 0;
    snprintf(name, sizeof name, "%s%s", WEIR_DIR_SEAL, rest);
    int code = weir_store_stat(gc->store, name, &stat);
    if (code || stat.size != WEIR_SEAL_VOID_BYTES)
        return code == -ENOENT ? 0 : code;
    code = weir_sealed_load(&found, gc->store, key);
    if (code == -ENOENT || code == -EBADMSG || code == -EPROTO)
        return 0; /* gone, or a newer Weir's, or damaged: verify names it */
    if (code)
        return code;
    if (found.seal.kind == WEIR_SEAL_VOID && !gc->dry) {
        code = weir_void_clear(gc->store, key, &found, gc->now_ns, gc->void_life_ns);
        if (!code)
            weir_gc_count(gc, &gc->result.voids_removed, 1);
        if (code == -EAGAIN)
            code = 0;
    }
    weir_sealed_free(&found);
    return code;
}

/* What was learned of a file that is gone, or whose place an object took. */
static int collect_learned(void *arg, const char *dir, const char *rest)
{
    struct weir_gc *gc = arg;
    (void)dir;
    char key[WEIR_NAME_BYTES_MAX], name[WEIR_NAME_BYTES_MAX];
    if (!weir_key_of_name(key, rest) || gc->dry)
        return 0;
    weir_key_name(name, WEIR_DIR_SEAL, key);
    if (weir_store_stat(gc->store, key, NULL) != -ENOENT && weir_store_stat(gc->store, name, NULL))
        return 0;
    snprintf(name, sizeof name, "%s%s", WEIR_DIR_LEARN, rest);
    int code = weir_store_drop(gc->store, name);
    return code == -ENOENT ? 0 : code;
}

int weir_gc(weir_store *store, uint32_t flags, weir_gc_result *result, weir_progress_fn progress,
            void *arg)
{
    bool now = flags & WEIR_GC_NOW;
    struct weir_gc gc = {
        .store = store,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .dry = flags & WEIR_GC_DRY_RUN,
        .grace_ns = now ? 0 : store->grace_ns,
        .retired_ns = now ? 0 : store->grace_ns,
        .void_life_ns = now ? 0 : WEIR_VOID_LIFE_S * 1000000000ull,
        .progress = progress,
        .progress_arg = arg,
    };
    int code = weir_store_check_writable(store);
    if (!code)
        code = sweep(&gc);
    /* A log that cannot be read, or collected, is no reason to keep everything else. */
    char text[WEIR_TEXT_MAX];
    int saves = code ? 0 : weir_gc_saves(&gc);
    snprintf(text, sizeof text, "%s", weir_fail_last());
    if (saves == -ECANCELED)
        code = saves;
    if (!code)
        code = weir_gc_each(&gc, WEIR_DIR_DATA, collect_data, &gc);
    /* With no writer about, the voids just placed have done their work. */
    if (!code && now && !gc.dry)
        code = weir_store_now(store, &gc.now_ns);
    if (!code)
        code = weir_gc_each(&gc, WEIR_DIR_SEAL, collect_void, &gc);
    if (!code)
        code = weir_gc_each(&gc, WEIR_DIR_LEARN, collect_learned, &gc);
    if (result)
        *result = gc.result;
    return code || !saves ? code : weir_fail_text(saves, text);
}
