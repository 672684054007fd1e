/* hash.h - block fingerprints. XXH3-128 is for faults; what names or trusts content uses SHA-256.
 */
#ifndef WEIR_UTIL_HASH_H
#define WEIR_UTIL_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_SUM_BYTES    16
#define WEIR_SHA256_BYTES 32
#define WEIR_MD5_BYTES    16

enum weir_algorithm { WEIR_ALGORITHM_NONE = 0, WEIR_ALGORITHM_XXH3_128 = 1 };

/* The canonical (big-endian) XXH3-128 of the bytes. */
void weir_sum(uint8_t out[WEIR_SUM_BYTES], const void *data, size_t size);
/* SHA-256: whatever names or trusts content. */
void weir_sha256(uint8_t out[WEIR_SHA256_BYTES], const void *data, size_t size);
/* The same of bytes that come in pieces; begin answers -ENOMEM. end also frees, and
 * does only that without an out. */
struct weir_sha256_stream {
    void *context;
};
int weir_sha256_begin(struct weir_sha256_stream *stream);
void weir_sha256_more(struct weir_sha256_stream *stream, const void *data, size_t size);
void weir_sha256_end(struct weir_sha256_stream *stream, uint8_t out[WEIR_SHA256_BYTES]);
/* MD5, for those who ask for it and trust nothing to it; false: libcrypto may not. */
bool weir_md5(uint8_t out[WEIR_MD5_BYTES], const void *data, size_t size);
/* "xxh3-128"; "" for an algorithm without a name. */
const char *weir_algorithm_name(enum weir_algorithm algorithm);
/* 2 * size digits and a NUL. */
void weir_hex(char *out, const uint8_t *bytes, size_t size);
/* Reads exactly 2 * size lower-case digits; returns 0 or -EINVAL without a text. */
int weir_unhex(uint8_t *out, size_t size, const char *text);

#endif
