/* perm.h - a keyed bijection on [0, n): where a shuffle would keep a table, this is a function. A
 * Feistel network over the smallest power of two that holds n, walked until it is inside: each
 * value goes to a value, no two to the same one. Up to 16 things, which such a network shuffles
 * badly, are shuffled in one word of memory. Not for secrets. The same on every machine; what it
 * computes is part of a saved state's meaning and never changes.
 */
#ifndef WEIR_UTIL_PERM_H
#define WEIR_UTIL_PERM_H

#include <stdint.h>

enum { WEIR_PERM_ROUNDS_MAX = 12, WEIR_PERM_WORD = 16 };

struct weir_perm {
    uint64_t n;
    uint64_t word; /* n <= WEIR_PERM_WORD: where each goes, four bits each */
    unsigned left_bits, right_bits, rounds;
    uint64_t keys[WEIR_PERM_ROUNDS_MAX];
};

/* n: at least 1. */
void weir_perm_init(struct weir_perm *perm, uint64_t key, uint64_t n);
/* i < n; another value below n. */
uint64_t weir_perm_at(const struct weir_perm *perm, uint64_t i);

/* A key of its own for each purpose and place: not related to `key` or to its neighbours. */
uint64_t weir_perm_key(uint64_t key, uint64_t place);

#endif
