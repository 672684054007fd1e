/* huge.h - memory in huge pages, where the system has them: a transfer to or from it is one piece
 * for a device, and it takes few faults to make. Any thread.
 */
#ifndef WEIR_UTIL_HUGE_H
#define WEIR_UTIL_HUGE_H

#include <stddef.h>

#define WEIR_HUGE_BYTES ((size_t)2 << 20)

/* In whole huge pages: none of it is in small ones. */
static inline size_t weir_huge_room(size_t size)
{
    return (size + WEIR_HUGE_BYTES - 1) / WEIR_HUGE_BYTES * WEIR_HUGE_BYTES;
}

/* New memory that begins where a huge page can; for munmap(). NULL, without a text: there is
 * none. */
void *weir_huge_map(size_t size);

#endif
