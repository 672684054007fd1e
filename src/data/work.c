/* work.c - what the threads of a loader do: plan, load, gather; see loader.h. */
#include <errno.h>
#include <stdlib.h>

#include "data/loader.h"
#include "util/sys.h"
#include "util/thread.h"

enum {
    THREADS_BUSY = 4,      /* that take processors' time, */
    THREADS_WAITING = 8,   /* and that wait for storage, while others check what has come */
    TAKE_MAX = 64,         /* pieces that are loaded together */
    CACHE_BYTES = 8 << 20, /* less than the cache that processors share */
    GROUP = 8,             /* rows that are looked for at once */
    SMALL_BYTES = 1 << 20, /* a batch that takes a tenth of a millisecond or so */
};

/* One thread's own. */
struct worker {
    struct weir_loader *loader;
    struct weir_gather *gather;
};

static uint64_t now_ns(void)
{
    return weir_sys->now_ns(WEIR_CLOCK_MONO);
}

/* ---- loading ---- */

static void count_cost(weir_loader_stats *stats, const struct weir_cost *cost)
{
    stats->reads += cost->reads;
    stats->read_bytes += cost->read_bytes;
    for (int i = 0; i < WEIR_READ_SIZES; i++)
        stats->read_sizes[i] += cost->read_sizes[i];
    stats->mapped_bytes += cost->mapped_bytes;
    stats->read_ns += cost->read_ns;
    stats->decompress_ns += cost->decompress_ns;
}

/* With the lock held, which it gives up meanwhile. */
static void load(struct weir_loader *loader)
{
    struct weir_held *helds[TAKE_MAX];
    struct weir_piece *pieces[TAKE_MAX];
    struct weir_cost cost = {0};
    size_t count = weir_plan_take_wanted(loader, helds, TAKE_MAX);
    weir_work_wake(loader);
    for (size_t i = 0; i < count; i++)
        pieces[i] = &helds[i]->piece;
    pthread_mutex_unlock(&loader->lock);
    int code = weir_pieces_load(pieces, count, &helds[0]->source->supply, &cost);
    for (size_t i = 0; i < count && code; i++)
        weir_piece_lost(pieces[i], code);
    pthread_mutex_lock(&loader->lock);
    count_cost(&loader->stats, &cost);
    for (size_t i = 0; i < count; i++) {
        if (pieces[i]->map) { /* it takes none of the memory it was planned with */
            loader->bytes -= pieces[i]->bytes;
            pieces[i]->bytes = 0;
        }
        helds[i]->state = WEIR_HELD_LOADED;
    }
}

/* ---- gathering ---- */

bool weir_slot_is_loaded(struct weir_slot *slot)
{
    while (slot->loaded < slot->uses_count && slot->uses[slot->loaded]->state == WEIR_HELD_LOADED)
        slot->loaded++;
    return slot->loaded == slot->uses_count;
}

/* The oldest batch that can be made now; with the lock held. */
static struct weir_slot *oldest_loaded(struct weir_loader *loader)
{
    uint64_t end = loader->delivered + loader->opts.prefetch;
    end = end < loader->planned ? end : loader->planned;
    for (uint64_t i = loader->delivered; i < end; i++) {
        struct weir_slot *slot = &loader->slots[i % loader->slots_count];
        if (slot->state == WEIR_SLOT_PLANNED && weir_slot_is_loaded(slot))
            return slot;
    }
    return NULL;
}

/* For a thread: none if as many are being made as there are processors, or threads that were asked
 * for: more would only take turns. With the lock held. */
static struct weir_slot *find_loaded(struct weir_loader *loader)
{
    bool is_busy =
        loader->gathering >= loader->processors && loader->gathering >= loader->opts.threads;
    return is_busy ? NULL : oldest_loaded(loader);
}

/* Finds all of them before the first is looked at: to get to where a sample begins takes long, but
 * to several at once hardly longer. */
static int add_rows(const struct weir_loader *loader, struct weir_gather *gather,
                    const struct weir_row *rows, uint64_t count, struct weir_arena **scratch)
{
    struct weir_sample samples[GROUP];
    for (uint64_t i = 0; i < count; i++) {
        const struct weir_supply *supply = &loader->sources[rows[i].source].supply;
        int code = loader->stop ? weir_fail(ECANCELED, "the loader is closed")
                                : weir_piece_sample(&rows[i].held->piece, supply, rows[i].number,
                                                    rows[i].at, scratch, &samples[i]);
        if (code)
            return code;
        if (!weir_index_format(supply->index)->is_flat) /* of those mostly nothing is looked at */
            __builtin_prefetch(samples[i].data);
    }
    for (uint64_t i = 0; i < count; i++) {
        const struct weir_supply *supply = &loader->sources[rows[i].source].supply;
        struct weir_drawing which = {rows[i].source, rows[i].number, rows[i].drawn->number};
        int code = weir_gather_add(gather, supply->index, &which, &samples[i]);
        if (code)
            return weir_sample_fail(supply, which.number, code);
    }
    return 0;
}

