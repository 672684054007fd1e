/* Objects through the public interface: every size around every boundary, written in every way,
 * read in any range, is what was put in.
 */
#include "store/store.h"
#include "stores.h"

enum { MIB = 1 << 20 };

static weir_store *store;
static const char *dir;
static const char *engine;

/* How a writer may hand its bytes over. */
enum manner { AT_ONCE, ODD_PIECES, BUFFERS, ALIGNED, MANNERS };

static void write_odd(weir_put *put, const uint8_t *data, size_t size)
{
    struct rng rng = {size};
    for (size_t done = 0, n; done < size; done += n) {
        n = 1 + rng_below(&rng, rng_below(&rng, 4) ? 70000 : 3 * MIB);
        n = n < size - done ? n : size - done;
        OK(weir_put_write(put, data + done, n));
    }
}

/* As a program does that reads from a socket: it learns of the end when it has the next buffer. */
static void write_buffers(weir_put *put, const uint8_t *data, size_t size)
{
    struct rng rng = {size};
    size_t done = 0;
    for (;;) {
        void *buf;
        size_t cap;
        OK(weir_put_buffer(put, &buf, &cap));
        CHECK(cap > 0);
        size_t n = rng_below(&rng, 2) ? cap : 1 + rng_below(&rng, cap);
        n = n < size - done ? n : size - done;
        memcpy(buf, data + done, n);
        OK(weir_put_advance(put, n));
        done += n;
        if (!n)
            return;
    }
}

static void write_as(weir_put *put, enum manner manner, const uint8_t *data, size_t size)
{
    OK(weir_put_write(put, data, 0)); /* nothing is allowed, too */
    if (manner == ODD_PIECES)
        write_odd(put, data, size);
    else if (manner == BUFFERS)
        write_buffers(put, data, size);
    else
        OK(weir_put_write(put, data, size));
}

static void put_as(const char *key, enum manner manner, size_t size, uint32_t block, uint64_t hint)
{
    weir_put *put;
    weir_put_options opts;
    weir_put_result result = {0};
    size_t shift = manner == ALIGNED ? 0 : 3;
    uint8_t *data = data_buffer(size, shift);
    data_fill(data, size, size, 0);
    weir_put_options_init(&opts);
    opts.block_bytes = block;
    opts.size_bytes = hint;
    opts.meta = "meta";
    opts.meta_bytes = size % 5;
    OK(weir_put_open(&put, store, key, &opts));
    write_as(put, manner, data, size);
    CHECK_EQ(get_code(store, key), -ENOENT); /* nothing is visible before the commit */
    OK(weir_put_commit(put, &result));
    CHECK_EQ(result.size_bytes, size);
    CHECK_EQ(result.level, WEIR_LEVEL_HOME);
    weir_put_close(put);
    data_free(data, shift);
}

static void info_is(const char *key, size_t size, uint32_t block)
{
    weir_object *obj;
    OK(weir_object_open(&obj, store, key));
    const weir_info *info = weir_object_info(obj);
    CHECK(!strcmp(info->key, key) && info->size_bytes == size && info->block_bytes == block);
    CHECK(info->kind == WEIR_KIND_SEALED && info->level == WEIR_LEVEL_HOME && info->time_ns);
    CHECK(strlen(info->nonce) == 32 && !strcmp(info->algorithm, "xxh3-128"));
    CHECK(info->meta_bytes == size % 5 && !memcmp(info->meta, "meta", info->meta_bytes));
    CHECK(path_there(path_in(dir, info->data_name)) && path_there(path_in(dir, key)));
    weir_object_close(obj);
}

/* One range, into memory that may be aligned; nothing beyond what was asked for is touched. */
static void range_is(weir_object *obj, size_t size, uint64_t off, size_t len, size_t shift)
{
    uint8_t *buf = data_buffer(len + 64, shift);
    size_t got = 12345, want = off >= size ? 0 : size - off < len ? size - off : len;
    memset(buf, 0xee, len + 64);
    OK(weir_object_read(obj, buf, len, off, &got));
    CHECK_EQ(got, want);
    CHECK(data_is(buf, want, size, off));
    CHECK(data_all(buf + want, len + 64 - want, 0xee));
    data_free(buf, shift);
}

static void random_ranges_by(enum weir_way way, const char *key, size_t size, int count, bool cold)
{
    weir_object *obj;
    struct rng rng = {size + cold};
    if (cold) {
        char *path = data_path(store, dir, key);
        file_drop_cache(path);
        free(path);
    }
    store->landing.forced = way;
    OK(weir_object_open(&obj, store, key));
    range_is(obj, size, 0, size, 0);
    range_is(obj, size, 0, size + 100, 1);
    range_is(obj, size, size, 10, 0);
    range_is(obj, size, size + 5, 10, 0);
    range_is(obj, size, 0, 0, 0);
    range_is(obj, size, UINT64_MAX, 10, 0);
    for (int i = 0; i < count; i++) {
        uint64_t off = rng_below(&rng, size + 1);
        size_t len = rng_below(&rng, rng_below(&rng, 3) ? 9000 : size + 1);
        if (rng_below(&rng, 2)) /* what may land in place */
            off &= ~4095ull;
        range_is(obj, size, off, len, rng_below(&rng, 2) ? 0 : 1 + rng_below(&rng, 600));
    }
    weir_object_close(obj);
    store->landing.forced = WEIR_WAY_UNKNOWN;
}

