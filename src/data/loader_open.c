/* loader_open.c - opening and closing a loader: its options, what the data asks for; see loader.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/loader.h"
#include "store/store.h"
#include "util/min.h"
#include "util/ram.h"
#include "util/sys.h"
#include "util/thread.h"

enum {
    LANES_DEFAULT = 64,
    LANES_MAX = 65536,
    PREFETCH_DEFAULT = 8,
    PREFETCH_MAX = 4096,
    THREADS_MAX = 256,
    TABLE_MIN = 256,
    SLOTS_MAX = 256,
    ROWS_AHEAD = 1 << 18, /* samples planned: a few MiB of tables */
};
/* Of the default window: reads are about that long, and with the blocks that its ends lie in it
 * fills a huge page. It is part of the order of samples, and so never changes. */
#define WINDOW_BYTES   ((uint64_t)1984 << 10)
#define MEMORY_DEFAULT ((uint64_t)512 << 20)
#define LANES_BYTES    (MEMORY_DEFAULT / 2)  /* of whole shards in as many lanes by default */
#define AHEAD_BYTES    ((uint64_t)128 << 20) /* planned ahead, so that reads begin in time */
#define BATCH_SIZE_MAX ((uint64_t)1 << 24)

/* ---- options ---- */

void weir_loader_options_init(weir_loader_options *opts)
{
    *opts = (weir_loader_options){
        .struct_size = sizeof *opts,
        .batch_size = 1,
        .ranks = 1,
        .workers = 1,
        .end = UINT64_MAX,
        .prefetch = PREFETCH_DEFAULT,
        .memory_bytes_max = MEMORY_DEFAULT,
    };
}

static int check_options(const weir_loader_options *opts)
{
    if (!opts->batch_size || opts->batch_size > BATCH_SIZE_MAX)
        return weir_fail(EINVAL, "a batch size of %" PRIu64 ": it is 1 to %" PRIu64,
                         opts->batch_size, BATCH_SIZE_MAX);
    if (!opts->ranks || opts->rank >= opts->ranks)
        return weir_fail(EINVAL, "there is no rank %" PRIu32 " of %" PRIu32, opts->rank,
                         opts->ranks);
    if (!opts->workers || opts->worker >= opts->workers)
        return weir_fail(EINVAL, "there is no worker %" PRIu32 " of %" PRIu32, opts->worker,
                         opts->workers);
    if (opts->lanes > LANES_MAX)
        return weir_fail(EINVAL, "%" PRIu32 " lanes: there are at most %d", opts->lanes, LANES_MAX);
    if (opts->prefetch > PREFETCH_MAX || opts->threads > THREADS_MAX)
        return weir_fail(EINVAL, "at most %d batches ahead, and %d threads", PREFETCH_MAX,
                         THREADS_MAX);
    if (opts->flags & WEIR_LOADER_RAW && opts->fields_count)
        return weir_fail(EINVAL, "samples that are not taken apart have no fields to choose from");
    return 0;
}

static int read_options(weir_loader_options *out, const weir_loader_options *given)
{
    weir_loader_options_init(out);
    if (!given)
        return 0;
    if (given->struct_size < sizeof(size_t) + sizeof(uint32_t) || given->struct_size > 4096)
        return weir_fail(EINVAL, "weir_loader_options: call weir_loader_options_init() first");
    size_t size = given->struct_size < sizeof *out ? given->struct_size : sizeof *out;
    memcpy(out, given, size);
    if (!out->prefetch)
        out->prefetch = PREFETCH_DEFAULT;
    if (!out->memory_bytes_max)
        out->memory_bytes_max = MEMORY_DEFAULT;
    return check_options(out);
}

static int copy_fields(weir_loader_options *opts)
{
    char **copy = weir_alloc((opts->fields_count + 1) * sizeof *copy);
    if (!copy)
        return weir_fail_memory();
    const char *const *from = opts->fields;
    opts->fields = (const char *const *)copy;
    for (size_t i = 0; i < opts->fields_count; i++)
        if (!(copy[i] = weir_strdup(from[i])))
            return weir_fail_memory();
    return 0;
}

static void free_fields(weir_loader_options *opts)
{
    char **copy = (char **)opts->fields;
    for (size_t i = 0; copy && i < opts->fields_count; i++)
        free(copy[i]);
    free(copy);
}

/* ---- what the data asks for ---- */

/* The shards, as far as it matters how they are read. */
struct extent {
    uint64_t compressed_max; /* bytes of the largest one that is compressed, decompressed */
    uint64_t compressed;     /* memory for all of them */
    uint64_t density_max;    /* bytes of a sample on average, in the shard where that is most */
};

