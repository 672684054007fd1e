/* litdata_value.h - one leaf of a LitData item, by its serializer. Pure functions. */
#ifndef WEIR_DATA_LITDATA_VALUE_H
#define WEIR_DATA_LITDATA_VALUE_H

#include "data/litdata_index.h"

/* Numbers, text, arrays and tensors are what they are; images, pickles (which are not run), and
 * whatever is not known stay bytes. -EBADMSG names the field and what is wrong. */
int weir_litdata_value_read(struct weir_field *out, const struct weir_litdata_field *field,
                            const uint8_t *data, size_t size);

#endif
