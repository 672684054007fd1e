/* put.c - the one put path: a stream of bytes becomes a sealed object.
 *
 *   bytes -> pool buffers (or the caller's own memory) -> block sums -> WRITEs in flight
 *         -> the last WRITE syncs -> COMMIT under a name only this writer owns
 *         -> PUT of the seal: the object exists -> a plain name for people
 *
 * What stands in front may come last (weir_put_lead): then the buffers that it is in are kept until
 * then, and what follows them is on its way.
 *
 * A handle belongs to one thread. Completions only give buffers back and queue the request.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "store/store.h"
#include "util/err.h"
#include "util/huge.h"
#include "util/sys.h"

enum {
    IN_PLACE_BYTES_MIN = 16 << 20, /* below this, copying costs less than waiting at the end */
    SUMS_ROOM_MIN = 64,
};

struct weir_put {
    weir_store *store;
    struct weir_pool *pool;
    char *key;
    char data_name[WEIR_NAME_BYTES_MAX];
    uint8_t nonce[WEIR_NONCE_BYTES], digest[WEIR_SHA256_BYTES]; /* digest: of the seal */
    uint32_t flags, block_bytes;
    uint64_t size_hint;
    void *meta;
    size_t meta_size;
    uint64_t started_ns; /* boot-time clock */

    char *buf; /* being filled, or NULL */
    size_t fill;
    uint64_t offset; /* bytes before those that are being filled */
    char *front;     /* the first buffers, if their first head_bytes come last; else NULL */
    size_t front_bytes, head_bytes;
    bool has_head;
    uint8_t *sums;
    uint64_t blocks, sums_room;

    void (*release)(void *arg, void *data); /* of memory that was lent */
    void *release_arg;
    struct weir_handle *sink;
    struct weir_queue done;
    struct weir_req *reqs, *idle;
    unsigned in_flight;
    bool committed, has_data; /* data stands under data_name */
    bool is_named;            /* and under the plain name */
    int code;                 /* the first failure: nothing works after it */
    char text[WEIR_TEXT_MAX];
};

void weir_put_options_init(weir_put_options *opts)
{
    *opts = (weir_put_options){.struct_size = sizeof *opts, .block_bytes = WEIR_BLOCK_BYTES_MAX};
}

static int put_options_read(weir_put_options *out, const weir_put_options *given, const char *key)
{
    weir_put_options_init(out);
    if (given) {
        if (given->struct_size < sizeof(size_t) + sizeof(uint32_t) || given->struct_size > 4096)
            return weir_fail(EINVAL, "weir_put_options: call weir_put_options_init() first");
        size_t size = given->struct_size < sizeof *out ? given->struct_size : sizeof *out;
        memcpy(out, given, size);
    }
    uint32_t prefix = out->flags & ~WEIR_PUT_PREFIX;
    bool of_save = out->flags & WEIR_PUT_PREFIX && prefix < strlen(key) && key[prefix] == '/';
    if (out->flags && !of_save)
        return weir_fail(EINVAL, "weir_put_options: there are no flags yet, but 0x%x is set",
                         out->flags);
    if (!out->block_bytes)
        out->block_bytes = WEIR_BLOCK_BYTES_MAX;
    if (out->block_bytes < WEIR_BLOCK_BYTES_MIN || out->block_bytes > WEIR_BLOCK_BYTES_MAX ||
        out->block_bytes & (out->block_bytes - 1))
        return weir_fail(EINVAL, "a block size of %u: it is a power of two, 4 KiB to 1 MiB",
                         out->block_bytes);
    if (out->meta_bytes > WEIR_META_BYTES_MAX)
        return weir_fail(E2BIG, "%zu bytes of metadata: the limit is %d", out->meta_bytes,
                         WEIR_META_BYTES_MAX);
    if (weir_seal_blocks(out->size_bytes, out->block_bytes) > WEIR_BLOCKS_MAX)
        return weir_fail(EFBIG, "an object of %llu bytes: the limit is %llu with blocks of %u",
                         (unsigned long long)out->size_bytes,
                         (unsigned long long)WEIR_BLOCKS_MAX * out->block_bytes, out->block_bytes);
    return 0;
}