/* Wherever the units land. */
static void random_ranges(const char *key, size_t size, int count, bool cold)
{
    random_ranges_by(WEIR_WAY_IN_PLACE, key, size, count, cold);
    random_ranges_by(WEIR_WAY_POOL, key, size, count, cold);
}

static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 65536, MIB - 1, MIB, MIB + 1, 3 * MIB + 17};
static const uint32_t blocks[] = {4096, 65536, MIB};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void sizes_blocks_and_manners(void)
{
    char key[64];
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (size_t b = 0; b < COUNT(blocks); b++)
            for (int m = 0; m < MANNERS; m++) {
                snprintf(key, sizeof key, "m%d/b%u/s%zu", m, blocks[b], sizes[s]);
                put_as(key, (enum manner)m, sizes[s], blocks[b], m % 2 ? sizes[s] : 0);
                info_is(key, sizes[s], blocks[b]);
                random_ranges(key, sizes[s], 12, m % 2);
                OK(weir_verify(store, key, NULL, NULL));
            }
}

/* 16 MiB and more of aligned memory is written from where it is. */
static void in_place(void)
{
    static const size_t large[] = {16 * MIB, 16 * MIB + 1, 19 * MIB + 4097};
    char key[64];
    for (size_t s = 0; s < COUNT(large); s++)
        for (int m = AT_ONCE; m < MANNERS; m++) {
            snprintf(key, sizeof key, "large/m%d/s%zu", m, large[s]);
            put_as(key, (enum manner)m, large[s], s == 1 ? 65536 : 0, 0);
            random_ranges(key, large[s], 10, m % 2);
            OK(weir_remove(store, key));
        }
}

/* A small piece first, so that the large one does not begin at a boundary; then one that does. */
static void in_place_after_others(void)
{
    enum { SIZE = 18 * MIB };
    static const size_t first[] = {1, MIB - 1, MIB, 2 * MIB};
    uint8_t *data = data_buffer(SIZE, 0);
    for (size_t i = 0; i < COUNT(first); i++) {
        weir_put *put;
        char key[32];
        snprintf(key, sizeof key, "after/%zu", i);
        data_fill(data, first[i], SIZE + first[i], 0);
        OK(weir_put_open(&put, store, key, NULL));
        OK(weir_put_write(put, data, first[i]));
        data_fill(data, SIZE, SIZE + first[i], first[i]);
        OK(weir_put_write(put, data, SIZE));
        memset(data, 0, SIZE); /* the memory is ours again */
        OK(weir_put_commit(put, NULL));
        weir_put_close(put);
        get_seed(store, key, SIZE + first[i], SIZE + first[i]);
        OK(weir_remove(store, key));
    }
    data_free(data, 0);
}

/* The size that was announced is a hint: more, or less, may come. */
static void wrong_hints(void)
{
    static const uint64_t hints[] = {1, 4096, 2 * MIB, 5 * MIB, 100 * MIB};
    char key[64];
    for (size_t h = 0; h < COUNT(hints); h++)
        for (size_t s = 0; s < COUNT(sizes); s += 3) {
            snprintf(key, sizeof key, "hint%zu/s%zu", h, sizes[s]);
            put_as(key, ODD_PIECES, sizes[s], 65536, hints[h]);
            get_seed(store, key, sizes[s], sizes[s]);
        }
}

/* What others see of a store is ordinary files with ordinary bytes. */
static void plain_files(void)
{
    size_t size;
    put_seed(store, "plain/file.bin", 100000, 4);
    uint8_t *bytes = file_read(path_in(dir, "plain/file.bin"), &size);
    CHECK(size == 100000 && data_is(bytes, size, 4, 0));
    free(bytes);
}

/* The same in memory, which has no files. */
static void in_memory(void)
{
    weir_store *mem = store_at("mem:?size=64M", engine);
    static const size_t some[] = {0, 1, 4097, MIB, 3 * MIB + 17};
    for (size_t s = 0; s < COUNT(some); s++) {
        char key[32];
        snprintf(key, sizeof key, "k/%zu", some[s]);
        put_seed(mem, key, some[s], 5);
        get_seed(mem, key, some[s], 5);
        OK(weir_verify(mem, key, NULL, NULL));
    }
    CHECK_EQ(put_try(mem, "too-much", 80 * MIB, 1, 0), -ENOSPC);
    CHECK(strstr(weir_error_text(), "full"));
    CHECK_EQ(get_code(mem, "too-much"), -ENOENT);
    get_seed(mem, "k/1", 1, 5);
    weir_store_close(mem);
}

int main(int argc, char **argv)
{
    engine = engine_or_skip(argc, argv);
    dir = tmp_path("store");
    store = store_at(dir, engine);
    RUN(sizes_blocks_and_manners);
    RUN(in_place);
    RUN(in_place_after_others);
    RUN(wrong_hints);
    RUN(plain_files);
    RUN(in_memory);
    weir_store_close(store);
    return TEST_RESULT;
}
