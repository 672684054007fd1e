/* s3_parts.c - see s3_parts.h. */
#include "tier/s3_parts.h"

#include <errno.h>

#include "util/err.h"

enum {
    RUN_UNKNOWN = 125,
    RUN_ANNOUNCED = 5000,
    /* Half as many parts are less work for a server. They are enough if there are still several
     * times as many as are under way at once: else the last ones would leave the others idle. */
    MANY = 64,
    AT_ONCE = 8,
};
#define ROUND ((uint64_t)1 << 20)

void weir_s3_parts_plan(struct weir_s3_parts *out, uint64_t hint, uint64_t least, uint64_t memory)
{
    uint64_t each = hint / RUN_ANNOUNCED;
    each = each / ROUND * ROUND + (each % ROUND ? ROUND : 0);
    if (hint / least >= MANY && memory / 2 / least >= AT_ONCE)
        least *= 2;
    *out = (struct weir_s3_parts){
        .first_bytes = hint && each > least ? each : least,
        .run = hint ? RUN_ANNOUNCED : RUN_UNKNOWN,
    };
}

int weir_s3_parts_at(const struct weir_s3_parts *parts, uint64_t off,
                     struct weir_s3_part_place *out)
{
    uint64_t begin = 0, bytes = parts->first_bytes;
    for (uint32_t number = 0; number < WEIR_S3_PARTS_MAX; number += parts->run) {
        uint64_t in_run = (off - begin) / bytes;
        if (in_run < parts->run) {
            *out = (struct weir_s3_part_place){number + (uint32_t)in_run, begin + in_run * bytes,
                                               bytes};
            return 0;
        }
        begin += parts->run * bytes;
        bytes += parts->first_bytes;
    }
    return weir_fail(EFBIG, "byte %llu would be in part %d of an upload, and there are at most %d",
                     (unsigned long long)off, WEIR_S3_PARTS_MAX + 1, WEIR_S3_PARTS_MAX);
}
