/* loader.h - a loader (weir.h), for the files it is made of: what is planned (plan.c), what its
 * threads do (work.c), and what the caller sees (loader.c).
 *
 *     plan ──> wanted pieces ──> load ──┐
 *      └─────> slots, one for each batch, in order ──> gather ──> next()
 *
 * A slot is planned when its positions are dealt and it holds every piece that they are in. Pieces
 * are loaded in the order in which they were first wanted. A slot whose pieces are all there can be
 * gathered into a batch, in any order; batches are delivered in the order of the slots.
 *
 * Planning is one thread's at a time (`planning`), without the lock. Bytes are counted when they
 * are planned, so a slot is planned no further when they reach the bound; only the slot that the
 * caller gets next is planned and loaded in any case: a bound must not stop everything.
 */
#ifndef WEIR_DATA_LOADER_H
#define WEIR_DATA_LOADER_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/batch.h"
#include "data/mix.h"
#include "data/piece.h"

enum weir_held_state { WEIR_HELD_WANTED, WEIR_HELD_LOADING, WEIR_HELD_LOADED };

/* A piece, and who needs it. Everything but the piece is under the lock. */
struct weir_held {
    struct weir_piece piece;
    const struct weir_feed *source;
    struct weir_held *next_same;   /* in the table */
    struct weir_held *next_wanted; /* in the queue; or among those that are let go of */
    uint64_t refs;                 /* of slots and lanes */
    enum weir_held_state state;
    bool is_shared; /* it is in the table */
};

/* An epoch in use. */
struct weir_drawn {
    struct weir_drawn *next;
    const struct weir_feed *source;
    struct weir_epoch *epoch;
    uint64_t number, refs; /* of slots, and of the planner */
    uint64_t last;         /* one more than the batch that was the last to take it */
};

/* What the planner knows of a lane: the items of an epoch's window are in `held`. */
struct weir_lane {
    uint64_t epoch;
    struct weir_window window;
    struct weir_held *held;
};

/* A dataset, one of those that are mixed. */
struct weir_feed {
    struct weir_supply supply;
    struct weir_order *order;
    uint64_t samples; /* of an epoch */
    uint64_t window;
    uint32_t lanes; /* as options have them; without shuffling, one is used */
    uint32_t lanes_count;
    uint64_t row_bytes;     /* that a sample has on average */
    bool is_scattered;      /* each slot has a list of its own */
    struct weir_lane *lane; /* the planner's, as is the epoch drawn from last */
    struct weir_drawn *drawn;
    weir_tally tallies[WEIR_TALLIES_MAX];
    uint32_t tallies_count;
    weir_tally tallies_before[WEIR_TALLIES_MAX]; /* without the batch that was counted last, */
    uint32_t tallies_count_before;
    uint64_t counted; /* which was this one, from 1 on */
};

enum weir_slot_state {
    WEIR_SLOT_EMPTY,
    WEIR_SLOT_PLANNING,
    WEIR_SLOT_PLANNED,
    WEIR_SLOT_GATHERING,
    WEIR_SLOT_DONE,
};

/* A sample of a slot. */
struct weir_row {
    uint32_t source;
    uint64_t position; /* in that source */
    struct weir_drawn *drawn;
    struct weir_held *held;
    uint64_t number; /* which one it is, */
    uint64_t at;     /* and of a list, where in it */
};

struct weir_slot {
    enum weir_slot_state state;
    bool is_fetching;         /* while it is gathered: what is mapped comes from storage first */
    uint64_t position;        /* of the global batch */
    struct weir_row *rows;    /* room for a rank's share, as in the others */
    uint64_t rows_count, row; /* planned up to here; */
    uint32_t source;          /* then lists, up to this source's */
    uint64_t *numbers;        /* of lists, one behind the other */
    uint64_t numbers_count;
    struct weir_held **uses;     /* the pieces it holds */
    uint64_t uses_count, loaded; /* the first so many are loaded */
    struct weir_drawn **drawn;   /* the epochs it holds */
    uint64_t drawn_count, drawn_room;
    uint64_t bytes; /* that are counted for it */
    weir_batch *batch;
    int code;
    char *text;
};

