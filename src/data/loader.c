/* loader.c - what the caller sees of a loader; see loader.h. */
#include "data/loader.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/bytes.h"
#include "util/sys.h"
#include "util/thread.h"

enum {
    LANES_DEFAULT = 64,
    LANES_MAX = 65536,
    PREFETCH_DEFAULT = 8,
    PREFETCH_MAX = 4096,
    THREADS_DEFAULT = 4,
    THREADS_MAX = 256,
    SLOTS_MAX = 4096,
    TABLE_MIN = 256,
};
#define WINDOW_BYTES   ((uint64_t)4 << 20) /* of the default window: reads are that long */
#define MEMORY_DEFAULT ((uint64_t)512 << 20)
#define LANES_BYTES    (MEMORY_DEFAULT / 2) /* of whole shards in as many lanes by default */
#define AHEAD_BYTES    ((uint64_t)64 << 20) /* planned ahead, so that reads begin in time */
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
    if (!out->threads) {
        long processors = sysconf(_SC_NPROCESSORS_ONLN);
        out->threads = processors < 1                 ? 1
                       : processors < THREADS_DEFAULT ? (uint32_t)processors
                                                      : THREADS_DEFAULT;
    }
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
    uint64_t compressed;     /* and of all of them */
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
            out.compressed += shard.raw_bytes;
            if (shard.raw_bytes > out.compressed_max)
                out.compressed_max = shard.raw_bytes;
        } else if (density > out.density_max) {
            out.density_max = density;
        }
    }
    return out;
}

/* What was left open of the order: a function of the dataset alone, so that all ranks agree. */
static void choose_order(weir_loader_options *opts, const struct weir_index *index,
                         const struct extent *extent)
{
    uint64_t each = weir_index_bytes(index) / weir_index_count(index) + 1;
    if (!opts->window)
        opts->window = WINDOW_BYTES / each ? WINDOW_BYTES / each : 1;
    if (opts->lanes)
        return;
    opts->lanes = LANES_DEFAULT;
    if (extent->compressed_max && LANES_BYTES / extent->compressed_max < LANES_DEFAULT)
        opts->lanes = (uint32_t)(LANES_BYTES / extent->compressed_max);
    if (!opts->lanes)
        opts->lanes = 1;
}

/* Lanes that a rank has pieces of at a time: its share of them, where batches are whole rounds. */
static uint64_t lanes_at_once(const struct weir_loader *loader)
{
    const weir_loader_options *opts = &loader->opts;
    uint64_t lanes = loader->lanes_count;
    bool is_round = loader->batch_size % lanes == 0;
    return is_round ? (lanes + opts->ranks - 1) / opts->ranks : lanes;
}

static int check_memory(const struct weir_loader *loader, const struct extent *extent)
{
    const weir_loader_options *opts = &loader->opts;
    const struct weir_index *index = loader->supply.index;
    uint64_t window = opts->window < loader->samples ? opts->window : loader->samples;
    uint64_t batch = opts->batch_size * loader->row_bytes, piece, pieces;
    bool is_full = opts->flags & WEIR_LOADER_SHUFFLE && opts->window == UINT64_MAX;
    if (__builtin_mul_overflow(window, extent->density_max, &piece) || is_full)
        piece = 0;
    if (extent->compressed_max > piece)
        piece = extent->compressed_max;
    pieces = lanes_at_once(loader);
    if (weir_index_shards(index) < pieces)
        pieces = weir_index_shards(index);
    uint64_t need = is_full ? extent->compressed : pieces * piece;
    if (need + batch <= opts->memory_bytes_max)
        return 0;
    return weir_fail(EINVAL,
                     "'%s' needs %" PRIu64 " MiB of memory for a batch and what it is drawn from, "
                     "of which only %" PRIu64 " are allowed: allow more, or choose fewer lanes "
                     "(%" PRIu32 " now) or a smaller window",
                     weir_data_info_get(loader->supply.data)->url, ((need + batch) >> 20) + 1,
                     opts->memory_bytes_max >> 20, loader->lanes_count);
}