/* Remembers the first failure and returns it; its text names the object. */
static int put_failed(weir_put *put, int code)
{
    if (!put->code) {
        if (!strstr(weir_fail_last(), put->key))
            weir_fail_in(code, "cannot write '%s'", put->key);
        put->code = code;
        memcpy(put->text, weir_fail_last(), sizeof put->text);
    }
    return weir_fail_text(put->code, put->text);
}

/* 0 if the key is free, or why it is not. Clears a void that has stood long enough. */
static int key_free(weir_store *store, const char *key)
{
    struct weir_sealed found;
    int code = weir_sealed_load(&found, store, key);
    if (code == -ENOENT)
        return 0;
    if (code)
        return code;
    if (found.seal.kind == WEIR_SEAL_VOID) {
        int64_t now_ns;
        code = weir_store_now(store, &now_ns);
        if (!code)
            code = weir_void_clear(store, key, &found, now_ns, WEIR_VOID_LIFE_S * 1000000000ull);
    } else {
        code =
            weir_fail(EEXIST, "'%s' exists already (objects are immutable: remove it first)", key);
    }
    weir_sealed_free(&found);
    return code;
}

static int put_allocate(weir_put *put, const char *key, const weir_put_options *opts)
{
    unsigned depth = put->store->depth;
    put->key = weir_strdup(key);
    put->reqs = weir_alloc(depth * sizeof *put->reqs);
    put->meta = weir_alloc(opts->meta_bytes);
    if (!put->key || !put->reqs || !put->meta)
        return weir_fail_memory();
    if (opts->meta_bytes)
        memcpy(put->meta, opts->meta, opts->meta_bytes);
    put->meta_size = opts->meta_bytes;
    for (unsigned i = 0; i < depth; i++) {
        put->reqs[i].next = put->idle;
        put->idle = &put->reqs[i];
    }
    int code = weir_sys->random(put->nonce, sizeof put->nonce);
    if (code)
        return weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
    weir_key_data_name(put->data_name, key, put->nonce);
    return 0;
}

static void put_free(weir_put *put)
{
    weir_queue_destroy(&put->done);
    free(put->key);
    free(put->reqs);
    free(put->meta);
    free(put->sums);
    free(put);
}

/* Whose seal is there? 0: ours; -EEXIST, -EAGAIN: not ours; -ENOENT: none; else: cannot tell. */
static int whose_seal(weir_put *put)
{
    struct weir_sealed found;
    int code = weir_sealed_load(&found, put->store, put->key);
    if (code)
        return code;
    if (memcmp(found.seal.nonce, put->nonce, sizeof put->nonce))
        code = found.seal.kind == WEIR_SEAL_VOID
                   ? weir_fail(EAGAIN, "'%s' was just claimed by gc: try again in %d seconds",
                               put->key, WEIR_VOID_LIFE_S)
                   : weir_fail(EEXIST, "'%s' exists already: another writer was faster", put->key);
    weir_sealed_free(&found);
    return code;
}

/* A file somebody else put there has the name already; a sealed object's plain name may, too. */
static int plain_free(weir_put *put)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_STAT);
    req.name = put->key;
    req.fresh = true;
    int code = weir_tier_call(put->store->tier, &req);
    for (int looks = 0; !code && looks < WEIR_LOOKS_MAX; looks++) {
        struct weir_handle *blob;
        struct weir_blob_stat stat;
        code = weir_foreign_open(&blob, &stat, put->store, put->key, NULL);
        if (!code) {
            weir_handle_close(blob);
            return weir_fail(EEXIST, "'%s' exists already, as a plain file that Weir did not write",
                             put->key);
        }
        if (code == -EAGAIN) {
            code = whose_seal(put);
            code = code == -ENOENT ? 0 : code; /* it came and went */
        }
    }
    return code == -ENOENT ? 0 : code;
}