static struct extent find_extent(const struct weir_index *index)
{
    struct extent out = {0};
    for (uint64_t i = 0; i < weir_index_shards(index); i++) {
        struct weir_index_shard shard;
        weir_index_shard(index, i, &shard);
        uint64_t density = shard.samples ? shard.raw_bytes / shard.samples + 1 : 0;
        if (shard.codec[0]) {
            out.compressed += weir_slab_room(shard.raw_bytes);
            if (shard.raw_bytes > out.compressed_max)
                out.compressed_max = shard.raw_bytes;
        } else if (density > out.density_max) {
            out.density_max = density;
        }
    }
    return out;
}

/* What was left open of the order: a function of the dataset alone, so that all ranks agree. */
static void choose_order(struct weir_feed *source, const weir_loader_options *opts,
                         const struct extent *extent)
{
    source->window = opts->window;
    source->lanes = opts->lanes;
    if (!source->window)
        source->window = WINDOW_BYTES / source->row_bytes ? WINDOW_BYTES / source->row_bytes : 1;
    if (source->lanes)
        return;
    source->lanes = LANES_DEFAULT;
    if (extent->compressed_max && LANES_BYTES / extent->compressed_max < LANES_DEFAULT)
        source->lanes = (uint32_t)(LANES_BYTES / extent->compressed_max);
    if (!source->lanes)
        source->lanes = 1;
}

/* Lanes that a rank has pieces of at a time: its share of them, where batches are whole rounds. */
static uint64_t lanes_at_once(const struct weir_loader *loader, const struct weir_feed *source)
{
    const weir_loader_options *opts = &loader->opts;
    uint64_t lanes = source->lanes_count;
    bool is_round = loader->batch_size % lanes == 0 && !loader->mix;
    return is_round ? (lanes + opts->ranks - 1) / opts->ranks : lanes;
}

/* Of a lane's window, where that is not compressed, if all samples of a shard have one size. */
static uint64_t window_bytes(const struct weir_feed *source, const struct extent *extent)
{
    uint64_t all = weir_index_bytes(source->supply.index), bytes;
    /* A lane has its share of the samples, and none of them twice. */
    uint64_t window = weir_min(source->window, source->samples / source->lanes_count + 1);
    bool is_more = __builtin_mul_overflow(window, extent->density_max, &bytes) || bytes > all;
    return is_more ? all : bytes;
}

/* Of memory for a piece; of windows with the blocks that they begin and end in. */
static uint64_t piece_room(const struct weir_feed *source, const struct extent *extent)
{
    uint64_t bytes = window_bytes(source, extent), block = source->supply.block_bytes;
    if (extent->density_max)
        bytes += 2 * (block ? block : WEIR_PIECE_BLOCK);
    return weir_slab_room(bytes > extent->compressed_max ? bytes : extent->compressed_max);
}

/* How many samples of a batch are the source's, about. */
static uint64_t rows_of(const struct weir_loader *loader, const struct weir_feed *source)
{
    uint32_t i = (uint32_t)(source - loader->sources);
    uint64_t all = weir_source_position(loader, i, loader->batch_size);
    return weir_min(all / loader->opts.ranks + 1, loader->opts.batch_size);
}

/* Memory for the pieces of a source that are in use while a batch is made: one of each lane, and
 * those that lanes go on to within the batch. These have about as many bytes as it has, since lanes
 * come to the ends of their windows one after the other; and a window may be short. */
static uint64_t memory_of(const struct weir_loader *loader, const struct weir_feed *source,
                          const struct extent *extent)
{
    uint64_t batch = rows_of(loader, source) * source->row_bytes;
    uint64_t window = window_bytes(source, extent), need;
    if (source->supply.mapping == WEIR_MAPPING_ALL)
        return 0;
    if (source->is_scattered)
        return weir_slab_room(batch);
    if (loader->opts.flags & WEIR_LOADER_SHUFFLE && source->window == UINT64_MAX)
        return extent->compressed;
    if (window < extent->compressed_max)
        window = extent->compressed_max;
    uint64_t more = batch / (window + 1) + (extent->density_max ? 2 : 1);
    uint64_t pieces = lanes_at_once(loader, source) + more;
    if (__builtin_mul_overflow(pieces, piece_room(source, extent), &need))
        need = UINT64_MAX;
    return extent->density_max ? need : weir_min(need, extent->compressed);
}

