/* blobs.c - CREATE, WRITE, COMMIT, OPEN, READ: whole or not at all, and the same for ever. */
#include <stdatomic.h>

#include "tier_calls.h"
#include "util/sys.h"

enum { MIB = 1 << 20, RACERS = 8, RACES = 10 };

static const size_t sizes[] = {0,   1,       4095,        4096,         4097,    MIB - 1,
                               MIB, MIB + 1, 3 * MIB + 5, 12 * MIB + 7, 11 * MIB};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void whole(void)
{
    for (size_t i = 0; i < COUNT(sizes); i++) {
        const char *name = fresh(".weir/data/whole/", "~x");
        blob_make(name, sizes[i], i);
        blob_is(name, sizes[i], i);
    }
}

/* Pieces in any order, of any length, at any address; the last one syncs. */
static void out_of_order(void)
{
    struct rng rng = {1};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        enum { PIECES = 13 };
        const char *name = fresh(".weir/data/order/", "~x");
        size_t size = sizes[i], cut[PIECES + 1], order[PIECES];
        struct weir_handle *sink;
        uint8_t *data = data_buffer(size, 1);
        data_fill(data, size, 40 + i, 0);
        for (size_t p = 0; p <= PIECES; p++)
            cut[p] = size * p / PIECES + (p && p < PIECES && i % 2 ? size / 100 : 0);
        for (size_t p = 0; p < PIECES; p++) {
            size_t other = rng_below(&rng, p + 1);
            order[p] = order[other];
            order[other] = p;
        }
        OK(t_create(name, i % 2 ? size : 0, false, &sink));
        for (size_t p = 0; p < PIECES; p++) {
            size_t from = cut[order[p]], to = cut[order[p] + 1];
            if (to > from)
                OK(t_write(sink, data + from, to - from, from, p == PIECES - 1));
        }
        OK(t_commit(sink, size, NULL));
        weir_handle_close(sink);
        blob_is(name, size, 40 + i);
        data_free(data, 1);
    }
}

/* A blob is shown as memory, or the tier says that it cannot; it stays, also without its name. */
static void mapped(void)
{
    const char *name = fresh(".weir/data/mapped/", "~x");
    struct weir_handle *blob;
    struct weir_req req;
    blob_make(name, MIB + 1, 5);
    OK(t_open(name, &blob, NULL));
    weir_req_init(&req, WEIR_OP_MAP);
    req.handle = blob;
    req.len = MIB + 1;
    int code = call(&req);
    OK(t_remove(name, NULL, true));
    CHECK(code == 0 || code == -ENOTSUP);
    if (!code) {
        CHECK(data_is(req.buf, MIB + 1, 5, 0));
        weir_sys->unmap(req.buf, MIB + 1);
    }
    weir_handle_close(blob);
}

/* The announced size was too large: the blob has the final one. */
static void wrong_hint(void)
{
    static const size_t finals[] = {0, 1, MIB};
    for (size_t i = 0; i < COUNT(finals); i++) {
        const char *name = fresh(".weir/data/hint/", "~x");
        struct weir_handle *sink;
        uint8_t *data = data_buffer(finals[i], 0);
        data_fill(data, finals[i], 3, 0);
        OK(t_create(name, 10 * MIB, false, &sink));
        if (finals[i])
            OK(t_write(sink, data, finals[i], 0, false));
        OK(t_commit(sink, finals[i], NULL));
        weir_handle_close(sink);
        blob_is(name, finals[i], 3);
        data_free(data, 0);
    }
}

static void nothing_before_the_commit(void)
{
    const char *name = fresh(".weir/data/early/", "~x");
    struct weir_handle *sink, *blob;
    void *data;
    size_t size;
    OK(t_create(name, 0, false, &sink));
    OK(t_write(sink, "x", 1, 0, false));
    CHECK_EQ(t_stat(name, NULL, NULL), -ENOENT);
    CHECK_EQ(t_open(name, &blob, NULL), -ENOENT);
    CHECK_EQ(t_load(name, 100, &data, &size), -ENOENT);
    weir_handle_close(sink); /* without a commit */
    CHECK_EQ(t_stat(name, NULL, NULL), -ENOENT);
    blob_make(name, 10, 1); /* and the name is free */
}

