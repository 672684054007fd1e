/* crc32c.h - CRC-32C (Castagnoli), which TFRecord and others put behind their bytes. Any thread. */
#ifndef WEIR_UTIL_CRC32C_H
#define WEIR_UTIL_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of the bytes; `crc` is that of the bytes before them, 0 at first. */
uint32_t weir_crc32c(uint32_t crc, const void *data, size_t size);
/* The same without the processor's own instruction: for other processors, and for the test. */
uint32_t weir_crc32c_table(uint32_t crc, const void *data, size_t size);

#endif
