/* Fingerprints are XXH3-128 as everybody else computes it, and hex goes both ways. */
#include <errno.h>

#include "data.h"
#include "test.h"
#include "util/bytes.h"
#include "util/hash.h"

/* The generator of xxHash's own sanity checks: its vectors are for these bytes. */
static void sanity_bytes(uint8_t *out, size_t size)
{
    uint64_t state = 2654435761u;
    for (size_t i = 0; i < size; i++) {
        out[i] = (uint8_t)(state >> 56);
        state *= 11400714785074694797ull;
    }
}

/* From xxHash 0.8 tests/sanity_test_vectors.h, seed 0: length, low half, high half. */
static const struct {
    size_t size;
    uint64_t low, high;
} vectors[] = {
    {0, 0x6001C324468D497Full, 0x99AA06D3014798D8ull},
    {1, 0xC44BDFF4074EECDBull, 0xA6CD5E9392000F6Aull},
    {6, 0x3E7039BDDA43CFC6ull, 0x082AFE0B8162D12Aull},
    {12, 0x061A192713F69AD9ull, 0x6E3EFD8FC7802B18ull},
    {24, 0x1E7044D28B1B901Dull, 0x0CE966E4678D3761ull},
    {48, 0xF942219AED80F67Bull, 0xA002AC4E5478227Eull},
    {128, 0xEBB15E34A7FB5AB1ull, 0x39992220E045260Aull},
    {129, 0x86C9E3BC8F0A3B5Cull, 0x03815FC91F1B30B6ull},
    {240, 0x5C9AAE94C8EBE5A0ull, 0xAA4202DAA2769DC8ull},
    {241, 0xC5A639ECD2030E5Eull, 0x99A80ECF0ECFC647ull},
    {512, 0x617E49599013CB6Bull, 0x18D2D110DCC9BCA1ull},
};

static void known_vectors(void)
{
    uint8_t bytes[512], sum[WEIR_SUM_BYTES];
    sanity_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        weir_sum(sum, bytes, vectors[i].size);
        uint64_t high = 0, low = 0;
        for (int b = 0; b < 8; b++) {
            high = high << 8 | sum[b]; /* canonical: big-endian, the high half first */
            low = low << 8 | sum[8 + b];
        }
        CHECK_EQ(high, vectors[i].high);
        CHECK_EQ(low, vectors[i].low);
    }
}

/* Any one bit makes another sum, in short and long inputs (XXH3 has a path for each). */
static void every_bit_counts(void)
{
    static const size_t sizes[] = {1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 4096};
    uint8_t *data = data_buffer(4096, 1), before[WEIR_SUM_BYTES], after[WEIR_SUM_BYTES];
    data_fill(data, 4096, 1, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        weir_sum(before, data, sizes[i]);
        for (size_t bit = 0; bit < sizes[i] * 8; bit++) {
            data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            weir_sum(after, data, sizes[i]);
            CHECK(memcmp(before, after, sizeof before));
            data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
    data_free(data, 1);
}

static void hex(void)
{
    static const uint8_t bytes[] = {0x00, 0x01, 0x9a, 0xff};
    uint8_t back[4] = {0};
    char text[9];
    weir_hex(text, bytes, 4);
    CHECK(!strcmp(text, "00019aff"));
    OK(weir_unhex(back, 4, text));
    CHECK(!memcmp(back, bytes, 4));
    OK(weir_unhex(back, 0, ""));
    CHECK_EQ(weir_unhex(back, 4, "00019af"), -EINVAL);
    CHECK_EQ(weir_unhex(back, 4, "00019aff0"), -EINVAL);
    CHECK_EQ(weir_unhex(back, 4, "00019aFF"), -EINVAL);
    CHECK_EQ(weir_unhex(back, 4, "00019ag0"), -EINVAL);
    CHECK_EQ(weir_unhex(back, 4, ""), -EINVAL);
}

static void algorithms(void)
{
    CHECK(!strcmp(weir_algorithm_name(WEIR_ALGORITHM_XXH3_128), "xxh3-128"));
    CHECK(!strcmp(weir_algorithm_name(WEIR_ALGORITHM_NONE), ""));
    CHECK(!strcmp(weir_algorithm_name((enum weir_algorithm)200), ""));
}

static void little_endian(void)
{
    uint8_t at[8] = {0};
    weir_store_le(at, 0x1122334455667788, 8);
    CHECK(!memcmp(at, "\x88\x77\x66\x55\x44\x33\x22\x11", 8));
    CHECK_EQ(weir_load_le(at, 8), 0x1122334455667788);
    weir_store_le(at, 0xaabbccdd, 2);
    CHECK(!memcmp(at, "\xdd\xcc\x66", 3));
    CHECK_EQ(weir_load_le(at, 2), 0xccdd);
}

int main(void)
{
    RUN(known_vectors);
    RUN(every_bit_counts);
    RUN(hex);
    RUN(algorithms);
    RUN(little_endian);
    return TEST_RESULT;
}
