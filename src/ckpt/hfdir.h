/* hfdir.h - safetensors files as a state dict: one file, or a directory as Hugging Face has it, in
 * which model.safetensors.index.json says which files there are.
 */
#ifndef WEIR_CKPT_HFDIR_H
#define WEIR_CKPT_HFDIR_H

#include "ckpt/source.h"
#include "ckpt/value.h"
#include "util/json.h"

enum { WEIR_HF_INDEX_BYTES_MAX = 256 << 20 };

/* A dict of tensors. *metadata: the file's own, as a JSON object. */
int weir_stfile_load(struct weir_value **out, struct weir_arena **arena, struct weir_source *source,
                     const char *path, struct weir_json_out *metadata);
/* All files that the index names; without one model.safetensors, or all *.safetensors there are.
 * -ENOENT if there are none. */
int weir_hfdir_load(struct weir_value **out, struct weir_arena **arena, struct weir_source *source,
                    const char *dir);

#endif