struct weir_loader {
    weir_loader_options opts; /* with the defaults filled in; fields are copied */
    struct weir_feed *sources;
    uint32_t sources_count;
    struct weir_mix *mix; /* of several; else NULL */
    struct weir_slabs *slabs;
    uint64_t batch_size; /* of a global batch */
    uint64_t row_bytes;  /* that a sample has on average */
    unsigned generation;

    struct weir_gather *gather; /* the caller's, for batches that it makes itself */
    pthread_mutex_t lock;
    pthread_cond_t work, done; /* for threads, for the caller */
    pthread_t *threads;
    uint32_t threads_count; /* running */
    uint32_t processors, gathering;
    uint64_t ready;           /* batches that are made, and not delivered */
    uint64_t batch_bytes_max; /* of those that were made */
    bool waits;             /* not all sources are mapped: pieces are read */
    bool lacked;            /* the last batch that was made waited for what is mapped */
    atomic_bool stop;       /* looked at without the lock, too */
    bool planning, waiting; /* waiting: the caller is */

    struct weir_slot *slots; /* batch i is in slot i % slots_count */
    uint64_t slots_count;
    uint64_t reached; /* where the caller is known to be, if batches are held */
    uint64_t delivered, planned; /* batches; planned ones include the one being planned */
    uint64_t sweep_at;           /* the position at which lanes left behind are looked for */
    struct weir_held **table;
    size_t table_count; /* a power of two */
    struct weir_held *wanted, **wanted_tail;
    uint64_t wanted_count;
    struct weir_drawn *drawn;
    uint64_t bytes;   /* counted: of pieces, and of batches not yet delivered */
    uint64_t lacking; /* that planning stopped for: so much more must be free */
    weir_loader_stats stats;
};

/* Where this worker's i-th batch begins. */
uint64_t weir_loader_position(const struct weir_loader *loader, uint64_t i);
/* The next position of a source when the loader has come to this one. */
uint64_t weir_source_position(const struct weir_loader *loader, uint32_t source, uint64_t position);

/* The slot's batch cannot be had, for the reason that this thread's text is. */
void weir_slot_fail(struct weir_slot *slot, int code);

/* ---- plan.c ---- */

/* With the lock held. */
bool weir_plan_can(const struct weir_loader *loader);
/* Goes on planning; called with the lock held, which it gives up meanwhile. */
void weir_plan_more(struct weir_loader *loader);
/* Gives up what a slot holds; called with the lock held, which it gives up meanwhile. */
void weir_plan_let_go(struct weir_loader *loader, struct weir_slot *slot);
/* Takes the next wanted pieces off the queue; with the lock held. */
size_t weir_plan_take_wanted(struct weir_loader *loader, struct weir_held **out, size_t max);
/* At the end, without threads. */
void weir_plan_close(struct weir_loader *loader);

/* ---- work.c ---- */

int weir_work_start(struct weir_loader *loader);
/* Waits for the threads. */
void weir_work_stop(struct weir_loader *loader);
/* Wakes one more thread if there is something to do; with the lock held. Whoever takes something
 * on does it first, so that one after the other comes, and none for nothing. */
void weir_work_wake(struct weir_loader *loader);
/* Makes a batch in the caller's thread, if one can be made that nobody makes: its own, or one that
 * comes next, if that is small and batches do not wait for storage: to sleep and be woken takes
 * longer. With the lock held, which it gives up meanwhile. */
bool weir_work_help(struct weir_loader *loader, const struct weir_slot *own);
/* A slot has all its pieces; with the lock held. */
bool weir_slot_is_loaded(struct weir_slot *slot);

#endif
