/* Writing: what is refused and why, and that a put that ends in any other way than a commit leaves
 * nothing behind.
 */
#include <sys/file.h>

#include "io/io.h"
#include "store/store.h"
#include "stores.h"
#include "util/sys.h"

static weir_store *store;
static const char *dir;

static int open_code(const char *key, const weir_put_options *opts)
{
    weir_put *put = NULL;
    int code = weir_put_open(&put, store, key, opts);
    CHECK(!code == !!put);
    weir_put_close(put);
    return code;
}

/* Nothing but the marker (and perhaps the lock) is below .weir. */
static bool nothing_left(void)
{
    return !tree_files(path_in(dir, ".weir/data")) && !tree_files(path_in(dir, ".weir/seal")) &&
           !tree_files(path_in(dir, ".weir/tmp"));
}

static void bad_keys(void)
{
    char longest[WEIR_KEY_BYTES_MAX + 2];
    memset(longest, 'k', sizeof longest);
    longest[sizeof longest - 1] = 0;
    CHECK_EQ(open_code("", NULL), -EINVAL);
    CHECK_EQ(open_code("a//b", NULL), -EINVAL);
    CHECK_EQ(open_code("../escape", NULL), -EINVAL);
    CHECK_EQ(open_code(".weir/seal/x~", NULL), -EINVAL);
    CHECK_EQ(open_code(longest, NULL), -ENAMETOOLONG);
    CHECK_EQ(get_code(store, "../escape"), -EINVAL);
    CHECK_EQ(get_code(store, longest), -ENAMETOOLONG);
    CHECK_EQ(weir_remove(store, "a//b"), -EINVAL);
    CHECK_EQ(weir_verify(store, ".weir/store", NULL, NULL), -EINVAL);
    CHECK(nothing_left());
}

/* The longest key there is works on a real file system. */
static void longest_key(void)
{
    char key[WEIR_KEY_BYTES_MAX + 1];
    for (size_t i = 0; i < WEIR_KEY_BYTES_MAX; i++)
        key[i] = i % (WEIR_PART_BYTES_MAX + 1) == WEIR_PART_BYTES_MAX ? '/' : 'k';
    key[WEIR_KEY_BYTES_MAX] = 0;
    put_seed(store, key, 5000, 1);
    get_seed(store, key, 5000, 1);
    CHECK(path_there(path_in(dir, key)));
    OK(weir_remove(store, key));
    CHECK(nothing_left());
}

static void bad_options(void)
{
    static const uint32_t bad_blocks[] = {1, 512, 2048, 4097, 65535, 3 << 12, 2 << 20, 1u << 31};
    weir_put_options opts;
    for (size_t i = 0; i < sizeof bad_blocks / sizeof bad_blocks[0]; i++) {
        weir_put_options_init(&opts);
        opts.block_bytes = bad_blocks[i];
        CHECK_EQ(open_code("k", &opts), -EINVAL);
        CHECK(strstr(weir_error_text(), "power of two"));
    }
    weir_put_options_init(&opts);
    opts.size_bytes = WEIR_OBJECT_BYTES_MAX + 1;
    CHECK_EQ(open_code("k", &opts), -EFBIG);
    opts.size_bytes = WEIR_OBJECT_BYTES_MAX;
    OK(open_code("k", &opts));
    for (int bit = 0; bit < 31; bit++) { /* the last one is for saves */
        weir_put_options_init(&opts);
        opts.flags = 1u << bit;
        CHECK_EQ(open_code("k", &opts), -EINVAL);
        CHECK(strstr(weir_error_text(), "flags"));
    }
    weir_put_options_init(&opts);
    opts.struct_size = 0;
    CHECK_EQ(open_code("k", &opts), -EINVAL);
    CHECK(strstr(weir_error_text(), "weir_put_options_init"));
    opts.struct_size = 100000;
    CHECK_EQ(open_code("k", &opts), -EINVAL);
    CHECK(nothing_left());
}

