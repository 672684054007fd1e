/* example.h - tf.Example, the protobuf message in most TFRecords: names with lists of bytes, floats
 * or whole numbers. Pure functions.
 */
#ifndef WEIR_DATA_EXAMPLE_H
#define WEIR_DATA_EXAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "data/format.h"

/* Its features as fields: one value of bytes is BYTES; several are fields "name/0", "name/1", …;
 * none is NONE; numbers are arrays of one dimension. 1; 0 if that is no Example (a SequenceExample
 * is none); -EBADMSG with a text if it has a name twice or more than *count fields. */
int weir_example_fields(const uint8_t *data, size_t size, struct weir_arena **scratch,
                        struct weir_field *fields, uint32_t *count);
/* Appends the fields as an Example: sorted by name, numbers packed, as protobuf's own deterministic
 * output. Consecutive fields "name/0", "name/1", … of bytes are one list again; an array of more
 * than one dimension has its shape beside it as "name/shape". -EINVAL for what cannot be held. */
int weir_example_put(struct weir_growing *out, const struct weir_field *fields, uint32_t count);

#endif
