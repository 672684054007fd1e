/* seal.h - the seal: the record whose presence makes an object exist.
 *
 * On disk (little-endian), version 1:
 *
 *    0  8  "WEIRSEAL"
 *    8  2  version, 1
 *   10  1  kind: 1 object, 2 void, 3 learned
 *   11  1  algorithm of the sums: 1 XXH3-128
 *   12  4  block size, a power of two, 4 KiB to 1 MiB
 *   16  8  size of the object
 *   24 16  nonce
 *   40  8  time: of sealing (Unix ns); of a learned file, its mtime
 *   48  2  length of the data name
 *   50  2  of an object that is part of a save (set.h): how many bytes of its key are the save's
 *          prefix; gc deletes it when no log needs it. 0 of any other
 *   52  4  length of the user metadata
 *   56  8  number of sums: ceil(size / block size)
 *   64     data name, metadata, zeros up to a multiple of 8, sums of 16 bytes
 *      16  XXH3-128 of everything before it
 *
 * A void claims a key for gc, a learned seal keeps what was seen of a foreign file; both are
 * described where they are used (gc.c, foreign.c).
 */
#ifndef WEIR_STORE_SEAL_H
#define WEIR_STORE_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "util/hash.h"
#include "util/key.h"

enum weir_seal_kind { WEIR_SEAL_OBJECT = 1, WEIR_SEAL_VOID = 2, WEIR_SEAL_LEARNED = 3 };

struct weir_seal {
    enum weir_seal_kind kind;
    enum weir_algorithm algorithm;
    uint16_t prefix_size;
    uint32_t block_bytes;
    uint64_t size;
    uint8_t nonce[WEIR_NONCE_BYTES];
    uint64_t time_ns;
    const char *data_name; /* not terminated when decoded: data_name_size counts */
    size_t data_name_size;
    const void *meta;
    size_t meta_size;
    const uint8_t *sums;
    uint64_t blocks;
};

/* A void has nothing of variable length: that is how gc knows where to look. */
#define WEIR_SEAL_VOID_BYTES (64 + 16)

uint64_t weir_seal_blocks(uint64_t size, uint32_t block_bytes);
/* A record of *size bytes, owned by the caller; -ENOMEM. The seal is trusted. */
int weir_seal_encode(const struct weir_seal *seal, uint8_t **out, size_t *size);
/* Points into record. -EBADMSG with a text that names the key, -EPROTO for a newer version. Checks
 * everything, also that the data name belongs to the key. */
int weir_seal_decode(struct weir_seal *out, const uint8_t *record, size_t size, const char *key);

#endif
