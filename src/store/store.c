/* store.c - opening a store, and loading its seals. */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/marker.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/thread.h"

enum {
    DEPTH_DEFAULT = 16,
    ENGINE_DEPTH_FACTOR = 4, /* streams that can be at full depth at once */
    GRACE_S_DEFAULT = 86400,
    POOL_BYTES_DEFAULT = 64 << 20,
};

_Static_assert(WEIR_BLOCK_BYTES_MAX == WEIR_BUFFER_BYTES, "a buffer holds whole blocks");

const char *weir_version(void)
{
    return WEIR_VERSION;
}

const char *weir_error_text(void)
{
    return weir_fail_last();
}

const char *weir_level_name(weir_level level)
{
    static const char *const names[] = {"none", "memory", "node", "peer", "home"};
    return (unsigned)level < sizeof names / sizeof names[0] ? names[level] : "?";
}

void weir_store_options_init(weir_store_options *opts)
{
    *opts = (weir_store_options){
        .struct_size = sizeof *opts,
        .depth = DEPTH_DEFAULT,
        .pool_bytes_max = POOL_BYTES_DEFAULT,
        .grace_s = GRACE_S_DEFAULT,
    };
}

/* Copies what the caller's header knew of, and fills in the defaults of the rest. */
static int options_read(weir_store_options *out, const weir_store_options *given)
{
    weir_store_options_init(out);
    if (!given)
        return 0;
    if (given->struct_size < sizeof(size_t) + sizeof(uint32_t) || given->struct_size > 4096)
        return weir_fail(EINVAL, "weir_store_options: call weir_store_options_init() first");
    weir_store_options copy = {0};
    size_t size = given->struct_size < sizeof copy ? given->struct_size : sizeof copy;
    memcpy(&copy, given, size);
    out->flags = copy.flags;
    out->io = copy.io;
    out->depth = copy.depth ? copy.depth : out->depth;
    out->pool_bytes_max = copy.pool_bytes_max ? copy.pool_bytes_max : out->pool_bytes_max;
    out->grace_s = copy.grace_s ? copy.grace_s : out->grace_s;
    if (out->depth > 64)
        return weir_fail(EINVAL, "a depth of %u is out of range (1 to 64)", out->depth);
    if (out->grace_s > 365 * 86400ull)
        return weir_fail(EINVAL, "a grace of more than a year");
    return 0;
}

int weir_store_check(const weir_store *store)
{
    if (store->generation != weir_fork_generation())
        return weir_fail(ECHILD, "store '%s' was opened before fork(): open it again in the child",
                         store->url);
    return 0;
}

int weir_store_check_writable(const weir_store *store)
{
    int code = weir_store_check(store);
    if (!code && !store->uuid[0])
        code = weir_fail(EROFS,
                         "'%s' is a plain directory, not a store: it can be read; to write, make "
                         "it a store (weir init, or WEIR_STORE_CREATE)",
                         store->url);
    return code;
}

void weir_store_set_guard(weir_store *store, const struct weir_guard *guard)
{
    assert(!guard || (guard->block_bytes >= WEIR_BLOCK_BYTES_MIN &&
                      guard->block_bytes <= WEIR_BLOCK_BYTES_MAX &&
                      !(guard->block_bytes & (guard->block_bytes - 1))));
    store->guard = guard;
}

void weir_store_read_bytes(weir_store *store, uint64_t out[WEIR_READ_WAYS])
{
    weir_io_read_bytes(store->io, out);
}

void weir_store_set_keeps(weir_store *store, bool keeps)
{
    store->keeps = keeps;
}

int weir_store_stat(weir_store *store, const char *name, struct weir_blob_stat *stat)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_STAT);
    req.name = name;
    int code = weir_tier_call(store->tier, &req);
    if (!code && stat)
        *stat = req.stat;
    return code;
}

int weir_store_blob_open(weir_store *store, const char *name, struct weir_handle **out,
                         struct weir_blob_stat *stat, bool *around)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_OPEN);
    req.name = name;
    req.once = around != NULL;
    int code = weir_tier_call(store->tier, &req);
    if (code)
        return code;
    *out = req.handle;
    if (around)
        *around = req.around;
    if (stat)
        *stat = req.stat;
    return 0;
}

unsigned weir_store_writers_max(const weir_store *store)
{
    return weir_pool_streams_max(weir_io_pool(store->io));
}

int weir_store_settle(weir_store *store, const char *name)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_STAT);
    req.name = name;
    req.sync = true;
    return weir_tier_call(store->tier, &req);
}

int weir_store_drop(weir_store *store, const char *name)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_REMOVE);
    req.name = name;
    return weir_tier_call(store->tier, &req);
}

bool weir_store_has_names(const weir_store *store)
{
    return store->tier->has_names;
}

