/* stfile.h - a safetensors file to be read: its header, and where its tensors are. */
#ifndef WEIR_CKPT_STFILE_H
#define WEIR_CKPT_STFILE_H

#include "ckpt/from.h"
#include "ckpt/safetensors.h"

struct weir_stfile {
    struct weir_extent span;
    struct weir_st st;
};

int weir_stfile_open(struct weir_stfile *out, const struct weir_extent *span);
void weir_stfile_close(struct weir_stfile *file);
/* Tensor i; what it points to is in the arena. */
int weir_stfile_tensor(const struct weir_stfile *file, size_t i, struct weir_arena **arena,
                       struct weir_from *out);

#endif
