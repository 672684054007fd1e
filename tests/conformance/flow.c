/* flow.c - many requests in flight, each completed exactly once; SPACE and SWEEP; and what little a
 * null tier promises.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tier_calls.h"

enum { PUTS = 400, PIECE = 65536 };

/* A completion function that counts, before the queue gets the request. */
static void counted(struct weir_req *req, void *arg)
{
    atomic_fetch_add((atomic_uint *)req->owner, 1);
    weir_queue_put(arg, req);
}

static void start(struct weir_req *req, atomic_uint *count, struct weir_queue *queue)
{
    req->owner = count;
    weir_req_push(req, counted, queue);
    weir_tier_submit(tier, req);
}

static void puts_in_flight(void)
{
    const unsigned many = (unsigned)rounds(PUTS);
    struct weir_req *reqs = calloc(many, sizeof *reqs);
    atomic_uint *counts = calloc(many, sizeof *counts);
    char(*names)[64] = calloc(many, sizeof *names);
    struct weir_queue queue;
    unsigned won = 0;
    weir_queue_init(&queue);
    for (unsigned i = 0; i < many; i++) { /* two for each name */
        snprintf(names[i], sizeof names[i], ".weir/seal/flight%d/n%u~", calls_async, i / 2);
        weir_req_init(&reqs[i], WEIR_OP_PUT);
        reqs[i].name = names[i];
        reqs[i].buf = names[i];
        reqs[i].len = 10;
        start(&reqs[i], &counts[i], &queue);
    }
    for (unsigned i = 0; i < many; i++) {
        struct weir_req *req = weir_queue_get(&queue);
        CHECK(req->code == 0 || req->code == -EEXIST);
        won += !req->code;
    }
    CHECK_EQ(won, many / 2);
    for (unsigned i = 0; i < many; i++)
        CHECK_EQ(counts[i], 1);
    weir_queue_destroy(&queue);
    free(reqs);
    free(counts);
    free(names);
}

/* Writes of one blob all at once, then reads of it all at once. */
static void transfers_in_flight(void)
{
    enum { PIECES = 64 };
    const char *name = fresh(".weir/data/flight/", "~x");
    struct weir_req *reqs = calloc(PIECES, sizeof *reqs);
    atomic_uint counts[PIECES] = {0};
    uint8_t *data = data_buffer(PIECES * PIECE, 0);
    struct weir_queue queue;
    struct weir_handle *handle;
    weir_queue_init(&queue);
    for (int reading = 0; reading < 2; reading++) {
        if (reading)
            OK(t_open(name, &handle, NULL));
        else
            OK(t_create(name, PIECES * PIECE, false, &handle));
        if (reading)
            memset(data, 0, PIECES * PIECE);
        else
            data_fill(data, PIECES * PIECE, 8, 0);
        for (unsigned i = 0; i < PIECES; i++) {
            weir_req_init(&reqs[i], reading ? WEIR_OP_READ : WEIR_OP_WRITE);
            reqs[i].handle = handle;
            reqs[i].buf = data + (PIECES - 1 - i) * PIECE;
            reqs[i].len = reqs[i].cap = PIECE;
            reqs[i].off = (PIECES - 1 - i) * PIECE;
            start(&reqs[i], &counts[i], &queue);
        }
        for (unsigned i = 0; i < PIECES; i++) {
            struct weir_req *req = weir_queue_get(&queue);
            OK(req->code);
            CHECK(!reading || req->result == PIECE);
        }
        if (!reading)
            OK(t_commit(handle, PIECES * PIECE, NULL));
        weir_handle_close(handle);
    }
    CHECK(data_is(data, PIECES * PIECE, 8, 0));
    for (unsigned i = 0; i < PIECES; i++)
        CHECK_EQ(counts[i], 2);
    weir_queue_destroy(&queue);
    data_free(data, 0);
    free(reqs);
}

static void mixed(void *arg, unsigned i)
{
    struct rng rng = {i};
    (void)arg;
    for (int round = 0; round < rounds(30); round++) {
        const char *blob = fresh(".weir/data/mixed/", "~x");
        const char *seal = fresh(".weir/seal/mixed/", "~");
        size_t size = rng_below(&rng, 200000);
        blob_make(blob, size, i);
        OK(t_put(seal, "sealed", 6));
        blob_is(blob, size, i);
        OK(t_remove_if(seal, "sealed", 6));
        OK(t_remove(blob, NULL, false));
    }
}

