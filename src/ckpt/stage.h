/* stage.h - where a snapshot waits to be written: buffers of 1 MiB in one area of bounded size,
 * touched only as far as they are needed. Whoever copies waits for a buffer when all are full; the
 * writer gives each back as soon as it is written. So a state larger than the area goes through it
 * piece by piece. Not inherited by a forked child. Any thread may call.
 */
#ifndef WEIR_CKPT_STAGE_H
#define WEIR_CKPT_STAGE_H

#include <stddef.h>
#include <stdint.h>

struct weir_stage;

int weir_stage_open(struct weir_stage **out, uint64_t bytes_max);
void weir_stage_close(struct weir_stage *stage);
size_t weir_stage_count(const struct weir_stage *stage);
/* Waits for a buffer. */
void *weir_stage_get(struct weir_stage *stage);
/* NULL if all are in use. */
void *weir_stage_try(struct weir_stage *stage);
/* arg is the stage: it is what weir_put_lender() calls. */
void weir_stage_put(void *arg, void *buffer);

#endif
