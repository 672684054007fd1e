/* copy.h - a copy of much that is not needed soon: memcpy() of a piece of 1 MiB leaves it in the
 * cache, for which every line is first read, and costs twice what it costs of a gigabyte.
 */
#ifndef WEIR_UTIL_COPY_H
#define WEIR_UTIL_COPY_H

#include <stddef.h>

/* memcpy() around the cache, where the processor can; visible to other threads when it returns and
 * the caller unlocks. */
void weir_copy_around(void *to, const void *from, size_t size);

#endif
