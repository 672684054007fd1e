/* dcp.h - the checkpoints of torch.distributed.checkpoint: a directory with a pickle (.metadata)
 * and files (__R_N.distcp) in which each piece of a tensor, and each other value, is what
 * torch.save() wrote, or a whole file is followed by one safetensors file.
 */
#ifndef WEIR_CKPT_DCP_H
#define WEIR_CKPT_DCP_H

#include "ckpt/source.h"
#include "ckpt/value.h"

/* The state dict, in the nested form it was saved from. `dir` is where its files are; they become
 * part of the source. What is not known is an object in the tree: see tagged.h. */
int weir_dcp_load(struct weir_value **out, struct weir_arena **arena, struct weir_source *source,
                  const char *dir);
/* For tests: from the bytes of a .metadata, and files that the source has already: the first of
 * them stands for all. */
int weir_dcp_load_bytes(struct weir_value **out, struct weir_arena **arena,
                        struct weir_source *source, const void *bytes, size_t size);

#endif
