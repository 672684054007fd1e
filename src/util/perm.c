/* perm.c - see perm.h. Rounds are measured (tests/unit/perm.c): with four, two things do not go to
 * all pairs of places equally often; with eight on five bits, three do not to all triples.
 */
#include "util/perm.h"

#include <assert.h>

/* Halves of two or three bits mix slowly. */
enum { FEW_BITS = 7, ROUNDS = 8 };
#define STEP                                                                                       \
    0x9e3779b97f4a7c15u /* 2^64 over the golden ratio: odd, no pattern in its multiples            \
                         */

/* Every bit of the input changes every bit of the output (the finalizer of splitmix64). */
static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t weir_perm_key(uint64_t key, uint64_t place)
{
    return scramble(scramble(key + STEP) + place * STEP);
}

/* Fisher and Yates' shuffle of n digits. A draw below i is the upper half of a product. */
static uint64_t shuffled_word(uint64_t key, uint64_t n)
{
    uint64_t word = 0xfedcba9876543210u;
    for (uint64_t i = n; i > 1; i--) {
        uint64_t with = (uint64_t)((unsigned __int128)scramble(key + i * STEP) * i >> 64);
        uint64_t differ = (word >> 4 * with ^ word >> 4 * (i - 1)) & 15;
        word ^= differ << 4 * with ^ differ << 4 * (i - 1);
    }
    return word;
}

void weir_perm_init(struct weir_perm *perm, uint64_t key, uint64_t n)
{
    assert(n);
    perm->n = n;
    if (n <= WEIR_PERM_WORD) {
        perm->word = shuffled_word(key, n);
        return;
    }
    unsigned bits = 64 - (unsigned)__builtin_clzll(n - 1);
    perm->left_bits = bits / 2;
    perm->right_bits = bits - bits / 2;
    perm->rounds = bits < FEW_BITS ? WEIR_PERM_ROUNDS_MAX : ROUNDS;
    for (unsigned i = 0; i < perm->rounds; i++)
        perm->keys[i] = scramble(key + (i + 1) * STEP);
}

/* `bits` bits that depend on all of the value and the key. The upper half of a product depends on
 * all of its factors, so those bits are taken. */
static uint64_t round_of(uint64_t value, uint64_t key, unsigned bits)
{
    uint64_t x = (value ^ key) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 32)) * 0x94d049bb133111ebu;
    return x >> (64 - bits);
}

uint64_t weir_perm_at(const struct weir_perm *perm, uint64_t i)
{
    assert(i < perm->n);
    if (perm->n <= WEIR_PERM_WORD)
        return perm->word >> 4 * i & 15;
    do {
        uint64_t left = i >> perm->right_bits;
        uint64_t right = i & (((uint64_t)1 << perm->right_bits) - 1);
        for (unsigned r = 0; r < perm->rounds; r += 2) {
            left ^= round_of(right, perm->keys[r], perm->left_bits);
            right ^= round_of(left, perm->keys[r + 1], perm->right_bits);
        }
        i = left << perm->right_bits | right;
    } while (i >= perm->n);
    return i;
}