int weir_store_alias(weir_store *store, const char *key, const char *data_name, const uint8_t *seal,
                     size_t size, bool is_durable)
{
    char guard[WEIR_NAME_BYTES_MAX];
    struct weir_req req;
    weir_key_name(guard, WEIR_DIR_SEAL, key);
    weir_req_init(&req, WEIR_OP_ALIAS);
    req.name = key;
    req.name2 = data_name;
    req.guard = guard;
    req.buf = (void *)seal;
    req.len = size;
    req.sync = !is_durable;
    return weir_tier_call(store->tier, &req);
}

int weir_record_load(weir_store *store, const char *name, size_t max, uint8_t **buf, size_t *size,
                     int64_t *time_ns)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_LOAD);
    req.name = name;
    req.len = max;
    int code = weir_tier_call(store->tier, &req);
    if (code)
        return code;
    *buf = req.buf;
    *size = req.result;
    if (time_ns)
        *time_ns = req.stat.time_ns;
    return 0;
}

int weir_record_put(weir_store *store, const char *name, const uint8_t *buf, size_t size,
                    uint64_t until_ns, enum weir_doubt *doubt)
{
    struct weir_req req;
    int code = -ESTALE;
    /* Whoever stands still for long enough loses his temporary file to gc. Where it is never too
     * late, that is no reason to fail: to callers -ESTALE means something else. */
    for (int looks = 0; code == -ESTALE && looks < WEIR_LOOKS_MAX; looks++) {
        weir_req_init(&req, WEIR_OP_PUT);
        req.name = name;
        req.buf = (void *)buf;
        req.len = size;
        req.off = until_ns;
        code = weir_tier_call(store->tier, &req);
        if (until_ns || req.doubt != WEIR_SURE)
            break;
    }
    if (code == -ESTALE && !until_ns && req.doubt == WEIR_SURE)
        code = weir_fail(EBUSY, "'%s' was swept away again and again while it was written", name);
    if (doubt)
        *doubt = req.doubt;
    return code;
}

int weir_record_drop(weir_store *store, const char *name, const uint8_t *buf, size_t size)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_REMOVE_IF);
    req.name = name;
    req.buf = (void *)buf;
    req.len = size;
    return weir_tier_call(store->tier, &req);
}

static int marker_load(weir_store *store)
{
    struct weir_marker marker;
    uint8_t *record;
    size_t size;
    int code =
        weir_record_load(store, WEIR_NAME_STORE, WEIR_MARKER_BYTES_MAX, &record, &size, NULL);
    if (code)
        return code;
    code = weir_marker_decode(&marker, record, size);
    free(record);
    if (code)
        return weir_fail_in(code, "cannot open store '%s'", store->url);
    weir_uuid_text(store->uuid, marker.uuid);
    store->grace_ns = marker.grace_ns;
    return 0;
}

static int marker_make(weir_store *store, uint64_t grace_s)
{
    struct weir_marker marker = {.grace_ns = grace_s * 1000000000,
                                 .time_ns = weir_sys->now_ns(WEIR_CLOCK_REAL)};
    uint8_t record[WEIR_MARKER_BYTES];
    int code = weir_sys->random(marker.uuid, sizeof marker.uuid);
    if (code)
        return weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
    weir_marker_encode(record, &marker);
    code = weir_record_put(store, WEIR_NAME_STORE, record, sizeof record, 0, NULL);
    if (code == -EEXIST)
        return marker_load(store); /* somebody was faster: it is theirs */
    if (code)
        return weir_fail_in(code, "cannot make store '%s'", store->url);
    weir_uuid_text(store->uuid, marker.uuid);
    store->grace_ns = marker.grace_ns;
    return 0;
}

/* A directory that is no store and has nothing of one in it. If it becomes a store while it is
 * open here, its objects are read by their plain names, as the files that they are. */
static bool is_bare(weir_store *store)
{
    char page[1024];
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_LIST);
    req.name = WEIR_NAME_OWN;
    req.buf = page;
    req.len = sizeof page;
    int code = weir_tier_call(store->tier, &req);
    weir_handle_close(req.handle);
    return code == -ENOENT;
}

static int open_parts(weir_store *store, const weir_store_options *opts)
{
    struct weir_url url;
    struct weir_io_options io = {opts->io, opts->depth * ENGINE_DEPTH_FACTOR, opts->pool_bytes_max};
    bool create = opts->flags & WEIR_STORE_CREATE;
    int code = weir_url_parse(&url, store->url);
    if (code)
        return code;
    code = weir_io_open(&store->io, &io);
    if (!code)
        code = weir_tier_open(&store->tier, &url, store->io, create);
    weir_url_free(&url);
    if (code == -ENOENT)
        return weir_fail(ENOENT, "there is no store at '%s'", store->url);
    if (code)
        return weir_fail_in(code, "cannot open store '%s'", store->url);
    if (opts->depth == DEPTH_DEFAULT && store->tier->depth)
        store->depth = store->tier->depth; /* what is far away needs more under way */
    weir_io_set_stream(store->io, store->depth);
    if (strcmp(weir_tier_kind(store->tier), "file"))
        store->landing.forced = WEIR_WAY_IN_PLACE; /* it is copied once anyway, not twice */
    code = marker_load(store);
    if (code == -ENODEV) /* the bucket, the pool: WEIR_STORE_CREATE makes it, if it can be made */
        return weir_fail_in(-ENOENT, "there is no store at '%s'", store->url);
    if (code != -ENOENT)
        return code;
    store->is_bare = !create && is_bare(store);
    return create ? marker_make(store, opts->grace_s) : 0;
}

