/* calls.c - see tier_calls.h. */
#include <pthread.h>
#include <stdatomic.h>

#include "tier_calls.h"

struct weir_tier *tier;
bool calls_async, has_alias, has_leases;
unsigned names_many;
bool is_short;

int rounds(int most)
{
    return is_short ? (most + 7) / 8 : most;
}

int call(struct weir_req *req)
{
    struct weir_queue queue;
    req->text[0] = 0;
    if (!calls_async) {
        weir_tier_call(tier, req);
    } else {
        weir_queue_init(&queue);
        weir_req_push(req, weir_queue_done, &queue);
        weir_tier_submit(tier, req);
        CHECK(weir_queue_get(&queue) == req);
        weir_queue_destroy(&queue);
    }
    CHECK(req->code <= 0);
    CHECK(!req->code || req->text[0]);
    return req->code;
}

int t_put(const char *name, const void *data, size_t size)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_PUT);
    req.name = name;
    req.buf = (void *)data;
    req.len = size;
    int code = call(&req);
    CHECK(!code || req.doubt == WEIR_SURE);
    return code;
}

int t_load(const char *name, size_t limit, void **data, size_t *size)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_LOAD);
    req.name = name;
    req.len = limit;
    int code = call(&req);
    if (code)
        return code;
    CHECK_EQ(req.stat.size, req.result);
    *data = req.buf;
    *size = req.result;
    return 0;
}

int t_stat(const char *name, struct weir_handle *handle, struct weir_blob_stat *stat)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_STAT);
    req.name = name;
    req.handle = handle;
    int code = call(&req);
    if (!code && stat)
        *stat = req.stat;
    return code;
}

int t_remove(const char *name, struct weir_handle *handle, bool sync)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_REMOVE);
    req.name = name;
    req.handle = handle;
    req.sync = sync;
    int code = call(&req);
    CHECK(!code || req.doubt == WEIR_SURE);
    return code;
}

int t_remove_if(const char *name, const void *data, size_t size)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_REMOVE_IF);
    req.name = name;
    req.buf = (void *)data;
    req.len = size;
    int code = call(&req);
    CHECK(!code || req.doubt == WEIR_SURE);
    return code;
}

int t_open(const char *name, struct weir_handle **handle, struct weir_blob_stat *stat)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_OPEN);
    req.name = name;
    int code = call(&req);
    if (code)
        return code;
    CHECK(req.handle);
    *handle = req.handle;
    if (stat)
        *stat = req.stat;
    return 0;
}

int t_read(struct weir_handle *handle, void *buf, size_t size, uint64_t off, size_t *got)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_READ);
    req.handle = handle;
    req.buf = buf;
    req.len = req.cap = size;
    req.off = off;
    int code = call(&req);
    *got = req.result;
    return code;
}

int t_create(const char *name, uint64_t hint, bool small, struct weir_handle **handle)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_CREATE);
    req.name = name;
    req.off = hint;
    req.small = small;
    int code = call(&req);
    if (!code) {
        CHECK(req.handle);
        *handle = req.handle;
    }
    return code;
}

int t_write(struct weir_handle *handle, const void *buf, size_t size, uint64_t off, bool sync)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_WRITE);
    req.handle = handle;
    req.buf = (void *)buf;
    req.len = size;
    req.off = off;
    req.sync = sync;
    return call(&req);
}

int t_commit(struct weir_handle *handle, uint64_t size, enum weir_doubt *doubt)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_COMMIT);
    req.handle = handle;
    req.off = size;
    int code = call(&req);
    if (doubt)
        *doubt = req.doubt;
    return code;
}

int t_alias(const char *name, const char *target, const char *guard, const void *data, size_t size)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_ALIAS);
    req.name = name;
    req.name2 = target;
    req.guard = guard;
    req.buf = (void *)data;
    req.len = size;
    return call(&req);
}

int64_t t_now(void)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_SWEEP);
    req.off = UINT64_MAX;
    req.dry = true;
    OK(call(&req));
    CHECK(req.stat.time_ns > 0);
    return req.stat.time_ns;
}

const char *fresh(const char *dir, const char *end)
{
    static atomic_uint number;
    static _Thread_local char names[32][128];
    static _Thread_local unsigned turn;
    char *name = names[turn++ % 32];
    snprintf(name, sizeof names[0], "%sn%u%s", dir, ++number, end);
    return name;
}

void blob_make(const char *name, size_t size, uint64_t seed)
{
    struct weir_handle *sink;
    uint8_t *data = data_buffer(size, 0);
    data_fill(data, size, seed, 0);
    OK(t_create(name, size, size < 4096, &sink));
    if (size)
        OK(t_write(sink, data, size, 0, true));
    OK(t_commit(sink, size, NULL));
    weir_handle_close(sink);
    data_free(data, 0);
}

void blob_is(const char *name, size_t size, uint64_t seed)
{
    struct weir_handle *blob;
    struct weir_blob_stat stat;
    size_t got;
    OK(t_open(name, &blob, &stat));
    CHECK_EQ(stat.size, size);
    uint8_t *buf = data_buffer(size + 100, 0);
    OK(t_read(blob, buf, size + 100, 0, &got));
    CHECK_EQ(got, size);
    CHECK(data_is(buf, size, seed, 0));
    data_free(buf, 0);
    weir_handle_close(blob);
}

void record_is(const char *name, const char *text)
{
    void *data;
    size_t size;
    OK(t_load(name, 4096, &data, &size));
    CHECK(size == strlen(text) && !memcmp(data, text, size));
    free(data);
}

int t_list_page(struct weir_req *req, const char *dir, struct weir_handle *cursor, void *page,
                size_t page_bytes, bool look)
{
    weir_req_init(req, WEIR_OP_LIST);
    req->name = dir;
    req->handle = cursor;
    req->look = look;
    req->buf = page;
    req->len = page_bytes;
    return call(req);
}

int t_list(const char *dir, size_t page_bytes, void (*fn)(void *arg, char type, const char *name),
           void *arg)
{
    struct weir_handle *cursor = NULL;
    char *page = malloc(page_bytes);
    struct weir_req req;
    do {
        t_list_page(&req, dir, cursor, page, page_bytes, false);
        cursor = req.handle;
        const char *at = page;
        for (uint64_t i = 0; !req.code && i < req.result; i++, at += strlen(at) + 1) {
            CHECK(at < page + page_bytes && memchr(at, 0, (size_t)(page + page_bytes - at)));
            CHECK(at[0] == 'f' || at[0] == 'd');
            CHECK(at[1] && !strchr(at + 1, '/'));
            fn(arg, at[0], at + 1);
        }
    } while (!req.code && req.result);
    weir_handle_close(cursor);
    free(page);
    return req.code;
}

struct runner {
    pthread_t thread;
    pthread_barrier_t *barrier;
    void (*fn)(void *arg, unsigned i);
    void *arg;
    unsigned i;
};

static void *run(void *arg)
{
    struct runner *r = arg;
    pthread_barrier_wait(r->barrier);
    r->fn(r->arg, r->i);
    return NULL;
}

void at_once(unsigned n, void (*fn)(void *arg, unsigned i), void *arg)
{
    struct runner *runners = calloc(n, sizeof *runners);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, n);
    for (unsigned i = 0; i < n; i++) {
        runners[i] = (struct runner){.barrier = &barrier, .fn = fn, .arg = arg, .i = i};
        CHECK(pthread_create(&runners[i].thread, NULL, run, &runners[i]) == 0);
    }
    for (unsigned i = 0; i < n; i++)
        pthread_join(runners[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    free(runners);
}
