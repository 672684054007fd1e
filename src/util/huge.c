/* huge.c - see huge.h. */
#include "util/huge.h"

#include <stdint.h>
#include <sys/mman.h>

void *weir_huge_map(size_t size)
{
    char *data = mmap(NULL, size + WEIR_HUGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)data % WEIR_HUGE_BYTES, behind = WEIR_HUGE_BYTES - before;
    if (before)
        munmap(data, before);
    if (behind)
        munmap(data + before + size, behind);
    madvise(data + before, size, MADV_HUGEPAGE);
    return data + before;
}
