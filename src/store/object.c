/* object.c - the one get path: any range of an object, verified on arrival.
 *
 * A range is read in units of at most 1 MiB that begin and end at block boundaries, several in
 * flight. A unit can land in the caller's memory if all of it was asked for and the memory is
 * aligned (then no byte is copied), and does unless that is the slower way here (landing.h); else
 * it lands in a pool buffer. Every block of it is checked before the caller may see it; a block
 * that fails is wiped. Foreign objects take the same way; what is not yet known of them is learned
 * instead of checked.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "util/err.h"
#include "util/sys.h"

struct weir_object {
    weir_store *store;
    struct weir_handle *blob;
    struct weir_sealed sealed;   /* of a sealed object */
    struct weir_learned learned; /* of a foreign one */
    struct weir_req *reqs;
    weir_info info;
    char nonce[2 * WEIR_NONCE_BYTES + 1];
    char key[WEIR_KEY_BYTES_MAX + 1];
    char data_name[WEIR_NAME_BYTES_MAX];
};

/* One read call: what was asked for, what is under way. */
struct scan {
    weir_object *obj;
    char *buf; /* NULL: only check */
    uint64_t begin, end, next;
    weir_progress_fn progress; /* or NULL */
    void *progress_arg;
    struct weir_queue done;
    struct weir_req *idle;
    struct weir_trial trial;
    unsigned in_flight;
    int code;
    char text[WEIR_TEXT_MAX];
};

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

