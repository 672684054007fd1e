/* foreign.c - what was learned of files that others put into a store's directory.
 *
 * When every block of such a file was read once, their sums are kept in .weir/learn/<key>~, a seal
 * of kind "learned" that holds the file's size and mtime. While these stay the same, later reads
 * are checked against the sums; when they change, the file is a new one and is learned afresh.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "util/err.h"
#include "util/sys.h"

/* The plain name of an object is there only while its seal is (tier.h, ALIAS). So a file that is
 * still there after no seal was seen is not one; it is held open, so no other can look like it. */
static int check_foreign(weir_store *store, const char *key, struct weir_handle *blob)
{
    struct weir_sealed sealed;
    struct weir_req req;
    int code = weir_sealed_load(&sealed, store, key);
    if (!code) {
        code = sealed.seal.kind == WEIR_SEAL_VOID ? -ENOENT : -EAGAIN;
        weir_sealed_free(&sealed);
    }
    if (code != -ENOENT)
        return code;
    weir_req_init(&req, WEIR_OP_STAT);
    req.name = key;
    req.handle = blob;
    code = weir_tier_call(store->tier, &req);
    return code == -ENOENT || code == -ESTALE ? -EAGAIN : code;
}

int weir_foreign_open(struct weir_handle **out, struct weir_blob_stat *stat, weir_store *store,
                      const char *key, bool *around)
{
    struct weir_handle *blob;
    int code = weir_store_blob_open(store, key, &blob, stat, around);
    if (code)
        return code;
    code = store->is_bare ? 0 : check_foreign(store, key, blob);
    if (code)
        weir_handle_close(blob);
    else
        *out = blob;
    return code;
}

static int load_old(struct weir_learned *l, weir_store *store, const char *key)
{
    char name[WEIR_NAME_BYTES_MAX];
    if (store->is_bare)
        return -ENOENT;
    weir_key_name(name, WEIR_DIR_LEARN, key);
    int code = weir_record_load(store, name, WEIR_RECORD_BYTES_MAX, &l->old.record,
                                &l->old.record_size, NULL);
    if (code)
        return code;
    l->has_old = true;
    return weir_seal_decode(&l->old.seal, l->old.record, l->old.record_size, key);
}

int weir_learned_load(struct weir_learned *out, weir_store *store, const char *key, uint64_t size,
                      int64_t time_ns, uint32_t block_bytes)
{
    struct weir_learned l = {.blocks = weir_seal_blocks(size, block_bytes)};
    int code = load_old(&l, store, key);
    const struct weir_seal *old = &l.old.seal;
    bool use = !code && old->kind == WEIR_SEAL_LEARNED && old->size == size &&
               old->time_ns == (uint64_t)time_ns && old->block_bytes == block_bytes;
    /* A record that is damaged or outdated is worth nothing, and losing it costs nothing. */
    l.sums = weir_alloc(l.blocks * WEIR_SUM_BYTES);
    l.known = use ? NULL : weir_alloc(l.blocks);
    if (!l.sums || (!use && !l.known)) {
        weir_learned_free(&l);
        return weir_fail_memory();
    }
    if (use)
        memcpy(l.sums, old->sums, l.blocks * WEIR_SUM_BYTES);
    else
        l.missing = l.blocks;
    *out = l;
    return 0;
}

/* Only what the file still is may be kept. */
static bool unchanged(weir_store *store, const char *key, uint64_t size, int64_t time_ns)
{
    struct weir_blob_stat stat;
    return !weir_store_stat(store, key, &stat) && stat.size == size && stat.time_ns == time_ns;
}

void weir_learned_keep(struct weir_learned *l, weir_store *store, const char *key, uint64_t size,
                       int64_t time_ns, uint32_t block_bytes)
{
    if (!l->known || l->missing || !store->uuid[0] || !unchanged(store, key, size, time_ns))
        return;
    struct weir_seal seal = {
        .kind = WEIR_SEAL_LEARNED,
        .algorithm = WEIR_ALGORITHM_XXH3_128,
        .block_bytes = block_bytes,
        .size = size,
        .time_ns = (uint64_t)time_ns,
        .data_name = key,
        .data_name_size = strlen(key),
        .sums = l->sums,
        .blocks = l->blocks,
    };
    char name[WEIR_NAME_BYTES_MAX];
    uint8_t *record;
    size_t record_size;
    if (weir_sys->random(seal.nonce, sizeof seal.nonce) ||
        weir_seal_encode(&seal, &record, &record_size))
        return;
    weir_key_name(name, WEIR_DIR_LEARN, key);
    if (l->has_old)
        weir_record_drop(store, name, l->old.record, l->old.record_size);
    weir_record_put(store, name, record, record_size, 0, NULL);
    free(record);
}

void weir_learned_free(struct weir_learned *l)
{
    free(l->sums);
    free(l->known);
    weir_sealed_free(&l->old);
    *l = (struct weir_learned){0};
}
