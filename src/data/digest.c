/* digest.c - see digest.h. The sum of the bytes is hashed again with the number, so that a sample
 * under another's number counts as another. It finds faults; it does not stop a forger.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "data/digest.h"

#include "util/bytes.h"

/* weir_sum() in line: of 24 bytes, as the compiler knows, it takes a few instructions. */
struct weir_digest weir_digest_of(uint64_t sample, const uint8_t sum[WEIR_SUM_BYTES])
{
    uint8_t named[WEIR_SUM_BYTES + 8], digest[WEIR_SUM_BYTES];
    /* By halves, as they were just written: a processor hands on what it is still writing only to a
     * read that is no wider, and else waits until all before it is in memory. */
    weir_store_le(named, weir_load_le(sum, 8), 8);
    weir_store_le(named + 8, weir_load_le(sum + 8, 8), 8);
    weir_store_le(named + WEIR_SUM_BYTES, sample, 8);
    XXH128_hash_t hash = XXH3_128bits(named, sizeof named);
    weir_store_be64(digest, hash.high64);
    weir_store_be64(digest + 8, hash.low64);
    return (struct weir_digest){weir_load_le(digest, 8), weir_load_le(digest + 8, 8)};
}

void weir_digest_add(struct weir_digest *sum, struct weir_digest more)
{
    sum->low += more.low;
    sum->high += more.high + (sum->low < more.low);
}