/* ---- opening ---- */

static int open_order(struct weir_loader *loader)
{
    const weir_loader_options *opts = &loader->opts;
    const struct weir_index *index = loader->supply.index;
    uint64_t shards = weir_index_shards(index);
    uint64_t *samples = weir_alloc(shards * sizeof *samples);
    if (!samples)
        return weir_fail_memory();
    for (uint64_t i = 0; i < shards; i++) {
        struct weir_index_shard shard;
        weir_index_shard(index, i, &shard);
        samples[i] = shard.samples;
    }
    struct weir_order_options how = {.shuffle = opts->flags & WEIR_LOADER_SHUFFLE,
                                     .seed = opts->seed,
                                     .lanes = opts->lanes,
                                     .window = opts->window};
    int code = weir_order_open(&loader->order, samples, shards, &how);
    free(samples);
    return code;
}

static int open_slot(struct weir_slot *slot, uint64_t rows, bool is_scattered)
{
    slot->positions = weir_alloc(rows * sizeof *slot->positions);
    slot->helds = weir_alloc(rows * sizeof *slot->helds);
    slot->uses = weir_alloc(rows * sizeof *slot->uses);
    slot->numbers = is_scattered ? weir_alloc(rows * sizeof *slot->numbers) : NULL;
    bool ok = slot->positions && slot->helds && slot->uses && (slot->numbers || !is_scattered);
    return ok ? 0 : weir_fail_memory();
}

/* Batches that are planned: beyond those that are made ahead, as many as their reads take. */
static uint64_t count_slots(const struct weir_loader *loader)
{
    const weir_loader_options *opts = &loader->opts;
    uint64_t batch = opts->batch_size * loader->row_bytes + 1, count = AHEAD_BYTES / batch;
    uint64_t rows = ((uint64_t)1 << 20) / opts->batch_size; /* a MiB or so of each table */
    count = count < rows ? count : rows;
    count = count < SLOTS_MAX ? count : SLOTS_MAX;
    return count > opts->prefetch ? count : opts->prefetch;
}

static int open_tables(struct weir_loader *loader)
{
    loader->slots_count = count_slots(loader);
    loader->table_count = TABLE_MIN;
    while (loader->table_count < 4 * (size_t)loader->lanes_count)
        loader->table_count *= 2;
    loader->lanes = weir_alloc(loader->lanes_count * sizeof *loader->lanes);
    loader->table = weir_alloc(loader->table_count * sizeof *loader->table);
    loader->slots = weir_alloc(loader->slots_count * sizeof *loader->slots);
    if (!loader->lanes || !loader->table || !loader->slots)
        return weir_fail_memory();
    int code = 0;
    for (uint64_t i = 0; i < loader->slots_count && !code; i++)
        code = open_slot(&loader->slots[i], loader->opts.batch_size, loader->is_scattered);
    return code;
}

static int open_inside(struct weir_loader *loader)
{
    weir_loader_options *opts = &loader->opts;
    const struct weir_index *index = loader->supply.index;
    struct extent extent = find_extent(index);
    bool shuffles = opts->flags & WEIR_LOADER_SHUFFLE;
    choose_order(opts, index, &extent);
    loader->samples = weir_index_count(index);
    loader->batch_size = opts->batch_size * opts->ranks;
    loader->row_bytes = weir_index_bytes(index) / loader->samples + 1;
    loader->lanes_count = shuffles ? opts->lanes : 1;
    /* In order, what lies between a rank's batches is others'. */
    bool is_sparse = shuffles ? opts->window == UINT64_MAX : opts->ranks * opts->workers > 1;
    loader->is_scattered = is_sparse && !extent.compressed;
    int code = check_memory(loader, &extent);
    if (!code)
        code = open_order(loader);
    if (!code)
        code = open_tables(loader);
    if (!code)
        code = weir_slabs_open(&loader->supply.slabs, opts->memory_bytes_max);
    return code;
}

