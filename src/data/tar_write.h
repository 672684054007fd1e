/* tar_write.h - writes tar archives that depend on nothing but names and contents: ustar, with a
 * PAX header only where a name or size needs one.
 */
#ifndef WEIR_DATA_TAR_WRITE_H
#define WEIR_DATA_TAR_WRITE_H

#include "data/format.h"

/* Appends a regular file's headers; its content and weir_tar_put_padding() are to follow. The name
 * has no NUL and at most WEIR_TAR_NAME_MAX bytes. */
int weir_tar_put_header(struct weir_growing *out, const char *name, size_t name_size,
                        uint64_t size);
/* Zeros up to the next block. */
int weir_tar_put_padding(struct weir_growing *out, uint64_t size);
/* The two blocks at the end. */
int weir_tar_put_end(struct weir_growing *out);

#endif
