/* Seals: whatever is not exactly what was sealed is refused. */
#include <errno.h>
#include <stdbool.h>

#include "data.h"
#include "store/seal.h"
#include "test.h"
#include "util/bytes.h"
#include "weir.h"

enum { BLOCK = 4096, BLOCKS = 5, EXAMPLE_NAME_BYTES = 11 + 8 + 1 + 32 };

struct record {
    uint8_t *bytes;
    size_t size;
};

static uint8_t sums[BLOCKS * WEIR_SUM_BYTES];
static const uint8_t nonce[WEIR_NONCE_BYTES] = "0123456789abcde";

static struct weir_seal example(const char *data_name)
{
    data_fill(sums, sizeof sums, 3, 0);
    struct weir_seal seal = {
        .kind = WEIR_SEAL_OBJECT,
        .algorithm = WEIR_ALGORITHM_XXH3_128,
        .block_bytes = BLOCK,
        .size = BLOCK * BLOCKS - 100,
        .time_ns = 0x1122334455667788,
        .data_name = data_name,
        .data_name_size = strlen(data_name),
        .meta = "some metadata",
        .meta_size = 13,
        .sums = sums,
        .blocks = BLOCKS,
    };
    memcpy(seal.nonce, nonce, sizeof nonce);
    return seal;
}

static struct record encoded(const struct weir_seal *seal)
{
    struct record r;
    OK(weir_seal_encode(seal, &r.bytes, &r.size));
    return r;
}

/* The example at key "some/key", under the data name that belongs there. */
static struct record example_record(void)
{
    char name[WEIR_NAME_BYTES_MAX];
    weir_key_data_name(name, "some/key", nonce);
    struct weir_seal seal = example(name);
    return encoded(&seal);
}

/* Makes the record's own sum right again after a change: what a bad writer would leave. */
static void resum(struct record *r)
{
    weir_sum(r->bytes + r->size - WEIR_SUM_BYTES, r->bytes, r->size - WEIR_SUM_BYTES);
}

/* From an allocation of exactly that size, so that a memory checker sees any read beyond. */
static int decode_exact(const uint8_t *bytes, size_t size, const char *key, struct weir_seal *out)
{
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    int code = weir_seal_decode(out, copy, size, key);
    free(copy);
    return code;
}

static void refused(const struct record *r, size_t size, const char *key)
{
    struct weir_seal out = {.size = 77};
    CHECK_EQ(decode_exact(r->bytes, size, key, &out), -EBADMSG);
    CHECK_EQ(out.size, 77);
    CHECK(strstr(weir_fail_last(), key) && strstr(weir_fail_last(), "damaged"));
}

static void same(const struct weir_seal *a, const struct weir_seal *b)
{
    CHECK(a->kind == b->kind && a->algorithm == b->algorithm && a->size == b->size);
    CHECK(a->block_bytes == b->block_bytes && a->time_ns == b->time_ns && a->blocks == b->blocks);
    CHECK(!memcmp(a->nonce, b->nonce, sizeof a->nonce));
    CHECK_EQ(a->data_name_size, b->data_name_size);
    CHECK(!memcmp(a->data_name, b->data_name, a->data_name_size));
    CHECK_EQ(a->meta_size, b->meta_size);
    CHECK(!a->meta_size || !memcmp(a->meta, b->meta, a->meta_size));
    CHECK(!a->blocks || !memcmp(a->sums, b->sums, a->blocks * WEIR_SUM_BYTES));
}

static void round_trip(void)
{
    char name[WEIR_NAME_BYTES_MAX];
    struct weir_seal back;
    weir_key_data_name(name, "some/key", nonce);
    struct weir_seal seal = example(name);
    for (size_t meta = 0; meta <= 13; meta++) {
        seal.meta_size = meta;
        struct record r = encoded(&seal);
        OK(weir_seal_decode(&back, r.bytes, r.size, "some/key"));
        same(&seal, &back);
        free(r.bytes);
    }
    /* What was learned of a file has the file's name. */
    seal = example("some/key");
    seal.kind = WEIR_SEAL_LEARNED;
    struct record r = encoded(&seal);
    OK(weir_seal_decode(&back, r.bytes, r.size, "some/key"));
    same(&seal, &back);
    free(r.bytes);
}

static void empty_and_largest(void)
{
    struct weir_seal back, seal = example("k");
    seal.kind = WEIR_SEAL_LEARNED;
    char *meta = calloc(1, WEIR_META_BYTES_MAX);
    seal.size = seal.blocks = 0;
    seal.sums = NULL;
    seal.meta = meta;
    seal.meta_size = WEIR_META_BYTES_MAX;
    struct record r = encoded(&seal);
    OK(weir_seal_decode(&back, r.bytes, r.size, "k"));
    same(&seal, &back);
    free(r.bytes);
    free(meta);
}