int weir_store_open(weir_store **out, const char *url, const weir_store_options *opts)
{
    weir_store_options given;
    int code = options_read(&given, opts);
    if (code)
        return code;
    if (!*url)
        return weir_fail(EINVAL, "a store needs a path or a URL");
    weir_store *store = weir_alloc(sizeof *store);
    char *copy = store ? weir_strdup(url) : NULL;
    if (!copy) {
        free(store);
        return weir_fail_memory();
    }
    store->url = copy;
    store->depth = given.depth;
    store->generation = weir_fork_generation();
    code = open_parts(store, &given);
    if (code)
        weir_store_close(store);
    else
        *out = store;
    return code;
}

void weir_store_close(weir_store *store)
{
    if (!store)
        return;
    /* In a forked child the threads are not there: the parent's handles are left alone. */
    if (store->generation != weir_fork_generation())
        return;
    weir_tier_close(store->tier);
    weir_io_close(store->io);
    free(store->url);
    free(store);
}

int weir_store_info_get(weir_store *store, weir_store_info *info)
{
    struct weir_req req;
    int code = weir_store_check(store);
    if (code)
        return code;
    weir_req_init(&req, WEIR_OP_SPACE);
    code = weir_tier_call(store->tier, &req);
    if (code)
        return code;
    const char *kind = weir_tier_kind(store->tier);
    *info = (weir_store_info){
        .url = store->url,
        .uuid = store->uuid,
        .tier = kind,
        .io = strcmp(kind, "file") ? "none" : weir_io_engine(store->io),
        .level = store->tier->level,
        .grace_s = store->grace_ns / 1000000000,
        .free_bytes = req.space.free_bytes,
        .total_bytes = req.space.total_bytes,
    };
    return 0;
}

int weir_store_stats(weir_store *store, weir_stat_row *rows, size_t max)
{
    int code = weir_store_check(store);
    return code ? code : weir_tier_stats_get(store->tier, rows, max);
}

int weir_sealed_load(struct weir_sealed *out, weir_store *store, const char *key)
{
    char name[WEIR_NAME_BYTES_MAX];
    struct weir_sealed sealed;
    if (store->is_bare)
        return -ENOENT;
    weir_key_name(name, WEIR_DIR_SEAL, key);
    int code = weir_record_load(store, name, WEIR_RECORD_BYTES_MAX, &sealed.record,
                                &sealed.record_size, &sealed.time_ns);
    if (code)
        return code != -EFBIG
                   ? code
                   : weir_fail(EBADMSG, "the seal of '%s' is damaged: it is too long", key);
    code = weir_seal_decode(&sealed.seal, sealed.record, sealed.record_size, key);
    if (!code && sealed.seal.kind == WEIR_SEAL_LEARNED)
        code = weir_fail(EBADMSG, "the seal of '%s' is damaged: it is a learned one", key);
    if (code)
        free(sealed.record);
    else
        *out = sealed;
    return code;
}

void weir_sealed_free(struct weir_sealed *sealed)
{
    free(sealed->record);
    sealed->record = NULL;
}

int weir_store_now(weir_store *store, int64_t *time_ns)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_SWEEP);
    req.off = UINT64_MAX;
    req.dry = true;
    int code = weir_tier_call(store->tier, &req);
    if (!code)
        *time_ns = req.stat.time_ns;
    return code;
}

int weir_void_clear(weir_store *store, const char *key, const struct weir_sealed *found,
                    int64_t now_ns, uint64_t life_ns)
{
    assert(found->seal.kind == WEIR_SEAL_VOID);
    int64_t age_ns = now_ns - found->time_ns;
    if (age_ns < 0 || (uint64_t)age_ns < life_ns)
        return weir_fail(EAGAIN,
                         "'%s' was claimed by gc a moment ago (an abandoned write of it is being "
                         "collected): try again in %d seconds",
                         key, WEIR_VOID_LIFE_S);
    char name[WEIR_NAME_BYTES_MAX];
    weir_key_name(name, WEIR_DIR_SEAL, key);
    int code = weir_record_drop(store, name, found->record, found->record_size);
    /* Whoever else cleared it, it is cleared. */
    return code == -ENOENT || code == -ESTALE ? 0 : code;
}