int weir_loader_open(weir_loader **out, weir_data *data, const weir_loader_options *given)
{
    weir_loader_options opts;
    int code = weir_data_check(data);
    if (!code)
        code = read_options(&opts, given);
    if (!code && !weir_data_count(data))
        code = weir_fail(EINVAL, "'%s' has no samples", weir_data_info_get(data)->url);
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
    loader->supply = (struct weir_supply){.data = data,
                                          .store = weir_data_store(data),
                                          .prefix = weir_data_prefix(data),
                                          .index = weir_data_index(data)};
    code = copy_fields(&loader->opts);
    if (!code)
        code = open_inside(loader);
    if (code) {
        weir_loader_close(loader);
        return code;
    }
    *out = loader;
    return 0;
}

static void free_slot(struct weir_slot *slot)
{
    weir_batch_release(slot->batch);
    free(slot->positions);
    free(slot->helds);
    free(slot->uses);
    free(slot->numbers);
    free(slot->drawn);
}

void weir_loader_close(weir_loader *loader)
{
    if (!loader || loader->generation != weir_fork_generation())
        return;
    weir_work_stop(loader);
    if (loader->slots && loader->lanes)
        weir_plan_close(loader);
    for (uint64_t i = 0; loader->slots && i < loader->slots_count; i++)
        free_slot(&loader->slots[i]);
    free(loader->slots);
    free(loader->lanes);
    free(loader->table);
    weir_order_close(loader->order);
    weir_slabs_close(loader->supply.slabs);
    free_fields(&loader->opts);
    pthread_cond_destroy(&loader->done);
    pthread_cond_destroy(&loader->work);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}

/* ---- delivering ---- */

static int check(const weir_loader *loader)
{
    if (loader->generation != weir_fork_generation())
        return weir_fail(ECHILD, "the loader was opened before fork(): open one in the child");
    return 0;
}

static void add_tally(weir_loader *loader, const struct weir_part *part)
{
    size_t i = loader->tallies_count;
    while (i && loader->tallies[i - 1].epoch != part->epoch)
        i--;
    if (!i && loader->tallies_count == WEIR_TALLIES_MAX) {
        memmove(loader->tallies, loader->tallies + 1,
                (WEIR_TALLIES_MAX - 1) * sizeof *loader->tallies);
        loader->tallies_count--;
    }
    if (!i) {
        loader->tallies[loader->tallies_count++] = (weir_tally){.epoch = part->epoch};
        i = loader->tallies_count;
    }
    weir_tally *tally = &loader->tallies[i - 1];
    struct weir_digest sum = {weir_load_le(tally->digest, 8), weir_load_le(tally->digest + 8, 8)};
    weir_digest_add(&sum, part->digest);
    weir_store_le(tally->digest, sum.low, 8);
    weir_store_le(tally->digest + 8, sum.high, 8);
    tally->samples += part->samples;
}

/* Why the caller's batch is not there yet; with the lock held. */
static int stall_of(struct weir_slot *slot)
{
    if (slot->state == WEIR_SLOT_GATHERING)
        return WEIR_STALL_DECODE;
    if (slot->state == WEIR_SLOT_PLANNING || slot->state == WEIR_SLOT_PLANNED)
        for (uint64_t i = slot->loaded; i < slot->uses_count; i++)
            if (slot->uses[i]->state == WEIR_HELD_LOADING)
                return slot->uses[i]->piece.kind == WEIR_PIECE_SHARD ? WEIR_STALL_DECODE
                                                                     : WEIR_STALL_READ;
    return WEIR_STALL_QUEUE;
}

static uint64_t now_ns(void)
{
    return weir_sys->now_ns(WEIR_CLOCK_MONO);
}

