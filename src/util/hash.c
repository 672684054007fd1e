/* hash.c - XXH3 compiled into this file, so that the compiler sees the whole loop. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "util/hash.h"

#include <errno.h>
#include <string.h>

void weir_sum(uint8_t out[WEIR_SUM_BYTES], const void *data, size_t size)
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
    memcpy(out, canonical.digest, WEIR_SUM_BYTES);
}

const char *weir_algorithm_name(enum weir_algorithm algorithm)
{
    return algorithm == WEIR_ALGORITHM_XXH3_128 ? "xxh3-128" : "";
}

void weir_hex(char *out, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = 0;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int weir_unhex(uint8_t *out, size_t size, const char *text)
{
    for (size_t i = 0; i < size; i++, text += 2) {
        int high = digit(text[0]);
        int low = high < 0 ? -1 : digit(text[1]);
        if (low < 0)
            return -EINVAL;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return *text ? -EINVAL : 0;
}
