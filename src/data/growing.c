/* growing.c - bytes that grow: see format.h. */
#include <stdlib.h>
#include <string.h>

#include "data/format.h"
#include "util/err.h"
#include "util/sys.h"

enum { FIRST_BYTES = 4096 };

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

void weir_growing_free(struct weir_growing *buf)
{
    free(buf->data);
    *buf = (struct weir_growing){0};
}
