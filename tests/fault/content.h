/* content.h - objects whose bytes are a function of a seed. The seed and the size travel in the
 * object's user metadata, so whoever reads an object can tell whose bytes it must hold, and whether
 * it does. Any process may call these; nothing is shared.
 */
#ifndef WEIR_FAULT_CONTENT_H
#define WEIR_FAULT_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir.h"

struct content {
    uint64_t seed, size;
};

/* A small generator for the tests' own choices: the same seed gives the same choices. */
struct dice {
    uint64_t state;
};
uint64_t dice_next(struct dice *dice);
/* 0 to limit - 1. */
uint64_t dice_below(struct dice *dice, uint64_t limit);
/* True once in `n` throws. */
bool dice_one_in(struct dice *dice, uint64_t n);
/* A number of its own for each (a, b). */
uint64_t mix(uint64_t a, uint64_t b);
/* $WEIR_SEED, else one from the clock; prints it with the way to replay it. */
uint64_t seed_choose(void);

/* Fills buf with bytes [off, off + size) of what `seed` stands for; off is a multiple of 8. */
void content_fill(void *buf, uint64_t seed, uint64_t off, size_t size);
bool content_same(struct content a, struct content b);

enum {
    CONTENT_HINT = 1,     /* tell the size beforehand */
    CONTENT_IN_PLACE = 2, /* one write from aligned memory: no copy is made above 16 MiB */
    CONTENT_OF_SAVE = 4,  /* part of a save of a ledger */
};
/* The answer of the put: 0, or the first -errno of its calls. */
int content_put(weir_store *store, const char *key, struct content what, unsigned how);
/* Reads all of an object and compares. 0 and what it is; the engine's -errno; -ENODATA for a plain
 * file that has no seal; or -EILSEQ, printed in detail, for bytes that are not those of the seed in
 * its metadata: never right. */
int content_get(struct content *out, weir_store *store, const char *key);
/* The same, and it must be just this one. */
int content_expect(weir_store *store, const char *key, struct content what);

/* Opens with an engine ("uring", "threads", NULL: the default) or ends the program. */
weir_store *store_must_open(const char *url, const char *engine, uint32_t flags, uint64_t grace_s);
/* "uring", if this machine has it, or "threads", in turn. */
const char *engine_pick(uint64_t number);

#endif
