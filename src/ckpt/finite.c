/* finite.c - numbers that are none: NaN and infinity. Plain loops that the compiler vectorizes. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "ckpt/safetensors.h"
#include "util/err.h"
#include "weir.h"

/* A number is NaN or infinite when all bits of its exponent are set. */
static int64_t count_16(const uint16_t *at, uint64_t count, uint16_t exponent)
{
    int64_t found = 0;
    for (uint64_t i = 0; i < count; i++)
        found += (at[i] & exponent) == exponent;
    return found;
}

static int64_t count_32(const uint32_t *at, uint64_t count)
{
    int64_t found = 0;
    for (uint64_t i = 0; i < count; i++)
        found += (at[i] & 0x7f800000u) == 0x7f800000u;
    return found;
}

static int64_t count_64(const uint64_t *at, uint64_t count)
{
    int64_t found = 0;
    for (uint64_t i = 0; i < count; i++)
        found += (at[i] & 0x7ff0000000000000u) == 0x7ff0000000000000u;
    return found;
}

static int64_t count_8(const uint8_t *at, uint64_t count, uint8_t mask, uint8_t value)
{
    int64_t found = 0;
    for (uint64_t i = 0; i < count; i++)
        found += (at[i] & mask) == value;
    return found;
}

/* How the 8-bit types spell what is no number. */
static const struct {
    const char *dtype;
    uint8_t mask, value;
} bytes[] = {
    {"F8_E5M2", 0x7c, 0x7c},     {"F8_E4M3", 0x7f, 0x7f},     {"F8_E8M0", 0xff, 0xff},
    {"F8_E4M3FNUZ", 0xff, 0x80}, {"F8_E5M2FNUZ", 0xff, 0x80},
};

int64_t weir_count_nonfinite(const char *dtype, const void *data, uint64_t size_bytes)
{
    if (!weir_st_dtype_bits(dtype))
        return weir_fail(EINVAL, "'%.20s' is no type of a tensor", dtype);
    if (!strcmp(dtype, "F32") || !strcmp(dtype, "C64"))
        return count_32(data, size_bytes / 4);
    if (!strcmp(dtype, "BF16"))
        return count_16(data, size_bytes / 2, 0x7f80);
    if (!strcmp(dtype, "F16"))
        return count_16(data, size_bytes / 2, 0x7c00);
    if (!strcmp(dtype, "F64"))
        return count_64(data, size_bytes / 8);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        if (!strcmp(dtype, bytes[i].dtype))
            return count_8(data, size_bytes, bytes[i].mask, bytes[i].value);
    return 0;
}
