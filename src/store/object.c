/* object.c - finding an object: its seal and its data, or a foreign file; and the sums of its
 * blocks. What is read of it is scan.c's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/object.h"
#include "util/err.h"
#include "util/sys.h"

/* ---- opening ---- */

/* The data of a seal is not there. Was the object removed, or replaced, or has it lost its data? */
static int data_missing(weir_object *obj)
{
    struct weir_sealed now;
    int code = weir_sealed_load(&now, obj->store, obj->key);
    if (code)
        return code;
    bool same = !memcmp(now.seal.nonce, obj->sealed.seal.nonce, WEIR_NONCE_BYTES);
    weir_sealed_free(&now);
    return same ? weir_fail(EBADMSG, "the data of '%s' is missing: '%s' is not there", obj->key,
                            obj->data_name)
                : -EAGAIN;
}

static int open_sealed(weir_object *obj, bool once)
{
    const struct weir_seal *seal = &obj->sealed.seal;
    struct weir_blob_stat stat;
    snprintf(obj->data_name, sizeof obj->data_name, "%.*s", (int)seal->data_name_size,
             seal->data_name);
    int code = weir_store_blob_open(obj->store, obj->data_name, &obj->blob, &stat,
                                    once ? &obj->is_around : NULL);
    if (code == -ENOENT)
        return data_missing(obj);
    if (code)
        return code;
    if (stat.size != seal->size)
        return weir_fail(EBADMSG,
                         "'%s' is damaged: its data has %" PRIu64 " bytes, its seal says %" PRIu64,
                         obj->key, stat.size, seal->size);
    weir_hex(obj->nonce, seal->nonce, WEIR_NONCE_BYTES);
    obj->info = (weir_info){
        .algorithm = weir_algorithm_name(seal->algorithm),
        .meta = seal->meta,
        .meta_bytes = seal->meta_size,
        .size_bytes = seal->size,
        .block_bytes = seal->block_bytes,
        .time_ns = seal->time_ns,
        .kind = WEIR_KIND_SEALED,
        .save_bytes = seal->prefix_size,
    };
    return 0;
}

static int open_foreign(weir_object *obj, bool once)
{
    struct weir_blob_stat stat;
    strcpy(obj->data_name, obj->key);
    int code =
        weir_foreign_open(&obj->blob, &stat, obj->store, obj->key, once ? &obj->is_around : NULL);
    if (code)
        return code;
    if (stat.size > WEIR_OBJECT_BYTES_MAX)
        return weir_fail(EFBIG, "'%s' is %" PRIu64 " bytes, the limit is 2 TiB", obj->key,
                         stat.size);
    obj->info = (weir_info){
        .size_bytes = stat.size,
        .block_bytes = WEIR_BLOCK_BYTES_MAX,
        .time_ns = (uint64_t)stat.time_ns,
        .kind = WEIR_KIND_FOREIGN,
    };
    if (!obj->store->uuid[0]) { /* what would be learned could not be kept: only what is wanted */
        obj->info.block_bytes = WEIR_BLOCK_BYTES_MIN;
        return 0;
    }
    code = weir_learned_load(&obj->learned, obj->store, obj->key, stat.size, stat.time_ns,
                             WEIR_BLOCK_BYTES_MAX);
    if (!code)
        obj->info.algorithm = weir_algorithm_name(obj->learned.missing ? WEIR_ALGORITHM_NONE
                                                                       : WEIR_ALGORITHM_XXH3_128);
    return code;
}

static void forget(weir_object *obj)
{
    weir_handle_close(obj->blob);
    obj->blob = NULL;
    weir_sealed_free(&obj->sealed);
    weir_learned_free(&obj->learned);
}

/* One look at what is there. */
static int look(weir_object *obj, bool once)
{
    int code = weir_sealed_load(&obj->sealed, obj->store, obj->key);
    bool is_void = !code && obj->sealed.seal.kind == WEIR_SEAL_VOID;
    if (is_void)
        weir_sealed_free(&obj->sealed);
    if (!code && !is_void)
        code = open_sealed(obj, once);
    else if (is_void || code == -ENOENT)
        code = open_foreign(obj, once);
    if (code)
        forget(obj);
    return code;
}

/* Asks the guard, if there is one. */
static int admit(weir_object *obj)
{
    const struct weir_guard *guard = obj->store->guard;
    obj->check_bytes = obj->info.block_bytes;
    if (!guard)
        return 0;
    if (obj->check_bytes < guard->block_bytes)
        obj->check_bytes = guard->block_bytes;
    int code = guard->admit(guard->arg, obj->key, obj->info.size_bytes, &obj->guarded);
    if (code)
        forget(obj);
    return code;
}