int weir_put_open(weir_put **out, weir_store *store, const char *key, const weir_put_options *opts)
{
    weir_put_options given;
    int code = weir_store_check_writable(store);
    if (!code)
        code = weir_key_check(key);
    if (!code)
        code = put_options_read(&given, opts, key);
    if (!code)
        code = key_free(store, key);
    if (code)
        return code;
    weir_put *put = weir_alloc(sizeof *put);
    if (!put)
        return weir_fail_memory();
    put->store = store;
    put->pool = weir_io_pool(store->io);
    put->flags = given.flags;
    put->block_bytes = given.block_bytes;
    put->size_hint = given.size_bytes;
    put->started_ns = weir_sys->now_ns(WEIR_CLOCK_BOOT);
    weir_queue_init(&put->done);
    code = put_allocate(put, key, &given);
    if (!code)
        code = plain_free(put); /* looked at again before the seal: better early than late */
    if (!code)
        code = weir_pool_reserve(put->pool);
    if (code)
        put_free(put);
    else
        *out = put;
    return code;
}

/* ---- the stream ---- */

/* Whose memory a piece is. */
enum { CALLERS, POOLED, LENT };

static void give_back(weir_put *put, void *data, int whose)
{
    if (whose == POOLED)
        weir_pool_put(put->pool, data);
    else if (whose == LENT)
        put->release(put->release_arg, data);
}

static void write_done(struct weir_req *req, void *arg)
{
    weir_put *put = arg;
    give_back(put, req->owner, (int)req->tag);
    weir_queue_put(&put->done, req);
}

/* Waits for one write and takes note of its failure. */
static void collect(weir_put *put)
{
    struct weir_req *req = weir_queue_get(&put->done);
    put->in_flight--;
    if (req->code) {
        weir_fail_text(req->code, req->text);
        put_failed(put, req->code);
    }
    req->next = put->idle;
    put->idle = req;
}

static void drain(weir_put *put)
{
    while (put->in_flight)
        collect(put);
}

/* Of the piece that begins at `at`, where a block does. */
static int sum_blocks(weir_put *put, const char *data, size_t size, uint64_t at)
{
    uint64_t block = at / put->block_bytes, end = block + weir_seal_blocks(size, put->block_bytes);
    if (end > put->sums_room) {
        uint64_t room = put->sums_room ? 2 * put->sums_room : SUMS_ROOM_MIN;
        while (room < end)
            room *= 2;
        uint8_t *sums = weir_realloc(put->sums, room * WEIR_SUM_BYTES);
        if (!sums)
            return weir_fail_memory();
        put->sums = sums;
        put->sums_room = room;
    }
    if (end > put->blocks)
        put->blocks = end;
    for (size_t done = 0; done < size; done += put->block_bytes) {
        size_t n = size - done < put->block_bytes ? size - done : put->block_bytes;
        weir_sum(put->sums + block++ * WEIR_SUM_BYTES, data + done, n);
    }
    return 0;
}

static int create_sink(weir_put *put, bool small)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_CREATE);
    req.name = put->data_name;
    req.off = put->size_hint;
    req.small = small;
    int code = weir_tier_call(put->store->tier, &req);
    if (!code)
        put->sink = req.handle;
    return code;
}

/* Hands one piece (whole blocks, but for the object's last) to the tier. Memory that is not the
 * caller's is given back when it is written, or when it cannot be. */
static int send_piece(weir_put *put, char *data, size_t size, uint64_t at, int whose, bool last)
{
    int code = 0;
    if (weir_seal_blocks(at + size, put->block_bytes) > WEIR_BLOCKS_MAX)
        code = weir_fail(EFBIG, "'%s' is larger than %llu bytes, the limit with blocks of %u",
                         put->key, (unsigned long long)WEIR_BLOCKS_MAX * put->block_bytes,
                         put->block_bytes);
    if (!code)
        code = sum_blocks(put, data, size, at);
    if (!code && !put->sink)
        code = create_sink(put, last && size < WEIR_BUFFER_BYTES);
    while (!code && (!put->idle || (last && put->in_flight))) {
        collect(put);
        code = put->code;
    }
    if (code) {
        give_back(put, data, whose);
        return put_failed(put, code);
    }
    struct weir_req *req = put->idle;
    put->idle = req->next;
    put->in_flight++;
    weir_req_init(req, WEIR_OP_WRITE);
    req->handle = put->sink;
    req->buf = data;
    req->len = size;
    req->off = at;
    req->sync = last;
    req->blocking = last && size < WEIR_BUFFER_BYTES; /* small: not worth waking a thread */
    req->owner = data;
    req->tag = (uint64_t)whose;
    weir_req_push(req, write_done, put);
    weir_tier_submit(put->store->tier, req);
    return 0;
}