static void metadata(void)
{
    weir_put_options opts;
    weir_put *put;
    weir_object *obj;
    char *meta = malloc(WEIR_META_BYTES_MAX + 1);
    data_fill(meta, WEIR_META_BYTES_MAX + 1, 1, 0);
    weir_put_options_init(&opts);
    opts.meta = meta;
    opts.meta_bytes = WEIR_META_BYTES_MAX + 1;
    CHECK_EQ(open_code("meta", &opts), -E2BIG);
    opts.meta_bytes = WEIR_META_BYTES_MAX;
    OK(weir_put_open(&put, store, "meta", &opts));
    memset(meta, 0, WEIR_META_BYTES_MAX); /* it was copied */
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
    OK(weir_object_open(&obj, store, "meta"));
    CHECK_EQ(weir_object_info(obj)->meta_bytes, WEIR_META_BYTES_MAX);
    CHECK(data_is(weir_object_info(obj)->meta, WEIR_META_BYTES_MAX, 1, 0));
    weir_object_close(obj);
    OK(weir_remove(store, "meta"));
    free(meta);
}

/* A caller built against an older header, whose struct ended earlier, gets the defaults. */
static void older_callers(void)
{
    weir_put_options opts;
    weir_put *put;
    weir_object *obj;
    memset(&opts, 0xff, sizeof opts); /* what an old caller does not know must not be looked at */
    opts.struct_size = offsetof(weir_put_options, block_bytes);
    opts.flags = 0;
    OK(weir_put_open(&put, store, "old", &opts));
    OK(weir_put_write(put, "x", 1));
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
    OK(weir_object_open(&obj, store, "old"));
    CHECK_EQ(weir_object_info(obj)->block_bytes, 1 << 20);
    CHECK_EQ(weir_object_info(obj)->meta_bytes, 0);
    weir_object_close(obj);
    OK(weir_remove(store, "old"));
    /* And one built against a newer header works here, too. */
    struct {
        weir_put_options known;
        uint64_t more[4];
    } newer;
    memset(&newer, 0xff, sizeof newer);
    weir_put_options_init(&newer.known);
    newer.known.struct_size = sizeof newer;
    newer.known.block_bytes = 4096;
    OK(open_code("new", &newer.known));
}

static void abandoned(void)
{
    static const size_t sizes[] = {0, 1, 5 << 20};
    for (int i = 0; i < 3; i++) {
        weir_put *put;
        uint8_t *data = data_buffer(sizes[i], 1);
        data_fill(data, sizes[i], 1, 0);
        OK(weir_put_open(&put, store, "abandoned", NULL));
        OK(weir_put_write(put, data, sizes[i]));
        weir_put_close(put);
        data_free(data, 1);
        CHECK_EQ(get_code(store, "abandoned"), -ENOENT);
        CHECK(nothing_left());
    }
    weir_put_close(NULL);
}

/* Two writers of one key: the first to commit wins, the other is told and leaves nothing. */
static void second_writer(void)
{
    weir_put *first, *second;
    OK(weir_put_open(&first, store, "taken", NULL));
    OK(weir_put_open(&second, store, "taken", NULL));
    OK(weir_put_write(first, "first", 5));
    OK(weir_put_write(second, "second", 6));
    OK(weir_put_commit(second, NULL));
    CHECK_EQ(weir_put_commit(first, NULL), -EEXIST);
    CHECK(strstr(weir_error_text(), "taken"));
    weir_put_close(first);
    weir_put_close(second);
    weir_object *obj;
    OK(weir_object_open(&obj, store, "taken"));
    CHECK_EQ(weir_object_info(obj)->size_bytes, 6);
    weir_object_close(obj);
    CHECK_EQ(open_code("taken", NULL), -EEXIST);
    CHECK_EQ(tree_files(path_in(dir, ".weir/data")), 1);
    OK(weir_remove(store, "taken"));
    CHECK(nothing_left());
}