static int fail_memory_bound(const struct weir_loader *loader, const struct weir_feed *source,
                             uint64_t need)
{
    return weir_fail(EINVAL,
                     "'%s' needs %" PRIu64 " MiB of memory for a batch and what it is drawn from, "
                     "and %" PRIu64 " MiB are allowed: allow more, or choose fewer lanes (now "
                     "%" PRIu32 ") or a smaller window (now %" PRIu64 ")",
                     weir_data_info_get(source->supply.data)->url, (need >> 20) + 1,
                     loader->opts.memory_bytes_max >> 20, source->lanes, source->window);
}

/* ---- opening ---- */

/* Data for which there is memory is read through the kernel's cache, so that only the first epoch
 * comes from storage; other data would only push out what is there. */
static bool is_buffered(const weir_loader_options *opts, const struct weir_index *index)
{
    if (opts->flags & (WEIR_LOADER_BUFFERED | WEIR_LOADER_DIRECT))
        return opts->flags & WEIR_LOADER_BUFFERED;
    return weir_index_bytes(index) <= weir_ram_bytes() / 2;
}

static int open_order(const struct weir_loader *loader, struct weir_feed *source, uint32_t i)
{
    const weir_loader_options *opts = &loader->opts;
    const struct weir_index *index = source->supply.index;
    uint64_t shards = weir_index_shards(index);
    uint64_t *samples = weir_alloc(shards * sizeof *samples);
    if (!samples)
        return weir_fail_memory();
    for (uint64_t s = 0; s < shards; s++) {
        struct weir_index_shard shard;
        weir_index_shard(index, s, &shard);
        samples[s] = shard.samples;
    }
    struct weir_order_options how = {
        .shuffle = opts->flags & WEIR_LOADER_SHUFFLE,
        .seed = loader->mix ? weir_mix_seed(opts->seed, i) : opts->seed,
        .lanes = source->lanes,
        .window = source->window,
    };
    int code = weir_order_open(&source->order, samples, shards, &how);
    free(samples);
    return code;
}

static int open_source(struct weir_loader *loader, uint32_t i, weir_data *data, uint64_t *need)
{
    const weir_loader_options *opts = &loader->opts;
    struct weir_feed *source = &loader->sources[i];
    const struct weir_index *index = weir_data_index(data);
    bool shuffles = opts->flags & WEIR_LOADER_SHUFFLE;
    struct extent extent = find_extent(index);
    source->supply = (struct weir_supply){.data = data,
                                          .store = weir_data_store(data),
                                          .prefix = weir_data_prefix(data),
                                          .index = index,
                                          .slabs = loader->slabs,
                                          .stop = &loader->stop};
    bool keeps = is_buffered(opts, index);
    weir_store_set_keeps(source->supply.store, keeps);
    source->samples = weir_index_count(index);
    if (!source->samples)
        return weir_fail(EINVAL, "'%s' has no samples", weir_data_info_get(data)->url);
    source->row_bytes = weir_index_bytes(index) / source->samples + 1;
    choose_order(source, opts, &extent);
    source->lanes_count = shuffles ? source->lanes : 1;
    /* In order, what lies between a rank's batches is others'. */
    bool is_sparse =
        shuffles ? source->window == UINT64_MAX : (uint64_t)opts->ranks * opts->workers > 1;
    if (!extent.compressed)
        source->supply.mapping = weir_supply_mapping(&source->supply, keeps);
    if (!extent.compressed && source->supply.mapping != WEIR_MAPPING_ALL)
        source->supply.block_bytes = weir_supply_block(&source->supply);
    source->is_scattered =
        is_sparse && !extent.compressed && source->supply.mapping != WEIR_MAPPING_ALL;
    if (source->row_bytes > loader->row_bytes)
        loader->row_bytes = source->row_bytes;
    uint64_t batch, all;
    if (__builtin_mul_overflow(opts->batch_size, loader->row_bytes, &batch) ||
        __builtin_add_overflow(*need, memory_of(loader, source, &extent), need) ||
        __builtin_add_overflow(*need, weir_slab_room(batch), &all))
        all = UINT64_MAX;
    if (all == UINT64_MAX || all > opts->memory_bytes_max)
        return fail_memory_bound(loader, source, all);
    source->lane = weir_alloc(source->lanes_count * sizeof *source->lane);
    return source->lane ? open_order(loader, source, i) : weir_fail_memory();
}

static int open_slot(struct weir_slot *slot, uint64_t rows)
{
    slot->rows = weir_alloc(rows * sizeof *slot->rows);
    slot->numbers = weir_alloc(rows * sizeof *slot->numbers);
    slot->uses = weir_alloc((rows + WEIR_MIX_PARTS_MAX) * sizeof *slot->uses);
    return slot->rows && slot->numbers && slot->uses ? 0 : weir_fail_memory();
}

