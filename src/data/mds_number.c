/* mds_number.c - see mds_number.h. */
#include "data/mds_number.h"

#include <math.h>
#include <string.h>

#include "data/field.h"
#include "util/bytes.h"

enum {
    HALF_DIGITS = 10, /* binary ones behind the point of a float16, */
    HALF_BIAS = 15,   /* whose exponent has this added */
};

static bool half_of(double value, uint16_t *out)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value), digits;
    int exponent;
    if (!isfinite(value) || value == 0) {
        *out = sign | (isnan(value) ? 0x7e00 : isinf(value) ? 0x7c00 : 0);
        return true;
    }
    frexp(size, &exponent);
    exponent += HALF_BIAS - 1;
    if (exponent > 2 * HALF_BIAS)
        return false;
    digits = ldexp(size, HALF_DIGITS + HALF_BIAS - (exponent > 0 ? exponent : 1));
    if (digits != floor(digits))
        return false;
    if (exponent > 0)
        *out = (uint16_t)(sign | exponent << HALF_DIGITS | ((int)digits - (1 << HALF_DIGITS)));
    else
        *out = (uint16_t)(sign | (int)digits); /* below the smallest with a leading digit */
    return true;
}

static bool put_float(const char *dtype, double value, uint8_t *out)
{
    float single = (float)value;
    uint16_t half;
    switch (dtype[2]) {
    case '2':
        if (!half_of(value, &half))
            return false;
        weir_store_le(out, half, 2);
        return true;
    case '4':
        memcpy(out, &single, 4);
        return isnan(value) || (double)single == value;
    default:
        memcpy(out, &value, 8);
        return true;
    }
}

static bool put_whole(const char *dtype, const char *from, const uint8_t *at, uint8_t *out)
{
    unsigned bytes = (unsigned)weir_dtype_bytes(dtype);
    int64_t value, most = bytes == 8 ? INT64_MAX : ((int64_t)1 << (8 * bytes - 1)) - 1;
    if (!weir_dtype_i64(from, at, &value)) { /* beyond INT64_MAX */
        if (strcmp(dtype, "<u8") != 0)
            return false;
        memcpy(out, at, 8);
        return true;
    }
    weir_store_le(out, (uint64_t)value, bytes);
    if (dtype[1] == 'i')
        return value <= most && value >= -most - 1;
    return value >= 0 && (bytes == 8 || value <= 2 * most + 1);
}

/* Whole numbers that a double has no place for become others. */
static bool is_exact(const char *from, const uint8_t *at, double value)
{
    int64_t whole;
    if (!weir_dtype_is_whole(from))
        return true;
    if (!weir_dtype_i64(from, at, &whole))
        return value < 0x1p64 && (uint64_t)value == weir_load_le(at, 8);
    return value < 0x1p63 && (int64_t)value == whole;
}

bool weir_mds_number_put(const char *dtype, const char *from, const uint8_t *at, uint8_t *out)
{
    if (weir_dtype_is_whole(dtype))
        return weir_dtype_is_whole(from) && put_whole(dtype, from, at, out);
    double value = weir_dtype_f64(from, at);
    return is_exact(from, at, value) && put_float(dtype, value, out);
}
