/* pack_plan.c - which samples go into which shard: as many as fit, in their order. It follows from
 * their sizes in the source, so that nothing need be read to know it. If their fields become files,
 * a shard is those that one job puts and lists.
 */
#include <errno.h>
#include <inttypes.h>

#include "data/pack_parts.h"
#include "util/sys.h"

/* Samples whose files are in one list: so much is done again after a kill. */
enum { LISTED_MAX = 1024 };

static int grow(struct weir_packing *p, uint32_t *room)
{
    uint32_t more = *room ? 2 * *room : 64;
    uint64_t *first = weir_realloc(p->first, ((uint64_t)more + 1) * sizeof *first);
    if (first)
        p->first = first;
    uint64_t *begin = weir_realloc(p->begin, ((uint64_t)more + 1) * sizeof *begin);
    if (begin)
        p->begin = begin;
    if (!first || !begin)
        return weir_fail_memory();
    *room = more;
    return 0;
}

static int add_shard(struct weir_packing *p, uint32_t *room, uint64_t first, uint64_t begin)
{
    int code = p->shards == *room ? grow(p, room) : 0;
    if (code)
        return code;
    if (p->shards == WEIR_INDEX_SHARDS_MAX)
        return weir_fail(EINVAL, "that makes more than %" PRIu64 " shards: make larger ones",
                         WEIR_INDEX_SHARDS_MAX);
    p->first[p->shards] = first;
    p->begin[p->shards++] = begin;
    return 0;
}

int weir_pack_plan(struct weir_packing *p)
{
    uint64_t samples = weir_index_count(p->from.index), total = 0, here = 0;
    uint64_t most = p->to_format->writer->file ? LISTED_MAX : UINT64_MAX;
    uint32_t room = 0;
    int code = grow(p, &room);
    for (uint64_t i = 0; !code && i < samples; i++) {
        struct weir_place place;
        code = weir_index_find(p->from.index, i, &place);
        if (code)
            return weir_sample_fail(&p->from, i, code);
        if (!i || here + place.size > p->opts->shard_bytes || i - p->first[p->shards - 1] == most) {
            code = add_shard(p, &room, i, total);
            here = 0;
        }
        here += place.size;
        total += place.size;
    }
    if (code)
        return code;
    p->first[p->shards] = samples;
    p->begin[p->shards] = total;
    p->written = weir_alloc((p->shards + 1) * sizeof *p->written);
    return p->written ? 0 : weir_fail_memory();
}
