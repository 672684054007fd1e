/* hashing.h - a file is read from its beginning to its end, and each block and the whole are told
 * by their SHA-256. Any thread; a few MiB of memory.
 */
#ifndef WEIR_DATA_HASHING_H
#define WEIR_DATA_HASHING_H

#include <stddef.h>
#include <stdint.h>

#include "util/hash.h"
#include "weir.h"

/* Told of the blocks in order. sha256 is NULL for one that cannot be read, with this thread's text:
 * 0 goes on behind it, anything else ends the whole with that failure. */
typedef int (*weir_hashed_fn)(void *arg, uint64_t block, const uint8_t *sha256);

/* whole: of the file, if all of it was read. progress may be NULL: of bytes, with progress_arg. */
int weir_hash_object(weir_object *obj, uint32_t block_bytes, weir_hashed_fn fn, void *arg,
                     uint8_t whole[WEIR_SHA256_BYTES], weir_progress_fn progress,
                     void *progress_arg);

#endif