static int open_sealed(weir_object *obj)
{
    const struct weir_seal *seal = &obj->sealed.seal;
    struct weir_blob_stat stat;
    snprintf(obj->data_name, sizeof obj->data_name, "%.*s", (int)seal->data_name_size,
             seal->data_name);
    int code = weir_store_blob_open(obj->store, obj->data_name, &obj->blob, &stat);
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

static int open_foreign(weir_object *obj)
{
    struct weir_blob_stat stat;
    strcpy(obj->data_name, obj->key);
    int code = weir_foreign_open(&obj->blob, &stat, obj->store, obj->key);
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
    code = weir_learned_load(&obj->learned, obj->store, obj->key, stat.size, stat.time_ns,
                             WEIR_BLOCK_BYTES_MAX);
    if (!code)
        obj->info.algorithm = weir_algorithm_name(
            obj->learned.missing ? WEIR_ALGORITHM_NONE : WEIR_ALGORITHM_XXH3_128);
    return code;
}

static void forget(weir_object *obj)
{
    weir_handle_close(obj->blob);
    obj->blob = NULL;
    weir_sealed_free(&obj->sealed);
    weir_learned_free(&obj->learned);
}

static int open_once(weir_object *obj)
{
    int code = weir_sealed_load(&obj->sealed, obj->store, obj->key);
    bool is_void = !code && obj->sealed.seal.kind == WEIR_SEAL_VOID;
    if (is_void)
        weir_sealed_free(&obj->sealed);
    if (!code && !is_void)
        code = open_sealed(obj);
    else if (is_void || code == -ENOENT)
        code = open_foreign(obj);
    if (code)
        forget(obj);
    return code;
}

int weir_object_open(weir_object **out, weir_store *store, const char *key)
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
        code = open_once(obj);
    if (code == -ENOENT)
        weir_fail(ENOENT, "there is no object '%s' in '%s'", key, store->url);
    if (code == -EAGAIN)
        weir_fail(EAGAIN, "'%s' keeps being removed and written again: try later", key);
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

const weir_info *weir_object_info(const weir_object *obj)
{
    return &obj->info;
}

void weir_object_close(weir_object *obj)
{
    if (!obj || weir_store_check(obj->store))
        return;
    if (obj->info.kind == WEIR_KIND_FOREIGN)
        weir_learned_keep(&obj->learned, obj->store, obj->key, obj->info.size_bytes,
                          (int64_t)obj->info.time_ns, WEIR_BLOCK_BYTES_MAX);
    forget(obj);
    free(obj->reqs);
    free(obj);
}

/* ---- checking ---- */

static int bad_block(weir_object *obj, uint64_t block, uint64_t begin, uint64_t end)
{
    const char *remedy = obj->info.kind == WEIR_KIND_SEALED
                             ? "its fingerprint does not match: do not use it, restore a copy"
                             : "it is not what was read before, although its time is the same";
    return weir_fail(EBADMSG, "'%s' is damaged in block %" PRIu64 " (bytes %" PRIu64 "-%" PRIu64
                     "): %s", obj->key, block, begin, end - 1, remedy);
}

/* Checks or learns the blocks of one unit, [begin, end) of the object, at data. */
static int check_unit(weir_object *obj, const char *data, uint64_t begin, uint64_t end)
{
    uint64_t block_bytes = obj->info.block_bytes;
    bool foreign = obj->info.kind == WEIR_KIND_FOREIGN;
    for (uint64_t at = begin; at < end; at += block_bytes) {
        uint64_t block = at / block_bytes, stop = at + block_bytes < end ? at + block_bytes : end;
        uint8_t sum[WEIR_SUM_BYTES];
        weir_sum(sum, data + (at - begin), stop - at);
        struct weir_learned *l = &obj->learned;
        if (foreign && l->known && !l->known[block]) {
            memcpy(l->sums + block * WEIR_SUM_BYTES, sum, WEIR_SUM_BYTES);
            l->known[block] = 1;
            l->missing--;
            continue;
        }
        const uint8_t *sums = foreign ? l->sums : obj->sealed.seal.sums;
        if (memcmp(sum, sums + block * WEIR_SUM_BYTES, WEIR_SUM_BYTES))
            return bad_block(obj, block, at, stop);
    }
    return 0;
}

/* ---- reading ---- */

static void scan_failed(struct scan *scan, int code)
{
    if (!scan->code) {
        scan->code = code;
        memcpy(scan->text, weir_fail_last(), sizeof scan->text);
    }
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The unit that begins at block boundary `at`: as far as blocks are needed, within 1 MiB. */
static uint64_t unit_end(const struct scan *scan, uint64_t at)
{
    uint64_t block_bytes = scan->obj->info.block_bytes;
    uint64_t end = (scan->end + block_bytes - 1) / block_bytes * block_bytes;
    end = min_u64(end, (at / WEIR_BUFFER_BYTES + 1) * WEIR_BUFFER_BYTES);
    return min_u64(end, scan->obj->info.size_bytes);
}

static bool can_land_in_place(const struct scan *scan, uint64_t begin, uint64_t end)
{
    return scan->buf && begin >= scan->begin && end <= scan->end &&
           (uintptr_t)(scan->buf + (begin - scan->begin)) % WEIR_IO_ALIGN == 0 &&
           (end - begin) % WEIR_IO_ALIGN == 0;
}

/* Where the next unit lands. Units under way hold buffers that only this thread gives back, so it
 * waits for one only while it has none: else readers would wait for each other. A unit that can do
 * without a buffer waits for none. */
static int unit_buffer(struct scan *scan, uint64_t begin, uint64_t end, void **buf, bool *in_place)
{
    weir_store *store = scan->obj->store;
    struct weir_pool *pool = weir_io_pool(store->io);
    *in_place = can_land_in_place(scan, begin, end);
    if (!*in_place)
        return scan->in_flight ? weir_pool_try(pool, buf) : weir_pool_get(pool, buf);
    enum weir_way way = weir_landing_choose(&store->landing, &scan->trial, end - begin,
                                            (scan->end - begin) / WEIR_BUFFER_BYTES, store->depth);
    *in_place = way != WEIR_WAY_POOL || weir_pool_try(pool, buf);
    if (*in_place)
        *buf = scan->buf + (begin - scan->begin);
    return 0;
}

/* Sends the next unit off; false if it cannot go now. tag is 1 if it lands in a pool buffer. */
static bool send_unit(struct scan *scan, bool only)
{
    weir_object *obj = scan->obj;
    uint64_t begin = scan->next, end = unit_end(scan, begin);
    bool in_place;
    void *buf;
    int code = unit_buffer(scan, begin, end, &buf, &in_place);
    if (code && code != -EAGAIN)
        scan_failed(scan, code);
    if (code)
        return false;
    struct weir_req *req = scan->idle;
    scan->idle = req->next;
    scan->in_flight++;
    scan->next = end;
    weir_req_init(req, WEIR_OP_READ);
    req->handle = obj->blob;
    req->buf = buf;
    req->len = end - begin;
    req->cap = in_place ? req->len : WEIR_BUFFER_BYTES;
    req->off = begin;
    req->tag = !in_place;
    req->blocking = only; /* nothing else is under way: no thread need be woken */
    weir_req_push(req, weir_queue_done, &scan->done);
    weir_tier_submit(obj->store->tier, req);
    return true;
}

/* Gives the caller what it asked for of a unit in a pool buffer. */
static void copy_out(struct scan *scan, const struct weir_req *req)
{
    uint64_t from = req->off > scan->begin ? req->off : scan->begin;
    uint64_t to = min_u64(req->off + req->len, scan->end);
    if (scan->buf && to > from)
        memcpy(scan->buf + (from - scan->begin), (char *)req->buf + (from - req->off), to - from);
}

static void take_unit(struct scan *scan)
{
    weir_object *obj = scan->obj;
    struct weir_req *req = weir_queue_get(&scan->done);
    scan->in_flight--;
    int code = req->code;
    if (code)
        weir_fail_text(code, req->text);
    else if (req->result < req->len)
        code = weir_fail(EBADMSG,
                         "'%s' is damaged: its data ends at byte %" PRIu64 " of %" PRIu64, obj->key,
                         req->off + req->result, obj->info.size_bytes);
    else
        code = check_unit(obj, req->buf, req->off, req->off + req->len);
    if (code)
        scan_failed(scan, code);
    if (req->tag) {
        if (!code)
            copy_out(scan, req);
        weir_pool_put(weir_io_pool(obj->store->io), req->buf);
    } else if (code) {
        memset(req->buf, 0, req->len); /* nobody shall mistake it for data */
    }
    if (!code && scan->progress && scan->progress(scan->progress_arg, req->len))
        scan_failed(scan, weir_fail(ECANCELED, "verifying '%s' was stopped", obj->key));
    weir_landing_count(&obj->store->landing, &scan->trial, obj->store->depth);
    req->next = scan->idle;
    scan->idle = req;
}

static int run_scan(struct scan *scan)
{
    weir_object *obj = scan->obj;
    bool only = unit_end(scan, scan->next) >= scan->end;
    unsigned depth = obj->store->depth;
    if (!obj->reqs && !(obj->reqs = weir_alloc(depth * sizeof *obj->reqs)))
        return weir_fail_memory();
    for (unsigned i = 0; i < depth; i++) {
        obj->reqs[i].next = scan->idle;
        scan->idle = &obj->reqs[i];
    }
    weir_queue_init(&scan->done);
    while (scan->in_flight || (!scan->code && scan->next < scan->end)) {
        while (!scan->code && scan->idle && scan->next < scan->end && send_unit(scan, only))
            ;
        if (scan->in_flight)
            take_unit(scan);
    }
    weir_queue_destroy(&scan->done);
    weir_landing_end(&obj->store->landing, &scan->trial);
    return scan->code ? weir_fail_text(scan->code, scan->text) : 0;
}

int weir_object_read(weir_object *obj, void *buf, size_t size, uint64_t off, size_t *got)
{
    assert(buf || !size);
    int code = weir_store_check(obj->store);
    if (code)
        return code;
    uint64_t end = obj->info.size_bytes;
    if (off < end && size < end - off)
        end = off + size;
    if (off >= end) {
        *got = 0;
        return 0;
    }
    struct scan scan = {
        .obj = obj,
        .buf = buf,
        .begin = off,
        .end = end,
        .next = off / obj->info.block_bytes * obj->info.block_bytes,
    };
    code = run_scan(&scan);
    if (!code)
        *got = end - off;
    return code;
}

int weir_verify(weir_store *store, const char *key, weir_progress_fn progress, void *arg)
{
    weir_object *obj;
    int code = weir_object_open(&obj, store, key);
    if (code)
        return code;
    struct scan scan = {
        .obj = obj,
        .end = obj->info.size_bytes,
        .progress = progress,
        .progress_arg = arg,
    };
    code = run_scan(&scan);
    weir_object_close(obj);
    return code;
}

void weir_object_digest(const weir_object *obj, uint8_t out[WEIR_SHA256_BYTES])
{
    memset(out, 0, WEIR_SHA256_BYTES);
    if (obj->sealed.record)
        weir_sha256(out, obj->sealed.record, obj->sealed.record_size);
}
