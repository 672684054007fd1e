/* import.h - checkpoints of others become checkpoints of a run: safetensors files and directories
 * of Hugging Face, files of torch.save(), directories of torch.distributed.checkpoint.
 *
 * Opening reads what there is and names it; only saving reads the tensors, in pieces: memory does
 * not depend on their size, except that up to 512 MiB of windows serve tensors that are not
 * contiguous. One thread at a time.
 */
#ifndef WEIR_CKPT_IMPORT_H
#define WEIR_CKPT_IMPORT_H

#include "ckpt/tagged.h"
#include "weir.h"

struct weir_import {
    const char *format; /* "safetensors", "huggingface", "torch", "dcp" */
    struct weir_tagged tagged;
    uint64_t bytes; /* of all tensors */

    char *base; /* the last part of the path */
    struct weir_source source;
    struct weir_arena *arena;
    struct weir_windows windows;
    struct weir_json_out metadata; /* of a safetensors file */
};

/* skip: what is neither a tensor nor plain data is left out, and listed in tagged.skipped. */
int weir_import_open(struct weir_import **out, const char *path, bool skip);
void weir_import_close(struct weir_import *import);
/* Commits it as a step of the run. -EEXIST if the run has that step; -ESTALE if the source was
 * changed meanwhile; -ECANCELED if progress (of bytes; may be NULL) said so: then there is nothing.
 */
int weir_import_save(struct weir_import *import, weir_store *store, const char *run, uint64_t step,
                     weir_progress_fn progress, void *arg);

#endif
