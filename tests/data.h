/* data.h - reproducible bytes: byte `off` of stream `seed` is a function of the two, so that any
 * range can be made and checked alone; and a small generator for choosing among cases.
 */
#ifndef WEIR_TESTS_DATA_H
#define WEIR_TESTS_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "test.h"

static inline uint64_t data_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static inline uint8_t data_byte(uint64_t seed, uint64_t off)
{
    return (uint8_t)(data_mix((seed << 40) + off / 8 + 1) >> (8 * (off % 8)));
}

static inline void data_fill(void *buf, size_t size, uint64_t seed, uint64_t off)
{
    uint8_t *at = buf;
    size_t i = 0;
    for (; i < size && (off + i) % 8; i++)
        at[i] = data_byte(seed, off + i);
    for (; i + 8 <= size; i += 8) {
        uint64_t word = data_mix((seed << 40) + (off + i) / 8 + 1);
        memcpy(at + i, &word, 8);
    }
    for (; i < size; i++)
        at[i] = data_byte(seed, off + i);
}

static inline bool data_is(const void *buf, size_t size, uint64_t seed, uint64_t off)
{
    uint8_t want[4096];
    for (size_t done = 0, n; done < size; done += n) {
        n = size - done < sizeof want ? size - done : sizeof want;
        data_fill(want, n, seed, off + done);
        if (memcmp(want, (const uint8_t *)buf + done, n))
            return false;
    }
    return true;
}

static inline bool data_all(const void *buf, size_t size, uint8_t value)
{
    for (size_t i = 0; i < size; i++)
        if (((const uint8_t *)buf)[i] != value)
            return false;
    return true;
}

/* Owned; aligned as transfers like it, plus `shift` bytes that make it unaligned. Freed with
 * data_free(). */
static inline uint8_t *data_buffer(size_t size, size_t shift)
{
    void *buf;
    CHECK(posix_memalign(&buf, 4096, size + shift + 1) == 0);
    return (uint8_t *)buf + shift;
}

static inline void data_free(uint8_t *buf, size_t shift)
{
    free(buf - shift);
}

struct rng {
    uint64_t state;
};

/* A number in [0, bound). */
static inline uint64_t rng_below(struct rng *rng, uint64_t bound)
{
    rng->state += 0x9e3779b97f4a7c15;
    return data_mix(rng->state) % bound;
}

#endif
