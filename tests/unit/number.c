/* Elements of tensors as numbers: the ends of each kind's range, what is not finite, and signs. */
#include <math.h>

#include "util/number.h"
#include "test.h"
#include "util/bytes.h"

static double number(const char *dtype, uint64_t bits)
{
    uint8_t bytes[9];
    weir_store_le(bytes + 1, bits, 8); /* not aligned */
    weir_number_fn fn = weir_number_of(dtype);
    CHECK(fn);
    return fn(bytes + 1);
}

static void finite_ones(void)
{
    static const struct {
        const char *dtype;
        uint64_t bits;
        double value;
    } cases[] = {
        {"BOOL", 1, 1},
        {"U8", 0xff, 255},
        {"I8", 0x80, -128},
        {"U16", 0xffff, 65535},
        {"I16", 0x8000, -32768},
        {"U32", 0xffffffff, 4294967295.0},
        {"I32", 0x80000000, -2147483648.0},
        {"U64", UINT64_MAX, 0x1p64},
        {"I64", UINT64_MAX, -1},
        {"F64", 0x400921fb54442d18, 3.141592653589793},
        {"F32", 0xc0490fdb, -3.14159274101257324},
        {"F32", 1, 0x1p-149},
        {"BF16", 0x3f80, 1},
        {"BF16", 0xbf81, -1.0078125},
        {"F16", 0x3c00, 1},
        {"F16", 0xfbff, -65504},
        {"F16", 1, 0x1p-24},
        {"F16", 0x0400, 0x1p-14},
        {"F8_E5M2", 0x3c, 1},
        {"F8_E5M2", 0x7b, 57344},
        {"F8_E5M2", 0x81, -0x1p-16},
        {"F8_E4M3", 0x38, 1},
        {"F8_E4M3", 0x7e, 448},
        {"F8_E4M3", 0x01, 0x1p-9},
        {"F8_E4M3FNUZ", 0x40, 1},
        {"F8_E4M3FNUZ", 0x7f, 240},
        {"F8_E5M2FNUZ", 0x40, 1},
        {"F8_E5M2FNUZ", 0x7f, 57344},
        {"F8_E8M0", 0, 0x1p-127},
        {"F8_E8M0", 130, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (number(cases[i].dtype, cases[i].bits) != cases[i].value) {
            fprintf(stderr, "%s of %llx is %.17g, not %.17g\n", cases[i].dtype,
                    (unsigned long long)cases[i].bits, number(cases[i].dtype, cases[i].bits),
                    cases[i].value);
            exit(1);
        }
}

static void others(void)
{
    static const struct {
        const char *dtype;
        uint64_t infinite, nan; /* infinite 0: it has none */
    } cases[] = {
        {"F64", 0x7ff0000000000000, 0x7ff8000000000000},
        {"F32", 0x7f800000, 0x7fc00000},
        {"BF16", 0xff80, 0x7fc0},
        {"F16", 0xfc00, 0x7e00},
        {"F8_E5M2", 0x7c, 0x7d},
        {"F8_E4M3", 0, 0xff},
        {"F8_E4M3FNUZ", 0, 0x80},
        {"F8_E5M2FNUZ", 0, 0x80},
        {"F8_E8M0", 0, 0xff},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK(isnan(number(cases[i].dtype, cases[i].nan)));
        CHECK(!cases[i].infinite || isinf(number(cases[i].dtype, cases[i].infinite)));
    }
    CHECK(!weir_number_of("C64") && !weir_number_of("F4") && !weir_number_of(""));
}

int main(void)
{
    RUN(finite_ones);
    RUN(others);
    return TEST_RESULT;
}
