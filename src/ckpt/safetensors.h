/* safetensors.h - the header of a safetensors file, read and written. Pure functions; the reader
 * takes any bytes and refuses whatever the format's own library refuses.
 *
 * A file is u64 N (little-endian), N bytes of JSON, and the tensors one after the other:
 *     {"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, …,
 *      "__metadata__": {"key": "text", …}}
 * Offsets count from the end of the header. There are no holes and no overlaps. Files written here
 * pad the header with spaces so that the first tensor begins at a multiple of 4 KiB.
 */
#ifndef WEIR_CKPT_SAFETENSORS_H
#define WEIR_CKPT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

enum {
    WEIR_ST_ALIGN = 4096,
    WEIR_ST_HEADER_BYTES_MAX = 100000000, /* the format's own limit */
    WEIR_ST_DIMS_MAX = 64,
};

struct weir_st_tensor {
    const char *name;  /* UTF-8, terminated */
    const char *dtype; /* one of the format's names, "F32" … */
    uint32_t ndim;
    const uint64_t *shape;
    uint64_t begin, end; /* within the data */
};

struct weir_st_pair {
    const char *key, *value;
};

/* What a header says. Freed with weir_st_free(). */
struct weir_st {
    struct weir_st_tensor *tensors; /* as they stand in the file: by where they begin */
    size_t count;
    struct weir_st_pair *metadata;
    size_t pairs;
    uint64_t data_at; /* where the data begins in the file */
    void *memory;     /* owns all of it */
};

/* The format's own copy of the name, which may be compared by address; NULL if there is none. */
const char *weir_st_dtype_name(const char *dtype);
/* How many bits an element has; 0 if there is no such dtype. */
unsigned weir_st_dtype_bits(const char *dtype);
/* The bytes that a tensor of this dtype and shape takes; -EINVAL if that is impossible. */
int weir_st_bytes(const char *dtype, const uint64_t *shape, uint32_t ndim, uint64_t *bytes);

/* The first 8 bytes of a file of file_size bytes: how long is its header? -EBADMSG says why not. */
int weir_st_header_size(const uint8_t first[8], uint64_t file_size, uint64_t *size);
/* The header itself, without those 8 bytes. */
int weir_st_parse(struct weir_st *out, const char *json, size_t size, uint64_t file_size);
void weir_st_free(struct weir_st *st);

/* The first bytes of a file with these tensors in this order: begin and end of each are set, *size
 * is a multiple of WEIR_ST_ALIGN, and *out is the caller's. */
int weir_st_make(struct weir_st_tensor *tensors, size_t count, const struct weir_st_pair *metadata,
                 size_t pairs, uint8_t **out, size_t *size);

#endif
