/* litdata_index.h - what LitData's index.json says: its chunks, and what an item is made of. Pure
 * functions; what is pointed to is in the caller's arena.
 *
 * The schema of a LitData dataset is {"fields": [[name, serializer], …]}, with "tokens": true where
 * items are bare (TokensLoader). A field's name is where it is in the item: "image", "0", "a.b.2".
 */
#ifndef WEIR_DATA_LITDATA_INDEX_H
#define WEIR_DATA_LITDATA_INDEX_H

#include <stdbool.h>

#include "util/arena.h"
#include "util/json.h"
#include "weir.h"

struct weir_litdata_field {
    const char *name, *serializer;
};

struct weir_litdata {
    struct weir_litdata_field *fields;
    uint32_t count;
    bool tokens;             /* an item is one leaf without its size */
    const char *compression; /* of whole chunks; "": none */
    struct weir_litdata_chunk {
        const char *name;
        uint64_t samples;
    } * chunks;
    size_t chunk_count;
};

/* -EINVAL if it is not as LitData writes it, -ENOTSUP for what Weir does not read: encrypted,
 * compressed within chunks, Parquet. */
int weir_litdata_index_read(struct weir_litdata *out, struct weir_arena **arena, const char *text,
                            size_t size);
void weir_litdata_schema_write(const struct weir_litdata *data, struct weir_json_out *out);
int weir_litdata_schema_read(struct weir_litdata *out, struct weir_arena **arena, const char *text,
                             size_t size);
/* The names of the leaves of a tree (data_spec), in order: how many, or -errno. */
int weir_litdata_leaves(struct weir_litdata_field *fields, uint32_t room, struct weir_arena **arena,
                        const char *text, size_t size);

#endif
