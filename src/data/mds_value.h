/* mds_value.h - one value of an MDS sample, by its column's encoding. Pure functions. */
#ifndef WEIR_DATA_MDS_VALUE_H
#define WEIR_DATA_MDS_VALUE_H

#include "data/format.h"
#include "data/mds_columns.h"

/* The bytes as a field. -EBADMSG names the column and what is wrong. Numbers that do not fit 64
 * bits, and JSON that only Python takes (NaN), are TEXT. */
int weir_mds_value_read(struct weir_field *out, const struct weir_mds_column *column,
                        const uint8_t *data, size_t size, struct weir_arena **scratch);
/* Appends a field's bytes as the column has them. -EINVAL names a field that does not fit it, and
 * how --columns would hold it. text: memory for what becomes text, which is used again. */
int weir_mds_value_write(const struct weir_mds_column *column, const struct weir_field *field,
                         struct weir_growing *out, struct weir_json_out *text);

#endif
