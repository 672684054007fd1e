/* saving.h - the pieces of saving: ckpt.c has the checkpointer and what its callers begin, saving.c
 * one save and those who wait for it, ckpt_write.c the thread that writes.
 */
#ifndef WEIR_CKPT_SAVING_H
#define WEIR_CKPT_SAVING_H

#include <pthread.h>

#include "ckpt/ckpt.h"
#include "ckpt/run.h"
#include "ckpt/snapshot.h"

struct weir_saving {
    weir_ckpt *ckpt;
    struct weir_saving *next;
    unsigned refs; /* all of this is guarded by the checkpointer's lock */
    struct weir_save save;
    bool cancelled, asked; /* asked: somebody was told how it went */
    bool is_waited_for;    /* a caller uses what is next */
    weir_level level;
    int code;
    char text[WEIR_TEXT_MAX];

    /* Of whoever waits for the other ranks, from call to call; the writer's are in use. */
    struct weir_ledger *ledger;
    struct weir_set *set;
    bool waited; /* for weir_cover_check() */

    struct weir_snapshot snapshot;
    weir_tensor *tensors; /* a copy; what it points to is in the same block */
    size_t tensor_count;
    struct weir_layout layout;
    char *meta, *state, *name;
};

struct weir_ckpt {
    weir_store *store;
    struct weir_stage *stage;
    struct weir_ledger *ledger; /* the writer's */
    weir_ckpt_options opts;
    uint64_t attempt, saves;
    char run[WEIR_KEY_BYTES_MAX + 1], log[WEIR_KEY_BYTES_MAX + 1];
    unsigned generation;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t writer;
    bool closing;
    struct weir_saving *queue; /* the first is being written */
    unsigned queued;
    weir_ckpt_stats stats;
    uint64_t failed; /* the number of a save that failed and that nobody asked about, */
    int code;        /* if this is not 0, and why */
    char text[WEIR_TEXT_MAX];
};

/* -ECHILD in a child of fork(). */
int weir_ckpt_check(const weir_ckpt *ckpt);

/* ---- saving.c ---- */

/* Copies what of a save is not data. */
int weir_saving_new(struct weir_saving **out, weir_ckpt *ckpt, const weir_tensor *tensors,
                    size_t count, const weir_save_options *opts,
                    const struct weir_ckpt_reader *reader);
/* One that nobody else holds. */
void weir_saving_free(struct weir_saving *s);
/* With the lock held. */
void weir_saving_unref(struct weir_saving *s);

/* ---- ckpt_write.c ---- */

/* The thread: arg is the checkpointer. */
void *weir_ckpt_writer(void *arg);
/* What a commit brings with it, by whoever committed it. None of this is worth failing a checkpoint
 * that is committed; the next one tries again. */
void weir_ckpt_tidy(struct weir_saving *s, struct weir_ledger *ledger);

#endif
