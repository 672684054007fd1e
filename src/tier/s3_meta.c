/* s3_meta.c - what an object of ours says of itself: see s3_trip.h. */
#include <stdio.h>
#include <string.h>

#include "tier/s3_trip.h"
#include "util/hash.h"

#define GONE "gone-"

static bool read_id(char out[WEIR_S3_ID_HEX + 1], const char *text)
{
    uint8_t bytes[WEIR_S3_ID_HEX / 2];
    memcpy(out, text, WEIR_S3_ID_HEX);
    out[WEIR_S3_ID_HEX] = 0;
    return !weir_unhex(bytes, sizeof bytes, out);
}

void weir_s3_meta_read(struct weir_s3_meta *out, const char *text, size_t size)
{
    struct weir_s3_meta meta = {0};
    size_t gone = strlen(GONE);
    meta.is_gone = size > gone && !memcmp(text, GONE, gone);
    if (meta.is_gone)
        text += gone, size -= gone;
    while (size >= WEIR_S3_ID_HEX && meta.count < WEIR_S3_IDS_MAX) {
        if (!read_id(meta.id[meta.count++], text))
            return; /* somebody else's metadata */
        text += WEIR_S3_ID_HEX, size -= WEIR_S3_ID_HEX;
        if (size && (*text != '-' || size == 1))
            return;
        if (size)
            text++, size--;
    }
    if (!size && meta.count)
        *out = meta;
}

void weir_s3_meta_write(char out[WEIR_S3_META_MAX], const struct weir_s3_meta *meta)
{
    int used = snprintf(out, WEIR_S3_META_MAX, "%s%s", meta->is_gone ? GONE : "", meta->id[0]);
    for (unsigned i = 1; i < meta->count; i++)
        used += snprintf(out + used, (size_t)(WEIR_S3_META_MAX - used), "-%s", meta->id[i]);
}

void weir_s3_meta_after(struct weir_s3_meta *out, const char *id, const struct weir_s3_meta *seen)
{
    *out = (struct weir_s3_meta){.count = 1};
    strcpy(out->id[0], id);
    for (unsigned i = 0; seen && i < seen->count && out->count < WEIR_S3_IDS_MAX; i++)
        strcpy(out->id[out->count++], seen->id[i]);
}

enum weir_s3_tale weir_s3_meta_tells(const struct weir_s3_meta *there, const char *ours,
                                     const char *over)
{
    bool had = !over[0] && there->count && there->count < WEIR_S3_IDS_MAX;
    for (unsigned i = 0; i < there->count; i++) {
        if (!strcmp(there->id[i], ours))
            return WEIR_S3_TALE_DONE;
        had |= i && over[0] && !strcmp(there->id[i], over);
    }
    /* Only one took the place of `over`, and it was another. */
    return had ? WEIR_S3_TALE_NOT_DONE : WEIR_S3_TALE_NONE;
}