static void many_threads(void)
{
    at_once(6, mixed, NULL);
}

static void space(void)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_SPACE);
    OK(call(&req)); /* UINT64_MAX: not known */
    CHECK(req.space.total_bytes > 0 && req.space.free_bytes <= req.space.total_bytes);
}

static uint64_t swept(uint64_t age_ns, bool dry, uint64_t *young)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_SWEEP);
    req.off = age_ns;
    req.dry = dry;
    OK(call(&req));
    *young = req.len;
    return req.result;
}

/* A sink in progress may be a temporary of the tier: young, it is left alone; swept, its commit
 * says so; and a tier that has no temporaries has none. */
static void sweep_of(size_t size)
{
    struct weir_handle *sink;
    struct weir_blob_stat stat;
    uint64_t young, temporaries;
    const char *name = fresh(".weir/data/sweep/", "~x");
    uint8_t *data = data_buffer(size, 0);
    data_fill(data, size, size, 0);
    swept(0, false, &young);
    CHECK_EQ(swept(0, true, &young), 0);
    OK(t_create(name, 0, false, &sink));
    OK(t_write(sink, data, size, 0, false));
    temporaries = swept(0, true, &young);
    CHECK(temporaries <= 1 && young == 0);
    CHECK_EQ(swept(3600000000000, false, &young), 0);
    CHECK_EQ(young, temporaries);
    OK(t_commit(sink, size, NULL)); /* neither of these touched it */
    weir_handle_close(sink);
    CHECK_EQ(swept(0, false, &young), 0);
    blob_is(name, size, size);
    name = fresh(".weir/data/sweep/", "~x");
    OK(t_create(name, 0, false, &sink));
    OK(t_write(sink, data, size, 0, false));
    CHECK_EQ(swept(0, false, &young), temporaries);
    CHECK_EQ(t_commit(sink, size, NULL), temporaries ? -ESTALE : 0);
    weir_handle_close(sink);
    CHECK_EQ(t_stat(name, NULL, &stat), temporaries ? -ENOENT : 0);
    CHECK_EQ(swept(0, true, &young), 0);
    data_free(data, 0);
}

static void sweep(void)
{
    sweep_of(1);
}

static void sweep_of_parts(void)
{
    sweep_of(11 << 20); /* more than any tier holds back, or writes as one */
}

void check_flow(void)
{
    RUN(puts_in_flight);
    RUN(transfers_in_flight);
    RUN(many_threads);
    RUN(space);
    RUN(sweep);
    RUN(sweep_of_parts);
}

static void none(void *arg, char type, const char *name)
{
    (void)arg, (void)type;
    fprintf(stderr, "a null tier has '%s'\n", name);
    exit(1);
}

static void takes_everything_keeps_nothing(void)
{
    struct weir_handle *handle;
    struct weir_req req;
    uint64_t young;
    void *data;
    size_t size;
    OK(t_create("x", 100, false, &handle));
    OK(t_write(handle, "x", 1, 5, true));
    OK(t_commit(handle, 6, NULL));
    weir_handle_close(handle);
    OK(t_put("x", "x", 1));
    OK(t_put("x", "y", 1));
    CHECK_EQ(t_open("x", &handle, NULL), -ENOENT);
    CHECK_EQ(t_load("x", 10, &data, &size), -ENOENT);
    CHECK_EQ(t_stat("x", NULL, NULL), -ENOENT);
    CHECK_EQ(t_remove("x", NULL, true), -ENOENT);
    CHECK_EQ(t_remove_if("x", "x", 1), -ENOENT);
    CHECK_EQ(t_alias("y", "x", NULL, NULL, 0), -ENOTSUP);
    OK(t_list("", 100, none, NULL));
    weir_req_init(&req, WEIR_OP_SPACE);
    OK(call(&req));
    CHECK(req.space.free_bytes == UINT64_MAX && req.space.total_bytes == UINT64_MAX);
    CHECK_EQ(swept(0, false, &young), 0);
    CHECK(t_now() > 0);
}

void check_null(void)
{
    RUN(takes_everything_keeps_nothing);
}
