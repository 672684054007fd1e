/* box.h - boxes of a tensor's elements: their text, what they have in common, what they leave out.
 * Pure functions.
 */
#ifndef WEIR_CKPT_BOX_H
#define WEIR_CKPT_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt/manifest.h"

/* "[0:512,0:1024]", cut where the room ends; "" for a scalar. Returns how long the whole is. */
size_t weir_box_text(char *out, size_t room, const uint64_t *offset, const uint64_t *shape,
                     uint32_t ndim);
/* Have they an element in common? */
bool weir_box_overlap(const struct weir_piece *a, const struct weir_piece *b, uint32_t ndim);
/* A box that none of the tensor's pieces has; false if there is none, or too many to look at. */
bool weir_box_hole(const struct weir_manifest_tensor *tensor, uint64_t *offset, uint64_t *shape);

#endif
