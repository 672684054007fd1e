/* stream.h - the bytes of some tensors of a checkpoint, one tensor behind the other as a file would
 * have them, in windows of bounded size. Many small tensors share a window and are read together; a
 * large one is cut into boxes. Two streams of tensors of the same dtypes and shapes are cut alike.
 */
#ifndef WEIR_CKPT_STREAM_H
#define WEIR_CKPT_STREAM_H

#include "ckpt/restore.h"

/* A piece of a window. */
struct weir_stretch {
    size_t at; /* which one of the list of tensors */
    size_t size;
    const uint8_t *data;
    bool last; /* of its tensor */
};

struct weir_stream;
/* Borrows the restore and the list of numbers of tensors. */
int weir_stream_open(struct weir_stream **out, weir_restore *restore, const size_t *tensors,
                     size_t count);
void weir_stream_close(struct weir_stream *stream);
/* Reads the next window: 1, 0 at the end, -errno. Its stretches are without gaps, and borrowed
 * until the next call. */
int weir_stream_next(struct weir_stream *stream, const struct weir_stretch **stretches,
                     size_t *count, weir_progress_fn progress, void *arg);

#endif
