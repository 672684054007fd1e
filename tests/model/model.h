/* model.h - the commit protocol as a state machine, as log.c, ledger.c, set.c, view.c and collect.c
 * of src/store have it: a ledger (log), sets of parts, and those who work on them. Every step
 * touches the shared state once, so all that can happen between two requests of the real thing can
 * happen between two steps here. One thread; the configuration and the flaws of the run are global.
 *
 * What is not a step: a crash. Every state is also one in which any of the processes never moves
 * again, so all crashes of all subsets are covered; only what a crash frees (locks, leases) has a
 * step. And time: gc may find any grace to have passed or not, since nothing safe may rest on one.
 *
 * A sync makes durable just what it was asked for, and a put that may or may not have happened is
 * one that did, unsynced, or did not, or does later: less than any file system promises.
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

/* What a set consists of, as bits of its masks: objects, then the nodes of the tree. With three
 * parts INNER joins the first two leaves and LONE is above the third alone; with two parts there is
 * neither, and ROOT joins both leaves. */
enum { OBJECT = 0, LEAF = 3, INNER = 6, LONE = 7, ROOT = 8, ELEMENTS = 9 };
enum { OBJECTS = 0x07, LEAVES = 0x38, TOPS = 0x1c0, NODES = LEAVES | TOPS };

/* An entry of a record: its status above the root's digest. A digest holds for each part the token
 * of who wrote it (two bits each). */
enum { ENTRY_NONE = 0, ENTRY_LIVE = 1 << 6, ENTRY_RETIRED = 2 << 6, ENTRY_STATUS = 3 << 6 };

enum { REC_NONE, REC_LINKED, REC_DURABLE };

struct rec {
    uint8_t is; /* REC_... */
    uint8_t attempt, token, past;
    uint8_t floor; /* saves of the attempt up to it that have no entry are closed */
    uint8_t nonce; /* of the process that put it, and of that put */
    uint8_t entry[SETS];
};

struct __attribute__((packed)) set {
    uint8_t val[ELEMENTS];
    uint16_t there, durable; /* bits by element */
    uint16_t undead;         /* deleted, but the deletion is not durable */
};

struct proc {
    uint8_t pc;
    uint8_t op;   /* the change under way */
    uint8_t seen; /* the record a change is decided on */
    uint8_t held; /* the record a gc pass or a reader goes by */
    uint8_t set, node, val;
    uint8_t left;  /* passes left; of a rank: it has begun to finish */
    uint8_t since; /* what was acknowledged when the change began */
    uint8_t turn;  /* how often an outcome was unknown: a put again has another nonce */
    uint8_t skip;  /* used by flaws only */
    /* A pass of gc: what it listed, what of it was young, what it has deleted (bits by set), and
     * the floor it wants. */
    uint8_t abandoned; /* it is past the retired ones */
    uint8_t found, young, deleted, floor;
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
    uint8_t given_up;    /* a floor was raised over it */
    uint8_t was_unknown; /* a rank was told so */
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

/* Deliberate faults, each in one place. */
enum flaw {
    /* of floors */
    FLAW_FORGET_KEEPS_FLOOR = 1 << 0,
    FLAW_JOIN_KEEPS_FLOOR = 1 << 1,
    FLAW_FLOOR_IGNORED = 1 << 2,
    FLAW_FLOOR_PAST_YOUNG = 1 << 3,
    FLAW_DELETE_BEFORE_FLOOR = 1 << 4,
    FLAW_GIVE_UP_BY_OLD_HEAD = 1 << 5,
    /* of what may be lost with the power */
    FLAW_APPEND_BEFORE_SYNC = 1 << 7,
    FLAW_ANSWER_BEFORE_SYNC = 1 << 8,
    FLAW_JOIN_BEFORE_SYNC = 1 << 9,
    FLAW_WAIT_BEFORE_SYNC = 1 << 10,
    FLAW_SETTLE_BEFORE_SYNC = 1 << 11,
    FLAW_NODE_BEFORE_SYNC = 1 << 12,
    FLAW_ROOT_BEFORE_SYNC = 1 << 13,
    FLAW_GC_BEFORE_SYNC = 1 << 14,
    /* of the rest */
    FLAW_NO_FENCE = 1 << 15,
    FLAW_PAST_REJOINS = 1 << 16,
    FLAW_LOOK_FIRST = 1 << 17,
    FLAW_LOST_PARENT_STOPS = 1 << 18,
    FLAW_SETTLE_EXISTENCE = 1 << 19,
    FLAW_OVERWRITE = 1 << 20,
    FLAW_KEEPS_DECISION = 1 << 21,
    FLAW_GC_NOT_EQUAL = 1 << 22,
    FLAW_GC_SKIPS_OLD_SETS = 1 << 23,
    FLAW_LEASE_UNCHECKED = 1 << 24,
    FLAW_DELETE_LEASED = 1 << 25,

    /* Not a flaw: what FLAW_FLOOR_PAST_YOUNG does to young saves is not looked at. */
    YOUNG_UNCHECKED = 1 << 26,
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
    PC_CLIMB,
    PC_WAIT,
    PC_WAIT_FIX,
    /* a finisher, and a rank that became one */
    PC_WALK,
    /* gc */
    PC_GC_LIST,
    PC_GC_FIX,
    PC_GC_OBJECTS,
    PC_GC_NODES,
    PC_GC_AGAIN,
    /* a reader */
    PC_READER_LEASE,
    PC_READER_AGAIN,
    PC_READER_ROOT,
    PC_READER_OBJECTS,
    PC_READER_GONE,
};

enum op { OP_NONE, OP_JOIN, OP_COMMIT, OP_RETIRE, OP_FORGET, OP_GIVE_UP };
/* Answers of a change. */
enum code { CODE_OK, CODE_STALE, CODE_EXISTS, CODE_APPEND };

extern const struct config *model_config;
extern uint32_t model_flaws;

static inline bool flaw(uint32_t which)
{
    return model_flaws & which;
}

/* The how-manieth save of its attempt a set is. */
static inline uint8_t number_of(unsigned set)
{
    return (uint8_t)(set % SAVES + 1);
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
void model_log_sync(struct state *s, uint8_t number);
void model_log_link(struct explore *x, struct state *s, uint8_t number, const struct rec *rec);
void model_set_link(struct set *set, unsigned element, uint8_t val);
void model_set_delete(struct set *set, uint16_t elements);
/* What a live entry needs: the root and the objects. */
uint16_t model_set_needed(void);
/* Is every part in a node that is there? Then whoever finishes can make the root. */
bool model_set_is_complete(const struct set *set);
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

/* writers.c, keepers.c: what each does, and where it goes on when a change was answered. */
void model_rank_step(struct explore *x, const struct state *s, unsigned i);
void model_finisher_step(struct explore *x, const struct state *s, unsigned i);
void model_writer_answered(struct state *s, unsigned i, enum op op, enum code code, uint8_t base);
/* A commit or a node of process i may have been put or not: it does it all again. */
void model_writer_unknown(struct state *s, unsigned i);
void model_retirer_step(struct explore *x, const struct state *s, unsigned i);
void model_gc_step(struct explore *x, const struct state *s, unsigned i);
void model_gc_answered(struct explore *x, struct state *s, struct proc *p, enum op op);
void model_gc_end_pass(struct proc *p);
void model_reader_step(struct explore *x, const struct state *s, unsigned i);

/* properties.c */
void model_check_linked(struct explore *x, struct state *s, uint8_t number);
void model_check(struct explore *x, const void *state);
void model_check_end(struct explore *x, const void *state);

#endif
