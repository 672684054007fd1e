/* npy.h - numpy's .npy files: one array with a header before it. Pure functions. */
#ifndef WEIR_DATA_NPY_H
#define WEIR_DATA_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/format.h"

/* Makes the field an ARRAY of what the file holds, in place. False, and the field is as it was, for
 * what a field cannot hold: columns first, records, objects, big-endian numbers, other lengths. */
bool weir_npy_parse(struct weir_field *field, const uint8_t *data, size_t size);
/* Appends an array as a file. */
int weir_npy_put(struct weir_growing *out, const struct weir_field *field);

#endif