/* Batches that are planned: beyond those that are made ahead, as many as their reads take. */
static uint64_t count_slots(const struct weir_loader *loader)
{
    const weir_loader_options *opts = &loader->opts;
    uint64_t batch = opts->batch_size * loader->row_bytes + 1, count = AHEAD_BYTES / batch;
    uint64_t most = ROWS_AHEAD / opts->batch_size;
    count = count < most ? count : most;
    count = count < SLOTS_MAX ? count : SLOTS_MAX;
    return count > opts->prefetch ? count : opts->prefetch;
}

static int open_tables(struct weir_loader *loader)
{
    uint64_t lanes = 0;
    for (uint32_t i = 0; i < loader->sources_count; i++)
        lanes += loader->sources[i].lanes_count;
    loader->table_count = TABLE_MIN;
    while (loader->table_count < 4 * lanes)
        loader->table_count *= 2;
    loader->slots_count = count_slots(loader);
    loader->table = weir_alloc(loader->table_count * sizeof *loader->table);
    loader->slots = weir_alloc(loader->slots_count * sizeof *loader->slots);
    int code = loader->table && loader->slots ? 0 : weir_fail_memory();
    for (uint64_t i = 0; !code && i < loader->slots_count; i++)
        code = open_slot(&loader->slots[i], loader->opts.batch_size);
    return code;
}

static int open_inside(struct weir_loader *loader, weir_data *const *parts, const uint64_t *weights,
                       uint32_t count)
{
    const weir_loader_options *opts = &loader->opts;
    uint64_t need = 0;
    loader->batch_size = opts->batch_size * opts->ranks;
    loader->sources = weir_alloc(count * sizeof *loader->sources);
    if (!loader->sources)
        return weir_fail_memory();
    loader->sources_count = count;
    int code = weir_slabs_open(&loader->slabs, opts->memory_bytes_max);
    if (!code && weights)
        code = weir_mix_open(&loader->mix, weights, count, opts->seed);
    for (uint32_t i = 0; i < count && !code; i++)
        code = open_source(loader, i, parts[i], &need);
    return code ? code : open_tables(loader);
}

static int open_loader(weir_loader **out, weir_data *const *parts, const uint64_t *weights,
                       uint32_t count, const weir_loader_options *given)
{
    weir_loader_options opts;
    int code = 0;
    for (uint32_t i = 0; i < count && !code; i++)
        code = weir_data_check(parts[i]);
    if (!code)
        code = read_options(&opts, given);
    if (code)
        return code;
    weir_loader *loader = weir_alloc(sizeof *loader);
    if (!loader)
        return weir_fail_memory();
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->work, NULL);
    pthread_cond_init(&loader->done, NULL);
    loader->opts = opts;
    loader->wanted_tail = &loader->wanted;
    loader->generation = weir_fork_generation();
    code = copy_fields(&loader->opts);
    if (!code)
        code = open_inside(loader, parts, weights, count);
    if (code) {
        weir_loader_close(loader);
        return code;
    }
    *out = loader;
    return 0;
}

int weir_loader_open(weir_loader **out, weir_data *data, const weir_loader_options *opts)
{
    return open_loader(out, &data, NULL, 1, opts);
}

int weir_loader_open_mix(weir_loader **out, weir_data *const *parts, const uint64_t *weights,
                         uint32_t count, const weir_loader_options *opts)
{
    if (!count || count > WEIR_MIX_PARTS_MAX)
        return weir_fail(EINVAL, "%" PRIu32 " datasets in a mixture: 1 to %d", count,
                         WEIR_MIX_PARTS_MAX);
    return open_loader(out, parts, weights, count, opts);
}

static void free_slot(struct weir_slot *slot)
{
    weir_batch_release(slot->batch);
    free(slot->rows);
    free(slot->numbers);
    free(slot->uses);
    free(slot->drawn);
    free(slot->text);
}

void weir_loader_close(weir_loader *loader)
{
    if (!loader || loader->generation != weir_fork_generation())
        return;
    weir_work_stop(loader);
    if (loader->slots)
        weir_plan_close(loader);
    for (uint64_t i = 0; loader->slots && i < loader->slots_count; i++)
        free_slot(&loader->slots[i]);
    for (uint32_t i = 0; i < loader->sources_count; i++) {
        free(loader->sources[i].lane);
        weir_order_close(loader->sources[i].order);
    }
    free(loader->slots);
    free(loader->table);
    free(loader->sources);
    weir_mix_close(loader->mix);
    weir_slabs_close(loader->slabs);
    free_fields(&loader->opts);
    pthread_cond_destroy(&loader->done);
    pthread_cond_destroy(&loader->work);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}
