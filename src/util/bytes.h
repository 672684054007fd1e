/* bytes.h - little-endian fields of on-disk structures, whatever the host. */
#ifndef WEIR_UTIL_BYTES_H
#define WEIR_UTIL_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void weir_store_le(uint8_t *at, uint64_t value, unsigned bytes)
{
    if (bytes == sizeof value) { /* most are: one store, which compilers do not find in a loop */
        value = htole64(value);
        memcpy(at, &value, sizeof value);
        return;
    }
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static inline uint64_t weir_load_le(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    if (bytes == sizeof value) {
        memcpy(&value, at, sizeof value);
        return le64toh(value);
    }
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static inline void weir_store_be64(uint8_t *at, uint64_t value)
{
    value = htobe64(value);
    memcpy(at, &value, sizeof value);
}

#endif