/* After a failure nothing works but closing, and the text stays. */
static void after_a_failure(void)
{
    weir_store *full = store_at("mem:?size=3M", NULL);
    weir_put *put;
    void *buf;
    size_t cap;
    uint8_t *data = data_buffer(8 << 20, 1);
    memset(data, 0, 8 << 20);
    OK(weir_put_open(&put, full, "k", NULL));
    int code = 0;
    for (int i = 0; !code && i < 8; i++)
        code = weir_put_write(put, data, 8 << 20);
    CHECK_EQ(code, -ENOSPC);
    for (int i = 0; i < 2; i++) {
        weir_fail(EIO, "another text");
        CHECK_EQ(weir_put_write(put, data, 1), -ENOSPC);
        CHECK(strstr(weir_error_text(), "full"));
        CHECK_EQ(weir_put_buffer(put, &buf, &cap), -ENOSPC);
        CHECK_EQ(weir_put_commit(put, NULL), -ENOSPC);
        CHECK(strstr(weir_error_text(), "full"));
    }
    weir_put_close(put);
    CHECK_EQ(get_code(full, "k"), -ENOENT);
    put_seed(full, "k", 1000, 1); /* the space came back */
    weir_store_close(full);
    data_free(data, 1);
}

/* As many writers as the pool bears; one more is refused at once, not left waiting. */
static void too_many_writers(void)
{
    weir_store *small = store_sized(tmp_path("small"), NULL, 8 << 20, 16);
    weir_put *puts[4], *more;
    uint8_t *data = data_buffer(3 << 20, 1);
    data_fill(data, 3 << 20, 1, 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 4; i++) {
            char key[16];
            snprintf(key, sizeof key, "k%d-%d", round, i);
            OK(weir_put_open(&puts[i], small, key, NULL));
            OK(weir_put_write(puts[i], data, 3 << 20));
        }
        CHECK_EQ(weir_put_open(&more, small, "more", NULL), -EMFILE);
        CHECK(strstr(weir_error_text(), "larger pool"));
        for (int i = 0; i < 4; i++) {
            if (i % 2)
                OK(weir_put_commit(puts[i], NULL));
            weir_put_close(puts[i]);
        }
    }
    get_seed(small, "k1-3", 3 << 20, 1);
    weir_store_close(small);
    data_free(data, 1);
}

/* What stands in front comes last: bytes [0, head) after the others, which come in two writes. */
static void put_head_last(weir_store *to, const char *key, size_t head, size_t size, size_t cut)
{
    weir_put_options opts;
    weir_put_result result;
    weir_put *put;
    uint8_t *data = data_buffer(size, 1);
    data_fill(data, size, size, 0);
    cut = cut > size - head ? size - head : cut;
    weir_put_options_init(&opts);
    opts.block_bytes = 65536;
    opts.meta = "before";
    opts.meta_bytes = 6;
    OK(weir_put_open(&put, to, key, &opts));
    OK(weir_put_lead(put, head));
    OK(weir_put_write(put, data + head, cut));
    OK(weir_put_write(put, data + head + cut, size - head - cut));
    weir_put_head(put, data, head);
    OK(weir_put_meta(put, "after it", 8));
    OK(weir_put_commit(put, &result));
    CHECK_EQ(result.size_bytes, size);
    weir_put_close(put);
    data_free(data, 1);
}

static void head_comes_last(void)
{
    enum { MIB = 1 << 20 };
    static const size_t heads[] = {1, 24, 65536, MIB - 1, MIB, MIB + 1, 2 * MIB + 5};
    static const size_t bodies[] = {0, 1, 65536, MIB - 24, MIB, 5 * MIB + 777, 20 * MIB};
    static const char *const urls[] = {"mem:", NULL, NULL, NULL};
    static const char *const engines[] = {NULL, "uring", "threads", "inline"};
    for (int i = 0; i < 4; i++) {
        if (i == 1 && weir_io_uring_fault())
            continue;
        weir_store *to = store_at(urls[i] ? urls[i] : tmp_path("lead"), engines[i]);
        for (size_t h = 0; h < sizeof heads / sizeof heads[0]; h++)
            for (size_t b = 0; b < sizeof bodies / sizeof bodies[0]; b++) {
                size_t size = heads[h] + bodies[b];
                weir_object *obj;
                put_head_last(to, "k", heads[h], size, b % 2 ? bodies[b] / 3 : 17 * MIB);
                get_seed(to, "k", size, size);
                OK(weir_object_open(&obj, to, "k"));
                CHECK_EQ(weir_object_info(obj)->meta_bytes, 8);
                CHECK(!memcmp(weir_object_info(obj)->meta, "after it", 8));
                weir_object_close(obj);
                OK(weir_remove(to, "k"));
            }
        weir_store_close(to);
    }
}

