/* torchfile.h - what torch.save() wrote: a zip archive with a pickle (data.pkl) and one entry for
 * each storage (data/0, data/1, …), which several tensors may be views of.
 */
#ifndef WEIR_CKPT_TORCHFILE_H
#define WEIR_CKPT_TORCHFILE_H

#include "ckpt/from.h"
#include "ckpt/value.h"
#include "ckpt/zip.h"

/* The value that was saved. All of it is in the arena, which has to outlive it; so has the file. */
int weir_torchfile_load(struct weir_value **out, struct weir_arena **arena,
                        const struct weir_extent *span);
/* Is it a tensor of such a file? 0: *out is it, or NULL if it is something else. -EBADMSG if it
 * cannot be what it says, -ENOTSUP if it is of a kind that safetensors does not have. */
int weir_torchfile_tensor(struct weir_from **out, struct weir_arena **arena,
                          const struct weir_value *value);

/* "torch.bfloat16" as safetensors calls it ("BF16"); NULL if it has no name for that. */
const char *weir_torch_dtype(const struct weir_value *global);
/* Is it the name of a dtype, known to safetensors or not? */
bool weir_torch_is_dtype(const struct weir_value *value);
/* Whole numbers, as a shape; in the arena. -EBADMSG, -ENOTSUP. */
int weir_torch_dims(const uint64_t **out, uint32_t *ndim, struct weir_arena **arena,
                    const struct weir_value *value);

#endif
