/* growing.c - bytes that grow: see format.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "data/format.h"
#include "util/err.h"
#include "util/sys.h"

enum { FIRST_BYTES = 4096, HUGE_BYTES = 2 << 20 };

/* A page fault for every 4 KiB costs more than what is then written there. */
static void use_huge_pages(uint8_t *data, size_t room)
{
    uintptr_t begin = ((uintptr_t)data + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    uintptr_t end = ((uintptr_t)data + room) / HUGE_BYTES * HUGE_BYTES;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

int weir_growing_room(struct weir_growing *buf, size_t more)
{
    size_t need, room = buf->room ? buf->room : FIRST_BYTES;
    if (__builtin_add_overflow(buf->size, more, &need))
        return weir_fail_memory();
    if (need <= buf->room)
        return 0;
    while (room < need)
        if (__builtin_mul_overflow(room, 2, &room))
            return weir_fail_memory();
    uint8_t *data = weir_realloc(buf->data, room);
    if (!data)
        return weir_fail_memory();
    buf->data = data;
    buf->room = room;
    use_huge_pages(data, room);
    return 0;
}

int weir_growing_add(struct weir_growing *buf, const void *data, size_t size)
{
    int code = weir_growing_room(buf, size);
    if (code)
        return code;
    if (size)
        memcpy(buf->data + buf->size, data, size);
    buf->size += size;
    return 0;
}

int weir_made_join(const struct weir_made *made, struct weir_growing *out)
{
    int code = weir_growing_room(out, made->head_size + made->body_size);
    if (!code)
        code = weir_growing_add(out, made->head, made->head_size);
    return code ? code : weir_growing_add(out, made->body, made->body_size);
}

void weir_growing_free(struct weir_growing *buf)
{
    free(buf->data);
    *buf = (struct weir_growing){0};
}
