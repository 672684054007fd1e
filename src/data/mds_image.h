/* mds_image.h - images, and lists of them, as MDS has them: told by how they begin and by their
 * sizes. Nothing is decoded. Pure functions.
 */
#ifndef WEIR_DATA_MDS_IMAGE_H
#define WEIR_DATA_MDS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/mds_columns.h"

/* Is that what a column of this encoding, one of images, holds? */
bool weir_mds_is_image(enum weir_mds_value value, const uint8_t *data, size_t size);

#endif
