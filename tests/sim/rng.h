/* rng.h - the one source of chance in a simulation: a function of its seed (splitmix64). */
#ifndef WEIR_SIM_RNG_H
#define WEIR_SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct sim_rng {
    uint64_t state;
};

static inline uint64_t sim_rng_next(struct sim_rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* 0 to n - 1; 0 for n = 0. */
static inline uint64_t sim_rng_below(struct sim_rng *rng, uint64_t n)
{
    return n ? sim_rng_next(rng) % n : 0;
}

static inline bool sim_rng_percent(struct sim_rng *rng, unsigned percent)
{
    return sim_rng_below(rng, 100) < percent;
}

/* A generator of its own for each purpose: one that draws more does not disturb the others. */
static inline struct sim_rng sim_rng_fork(uint64_t seed, uint64_t purpose)
{
    struct sim_rng rng = {seed * 0xd1342543de82ef95u + purpose};
    sim_rng_next(&rng);
    return rng;
}

#endif
