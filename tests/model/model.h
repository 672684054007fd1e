/* model.h - the commit protocol as a state machine: a ledger (log), sets of parts, and those who
 * work on them. Every step touches the shared state once, so all that can happen between two
 * requests of the real thing can happen between two steps here. One thread; the configuration and
 * the flaws of the run are global.
 *
 * What is not a step: a crash. Every state is also one in which any of the processes never moves
 * again, so all crashes of all subsets are covered; only what a crash frees (locks, leases) has a
 * step. And time: gc may find any grace to have passed, since nothing safe may rest on one.
 */
#ifndef WEIR_TESTS_MODEL_MODEL_H
#define WEIR_TESTS_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "explore.h"

enum {
    RECORDS = 16,
    SLOTS = 3, /* attempts that ever wrote: see struct state */
    SAVES = 2,
    SETS = SLOTS * SAVES,
    PROCS = 9, /* one is for the runs alone in properties.c */
    LOST_CHOICES_MAX = 10,
};

/* What a set consists of, as bits of its masks: objects, then the nodes of the tree. With two parts
 * there is no INNER, and ROOT joins both leaves. */
enum { OBJECT = 0, LEAF = 3, INNER = 6, ROOT = 7, ELEMENTS = 8 };
enum { OBJECTS = 0x07, LEAVES = 0x38, TOPS = 0xc0, NODES = LEAVES | TOPS };

/* An entry of a record: its status above the root's digest. A digest holds for each part the token
 * of who wrote it (two bits each): a tombstone's is 0. */
enum { ENTRY_NONE = 0, ENTRY_LIVE = 1 << 6, ENTRY_RETIRED = 2 << 6, ENTRY_STATUS = 3 << 6 };

enum { REC_NONE, REC_LINKED, REC_DURABLE };

struct rec {
    uint8_t is; /* REC_... */
    uint8_t attempt, token, past;
    uint8_t floor; /* with VARIANT_FLOOR: saves below it that have no entry are closed */
    uint8_t nonce; /* of the process that put it */
    uint8_t entry[SETS];
};

struct set {
    uint8_t val[ELEMENTS];
    uint8_t there, durable; /* bits by element */
    uint8_t undead;         /* deleted, but the deletion is not durable */
};

struct proc {
    uint8_t pc;
    uint8_t op;   /* the change under way */
    uint8_t seen; /* the record a change is decided on */
    uint8_t held; /* the record a gc pass or a reader goes by */
    uint8_t set, node, val;
    uint8_t left;  /* passes left */
    uint8_t since; /* what was acknowledged when the change began */
    uint8_t skip;  /* used by flaws only */
};

struct state {
    struct rec log[RECORDS]; /* by number; record 0 is the empty ledger */
    uint8_t head;
    uint8_t attempt[SLOTS]; /* the attempt a slot stands for; 0: free */
    uint8_t owner[SLOTS];   /* the token that opened it */
    struct set sets[SETS];  /* slot * SAVES + save */
    struct proc procs[PROCS];
    struct rec flight; /* a put whose answer was lost, and that may still arrive */
    uint8_t flight_number;
    uint8_t is_after_loss; /* of power */
    uint8_t lost_left;
    uint8_t lease; /* set + 1 */
    /* What was promised, for the properties. */
    uint8_t acked_number, acked, retired;
};
_Static_assert(_Alignof(struct state) == 1, "states are compared as bytes");

enum kind { RANK, FINISHER, RETIRER, GC, READER };

struct spec {
    enum kind kind;
    uint8_t token, part; /* of a rank */
    uint8_t passes;      /* of gc */
    bool finishes;       /* a rank that waits may finish */
    bool leases;         /* a reader */
    bool after_loss;     /* starts after the loss of power; the others end with it */
};

struct config {
    const char *name;
    uint8_t parts, saves, lost;
    bool flight;   /* a lost put may arrive late */
    bool power;    /* one loss of power */
    bool prepared; /* starts with save 0 of attempt 1 (token A) committed */
    bool wakes;    /* no gc, no finisher, one incarnation: the last rank commits by itself */
    bool gc_check; /* run gc alone from every state, not only where all have ended */
    bool is_long;
    struct spec procs[PROCS - 1];
};

/* Deliberate faults. Those of the first group are in the protocol as it was first written down. */
enum flaw {
    FLAW_FORGET_CURRENT = 1 << 0,
    FLAW_PARENT_BEFORE_SYNC = 1 << 1,
    FLAW_APPEND_BEFORE_SYNC = 1 << 2,