/* Is the last of the front being filled? */
static bool fills_front(const weir_put *put)
{
    return put->front && put->buf == put->front + put->front_bytes - WEIR_BUFFER_BYTES;
}

static int send_buffer(weir_put *put, bool last)
{
    bool is_front = fills_front(put);
    char *buf = put->buf;
    size_t fill = put->fill;
    uint64_t at = put->offset;
    put->buf = NULL;
    put->fill = 0;
    put->offset += fill;
    return is_front ? 0 : send_piece(put, buf, fill, at, POOLED, last);
}

int weir_put_lend(weir_put *put, void *data, size_t size)
{
    int code = weir_store_check(put->store);
    assert(put->release && !put->buf && !put->front && put->offset % WEIR_BUFFER_BYTES == 0);
    if (!code && put->code)
        code = put_failed(put, put->code);
    if (code) {
        give_back(put, data, LENT);
        return code;
    }
    uint64_t at = put->offset;
    put->offset += size;
    return send_piece(put, data, size, at, LENT, size < WEIR_BUFFER_BYTES);
}

int weir_put_buffer(weir_put *put, void **buf, size_t *cap)
{
    int code = weir_store_check(put->store);
    if (code)
        return code;
    assert(!put->committed);
    if (put->code)
        return put_failed(put, put->code);
    /* A full buffer is sent only when more comes: the last one carries the sync. */
    if (put->buf && put->fill == WEIR_BUFFER_BYTES && (code = send_buffer(put, false)))
        return code;
    if (!put->buf) {
        void *fresh;
        while (put->in_flight >= weir_pool_share(put->pool))
            collect(put);
        code = put->code ? put->code : weir_pool_get(put->pool, &fresh);
        if (code)
            return put_failed(put, code);
        put->buf = fresh;
    }
    *buf = put->buf + put->fill;
    *cap = WEIR_BUFFER_BYTES - put->fill;
    return 0;
}

int weir_put_advance(weir_put *put, size_t size)
{
    assert(put->buf && size <= WEIR_BUFFER_BYTES - put->fill);
    put->fill += size;
    return 0;
}

/* Large aligned pieces of the caller's memory are written from where they are. */
static int write_in_place(weir_put *put, const char **data, size_t *size)
{
    int code = 0;
    if (put->buf && put->fill == WEIR_BUFFER_BYTES)
        code = send_buffer(put, false);
    if (!code && put->buf)
        return 0; /* a partial buffer: not at a boundary */
    while (!code && *size >= WEIR_BUFFER_BYTES) {
        code = send_piece(put, (char *)*data, WEIR_BUFFER_BYTES, put->offset, CALLERS, false);
        put->offset += WEIR_BUFFER_BYTES;
        *data += WEIR_BUFFER_BYTES;
        *size -= WEIR_BUFFER_BYTES;
    }
    drain(put); /* the memory is the caller's again */
    return put->code ? put_failed(put, put->code) : code;
}

int weir_put_write(weir_put *put, const void *data, size_t size)
{
    const char *at = data;
    int code = weir_store_check(put->store);
    if (code)
        return code;
    assert(!put->committed);
    if (!put->code && size >= IN_PLACE_BYTES_MIN && (uintptr_t)data % WEIR_IO_ALIGN == 0)
        code = write_in_place(put, &at, &size);
    while (!code && size) {
        void *buf;
        size_t cap;
        code = weir_put_buffer(put, &buf, &cap);
        if (code)
            break;
        size_t n = size < cap ? size : cap;
        memcpy(buf, at, n);
        weir_put_advance(put, n);
        at += n;
        size -= n;
    }
    return code;
}

/* ---- what comes last ---- */

