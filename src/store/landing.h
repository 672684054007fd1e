/* landing.h - where the units of a read land: in place, in the caller's memory, or in a pool buffer
 * from which they are copied.
 *
 * In place costs less of the processor and is right where a device moves the bytes itself. A
 * virtual disk copies them, and into memory that is not in the caches that can take longer than the
 * read; a pool buffer is always warm. Which it is cannot be asked, so reads of files that are long
 * enough try both; what comes from elsewhere was copied already, and lands in place. A landing is
 * its store's, for any thread; a trial is one read's, for its thread.
 */
#ifndef WEIR_STORE_LANDING_H
#define WEIR_STORE_LANDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_way { WEIR_WAY_UNKNOWN, WEIR_WAY_IN_PLACE, WEIR_WAY_POOL };

struct weir_landing {
    atomic_int way;          /* the verdict of the last trial */
    atomic_llong bytes_left; /* until the next one */
    enum weir_way forced;    /* before anything is read: no disk is below, or a test wants it */
};

struct weir_trial {
    enum weir_way way;   /* that is being tried; WEIR_WAY_UNKNOWN: none is */
    unsigned stretch;    /* the ways take turns */
    unsigned units_left; /* of this stretch, the units under way at its begin among them */
    uint64_t start_ns, best_ns[WEIR_WAY_POOL + 1];
};

/* Which way the next unit goes, that has `bytes` and could go either way; WEIR_WAY_UNKNOWN is as
 * good as in place. A trial may begin if the read has enough units to go. */
enum weir_way weir_landing_choose(struct weir_landing *landing, struct weir_trial *trial,
                                  size_t bytes, uint64_t units_to_go, unsigned depth);
/* A unit has come, whichever way. */
void weir_landing_count(struct weir_landing *landing, struct weir_trial *trial, unsigned depth);
/* The read is over, or has failed: another may try. */
void weir_landing_end(struct weir_landing *landing, const struct weir_trial *trial);

#endif