/* Waits until the slot is done; -ETIMEDOUT. With the lock held. */
static int wait_for(weir_loader *loader, struct weir_slot *slot, uint64_t timeout_ns)
{
    uint64_t start_ns = now_ns(), at_ns = start_ns;
    uint64_t until_ns = timeout_ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + timeout_ns;
    struct timespec until = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
    int code = 0;
    if (slot->state == WEIR_SLOT_DONE)
        return 0;
    loader->stats.stalls++;
    loader->waiting = true;
    while (slot->state != WEIR_SLOT_DONE && !code) {
        int stall = stall_of(slot);
        code = until_ns == UINT64_MAX
                   ? -pthread_cond_wait(&loader->done, &loader->lock)
                   : -pthread_cond_clockwait(&loader->done, &loader->lock, CLOCK_MONOTONIC, &until);
        uint64_t woke_ns = now_ns();
        loader->stats.stall_ns[stall] += woke_ns - at_ns;
        at_ns = woke_ns;
    }
    loader->waiting = false;
    return slot->state == WEIR_SLOT_DONE ? 0 : weir_fail(ETIMEDOUT, "the batch is not there yet");
}

/* Hands the slot's batch out; with the lock held. */
static weir_batch *deliver(weir_loader *loader, struct weir_slot *slot)
{
    weir_batch *batch = slot->batch;
    for (size_t i = 0; i < batch->parts_count; i++)
        add_tally(loader, &batch->parts[i]);
    loader->stats.batches++;
    loader->stats.samples += batch->info.samples;
    loader->stats.sample_bytes += batch->sample_bytes;
    loader->bytes -= slot->bytes;
    slot->batch = NULL;
    slot->state = WEIR_SLOT_EMPTY;
    loader->delivered++;
    pthread_cond_signal(&loader->work);
    return batch;
}

static uint64_t next_position(const weir_loader *loader)
{
    const weir_loader_options *opts = &loader->opts;
    return opts->position + (loader->delivered * opts->workers + opts->worker) * loader->batch_size;
}

int weir_loader_next(weir_loader *loader, weir_batch **out, uint64_t timeout_ns)
{
    int code = check(loader);
    if (!code && !loader->threads_count)
        code = weir_work_start(loader);
    if (code)
        return code;
    if (next_position(loader) >= loader->opts.end)
        return 0;
    pthread_mutex_lock(&loader->lock);
    struct weir_slot *slot = &loader->slots[loader->delivered % loader->slots_count];
    code = wait_for(loader, slot, timeout_ns);
    if (!code && slot->code)
        code = weir_fail_text(slot->code, slot->text);
    if (!code)
        *out = deliver(loader, slot);
    pthread_mutex_unlock(&loader->lock);
    return code ? code : 1;
}

/* ---- where it is ---- */

size_t weir_loader_tallies(const weir_loader *loader, weir_tally out[WEIR_TALLIES_MAX])
{
    memcpy(out, loader->tallies, loader->tallies_count * sizeof *out);
    return loader->tallies_count;
}

void weir_loader_state_get(const weir_loader *loader, weir_loader_state *out)
{
    uint64_t position = next_position(loader);
    *out = (weir_loader_state){
        .digest = weir_data_info_get(loader->supply.data)->digest,
        .seed = loader->opts.seed,
        .window = loader->opts.window,
        .position = position < loader->opts.end ? position : loader->opts.end,
        .lanes = loader->opts.lanes,
        .flags = loader->opts.flags,
        .samples = loader->samples,
    };
}

void weir_loader_stats_get(weir_loader *loader, weir_loader_stats *out)
{
    pthread_mutex_lock(&loader->lock);
    *out = loader->stats;
    out->memory_bytes = loader->bytes;
    out->threads = loader->threads_count;
    pthread_mutex_unlock(&loader->lock);
    out->memory_bytes_peak = weir_slabs_peak(loader->supply.slabs);
    out->prefetch = loader->opts.prefetch;
}
