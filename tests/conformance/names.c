/* names.c - STAT, REMOVE, ALIAS: what a name stands for. */
#include "tier_calls.h"

static void stats(void)
{
    const char *name = fresh(".weir/data/stat/", "~x");
    struct weir_blob_stat stat;
    int64_t before = t_now();
    blob_make(name, 12345, 1);
    OK(t_stat(name, NULL, &stat));
    CHECK_EQ(stat.size, 12345);
    /* Times are of one clock, the tier's own. */
    CHECK(stat.time_ns >= before && t_now() >= stat.time_ns);
    CHECK_EQ(t_stat(fresh(".weir/data/stat/", "~x"), NULL, &stat), -ENOENT);
    CHECK_EQ(t_stat(fresh(".weir/data/no/such/directory/", "~x"), NULL, &stat), -ENOENT);
    CHECK_EQ(t_stat(".weir/data/stat", NULL, &stat), -ENOENT); /* a directory is no blob */
}

static void missing(void)
{
    struct weir_handle *handle;
    void *data;
    size_t size;
    const char *name = fresh(".weir/data/missing/", "~x");
    CHECK_EQ(t_open(name, &handle, NULL), -ENOENT);
    CHECK_EQ(t_load(name, 100, &data, &size), -ENOENT);
    CHECK_EQ(t_remove(name, NULL, false), -ENOENT);
    CHECK_EQ(t_remove(name, NULL, true), -ENOENT);
    /* Below a blob there is nothing. */
    char below[160];
    blob_make(name, 10, 1);
    snprintf(below, sizeof below, "%s/x", name);
    CHECK_EQ(t_stat(below, NULL, NULL), -ENOENT);
    CHECK_EQ(t_open(below, &handle, NULL), -ENOENT);
    CHECK_EQ(t_load(below, 100, &data, &size), -ENOENT);
    CHECK_EQ(t_remove(below, NULL, false), -ENOENT);
}

static void remove_is_done_when_answered(void)
{
    for (int sync = 0; sync < 2; sync++) {
        const char *name = fresh(".weir/data/remove/", "~x");
        blob_make(name, 100, 1);
        OK(t_remove(name, NULL, sync));
        CHECK_EQ(t_stat(name, NULL, NULL), -ENOENT);
        CHECK_EQ(t_remove(name, NULL, sync), -ENOENT);
        blob_make(name, 50, 2);
        blob_is(name, 50, 2);
    }
}

/* With a handle: only if the name stands for what the handle holds open. */
static void with_a_handle(void)
{
    const char *name = fresh(".weir/data/handle/", "~x");
    const char *other = fresh(".weir/data/handle/", "~x");
    struct weir_handle *blob;
    blob_make(name, 100, 1);
    blob_make(other, 100, 1); /* the same bytes, another blob */
    OK(t_open(name, &blob, NULL));
    OK(t_stat(name, blob, NULL));
    CHECK_EQ(t_stat(other, blob, NULL), -ESTALE);
    CHECK_EQ(t_remove(other, blob, false), -ESTALE);
    blob_is(other, 100, 1);
    OK(t_remove(name, blob, false));
    CHECK_EQ(t_stat(name, blob, NULL), -ENOENT);
    CHECK_EQ(t_remove(name, blob, false), -ENOENT);
    blob_make(name, 100, 1); /* the name stands for another one now */
    CHECK_EQ(t_stat(name, blob, NULL), -ESTALE);
    CHECK_EQ(t_remove(name, blob, false), -ESTALE);
    blob_is(name, 100, 1);
    weir_handle_close(blob);
}

/* A sink knows what it committed. */
static void with_a_sink(void)
{
    const char *name = fresh(".weir/data/sink/", "~x"), *other = fresh(".weir/data/sink/", "~x");
    struct weir_handle *sink;
    blob_make(other, 1, 1);
    OK(t_create(name, 0, true, &sink));
    OK(t_write(sink, "x", 1, 0, true));
    OK(t_commit(sink, 1, NULL));
    OK(t_stat(name, sink, NULL));
    CHECK_EQ(t_remove(other, sink, false), -ESTALE);
    OK(t_remove(name, sink, true));
    weir_handle_close(sink);
    CHECK_EQ(t_stat(name, NULL, NULL), -ENOENT);
}

