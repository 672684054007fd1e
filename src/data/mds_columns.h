/* mds_columns.h - the columns of MDS samples: their names and encodings, and what these mean. Pure
 * functions; what columns point to is in the caller's arena.
 *
 * The schema of an MDS dataset is {"columns": [[[name, encoding], …], …], "shards": {key: i, …}}:
 * one list of columns for each kind of shard (nearly always there is one), and the shards that are
 * not of the first kind.
 */
#ifndef WEIR_DATA_MDS_COLUMNS_H
#define WEIR_DATA_MDS_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"
#include "util/json.h"
#include "weir.h"

enum { WEIR_MDS_KINDS_MAX = 256 }; /* of shards in a dataset: lists of columns */

enum weir_mds_value {
    WEIR_MDS_BYTES,
    WEIR_MDS_JPEG, /* images, and lists of them, are decoded by whoever trains: they are read as */
    WEIR_MDS_PNG,  /* bytes, of which only the form is checked when they are written */
    WEIR_MDS_PIL,
    WEIR_MDS_JPEG_ARRAY, /* u32 n | u32 sizes[n] | JPEGs */
    WEIR_MDS_LIST_JPEG,  /* u32 0 | u32 n | u32 sizes[n] | JPEGs; the others as well */
    WEIR_MDS_LIST_PNG,
    WEIR_MDS_LIST_PIL,
    WEIR_MDS_STR,
    WEIR_MDS_JSON,
    WEIR_MDS_NUMBER,
    WEIR_MDS_STR_INT,
    WEIR_MDS_STR_FLOAT,
    WEIR_MDS_STR_DECIMAL,
    WEIR_MDS_NDARRAY,
};

struct weir_mds_column {
    const char *name;
    size_t name_size;
    const char *encoding;
    enum weir_mds_value value;
    char dtype[8];  /* of a number or an array; "": each array has its own */
    bool is_shaped; /* all arrays have this shape */
    bool is_chosen; /* its numbers become those of this dtype, whatever they were */
    uint32_t ndim;
    const uint64_t *shape;
    uint64_t bytes; /* of every value; 0: each sample says how many */
};

struct weir_mds_columns {
    struct weir_mds_column *list;
    uint32_t count;
    uint32_t sized; /* how many sizes a sample begins with */
    uint64_t fixed; /* bytes of the others */
};

/* Takes the encoding apart. -EINVAL if it is none, -ENOTSUP for pkl; both name the column. */
int weir_mds_column_make(struct weir_mds_column *out, struct weir_arena **arena, const char *name,
                         size_t name_size, const char *encoding);
/* "image:jpeg,label:int32,box:ndarray:int16:2,2": a name ends at its first colon. */
int weir_mds_columns_parse(struct weir_mds_columns *out, struct weir_arena **arena,
                           const char *text);
/* The one of that name, which is looked for from `guess` on; NULL. */
const struct weir_mds_column *weir_mds_columns_find(const struct weir_mds_columns *columns,
                                                    const char *name, size_t name_size,
                                                    uint32_t guess);
/* Counts sizes; -EINVAL if two have one name, or there are none or too many. */
int weir_mds_columns_check(struct weir_mds_columns *columns);
bool weir_mds_columns_same(const struct weir_mds_columns *a, const struct weir_mds_columns *b);
/* numpy's name of a dtype as Streaming spells it: "<f4" -> "float32"; NULL if it has none. */
const char *weir_mds_dtype_name(const char *dtype);
/* The byte that stands for a dtype in an array; and back: NULL. */
uint8_t weir_mds_dtype_code(const char *dtype);
const char *weir_mds_dtype_of_code(uint8_t code);

/* ---- the schema ---- */

struct weir_mds_schema {
    struct weir_arena *arena;
    struct weir_mds_columns kinds[WEIR_MDS_KINDS_MAX];
    uint32_t count;
    /* Shards that are not of kind 0, sorted by key. */
    struct weir_mds_exception {
        const char *key;
        uint32_t kind;
    } * exceptions;
    size_t exception_count, exception_room;
};
int weir_mds_schema_read(struct weir_mds_schema **out, const char *json, size_t size);
void weir_mds_schema_free(struct weir_mds_schema *schema);
/* Notes what columns a shard has; they are copied. */
int weir_mds_schema_add(struct weir_mds_schema *schema, const char *key,
                        const struct weir_mds_columns *columns);
void weir_mds_schema_write(const struct weir_mds_schema *schema, struct weir_json_out *out);
/* The columns of a shard. */
const struct weir_mds_columns *weir_mds_schema_of(const struct weir_mds_schema *schema,
                                                  const char *key);

#endif
