/* The raw bytes of a shard, from the store and from memory, compressed or not: peeking, reading and
 * skipping in any order sees the same bytes; what is skipped in a plain file is not read; ends and
 * limits are told with the file's name.
 */
#include "data/codec.h"
#include "data/flow.h"
#include "stores.h"

enum { RAW_BYTES = 5 * (1 << 20) + 123, SEED = 7 };

static weir_store *store;
static uint8_t *raw;
static const char *const codecs[] = {"", "zstd", "gz:1", "bz2:1", "br:1", "snappy"};
enum { CODECS = sizeof codecs / sizeof *codecs };

static void key_of(char key[32], const char *codec)
{
    snprintf(key, 32, "shard%s", weir_codec_suffix(codec));
}

static void put(const char *key, const void *data, size_t size, uint32_t block_bytes)
{
    weir_put *put;
    weir_put_options opts;
    weir_put_options_init(&opts);
    opts.block_bytes = block_bytes;
    OK(weir_put_open(&put, store, key, &opts));
    OK(weir_put_write(put, data, size));
    OK(weir_put_commit(put, NULL));
    weir_put_close(put);
}

static void setup(void)
{
    raw = data_buffer(RAW_BYTES, 0);
    data_fill(raw, RAW_BYTES, SEED, 0);
    memset(raw + 1000000, 0, 1500000);
    store = store_at("mem:?stats=1", NULL);
    for (size_t i = 0; i < CODECS; i++) {
        struct weir_growing packed = {0};
        char key[32];
        key_of(key, codecs[i]);
        OK(weir_codec_encode(codecs[i], raw, RAW_BYTES, &packed));
        put(key, packed.data, packed.size, 0);
        weir_growing_free(&packed);
    }
    put("fine", raw, RAW_BYTES, 4096);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Peeks, reads and skips by chance up to the end. */
static void wander(struct weir_flow *flow, uint64_t seed)
{
    struct rng rng = {seed};
    uint8_t *buf = data_buffer(3 << 20, 0);
    while (weir_flow_at(flow) < RAW_BYTES) {
        uint64_t at = weir_flow_at(flow), left = RAW_BYTES - at;
        uint64_t most = rng_below(&rng, 2) ? 1000 : 3 << 20;
        uint64_t want = least(rng_below(&rng, most), left);
        if (!rng_below(&rng, 8)) /* only how much is read at a time depends on it */
            weir_flow_expect(flow, 1 + rng_below(&rng, 2 << 20));
        const uint8_t *data;
        size_t size;
        switch (rng_below(&rng, 3)) {
        case 0:
            want = least(want, WEIR_FLOW_PEEK_MAX);
            OK(weir_flow_peek(flow, (size_t)want, &data, &size));
            CHECK(size >= want && size <= left && !memcmp(data, raw + at, size));
            CHECK_EQ(weir_flow_at(flow), at);
            break;
        case 1:
            OK(weir_flow_read(flow, buf, (size_t)want));
            CHECK(!memcmp(buf, raw + at, (size_t)want));
            CHECK_EQ(weir_flow_at(flow), at + want);
            break;
        default:
            OK(weir_flow_skip(flow, want));
            CHECK_EQ(weir_flow_at(flow), at + want);
        }
    }
    const uint8_t *data;
    size_t size = 1;
    OK(weir_flow_peek(flow, 10, &data, &size));
    CHECK_EQ(size, 0);
    CHECK_EQ(weir_flow_read(flow, buf, 1), -EBADMSG);
    CHECK_EQ(weir_flow_skip(flow, 1), -EBADMSG);
    data_free(buf, 0);
}

static void any_calls(void)
{
    for (size_t i = 0; i < CODECS; i++) {
        char key[32];
        key_of(key, codecs[i]);
        for (uint64_t seed = 1; seed <= 4; seed++) {
            struct weir_flow *flow;
            OK(weir_flow_open(&flow, store, key, codecs[i], RAW_BYTES));
            wander(flow, seed);
            weir_flow_close(flow);
        }
    }
    struct weir_flow *flow;
    OK(weir_flow_open_bytes(&flow, raw, RAW_BYTES, "", RAW_BYTES));
    wander(flow, 5);
    weir_flow_close(flow);
}

static uint64_t bytes_read(void)
{
    weir_stat_row rows[32];
    uint64_t bytes = 0;
    int count = weir_store_stats(store, rows, 32);
    CHECK(count > 0);
    for (int i = 0; i < count; i++)
        if (!strcmp(rows[i].op, "read"))
            bytes += rows[i].bytes;
    return bytes;
}

static void skipping_reads_nothing(void)
{
    struct weir_flow *flow;
    uint8_t byte;
    OK(weir_flow_open(&flow, store, "shard", "", RAW_BYTES));
    uint64_t before = bytes_read();
    OK(weir_flow_read(flow, &byte, 1));
    OK(weir_flow_skip(flow, 4500000 - 1));
    OK(weir_flow_read(flow, &byte, 1));
    CHECK_EQ(byte, raw[4500000]);
    uint64_t read = bytes_read() - before;
    CHECK(read >= 1 << 20 && read <= 3 << 20);
    weir_flow_close(flow);
}

static void no_more_is_read_than_is_expected(void)
{
    uint64_t sizes[] = {1, 4096, 4097, 100000, (1 << 20) - 1, 1 << 20, UINT64_MAX};
    uint8_t *buf = data_buffer(200000, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct weir_flow *flow;
        OK(weir_flow_open(&flow, store, "fine", "", RAW_BYTES));
        uint64_t before = bytes_read();
        weir_flow_expect(flow, sizes[i]);
        uint64_t want = least(sizes[i], 200000), most = least(sizes[i], 1 << 20);
        OK(weir_flow_read(flow, buf, want));
        CHECK(!memcmp(buf, raw, want));
        CHECK_EQ(bytes_read() - before, (most + 4095) / 4096 * 4096);
        weir_flow_close(flow);
    }
    data_free(buf, 0);
}

static void ends_and_limits(void)
{
    struct weir_flow *flow;
    uint8_t byte;
    CHECK_EQ(weir_flow_open(&flow, store, "shard", "", RAW_BYTES - 1), -EFBIG);
    CHECK(strstr(weir_error_text(), "'shard'"));
    CHECK_EQ(weir_flow_open(&flow, store, "nowhere", "", RAW_BYTES), -ENOENT);
    CHECK_EQ(weir_flow_open(&flow, store, "shard", "rar", RAW_BYTES), -EINVAL);
    for (size_t i = 1; i < CODECS; i++) {
        char key[32];
        key_of(key, codecs[i]);
        OK(weir_flow_open(&flow, store, key, codecs[i], RAW_BYTES - 1));
        OK(weir_flow_skip(flow, RAW_BYTES - 1));
        CHECK_EQ(weir_flow_read(flow, &byte, 1), -EFBIG);
        CHECK(strstr(weir_error_text(), key));
        weir_flow_close(flow);
        /* A name that lies about what is inside. */
        OK(weir_flow_open(&flow, store, "shard", codecs[i], RAW_BYTES));
        int code = weir_flow_skip(flow, RAW_BYTES);
        CHECK(code == -EBADMSG || code == -EFBIG);
        CHECK(strstr(weir_error_text(), "'shard'"));
        weir_flow_close(flow);
    }
}

int main(void)
{
    setup();
    RUN(any_calls);
    RUN(skipping_reads_nothing);
    RUN(no_more_is_read_than_is_expected);
    RUN(ends_and_limits);
    weir_store_close(store);
    data_free(raw, 0);
    return TEST_RESULT;
}
