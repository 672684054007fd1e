/* growing.c - bytes that grow: see format.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "data/format.h"
#include "util/err.h"
#include "util/sys.h"

enum { FIRST_BYTES = 4096, LARGE_BYTES = 4 << 20 };

/* What is large is a mapping of its own: it grows without a copy, and in huge pages, since a page
 * fault for every 4 KiB costs more than what is then written there. */
static uint8_t *grow_mapping(const struct weir_growing *buf, size_t room)
{
    bool was_mapped = buf->room >= LARGE_BYTES;
    uint8_t *data =
        was_mapped ? mremap(buf->data, buf->room, room, MREMAP_MAYMOVE)
                   : mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    madvise(data, room, MADV_HUGEPAGE);
    if (!was_mapped && buf->size)
        memcpy(data, buf->data, buf->size);
    if (!was_mapped)
        free(buf->data);
    return data;
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
    uint8_t *data = room < LARGE_BYTES ? weir_realloc(buf->data, room) : grow_mapping(buf, room);
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

int weir_made_join(const struct weir_made *made, struct weir_growing *out)
{
    int code = weir_growing_room(out, made->head_size + made->body_size);
    if (!code)
        code = weir_growing_add(out, made->head, made->head_size);
    return code ? code : weir_growing_add(out, made->body, made->body_size);
}

void weir_growing_free(struct weir_growing *buf)
{
    if (buf->room >= LARGE_BYTES)
        munmap(buf->data, buf->room);
    else
        free(buf->data);
    *buf = (struct weir_growing){0};
}