/* Removing a directory takes nothing that is in it. */
static void directories(void)
{
    const char *name = fresh(".weir/data/dirs/deep/", "~x");
    blob_make(name, 10, 1);
    t_remove(".weir/data/dirs/deep/", NULL, false);
    t_remove(".weir/data/dirs/", NULL, false);
    blob_is(name, 10, 1);
    OK(t_remove(name, NULL, false));
    t_remove(".weir/data/dirs/deep/", NULL, false);
    blob_make(name, 20, 2);
    blob_is(name, 20, 2);
}

static void aliases(void)
{
    const char *name = fresh(".weir/data/alias/", "~x"), *plain = fresh("plain/", "");
    const char *other = fresh(".weir/data/alias/", "~x");
    struct weir_handle *blob;
    blob_make(name, 1000, 1);
    blob_make(other, 2000, 2);
    if (!has_alias) {
        CHECK_EQ(t_alias(plain, name, NULL, NULL, 0), -ENOTSUP);
        CHECK_EQ(t_stat(plain, NULL, NULL), -ENOENT);
        return;
    }
    OK(t_alias(plain, name, NULL, NULL, 0));
    blob_is(plain, 1000, 1);
    CHECK_EQ(t_alias(plain, other, NULL, NULL, 0), -EEXIST);
    blob_is(plain, 1000, 1);
    const char *none = fresh(".weir/data/alias/", "~x");
    CHECK_EQ(t_alias(fresh("plain/", ""), none, NULL, NULL, 0), -ENOENT);
    OK(t_open(other, &blob, NULL));
    CHECK_EQ(t_remove(plain, blob, false), -ESTALE);
    weir_handle_close(blob);
    OK(t_open(name, &blob, NULL));
    OK(t_stat(plain, blob, NULL));
    OK(t_remove(plain, blob, false));
    weir_handle_close(blob);
    blob_is(name, 1000, 1);
}

/* A plain name is made only while its record stands, and goes with it. */
static void guarded_aliases(void)
{
    const char *name = fresh(".weir/data/guard/", "~x"), *seal = fresh(".weir/seal/guard/", "~");
    const char *plain = fresh("plain/", ""), *taken = fresh("plain/", "");
    struct weir_handle *blob;
    struct weir_req req;
    blob_make(name, 1000, 1);
    if (!has_alias)
        return;
    CHECK_EQ(t_alias(plain, name, seal, "record", 6), -ENOENT);
    OK(t_put(seal, "record", 6));
    CHECK_EQ(t_alias(plain, name, seal, "recorD", 6), -ESTALE);
    CHECK_EQ(t_stat(plain, NULL, NULL), -ENOENT);
    OK(t_alias(plain, name, seal, "record", 6));
    blob_is(plain, 1000, 1);
    blob_make(taken, 5, 5);
    OK(t_open(name, &blob, NULL));
    for (int last = 0; last < 2; last++) {
        weir_req_init(&req, WEIR_OP_REMOVE_IF);
        req.name = seal;
        req.name2 = last ? plain : taken; /* somebody else's name is not taken along */
        req.handle = blob;
        req.buf = "record";
        req.len = 6;
        OK(call(&req));
        CHECK_EQ(t_stat(seal, NULL, NULL), -ENOENT);
        CHECK_EQ(t_stat(plain, NULL, NULL), last ? -ENOENT : 0);
        blob_is(taken, 5, 5);
        OK(t_put(seal, "record", 6));
    }
    weir_handle_close(blob);
    blob_is(name, 1000, 1);
}

/* What a record stands in the way of goes only while it does. */
static void guarded_removal(void)
{
    const char *name = fresh(".weir/data/claim/", "~x"), *seal = fresh(".weir/seal/claim/", "~");
    struct weir_req req;
    blob_make(name, 1000, 1);
    for (int i = 0; i < 4; i++) {
        static const int codes[] = {-ENOENT, -ESTALE, 0, -ENOENT};
        weir_req_init(&req, WEIR_OP_REMOVE);
        req.name = name;
        req.guard = seal;
        req.buf = i == 1 ? "recorD" : "record";
        req.len = 6;
        CHECK_EQ(call(&req), codes[i]);
        CHECK_EQ(t_stat(name, NULL, NULL), i < 2 ? 0 : -ENOENT);
        if (i == 0)
            OK(t_put(seal, "record", 6));
        CHECK_EQ(t_stat(seal, NULL, NULL), 0);
    }
}

void check_names(void)
{
    RUN(stats);
    RUN(missing);
    RUN(remove_is_done_when_answered);
    RUN(with_a_handle);
    RUN(with_a_sink);
    RUN(directories);
    RUN(aliases);
    RUN(guarded_aliases);
    RUN(guarded_removal);
}
