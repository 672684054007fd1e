/* offsets.c - see offsets.h. */
#include "data/offsets.h"

#include <errno.h>
#include <inttypes.h>

#include "util/bytes.h"
#include "util/err.h"
#include "util/min.h"

/* Of what is behind the offsets, MDS has its columns there: mostly they come with the same read. */
enum { COLUMNS_BYTES = 2048 };

struct scan {
    const struct weir_shard_plan *shard;
    weir_sample_fn fn;
    void *arg;
    uint64_t header; /* its bytes: nothing begins before */
    uint64_t count;  /* offsets so far */
    uint64_t first, last;
};

static int take(struct scan *s, uint64_t off)
{
    if (off < s->last || off < s->header || off > s->shard->raw_bytes)
        return weir_fail(EBADMSG,
                         "'%s': offset %" PRIu64 " of %" PRIu64 " is %" PRIu64
                         ", which cannot be: the header is damaged",
                         s->shard->key, s->count, s->shard->samples, off);
    int code = s->count ? s->fn(s->arg, s->last, off - s->last) : 0;
    if (!s->count++)
        s->first = off;
    s->last = off;
    return code;
}

int weir_offsets_scan(struct weir_offsets *out, struct weir_flow *flow,
                      const struct weir_shard_plan *shard, weir_sample_fn fn, void *arg)
{
    struct scan s = {.shard = shard, .fn = fn, .arg = arg};
    uint8_t head[4];
    weir_flow_expect(flow, 4 * (weir_min(shard->samples, UINT32_MAX) + 2) + COLUMNS_BYTES);
    int code = weir_flow_read(flow, head, sizeof head);
    if (code)
        return code;
    uint64_t samples = weir_load_le(head, 4);
    if (samples != shard->samples)
        return weir_fail(EBADMSG,
                         "'%s' has %" PRIu64 " samples, where index.json says %" PRIu64
                         ": they do not belong together",
                         shard->key, samples, shard->samples);
    s.header = 4 * (samples + 2);
    while (s.count <= samples) {
        const uint8_t *data;
        size_t size;
        code = weir_flow_peek(flow, 4, &data, &size);
        if (code)
            return code;
        uint64_t count = size / 4, left = samples + 1 - s.count;
        count = count < left ? count : left;
        if (!count)
            return weir_fail(EBADMSG, "'%s' ends within its header", shard->key);
        for (uint64_t i = 0; !code && i < count; i++)
            code = take(&s, weir_load_le(data + 4 * i, 4));
        if (!code)
            code = weir_flow_skip(flow, 4 * count);
        if (code)
            return code;
    }
    *out = (struct weir_offsets){s.first, s.last};
    return 0;
}