int weir_put_lead(weir_put *put, size_t size)
{
    assert(size && !put->buf && !put->offset && !put->front);
    size_t buffers = (size + WEIR_BUFFER_BYTES - 1) / WEIR_BUFFER_BYTES;
    put->front = weir_huge_map(buffers * WEIR_BUFFER_BYTES);
    if (!put->front)
        return put_failed(put, weir_fail_memory());
    put->front_bytes = buffers * WEIR_BUFFER_BYTES;
    put->head_bytes = size;
    put->offset = put->front_bytes - WEIR_BUFFER_BYTES;
    put->buf = put->front + put->offset;
    put->fill = size - put->offset;
    return 0;
}

void weir_put_head(weir_put *put, const void *data, size_t size)
{
    assert(put->front && size == put->head_bytes && !put->has_head);
    memcpy(put->front, data, size);
    put->has_head = true;
}

int weir_put_meta(weir_put *put, const void *meta, size_t size)
{
    assert(size <= WEIR_META_BYTES_MAX && !put->committed);
    void *copy = weir_alloc(size);
    if (!copy)
        return weir_fail_memory();
    free(put->meta);
    put->meta = memcpy(copy, meta, size);
    put->meta_size = size;
    return 0;
}

/* All but the front is sent. */
static int send_front(weir_put *put)
{
    size_t size = put->offset < put->front_bytes ? (size_t)put->offset : put->front_bytes;
    int code = 0;
    assert(put->has_head);
    for (size_t at = 0; !code && at < size; at += WEIR_BUFFER_BYTES) {
        size_t n = size - at < WEIR_BUFFER_BYTES ? size - at : WEIR_BUFFER_BYTES;
        code = send_piece(put, put->front + at, n, at, CALLERS, at + n == size);
    }
    return code;
}

/* ---- the commit ---- */

/* Removes what was written, and nothing else that may stand under that name. What stays is
 * unsealed: gc takes it. */
static void remove_data(weir_put *put)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_REMOVE);
    req.name = put->data_name;
    req.handle = put->sink;
    weir_tier_call(put->store->tier, &req);
}

static int finish_data(weir_put *put)
{
    int code = put->code ? put_failed(put, put->code) : 0;
    if (!code && put->fill) /* a buffer may have been asked for and left empty */
        code = send_buffer(put, !put->front);
    if (!code && put->front)
        code = send_front(put);
    drain(put);
    if (!code && put->code)
        code = put_failed(put, put->code);
    if (!code && !put->sink)
        code = create_sink(put, true);
    if (code)
        return code;
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_COMMIT);
    req.handle = put->sink;
    req.off = put->offset;
    code = weir_tier_call(put->store->tier, &req);
    put->has_data = !code || req.doubt != WEIR_SURE;
    return code;
}

static int make_seal(weir_put *put, uint8_t **record, size_t *size)
{
    struct weir_seal seal = {
        .kind = WEIR_SEAL_OBJECT,
        .prefix_size = (uint16_t)(put->flags & ~WEIR_PUT_PREFIX),
        .algorithm = WEIR_ALGORITHM_XXH3_128,
        .block_bytes = put->block_bytes,
        .size = put->offset,
        .time_ns = weir_sys->now_ns(WEIR_CLOCK_REAL),
        .data_name = put->data_name,
        .data_name_size = strlen(put->data_name),
        .meta = put->meta,
        .meta_size = put->meta_size,
        .sums = put->sums,
        .blocks = put->blocks,
    };
    memcpy(seal.nonce, put->nonce, sizeof seal.nonce);
    return weir_seal_encode(&seal, record, size);
}

static int unknown(weir_put *put)
{
    weir_fail_in(0, "the outcome of writing '%s' is unknown", put->key);
    return -WEIR_EUNKNOWN;
}

static int too_old(weir_put *put)
{
    return weir_fail(ESTALE,
                     "writing '%s' took longer than half the store's grace (%llu s), so gc may "
                     "have taken this writer for dead: write it again",
                     put->key, (unsigned long long)(put->store->grace_ns / 1000000000));
}