static int gather_rows(struct weir_loader *loader, struct weir_gather *gather,
                       struct weir_slot *slot)
{
    struct weir_arena *scratch = NULL; /* what was read alone, until it is copied */
    int code = weir_gather_begin(gather, slot->rows_count);
    for (uint64_t i = 0; i < slot->rows_count && !code; i += GROUP) {
        uint64_t left = slot->rows_count - i;
        code = add_rows(loader, gather, &slot->rows[i], left < GROUP ? left : GROUP, &scratch);
    }
    if (!code)
        code = weir_gather_end(gather, loader->slabs, loader->mix != NULL, &slot->batch);
    weir_arena_free(scratch);
    return code;
}

static bool lacks(const struct weir_loader *loader, const struct weir_row *row)
{
    return weir_piece_lacks(&row->held->piece, &loader->sources[row->source].supply, row->number);
}

static bool lacks_any(const struct weir_loader *loader, const struct weir_slot *slot)
{
    uint64_t i = 0;
    while (i < slot->rows_count && !lacks(loader, &slot->rows[i]))
        i++;
    return i < slot->rows_count;
}

/* Touches what is mapped and not in memory. Batches that are made at once mostly want the same
 * pages: each of so many begins at another row, so that their threads wait for different ones. What
 * fails here fails again where it is added. */
static void touch_rows(const struct weir_loader *loader, const struct weir_slot *slot,
                       uint32_t threads)
{
    uint64_t count = slot->rows_count, batch = (uint64_t)(slot - loader->slots);
    uint64_t start = batch % threads * count / threads;
    struct weir_arena *scratch = NULL;
    struct weir_sample sample;
    for (uint64_t i = 0; i < count && !loader->stop; i++) {
        const struct weir_row *row = &slot->rows[(start + i) % count];
        if (lacks(loader, row))
            weir_piece_sample(&row->held->piece, &loader->sources[row->source].supply, row->number,
                              row->at, &scratch, &sample);
    }
    weir_arena_free(scratch);
}

/* Waits for what the rows lack; others may gather meanwhile. */
static void fetch(struct weir_loader *loader, struct weir_slot *slot)
{
    pthread_mutex_lock(&loader->lock);
    uint32_t threads = loader->threads_count;
    slot->is_fetching = true;
    loader->gathering--;
    weir_work_wake(loader);
    pthread_mutex_unlock(&loader->lock);
    uint64_t start_ns = now_ns();
    touch_rows(loader, slot, threads);
    uint64_t took_ns = now_ns() - start_ns;
    pthread_mutex_lock(&loader->lock);
    slot->is_fetching = false;
    loader->gathering++;
    loader->stats.read_ns += took_ns;
    pthread_mutex_unlock(&loader->lock);
}

/* With the lock held, which it gives up meanwhile. */
static void make_batch(struct weir_loader *loader, struct weir_gather *gather,
                       struct weir_slot *slot)
{
    slot->state = WEIR_SLOT_GATHERING;
    loader->gathering++;
    weir_work_wake(loader);
    pthread_mutex_unlock(&loader->lock);
    bool lacked = !slot->code && lacks_any(loader, slot);
    if (lacked)
        fetch(loader, slot);
    uint64_t start_ns = now_ns();
    if (!slot->code) {
        int code = gather_rows(loader, gather, slot);
        if (code)
            weir_slot_fail(slot, code);
    }
    uint64_t took_ns = now_ns() - start_ns;
    pthread_mutex_lock(&loader->lock);
    loader->stats.decode_ns += took_ns;
    if (slot->batch) {
        uint64_t bytes = slot->batch->info.size;
        slot->batch->info.position = slot->position;
        if (loader->batch_bytes_max < bytes)
            loader->batch_bytes_max = bytes;
        loader->bytes += slot->batch->slab->room - slot->bytes;
        slot->bytes = slot->batch->slab->room;
    }
    weir_plan_let_go(loader, slot);
    slot->state = WEIR_SLOT_DONE;
    loader->gathering--;
    loader->ready++;
    loader->lacked = lacked;
}

