/* Indexes of datasets. A first byte that is odd makes length, end and sum right, which a fuzzer
 * would not find. In an index that opens, every lookup fails or names bytes that lie within their
 * shard.
 */
#include "data/index_file.h"
#include "target.h"
#include "util/bytes.h"

enum { LOOKS_MAX = 64, SUM_AT = 160, END_AT = 176 };

static void put_right(uint8_t *bytes, size_t size)
{
    uint8_t *tail = bytes + size - WEIR_INDEX_TAIL_BYTES;
    memcpy(bytes, "WEIRINDX\1", 10);
    memcpy(tail + END_AT, "WEIRINDXEND\0\0\0\0", 16);
    weir_store_le(tail, size, 8);
    uint64_t shards_at = weir_load_le(tail + 40, 8);
    if (shards_at < size - WEIR_INDEX_TAIL_BYTES)
        weir_sum(tail + SUM_AT, bytes + shards_at, (size_t)(tail + SUM_AT - bytes) - shards_at);
}

static void look(const struct weir_index *index, uint64_t sample)
{
    struct weir_place place;
    struct weir_index_shard shard;
    if (weir_index_find(index, sample, &place))
        return;
    PROMISE(place.shard < weir_index_shards(index));
    weir_index_shard(index, place.shard, &shard);
    PROMISE(sample >= shard.first && sample - shard.first < shard.samples);
    PROMISE(strlen(place.key) <= WEIR_INDEX_TAIL_BYTES * WEIR_KEY_BYTES_MAX);
    if (shard.is_files)
        PROMISE(!place.off && place.size == place.file_bytes &&
                place.size <= WEIR_OBJECT_BYTES_MAX);
    else
        PROMISE(place.off <= shard.raw_bytes && place.size <= shard.raw_bytes - place.off);
    for (uint64_t i = 0; i < place.marks.count; i++)
        weir_load_le(place.marks.data + i * place.marks.width, place.marks.width);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_index *index;
    if (!size)
        return 0;
    bool right = *data & 1;
    uint8_t *bytes = exact_copy(data + 1, --size);
    if (right && size >= WEIR_INDEX_HEAD_BYTES + WEIR_INDEX_TAIL_BYTES)
        put_right(bytes, size);
    if (!weir_index_open_bytes(&index, bytes, size)) {
        uint64_t count = weir_index_count(index);
        weir_index_check(index);
        PROMISE(weir_index_bytes_max(index) <= WEIR_OBJECT_BYTES_MAX);
        PROMISE(!count || weir_index_bytes(index) / count <= weir_index_bytes_max(index));
        for (uint64_t i = 0; i < count && i < LOOKS_MAX; i++) {
            look(index, i);
            look(index, count - 1 - i);
        }
        PROMISE(weir_index_find(index, count, &(struct weir_place){0}) == -EINVAL);
        weir_index_close(index);
    }
    free(bytes);
    return 0;
}
