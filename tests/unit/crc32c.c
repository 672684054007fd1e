/* CRC-32C: the values of RFC 3720, and the same with the processor's instruction and without, for
 * every length and place, in one piece or two.
 */
#include "data.h"
#include "test.h"
#include "util/crc32c.h"

static uint32_t both(uint32_t crc, const void *data, size_t size)
{
    uint32_t value = weir_crc32c(crc, data, size);
    CHECK_EQ(weir_crc32c_table(crc, data, size), value);
    return value;
}

static void known_values(void)
{
    uint8_t data[32] = {0};
    CHECK_EQ(both(0, "", 0), 0);
    CHECK_EQ(both(0, "123456789", 9), 0xe3069283);
    CHECK_EQ(both(0, data, 32), 0x8a9136aa);
    memset(data, 0xff, 32);
    CHECK_EQ(both(0, data, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        data[i] = (uint8_t)i;
    CHECK_EQ(both(0, data, 32), 0x46dd794e);
}

static void pieces(void)
{
    static uint8_t data[300];
    data_fill(data, sizeof data, 3, 0);
    for (size_t from = 0; from < 9; from++)
        for (size_t size = 0; size < 200; size++) {
            uint32_t whole = both(0, data + from, size);
            size_t half = size * 2 / 3;
            CHECK_EQ(both(both(0, data + from, half), data + from + half, size - half), whole);
        }
}

/* Where several sums are made at once. */
static void large(void)
{
    static uint8_t data[20000];
    data_fill(data, sizeof data, 4, 0);
    for (size_t from = 0; from < 9; from += 4)
        for (size_t size = 3000; size < sizeof data - 9; size += size % 3072 > 3060 ? 1 : 61) {
            uint32_t whole = both(0, data + from, size);
            size_t half = size * 2 / 3;
            CHECK_EQ(both(both(0, data + from, half), data + from + half, size - half), whole);
        }
}

int main(void)
{
    RUN(known_values);
    RUN(pieces);
    RUN(large);
    return TEST_RESULT;
}