static int open_object(weir_object **out, weir_store *store, const char *key, bool once)
{
    int code = weir_store_check(store);
    if (!code)
        code = weir_key_check(key);
    if (code)
        return code;
    weir_object *obj = weir_alloc(sizeof *obj);
    if (!obj)
        return weir_fail_memory();
    obj->store = store;
    strcpy(obj->key, key);
    code = -EAGAIN;
    for (int tries = 0; code == -EAGAIN && tries < WEIR_LOOKS_MAX; tries++)
        code = look(obj, once);
    if (code == -ENOENT)
        weir_fail(ENOENT, "there is no object '%s' in '%s'", key, store->url);
    if (code == -EAGAIN)
        weir_fail(EAGAIN, "'%s' keeps being removed and written again: try later", key);
    if (!code)
        code = admit(obj);
    if (code) {
        free(obj);
        return code;
    }
    obj->info.key = obj->key;
    obj->info.data_name = obj->data_name;
    obj->info.nonce = obj->nonce;
    obj->info.level = store->tier->level;
    if (!obj->info.algorithm)
        obj->info.algorithm = "";
    *out = obj;
    return 0;
}

int weir_object_open(weir_object **out, weir_store *store, const char *key)
{
    return open_object(out, store, key, false);
}

int weir_object_open_once(weir_object **out, weir_store *store, const char *key)
{
    return open_object(out, store, key, true);
}

const weir_info *weir_object_info(const weir_object *obj)
{
    return &obj->info;
}

int weir_object_layout(weir_object *obj, char *out, size_t room)
{
    int code = weir_store_check(obj->store);
    if (code)
        return code;
    code = weir_tier_layout(obj->store->tier, obj->data_name, out, room);
    return code ? weir_fail(-code, "nothing is known of how '%s' is laid out", obj->key) : 0;
}

void weir_object_close(weir_object *obj)
{
    if (!obj || weir_store_check(obj->store))
        return;
    if (obj->info.kind == WEIR_KIND_FOREIGN)
        weir_learned_keep(&obj->learned, obj->store, obj->key, obj->info.size_bytes,
                          (int64_t)obj->info.time_ns, WEIR_BLOCK_BYTES_MAX);
    forget(obj);
    free(obj->slots);
    free(obj);
}

/* ---- checking ---- */

static int bad_block(weir_object *obj, uint64_t number, const struct weir_range *block)
{
    const char *remedy = obj->info.kind == WEIR_KIND_SEALED
                             ? "its fingerprint does not match: do not use it, restore a copy"
                             : "it is not what was read before, although its time is the same";
    return weir_fail(EBADMSG,
                     "'%s' is damaged in block %" PRIu64 " (bytes %" PRIu64 "-%" PRIu64 "): %s",
                     obj->key, number, block->begin, block->end - 1, remedy);
}

static int check_block(weir_object *obj, const char *data, const struct weir_range *block)
{
    uint64_t number = block->begin / obj->info.block_bytes;
    bool foreign = obj->info.kind == WEIR_KIND_FOREIGN;
    struct weir_learned *l = &obj->learned;
    uint8_t sum[WEIR_SUM_BYTES];
    weir_sum(sum, data, block->end - block->begin);
    if (foreign && l->known && !l->known[number]) {
        memcpy(l->sums + number * WEIR_SUM_BYTES, sum, WEIR_SUM_BYTES);
        l->known[number] = 1;
        l->missing--;
        return 0;
    }
    const uint8_t *sums = foreign ? l->sums : obj->sealed.seal.sums;
    if (memcmp(sum, sums + number * WEIR_SUM_BYTES, WEIR_SUM_BYTES))
        return bad_block(obj, number, block);
    return 0;
}

uint64_t weir_object_check_bytes(const weir_object *obj)
{
    return obj->check_bytes;
}

int weir_object_check(weir_object *obj, const char *data, const struct weir_range *range)
{
    const struct weir_guard *guard = obj->store->guard;
    struct weir_range block;
    bool has_sums = obj->sealed.record || obj->learned.sums;
    int code = 0;
    for (block.begin = range->begin; has_sums && !code && block.begin < range->end;
         block.begin = block.end) {
        block.end = block.begin + obj->info.block_bytes;
        if (block.end > range->end)
            block.end = range->end;
        code = check_block(obj, data + (block.begin - range->begin), &block);
    }
    for (uint64_t at = range->begin; guard && !code && at < range->end; at += guard->block_bytes) {
        uint64_t left = range->end - at;
        code = guard->check(guard->arg, obj->guarded, at, data + (at - range->begin),
                            left < guard->block_bytes ? left : guard->block_bytes);
    }
    return code;
}

int weir_object_settle(const weir_object *obj)
{
    if (!obj->sealed.record)
        return 0;
    return weir_store_alias(obj->store, obj->key, obj->data_name, obj->sealed.record,
                            obj->sealed.record_size, false);
}

int weir_object_check_name(const weir_object *obj)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_STAT);
    req.name = obj->key;
    req.handle = obj->blob;
    return weir_tier_call(obj->store->tier, &req);
}

void weir_object_digest(const weir_object *obj, uint8_t out[WEIR_SHA256_BYTES])
{
    memset(out, 0, WEIR_SHA256_BYTES);
    if (obj->sealed.record)
        weir_sha256(out, obj->sealed.record, obj->sealed.record_size);
}
