/* s3_parts.h - how a stream is cut into the parts of a multipart upload, of which there may be
 * 10,000. Where its length is announced they have one size, which is larger for a long stream
 * (twice as much as was announced still fits); where it is not, each 125 of them are larger than
 * the 125 before, so that a small stream needs little memory and 2 TiB still fit. Pure functions.
 */
#ifndef WEIR_TIER_S3_PARTS_H
#define WEIR_TIER_S3_PARTS_H

#include <stdint.h>

enum { WEIR_S3_PARTS_MAX = 10000 };

struct weir_s3_parts {
    uint64_t first_bytes; /* of each part of the first run */
    uint32_t run;         /* parts of one size; those of the next run are first_bytes larger */
};

/* hint: the announced length, or 0. least: how large a part is at least. memory: for those that are
 * under way. */
void weir_s3_parts_plan(struct weir_s3_parts *out, uint64_t hint, uint64_t least, uint64_t memory);
/* Which part byte `off` is in (from 0), where that one begins and how long it is. -EFBIG: beyond
 * the last, with a text. */
struct weir_s3_part_place {
    uint32_t number;
    uint64_t begin, bytes;
};
int weir_s3_parts_at(const struct weir_s3_parts *parts, uint64_t off,
                     struct weir_s3_part_place *out);

#endif
