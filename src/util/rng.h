/* rng.h - the one source of chance: a function of its seed (splitmix64), the same on every machine.
 * Not for secrets.
 */
#ifndef WEIR_UTIL_RNG_H
#define WEIR_UTIL_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct weir_rng {
    uint64_t state;
};

static inline uint64_t weir_rng_next(struct weir_rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* 0 to n - 1; 0 for n = 0. */
static inline uint64_t weir_rng_below(struct weir_rng *rng, uint64_t n)
{
    return n ? weir_rng_next(rng) % n : 0;
}

static inline bool weir_rng_percent(struct weir_rng *rng, unsigned percent)
{
    return weir_rng_below(rng, 100) < percent;
}

/* A generator of its own for each purpose: one that draws more does not disturb the others. */
static inline struct weir_rng weir_rng_fork(uint64_t seed, uint64_t purpose)
{
    struct weir_rng rng = {seed * 0xd1342543de82ef95u + purpose};
    weir_rng_next(&rng);
    return rng;
}

#endif