/* Puts the seal, and settles what a lost answer leaves open. -ENOENT: what stood there is gone. */
static int put_seal_once(weir_put *put, const char *name, uint8_t *record, size_t size)
{
    char text[WEIR_TEXT_MAX];
    enum weir_doubt doubt;
    uint64_t until_ns = put->started_ns + put->store->grace_ns / 2;
    int code = weir_record_put(put->store, name, record, size, until_ns, &doubt);
    if (!code)
        return 0;
    if (doubt == WEIR_DOUBT_SYNC)
        return unknown(put);
    if (code == -ESTALE && doubt == WEIR_SURE)
        return too_old(put);
    if (code != -EEXIST && doubt == WEIR_SURE)
        return code;
    memcpy(text, weir_fail_last(), sizeof text);
    int whose = whose_seal(put);
    if (whose == 0 || whose == -EEXIST || whose == -EAGAIN)
        return whose;
    if (whose == -ENOENT && doubt == WEIR_SURE) /* the tier knows that ours never stood there */
        return whose;
    weir_fail_text(code, text);
    return unknown(put);
}

/* The seal is there. But its writer's clock may have stood still (a paused machine), and gc have
 * taken the data meanwhile: then the seal stands for nothing and goes. Nobody was told of it. (If
 * it is gone already, a remover took both.) While the seal is there, gc leaves the data alone. */
static int recheck(weir_put *put, const char *name, uint8_t *record, size_t size)
{
    int code = weir_store_stat(put->store, put->data_name, NULL);
    if (code != -ENOENT)
        return code ? unknown(put) : 0;
    code = weir_record_drop(put->store, name, record, size);
    if (code == -ENOENT || code == -ESTALE)
        return 0;
    return code ? unknown(put) : too_old(put);
}

static int put_seal(weir_put *put, const char *name, uint8_t *record, size_t size)
{
    int code = -ENOENT;
    for (int looks = 0; code == -ENOENT && looks < WEIR_LOOKS_MAX; looks++)
        code = put_seal_once(put, name, record, size);
    if (code == -ENOENT)
        code = weir_fail(EAGAIN, "'%s' keeps being written and removed: try later", put->key);
    return code;
}

static int seal_it(weir_put *put)
{
    char name[WEIR_NAME_BYTES_MAX];
    uint8_t *record;
    size_t size;
    int code = plain_free(put);
    if (!code)
        code = make_seal(put, &record, &size);
    if (code)
        return code;
    weir_key_name(name, WEIR_DIR_SEAL, put->key);
    weir_sha256(put->digest, record, size);
    code = put_seal(put, name, record, size);
    /* A plain name beside the data, for people, unless the object was removed meanwhile. That it
     * cannot be made is no failure; that it can shows that the data is there. */
    if (!code) {
        put->is_named = !weir_store_alias(put->store, put->key, put->data_name, record, size, true);
        code = put->is_named ? 0 : recheck(put, name, record, size);
    }
    free(record);
    return code;
}

int weir_put_commit(weir_put *put, weir_put_result *result)
{
    int code = weir_store_check(put->store);
    if (code)
        return code;
    assert(!put->committed);
    code = finish_data(put);
    if (!code)
        code = seal_it(put);
    if (code) {
        /* The text of the failure outlives the cleaning up. While the outcome is unknown, the data
         * stays: gc will know. */
        put->code = 0;
        put_failed(put, code);
        if (put->has_data && code != -WEIR_EUNKNOWN)
            remove_data(put);
        put->has_data = false;
        return put_failed(put, code);
    }
    put->committed = true;
    if (result)
        *result = (weir_put_result){put->offset, put->store->tier->level};
    return 0;
}

bool weir_put_is_named(const weir_put *put)
{
    return put->is_named;
}

void weir_put_close(weir_put *put)
{
    if (!put)
        return;
    if (weir_store_check(put->store))
        return; /* the parent's, after fork() */
    drain(put);
    if (put->buf && !fills_front(put))
        weir_pool_put(put->pool, put->buf);
    if (put->front)
        munmap(put->front, put->front_bytes);
    weir_handle_close(put->sink);
    weir_pool_release(put->pool);
    put_free(put);
}

void weir_put_lender(weir_put *put, void (*release)(void *arg, void *data), void *arg)
{
    put->release = release;
    put->release_arg = arg;
}

void weir_put_digest(const weir_put *put, uint8_t out[WEIR_SHA256_BYTES])
{
    assert(put->committed);
    memcpy(out, put->digest, WEIR_SHA256_BYTES);
}