bool weir_work_help(struct weir_loader *loader, const struct weir_slot *own)
{
    struct weir_slot *slot = oldest_loaded(loader);
    if (!slot)
        return false;
    if (slot != own && (loader->lacked || slot->bytes > SMALL_BYTES))
        return false; /* its own may be there long before that one */
    for (uint64_t i = 0; i < slot->uses_count; i++)
        if (slot->uses[i]->piece.is_broken)
            return false; /* who waits can be stopped, who reads cannot */
    make_batch(loader, loader->gather, slot);
    return true;
}

/* ---- threads ---- */

void weir_work_wake(struct weir_loader *loader)
{
    if (loader->wanted || weir_plan_can(loader) || find_loaded(loader))
        pthread_cond_signal(&loader->work);
}

/* Does something, if there is something to do; with the lock held, which it gives up meanwhile. */
static bool do_one(struct worker *worker)
{
    struct weir_loader *loader = worker->loader;
    struct weir_slot *slot = find_loaded(loader);
    if (slot)
        make_batch(loader, worker->gather, slot);
    else if (weir_plan_can(loader))
        weir_plan_more(loader);
    else if (loader->wanted)
        load(loader);
    else
        return false;
    if (loader->waiting) /* what was done may be what the caller waits for */
        pthread_cond_signal(&loader->done);
    return true;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct weir_loader *loader = worker->loader;
    pthread_mutex_lock(&loader->lock);
    while (!loader->stop)
        if (!do_one(worker))
            pthread_cond_wait(&loader->work, &loader->lock);
    pthread_mutex_unlock(&loader->lock);
    weir_gather_close(worker->gather);
    free(worker);
    return NULL;
}

static int open_gather(struct weir_gather **out, const struct weir_loader *loader)
{
    const weir_loader_options *opts = &loader->opts;
    uint64_t ahead = opts->prefetch * opts->batch_size * loader->row_bytes;
    return weir_gather_open(out, opts->fields, opts->fields_count, opts->flags & WEIR_LOADER_RAW,
                            ahead >= CACHE_BYTES);
}

static int start_one(struct weir_loader *loader, pthread_t *out)
{
    struct worker *worker = weir_alloc(sizeof *worker);
    if (!worker)
        return weir_fail_memory();
    worker->loader = loader;
    int code = open_gather(&worker->gather, loader);
    if (!code)
        code = weir_thread_start(out, "weir-data", work, worker);
    if (code) {
        weir_gather_close(worker->gather);
        free(worker);
    }
    return code;
}

/* Whether threads mostly wait for storage, rather than to decompress what comes from there. */
static bool is_plain(const struct weir_feed *source)
{
    struct weir_index_shard shard;
    weir_index_shard(source->supply.index, 0, &shard);
    return source->supply.mapping != WEIR_MAPPING_ALL && !shard.codec[0];
}

/* Threads that have nothing to wait for are no more than processors. */
static uint32_t count_threads(const struct weir_loader *loader)
{
    if (loader->opts.threads)
        return loader->opts.threads;
    for (uint32_t i = 0; i < loader->sources_count; i++)
        if (is_plain(&loader->sources[i]))
            return THREADS_WAITING;
    return loader->waits || loader->processors > THREADS_BUSY ? THREADS_BUSY : loader->processors;
}

int weir_work_start(struct weir_loader *loader)
{
    loader->processors = weir_processors();
    for (uint32_t i = 0; i < loader->sources_count; i++)
        loader->waits |= loader->sources[i].supply.mapping != WEIR_MAPPING_ALL;
    uint32_t count = count_threads(loader);
    if (!loader->threads && !(loader->threads = weir_alloc(count * sizeof *loader->threads)))
        return weir_fail_memory();
    int code = loader->gather ? 0 : open_gather(&loader->gather, loader);
    for (uint32_t i = 0; i < count && !code; i++) {
        pthread_mutex_lock(&loader->lock); /* those that run already divide by their number */
        code = start_one(loader, &loader->threads[i]);
        loader->threads_count += !code;
        pthread_mutex_unlock(&loader->lock);
    }
    return loader->threads_count ? 0 : code; /* fewer do as well */
}

void weir_work_stop(struct weir_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    loader->stop = true;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    for (uint32_t i = 0; i < loader->threads_count; i++)
        pthread_join(loader->threads[i], NULL);
    weir_gather_close(loader->gather);
    free(loader->threads);
}