/* The bytes are a format: they may not change by accident. */
static void bytes_are_as_written_down(void)
{
    struct record r = example_record();
    CHECK(!memcmp(r.bytes, "WEIRSEAL\x01\x00\x01\x01\x00\x10\x00\x00", 16));
    CHECK_EQ(weir_load_le(r.bytes + 16, 8), BLOCK * BLOCKS - 100);
    CHECK(!memcmp(r.bytes + 24, nonce, 16));
    CHECK_EQ(weir_load_le(r.bytes + 40, 8), 0x1122334455667788);
    size_t name = EXAMPLE_NAME_BYTES;
    CHECK_EQ(weir_load_le(r.bytes + 48, 4), name);
    CHECK_EQ(weir_load_le(r.bytes + 52, 4), 13);
    CHECK_EQ(weir_load_le(r.bytes + 56, 8), BLOCKS);
    CHECK(!memcmp(r.bytes + 64, ".weir/data/some/key~", 20));
    static const char padded[13 + 7] = "some metadata";
    CHECK(!memcmp(r.bytes + 64 + name, padded, (name + 13 + 7) / 8 * 8 - name));
    CHECK_EQ(r.size, 64 + (name + 13 + 7) / 8 * 8 + sizeof sums + 16);
    CHECK(!memcmp(r.bytes + r.size - 16 - sizeof sums, sums, sizeof sums));
    free(r.bytes);
}

static void every_bit_flipped(void)
{
    struct record r = example_record();
    for (size_t bit = 0; bit < r.size * 8; bit++) {
        r.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        refused(&r, r.size, "some/key");
        r.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(r.bytes);
}

static void every_truncation_and_extension(void)
{
    struct record r = example_record();
    for (size_t size = 0; size < r.size; size++)
        refused(&r, size, "some/key");
    struct record longer = {calloc(1, r.size + 64), r.size};
    memcpy(longer.bytes, r.bytes, r.size);
    for (size_t more = 1; more <= 64; more++)
        refused(&longer, r.size + more, "some/key");
    free(longer.bytes);
    free(r.bytes);
}

/* May byte `at` of the example's head hold this? Its time may be any, its size any within the last
 * block, and its metadata may reach into the padding; all other fields check each other. */
static bool head_may_hold(size_t at, uint8_t value, uint8_t was)
{
    if (value == was || (at >= 40 && at < 48) || at == 50 || at == 51 || at == 16)
        return true; /* times, flags */
    if (at == 52)
        return (EXAMPLE_NAME_BYTES + value + 7) / 8 == (EXAMPLE_NAME_BYTES + was + 7) / 8;
    return at == 17 && value / 16 == was / 16;
}

/* Every byte of the head set to everything, with a sum that is right. */
static void heads_that_lie(void)
{
    struct record r = example_record();
    struct weir_seal out;
    for (size_t at = 8; at < 64; at++) {
        uint8_t was = r.bytes[at];
        for (unsigned value = 0; value < 256; value++) {
            r.bytes[at] = (uint8_t)value;
            resum(&r);
            int code = decode_exact(r.bytes, r.size, "some/key", &out);
            bool may = head_may_hold(at, (uint8_t)value, was);
            CHECK_EQ(code, may ? 0 : at < 10 ? -EPROTO : -EBADMSG);
        }
        r.bytes[at] = was;
    }
    free(r.bytes);
}

static void newer_version(void)
{
    struct record r = example_record();
    struct weir_seal out;
    weir_store_le(r.bytes + 8, 2, 2);
    resum(&r);
    CHECK_EQ(weir_seal_decode(&out, r.bytes, r.size, "some/key"), -EPROTO);
    CHECK(strstr(weir_fail_last(), "newer") && strstr(weir_fail_last(), "some/key"));
    free(r.bytes);
}

static void moved_to_another_key(void)
{
    struct record r = example_record();
    refused(&r, r.size, "other/key");
    refused(&r, r.size, "some/key2");
    refused(&r, r.size, "some");
    CHECK(strstr(weir_fail_last(), "another key"));
    free(r.bytes);
    struct weir_seal seal = example("some/key");
    seal.kind = WEIR_SEAL_LEARNED;
    r = encoded(&seal);
    refused(&r, r.size, "other/key");
    free(r.bytes);
    /* An object's bytes are under a name that one writer owned, never under the key. */
    seal.kind = WEIR_SEAL_OBJECT;
    r = encoded(&seal);
    refused(&r, r.size, "some/key");
    free(r.bytes);
}

static void voids(void)
{
    struct weir_seal back, seal = {.kind = WEIR_SEAL_VOID, .time_ns = 5};
    memcpy(seal.nonce, nonce, sizeof nonce);
    struct record r = encoded(&seal);
    CHECK_EQ(r.size, WEIR_SEAL_VOID_BYTES);
    OK(weir_seal_decode(&back, r.bytes, r.size, "any/key"));
    CHECK(back.kind == WEIR_SEAL_VOID && !memcmp(back.nonce, nonce, sizeof nonce));
    weir_store_le(r.bytes + 16, 1, 8);
    resum(&r);
    refused(&r, r.size, "any/key");
    free(r.bytes);
}

static void block_counts(void)
{
    CHECK_EQ(weir_seal_blocks(0, 4096), 0);
    CHECK_EQ(weir_seal_blocks(1, 4096), 1);
    CHECK_EQ(weir_seal_blocks(4096, 4096), 1);
    CHECK_EQ(weir_seal_blocks(4097, 4096), 2);
    CHECK_EQ(weir_seal_blocks(WEIR_OBJECT_BYTES_MAX, 1 << 20), WEIR_BLOCKS_MAX);
    CHECK_EQ(weir_seal_blocks(UINT64_MAX, 4096), 1ull << 52);
}

int main(void)
{
    RUN(round_trip);
    RUN(empty_and_largest);
    RUN(bytes_are_as_written_down);
    RUN(every_bit_flipped);
    RUN(every_truncation_and_extension);
    RUN(heads_that_lie);
    RUN(newer_version);
    RUN(moved_to_another_key);
    RUN(voids);
    RUN(block_counts);
    return TEST_RESULT;
}
