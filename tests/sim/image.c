/* image.c - see image.h. */
#include "image.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void *sim_alloc(size_t size)
{
    void *ptr = calloc(1, size ? size : 1);
    assert(ptr);
    return ptr;
}

void *sim_grow(void *array, size_t count, size_t *room, size_t each)
{
    if (count < *room)
        return array;
    *room = *room ? 2 * *room : 8;
    array = realloc(array, *room * each);
    assert(array);
    return array;
}

struct sim_image *sim_image_new(void)
{
    struct sim_image *image = sim_alloc(sizeof *image);
    image->refs = 1;
    return image;
}

struct sim_image *sim_image_share(struct sim_image *image)
{
    image->refs++;
    return image;
}

void sim_image_drop(struct sim_image *image)
{
    if (!image || --image->refs)
        return;
    free(image->data);
    free(image);
}

/* Makes *image the caller's own, with room for `len` written bytes. */
static struct sim_image *own(struct sim_image **image, size_t len)
{
    struct sim_image *old = *image, *copy = old;
    if (old->refs > 1) {
        copy = sim_image_new();
        copy->size = old->size;
        copy->len = copy->room = old->len;
        copy->data = sim_alloc(old->len);
        if (old->len)
            memcpy(copy->data, old->data, old->len);
        old->refs--;
        *image = copy;
    }
    if (len > copy->room) {
        copy->data = realloc(copy->data, len);
        assert(copy->data);
        copy->room = len;
    }
    if (len > copy->len) {
        memset(copy->data + copy->len, 0, len - copy->len);
        copy->len = len;
    }
    return copy;
}

void sim_image_write(struct sim_image **image, const void *buf, size_t size, uint64_t off)
{
    struct sim_image *to = own(image, (size_t)off + size);
    memcpy(to->data + off, buf, size);
    if (off + size > to->size)
        to->size = off + size;
}

void sim_image_resize(struct sim_image **image, uint64_t size)
{
    struct sim_image *to = own(image, 0);
    to->size = size;
    if (to->len > size)
        to->len = (size_t)size; /* what comes back when it grows again is zero */
}

size_t sim_image_read(const struct sim_image *image, void *buf, size_t size, uint64_t off)
{
    if (off >= image->size)
        return 0;
    if (size > image->size - off)
        size = (size_t)(image->size - off);
    size_t written = off < image->len ? image->len - (size_t)off : 0;
    if (written > size)
        written = size;
    if (written)
        memcpy(buf, image->data + off, written);
    memset((char *)buf + written, 0, size - written);
    return size;
}
