/* snapshot.h - a rank's file on its way from the caller's tensors to the writer: buffers of the
 * staging area (stage.h), in the order of the file. The caller fills them and returns when all are
 * full; the writer helps it as long as there is room, for two threads copy faster than one, and
 * then takes them in order. Any buffer can be filled on its own: it is a range of the file.
 *
 * A caller that will wait for the save anyway gains nothing from a copy of the whole: then the
 * writer begins at once, and the caller is but a few buffers ahead of it.
 */
#ifndef WEIR_CKPT_SNAPSHOT_H
#define WEIR_CKPT_SNAPSHOT_H

#include <pthread.h>

#include "ckpt/ckpt.h"
#include "ckpt/stage.h"

struct weir_snapshot {
    struct weir_stage *stage;
    const struct weir_layout *layout;
    const struct weir_ckpt_reader *reader; /* NULL: the tensors are in memory */
    size_t batch;                          /* full buffers that are worth waking the writer */
    size_t ahead;                          /* how many may be full, or being filled */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void **buffers; /* NULL until they are full */
    size_t count, claimed, full, taken;
    bool stopped; /* no more will come */
};

/* Borrows all it is given. through: the caller will wait for the save. */
int weir_snapshot_open(struct weir_snapshot *snapshot, struct weir_stage *stage,
                       const struct weir_layout *layout, const struct weir_ckpt_reader *reader,
                       bool through);
/* When all buffers are taken. */
void weir_snapshot_close(struct weir_snapshot *snapshot);
/* The caller's: returns when all is copied, or with the reader's failure, after which no more
 * comes. *stall_ns: what it waited for buffers. */
int weir_snapshot_take(struct weir_snapshot *snapshot, uint64_t *stall_ns);
/* The writer's: copies while there is something to copy, and room. */
void weir_snapshot_help(struct weir_snapshot *snapshot);
/* The writer's: the next buffer, waited for, which is to be given back to the stage; NULL: there is
 * no more. */
void *weir_snapshot_next(struct weir_snapshot *snapshot, size_t *size);

#endif