static void taken_name(void)
{
    const char *name = fresh(".weir/data/taken/", "~x");
    struct weir_handle *sink;
    enum weir_doubt doubt = 99;
    blob_make(name, 5000, 1);
    OK(t_create(name, 0, false, &sink));
    OK(t_write(sink, "other", 5, 0, true));
    CHECK_EQ(t_commit(sink, 5, &doubt), -EEXIST);
    CHECK_EQ(doubt, WEIR_SURE);
    weir_handle_close(sink);
    blob_is(name, 5000, 1);
}

struct race {
    const char *name;
    atomic_uint wins;
    unsigned winner;
};

static void race_one(void *arg, unsigned i)
{
    struct race *race = arg;
    struct weir_handle *sink;
    uint8_t data[600];
    data_fill(data, 500 + i, 60 + i, 0);
    OK(t_create(race->name, 0, true, &sink));
    OK(t_write(sink, data, 500 + i, 0, true));
    int code = t_commit(sink, 500 + i, NULL);
    CHECK(code == 0 || code == -EEXIST);
    if (!code) {
        race->wins++;
        race->winner = i;
    }
    weir_handle_close(sink);
}

static void racing_commits(void)
{
    for (int i = 0; i < rounds(RACES); i++) {
        struct race race = {.name = fresh(".weir/data/race/", "~x")};
        at_once(RACERS, race_one, &race);
        CHECK_EQ(race.wins, 1);
        blob_is(race.name, 500 + race.winner, 60 + race.winner);
    }
}

/* Short only at the end, whatever the range and wherever it goes. */
static void ranges(void)
{
    enum { SIZE = 2 * MIB + 777 };
    const char *name = fresh(".weir/data/ranges/", "~x");
    struct weir_handle *blob;
    struct rng rng = {2};
    blob_make(name, SIZE, 9);
    OK(t_open(name, &blob, NULL));
    for (int i = 0; i < 150; i++) {
        size_t shift = i % 2, got;
        uint64_t off = rng_below(&rng, SIZE + 5000);
        size_t len = rng_below(&rng, i % 3 ? 9000 : MIB);
        if (i % 5 == 0)
            off = off / 4096 * 4096;
        size_t want = off >= SIZE ? 0 : SIZE - off < len ? SIZE - off : len;
        uint8_t *buf = data_buffer(len + 8, shift);
        memset(buf, 0xee, len + 8);
        OK(t_read(blob, buf, len, off, &got));
        CHECK_EQ(got, want);
        CHECK(data_is(buf, got, 9, off));
        CHECK(data_all(buf + len, 8, 0xee));
        data_free(buf, shift);
    }
    weir_handle_close(blob);
}

/* An open blob keeps its bytes (or says -ESTALE) when its name goes or comes to mean another. */
static void open_blob_survives(void)
{
    const char *name = fresh(".weir/data/survive/", "~x");
    struct weir_handle *blob;
    uint8_t *buf = data_buffer(MIB, 0);
    size_t got;
    blob_make(name, MIB, 1);
    OK(t_open(name, &blob, NULL));
    OK(t_remove(name, NULL, false));
    for (int i = 0; i < 2; i++) {
        memset(buf, 0, MIB);
        int code = t_read(blob, buf, MIB, 0, &got);
        CHECK(code == 0 || code == -ESTALE);
        CHECK(code || (got == MIB && data_is(buf, MIB, 1, 0)));
        blob_make(fresh(".weir/data/survive/", "~x"), MIB, 3);
        if (!i)
            blob_make(name, MIB, 2);
    }
    weir_handle_close(blob);
    blob_is(name, MIB, 2);
    data_free(buf, 0);
}

void check_blobs(void)
{
    RUN(whole);
    RUN(out_of_order);
    RUN(mapped);
    RUN(wrong_hint);
    RUN(nothing_before_the_commit);
    RUN(taken_name);
    RUN(racing_commits);
    RUN(ranges);
    RUN(open_blob_survives);
}
