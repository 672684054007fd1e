/* merge.h - tables of many ranks become one manifest, in time linear in their rows. For manifest.c.
 */
#ifndef WEIR_CKPT_MERGE_H
#define WEIR_CKPT_MERGE_H

#include "ckpt/rows.h"

struct weir_manifest {
    struct weir_arena *arena; /* what the tensors point to */
    struct weir_manifest_tensor *tensors;
    size_t count;
};

/* tables: NULL where a part has none; with_parts: it is one merged table, of `parts` parts, whose
 * rows say whose each piece is. Nothing of the tables is needed afterwards. */
int weir_merge_tables(struct weir_manifest **out, struct weir_table *const *tables, uint32_t count,
                      bool with_parts, uint32_t parts);

#endif
