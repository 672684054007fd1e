/* Numbers of one dtype as those of another: exactly, or refused; and no byte is written behind the
 * room of one.
 */
#include "data/field.h"
#include "data/mds_number.h"
#include "test.h"

static const char *const dtypes[] = {"|i1", "|u1", "<i2", "<u2", "<i4", "<u4",
                                     "<i8", "<u8", "<f2", "<f4", "<f8"};
enum { DTYPES = sizeof dtypes / sizeof *dtypes, GUARD = 8 };

/* -1: refused. Else the number as it was written. */
static int put(const char *dtype, const char *from, const void *at, uint8_t out[16])
{
    size_t size = weir_dtype_bytes(dtype);
    memset(out, 0xa5, 16);
    bool fits = weir_mds_number_put(dtype, from, at, out);
    for (size_t i = size; i < size + GUARD; i++)
        CHECK_EQ(out[i], 0xa5);
    return fits ? 0 : -1;
}

/* In which dtypes does that number have a place, as it is? */
static void holds(const char *from, const void *at, const char *those)
{
    uint8_t out[16], back[16];
    for (int i = 0; i < DTYPES; i++) {
        bool expected = strstr(those, dtypes[i]) != NULL;
        CHECK_EQ(put(dtypes[i], from, at, out), expected ? 0 : -1);
        if (expected && !put(from, dtypes[i], out, back))
            CHECK(!memcmp(back, at, weir_dtype_bytes(from)));
    }
}

static void whole_numbers(void)
{
    int64_t small = 127, minus = -128, thousand = 1000, odd = (INT64_C(1) << 53) + 1,
            least = INT64_MIN;
    uint64_t most = UINT64_MAX, high = UINT64_C(1) << 63;
    holds("<i8", &small, "|i1 |u1 <i2 <u2 <i4 <u4 <i8 <u8 <f2 <f4 <f8");
    holds("<i8", &minus, "|i1 <i2 <i4 <i8 <f2 <f4 <f8");
    holds("<i8", &thousand, "<i2 <u2 <i4 <u4 <i8 <u8 <f2 <f4 <f8");
    holds("<i8", &odd, "<i8 <u8");
    holds("<i8", &least, "<i8 <f4 <f8");
    holds("<u8", &most, "<u8");
    holds("<u8", &high, "<u8 <f4 <f8");
}

static void others(void)
{
    double half = 0.5, third = 1.0 / 3, large = 1e300, few = 65504, more = 65536;
    holds("<f8", &half, "<f2 <f4 <f8");
    holds("<f8", &third, "<f8");
    holds("<f8", &large, "<f8");
    holds("<f8", &few, "<f2 <f4 <f8");
    holds("<f8", &more, "<f4 <f8");
}

int main(void)
{
    RUN(whole_numbers);
    RUN(others);
    return TEST_RESULT;
}
