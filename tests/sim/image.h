/* image.h - the bytes of a simulated file, shared between copies until one is written to. Bytes
 * that were never written are zero and take no memory, however large the file is.
 */
#ifndef WEIR_SIM_IMAGE_H
#define WEIR_SIM_IMAGE_H

#include <stddef.h>
#include <stdint.h>

struct sim_image {
    unsigned refs;
    uint64_t size;
    size_t len, room; /* of data: the written beginning of the file */
    uint8_t *data;
};

/* Zeroed memory. The simulator's own allocations never fail: they end the test. */
void *sim_alloc(size_t size);
/* Makes room for one more element of an array. */
void *sim_grow(void *array, size_t count, size_t *room, size_t each);

struct sim_image *sim_image_new(void);
struct sim_image *sim_image_share(struct sim_image *image);
void sim_image_drop(struct sim_image *image);
/* These replace *image by a copy first if it is shared. */
void sim_image_write(struct sim_image **image, const void *buf, size_t size, uint64_t off);
void sim_image_resize(struct sim_image **image, uint64_t size);
/* Returns how many bytes there were. */
size_t sim_image_read(const struct sim_image *image, void *buf, size_t size, uint64_t off);

#endif
