/* What an S3 object says of itself: any text is read, and what was understood is written the same.
 */
#include "target.h"
#include "tier/s3_trip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_s3_meta meta = {0}, next, again = {0};
    char text[WEIR_S3_META_MAX];
    weir_s3_meta_read(&meta, (const char *)data, size);
    PROMISE(meta.count <= WEIR_S3_IDS_MAX && (meta.count || !meta.is_gone));
    if (!meta.count)
        return 0;
    weir_s3_meta_write(text, &meta);
    PROMISE(strlen(text) == size && !memcmp(text, data, size));
    weir_s3_meta_after(&next, "0123456789abcdef0123456789abcdef", &meta);
    weir_s3_meta_write(text, &next);
    weir_s3_meta_read(&again, text, strlen(text));
    PROMISE(again.count == next.count && !strcmp(again.id[1], meta.id[0]));
    PROMISE(weir_s3_meta_tells(&next, next.id[0], meta.id[0]) == WEIR_S3_TALE_DONE);
    return 0;
}
