/* number.c - see number.h. */
#include "util/number.h"

#include <math.h>
#include <string.h>

#include "util/bytes.h"

static double from_u8(const uint8_t *at)
{
    return at[0];
}

static double from_i8(const uint8_t *at)
{
    return (int8_t)at[0];
}

static double from_u16(const uint8_t *at)
{
    return (double)weir_load_le(at, 2);
}

static double from_i16(const uint8_t *at)
{
    return (int16_t)weir_load_le(at, 2);
}

static double from_u32(const uint8_t *at)
{
    return (double)weir_load_le(at, 4);
}

static double from_i32(const uint8_t *at)
{
    return (int32_t)weir_load_le(at, 4);
}

static double from_u64(const uint8_t *at)
{
    return (double)weir_load_le(at, 8);
}

static double from_i64(const uint8_t *at)
{
    return (double)(int64_t)weir_load_le(at, 8);
}

static double from_f64(const uint8_t *at)
{
    uint64_t bits = weir_load_le(at, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double f32_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double from_f32(const uint8_t *at)
{
    return f32_of((uint32_t)weir_load_le(at, 4));
}

static double from_bf16(const uint8_t *at)
{
    return f32_of((uint32_t)weir_load_le(at, 2) << 16);
}

/* A sign, `exponent` bits, `mantissa` bits, with subnormals: the finite ones of all small floats.
 */
static double small_float(unsigned bits, unsigned exponent, unsigned mantissa, int bias)
{
    unsigned e = bits >> mantissa & ((1u << exponent) - 1), m = bits & ((1u << mantissa) - 1);
    double value = e ? ldexp((double)(m + (1u << mantissa)), (int)(e - mantissa) - bias)
                     : ldexp((double)m, 1 - (int)mantissa - bias);
    return bits >> (exponent + mantissa) & 1 ? -value : value;
}

/* As IEEE 754 has it: the largest exponent is of what is infinite or no number. */
static double ieee_float(unsigned bits, unsigned exponent, unsigned mantissa, int bias)
{
    unsigned top = (1u << exponent) - 1;
    if ((bits >> mantissa & top) != top)
        return small_float(bits, exponent, mantissa, bias);
    if (bits & ((1u << mantissa) - 1))
        return NAN;
    return bits >> (exponent + mantissa) & 1 ? -INFINITY : INFINITY;
}

static double from_f16(const uint8_t *at)
{
    return ieee_float((unsigned)weir_load_le(at, 2), 5, 10, 15);
}

static double from_e5m2(const uint8_t *at)
{
    return ieee_float(at[0], 5, 2, 15);
}

static double from_e4m3(const uint8_t *at)
{
    return (at[0] & 0x7f) == 0x7f ? NAN : small_float(at[0], 4, 3, 7);
}

static double from_e4m3fnuz(const uint8_t *at)
{
    return at[0] == 0x80 ? NAN : small_float(at[0], 4, 3, 8);
}

static double from_e5m2fnuz(const uint8_t *at)
{
    return at[0] == 0x80 ? NAN : small_float(at[0], 5, 2, 16);
}

static double from_e8m0(const uint8_t *at)
{
    return at[0] == 0xff ? NAN : ldexp(1, at[0] - 127);
}

weir_number_fn weir_number_of(const char *dtype)
{
    static const struct {
        const char *dtype;
        weir_number_fn fn;
    } numbers[] = {
        {"BOOL", from_u8},
        {"U8", from_u8},
        {"I8", from_i8},
        {"U16", from_u16},
        {"I16", from_i16},
        {"U32", from_u32},
        {"I32", from_i32},
        {"U64", from_u64},
        {"I64", from_i64},
        {"F64", from_f64},
        {"F32", from_f32},
        {"F16", from_f16},
        {"BF16", from_bf16},
        {"F8_E4M3", from_e4m3},
        {"F8_E5M2", from_e5m2},
        {"F8_E4M3FNUZ", from_e4m3fnuz},
        {"F8_E5M2FNUZ", from_e5m2fnuz},
        {"F8_E8M0", from_e8m0},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!strcmp(numbers[i].dtype, dtype))
            return numbers[i].fn;
    return NULL;
}
