/* restore.h - an open checkpoint, as the files of this layer that read one see it. */
#ifndef WEIR_CKPT_RESTORE_H
#define WEIR_CKPT_RESTORE_H

#include "ckpt/manifest.h"
#include "weir.h"

struct weir_restore {
    weir_store *store;
    struct weir_ledger *ledger;
    struct weir_view *view;
    struct weir_manifest *manifest;
    weir_object **files; /* of each rank, opened when they are needed */
    uint32_t open_count; /* of those */
    char **names;        /* theirs, when they are needed */
    weir_restore_info info;
    char *meta;
};

/* Whether it is what holds the tensors of a part. */
bool weir_restore_is_file(const struct weir_ref *ref);

#endif
