/* ahead.h - pieces of ranges of samples, loaded by threads ahead of those who take them. A taker
 * has a range of its own, whose pieces come to it in their order; the range that was begun first is
 * served first, so that takers are at different points: one is given samples while another is done
 * with its own, and neither the storage nor the processors wait.
 *
 * A small file costs a wait for the disk, or a round trip: as many are under way as hide it.
 */
#ifndef WEIR_DATA_AHEAD_H
#define WEIR_DATA_AHEAD_H

#include <stdbool.h>

#include "data/piece.h"

/* A range has so many, however large they are: one is taken, one loaded. A compressed shard of the
 * source is one piece. */
enum { WEIR_AHEAD_PIECES_MIN = 2 };

struct weir_ahead;
struct weir_ahead_piece;

/* A taker's; all of it belongs to ahead.c. It is one thread's, from begin to end. */
struct weir_ahead_range {
    struct weir_ahead_range *next;
    uint64_t at, end; /* samples of which no piece was made yet */
    bool is_planning; /* somebody makes the next one */
    struct weir_ahead_piece *first, *last;
    uint32_t held;  /* pieces that are loaded or being loaded */
    bool is_taking; /* the first of them */
    bool is_over;   /* the taker wants no more */
    int code;       /* why there are no more */
    char *text;
};

/* The supply is used until it is closed. */
int weir_ahead_open(struct weir_ahead **out, const struct weir_supply *from);
/* Takes NULL. No range has begun that has not ended. */
void weir_ahead_close(struct weir_ahead *ahead);

/* Samples [at, end) are wanted. */
void weir_ahead_begin(struct weir_ahead *ahead, struct weir_ahead_range *range, uint64_t at,
                      uint64_t end);
/* Waits for the next piece, which stays until the next call; *first and *count are the samples that
 * are wanted of it. 1; 0 after the last; or a failure. */
int weir_ahead_next(struct weir_ahead *ahead, struct weir_ahead_range *range,
                    const struct weir_piece **out, uint64_t *first, uint64_t *count);
/* Not all need have been taken. */
void weir_ahead_end(struct weir_ahead *ahead, struct weir_ahead_range *range);

#endif
