/* bytes.h - little-endian fields of on-disk structures, whatever the host. */
#ifndef WEIR_UTIL_BYTES_H
#define WEIR_UTIL_BYTES_H

#include <stdint.h>

static inline void weir_store_le(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static inline uint64_t weir_load_le(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

#endif
