/* tfrecord.h - how a TFRecord file frames its records: u64 length, u32 check of the length, data,
 * u32 check of the data; a check is a masked CRC-32C.
 */
#ifndef WEIR_DATA_TFRECORD_H
#define WEIR_DATA_TFRECORD_H

#include <stddef.h>
#include <stdint.h>

#include "data/format.h"

enum {
    WEIR_TFRECORD_HEAD = 12,  /* in front of the data */
    WEIR_TFRECORD_FRAME = 16, /* around it */
};

/* The check of these bytes. */
uint32_t weir_tfrecord_check(const void *data, size_t size);

extern const struct weir_format_writer weir_tfrecord_writer;

#endif