/* Without its head it is closed: nothing stays. And one that fails in the middle. */
static void head_that_never_comes(void)
{
    uint8_t *data = data_buffer(8 << 20, 1);
    weir_put *put;
    memset(data, 0, 8 << 20);
    OK(weir_put_open(&put, store, "headless", NULL));
    OK(weir_put_lead(put, 100));
    OK(weir_put_write(put, data, 5 << 20));
    weir_put_close(put);
    OK(weir_put_open(&put, store, "headless", NULL));
    OK(weir_put_lead(put, 100));
    weir_put_close(put);
    CHECK_EQ(get_code(store, "headless"), -ENOENT);
    CHECK(nothing_left());
    weir_store *full = store_at("mem:?size=3M", NULL);
    OK(weir_put_open(&put, full, "k", NULL));
    OK(weir_put_lead(put, 100));
    int code = 0;
    for (int i = 0; !code && i < 8; i++)
        code = weir_put_write(put, data, 8 << 20);
    CHECK_EQ(code, -ENOSPC);
    weir_put_head(put, data, 100);
    CHECK_EQ(weir_put_commit(put, NULL), -ENOSPC);
    weir_put_close(put);
    CHECK_EQ(get_code(full, "k"), -ENOENT);
    weir_store_close(full);
    data_free(data, 1);
}

/* What could not be read again is refused before it is written. */
static void seals_that_would_be_too_long(void)
{
    weir_put_options opts;
    weir_put *put;
    weir_put_options_init(&opts);
    opts.block_bytes = 4096;
    opts.size_bytes = ((uint64_t)8 << 30) + 1;
    CHECK_EQ(weir_put_open(&put, store, "k", &opts), -EFBIG);
    opts.block_bytes = 1 << 20;
    opts.size_bytes = WEIR_OBJECT_BYTES_MAX + 1;
    CHECK_EQ(weir_put_open(&put, store, "k", &opts), -EFBIG);
}

/* On a busy machine others have the store's lock for longer than a moment. */
static int lock_fd;
static unsigned naps;

static void nap(uint64_t ns)
{
    (void)ns;
    if (++naps == 500)
        CHECK(!flock(lock_fd, LOCK_UN));
}

static void a_plain_name_is_waited_for(void)
{
    static struct weir_sys table;
    const char *busy = tmp_path("busy");
    weir_store *other = store_at(busy, "inline");
    table = weir_sys_real;
    table.sleep_ns = nap;
    weir_sys = &table;
    lock_fd = open(path_in(busy, ".weir/lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    CHECK(lock_fd >= 0 && !flock(lock_fd, LOCK_EX));
    put_seed(other, "k", 1000, 1);
    CHECK(naps >= 500 && path_there(path_in(busy, "k")));
    CHECK(!flock(lock_fd, LOCK_EX));
    put_seed(other, "l", 1000, 1); /* but not for ever: the object is there without it */
    CHECK(!path_there(path_in(busy, "l")));
    get_seed(other, "l", 1000, 1);
    close(lock_fd);
    weir_sys = &weir_sys_real;
    weir_store_close(other);
}

int main(void)
{
    RUN(a_plain_name_is_waited_for); /* before there is a thread */
    dir = tmp_path("store");
    store = store_at(dir, NULL);
    RUN(bad_keys);
    RUN(longest_key);
    RUN(bad_options);
    RUN(metadata);
    RUN(older_callers);
    RUN(abandoned);
    RUN(second_writer);
    RUN(after_a_failure);
    RUN(too_many_writers);
    RUN(head_comes_last);
    RUN(head_that_never_comes);
    RUN(seals_that_would_be_too_long);
    weir_store_close(store);
    return TEST_RESULT;
}
