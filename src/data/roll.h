/* roll.h - the files of a dataset: every object below a prefix, sorted by name, with its size. */
#ifndef WEIR_DATA_ROLL_H
#define WEIR_DATA_ROLL_H

#include "data/blocks.h"
#include "util/arena.h"
#include "weir.h"

struct weir_roll {
    struct weir_blocks_entry *entries; /* names are below the prefix */
    uint64_t count, room, bytes;
    struct weir_arena *names;
};

/* prefix: "" or one that ends in '/'. Without what shows that the dataset is in order (proof.h),
 * which is beside it. -EBADMSG if a seal is damaged. */
int weir_roll_call(struct weir_roll *out, weir_store *store, const char *prefix);
void weir_roll_free(struct weir_roll *roll);

#endif