    FLAW_NO_FENCE = 1 << 3,
    FLAW_LOOK_FIRST = 1 << 4,
    FLAW_DELETE_BEFORE_TOMB = 1 << 5,
    FLAW_TOMB_DROPPED = 1 << 6,
    FLAW_ANSWER_BEFORE_SYNC = 1 << 7,
    FLAW_JOIN_BEFORE_SYNC = 1 << 8,
    FLAW_SETTLE_BEFORE_SYNC = 1 << 9,
    FLAW_SETTLE_EXISTENCE = 1 << 10,
    FLAW_ROOT_BEFORE_SYNC = 1 << 11,
    FLAW_GC_BEFORE_SYNC = 1 << 12,
    FLAW_OVERWRITE = 1 << 13,
    FLAW_KEEPS_DECISION = 1 << 14,
    FLAW_LEASE_UNCHECKED = 1 << 15,
    FLAW_PAST_REJOINS = 1 << 16,
    FLAW_GC_NOT_EQUAL = 1 << 17,
    FLAW_LOST_PARENT_STOPS = 1 << 18,
    FLAW_FORGET_FIRST = 1 << 19,
    FLAW_TOMB_IGNORED = 1 << 20,
    FLAW_READ_BEFORE_SYNC = 1 << 21,
    FLAW_GC_TOMB_BLIND = 1 << 22,
    FLAW_TOMB_UNSETTLED = 1 << 23,
    FLAW_GC_SKIPS_OLD_SETS = 1 << 24,
    FLAW_DELETE_LEASED = 1 << 25,

    /* Not a flaw: gc may forget what the current attempt retired, for it raises a floor below which
     * that attempt can commit nothing more. */
    VARIANT_FLOOR = 1 << 26,
    /* Nor this: a finisher trusts no node above the leaves but makes them all again, so that
     * parents may be put before their children are durable. */
    VARIANT_WALK_ALL = 1 << 27,
};

enum pc {
    PC_START,
    PC_DONE,
    /* a change of the ledger */
    PC_READ,
    PC_FIX,
    PC_LINK,
    PC_SYNC,
    PC_SETTLE,
    /* a rank */
    PC_OBJECT,
    PC_LOOK,
    PC_NODE_LINK,
    PC_NODE_SYNC,
    PC_NODE_SETTLE,
    PC_NODE_FIX,
    PC_CLIMB,
    PC_WAIT,
    /* a finisher, and a rank that became one */
    PC_WALK,
    PC_WALK_FIX,
    /* gc */
    PC_GC_FIX,
    PC_GC_PICK,
    PC_GC_OBJECTS,
    PC_GC_LEAVES,
    PC_GC_TOPS,
    /* a reader */
    PC_READER_FIX,
    PC_READER_LEASE,
    PC_READER_AGAIN,
    PC_READER_NODES,
    PC_READER_OBJECTS,
    PC_READER_GONE,
};

enum op { OP_NONE, OP_JOIN, OP_COMMIT, OP_RETIRE, OP_TOMB, OP_FORGET };
/* Answers of a change. */
enum code { CODE_OK, CODE_STALE, CODE_EXISTS, CODE_APPEND };

extern const struct config *model_config;
extern uint32_t model_flaws;

static inline bool flaw(uint32_t which)
{
    return model_flaws & which;
}

static inline uint8_t status_of(const struct rec *rec, unsigned set)
{
    return rec->entry[set] & ENTRY_STATUS;
}

/* state.c: the shared state. */
const struct spec *model_spec(unsigned i);
/* Set by properties.c: who the last place in procs is. */
extern struct spec model_alone;
const char *model_name(unsigned i);
uint8_t model_slot(const struct state *s, uint8_t attempt);
bool model_log_is_durable(const struct state *s);
void model_log_sync(struct state *s);
void model_log_link(struct explore *x, struct state *s, uint8_t number, const struct rec *rec);
bool model_set_is_durable(const struct set *set);
void model_set_sync(struct set *set);
void model_set_link(struct set *set, unsigned element, uint8_t val);
void model_set_delete(struct set *set, uint8_t elements);
/* The elements a whole set has. */
uint8_t model_set_whole(void);
void model_start(struct state *s);
void model_expand(struct explore *x, const void *state);
/* Forgets what can no longer matter, and hands the state on. */
void model_emit(struct explore *x, struct state *s);
/* Steps of process i. */
void model_step(struct explore *x, const struct state *s, unsigned i);
bool model_alone_step(struct explore *x, struct state *s);

/* change.c: one change of the ledger. */
void model_change_begin(struct state *s, struct proc *p, enum op op);
void model_change_step(struct explore *x, const struct state *s, unsigned i);
/* Is the set one that its attempt, by this head, can no longer commit because of the floor? */
bool model_is_closed(const struct state *s, const struct rec *head, unsigned set);
/* May gc drop this retired entry, or tombstone, of that head? */
bool model_may_forget(const struct state *s, const struct rec *head, unsigned set);

/* writers.c, keepers.c: what each does, and where it goes on when a change was answered. */
void model_rank_step(struct explore *x, const struct state *s, unsigned i);
void model_finisher_step(struct explore *x, const struct state *s, unsigned i);
void model_writer_answered(struct state *s, unsigned i, enum op op, enum code code, uint8_t base);
void model_retirer_step(struct explore *x, const struct state *s, unsigned i);
void model_gc_step(struct explore *x, const struct state *s, unsigned i);
void model_gc_answered(struct state *s, struct proc *p, enum op op, enum code code);
void model_reader_step(struct explore *x, const struct state *s, unsigned i);

/* properties.c */
void model_check_linked(struct explore *x, struct state *s, uint8_t number);
void model_check(struct explore *x, const void *state);
void model_check_end(struct explore *x, const void *state);

#endif
