/* loader.c - what the caller sees of a loader once it is open; see loader.h. */
#include "data/loader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/store.h"
#include "util/bytes.h"
#include "util/sys.h"
#include "util/thread.h"

enum { LENT_BYTES_MORE = 4096 }; /* a small batch's tables are as large as what is in it */

uint64_t weir_loader_position(const struct weir_loader *loader, uint64_t i)
{
    const weir_loader_options *opts = &loader->opts;
    return opts->position + (i * opts->workers + opts->worker) * loader->batch_size;
}

uint64_t weir_source_position(const struct weir_loader *loader, uint32_t source, uint64_t position)
{
    return loader->mix ? weir_mix_before(loader->mix, position, source) : position;
}

void weir_slot_fail(struct weir_slot *slot, int code)
{
    slot->code = code;
    free(slot->text);
    slot->text = weir_strdup(weir_fail_last());
}

/* ---- delivering ---- */

static int check(const weir_loader *loader)
{
    if (loader->generation != weir_fork_generation())
        return weir_fail(ECHILD, "the loader was opened before fork(): open one in the child");
    return 0;
}

/* The tally of an epoch; NULL: there are enough of later ones. These stay, so one that was dropped
 * never comes back with a part of its samples; and so sums over ranks, of the last ones that any of
 * them has, are complete. */
static weir_tally *find_tally(struct weir_feed *source, uint64_t epoch)
{
    weir_tally *tallies = source->tallies;
    uint32_t count = source->tallies_count, at = count;
    while (at && tallies[at - 1].epoch > epoch)
        at--;
    if (at && tallies[at - 1].epoch == epoch)
        return &tallies[at - 1];
    if (count == WEIR_TALLIES_MAX) {
        if (!at)
            return NULL;
        at--;
        memmove(tallies, tallies + 1, at * sizeof *tallies);
    } else {
        memmove(tallies + at + 1, tallies + at, (count - at) * sizeof *tallies);
        source->tallies_count++;
    }
    tallies[at] = (weir_tally){.epoch = epoch};
    return &tallies[at];
}

/* Counts a part of a batch; batch is one more than the batches before it. */
static void add_tally(struct weir_feed *source, const struct weir_part *part, uint64_t batch)
{
    if (source->counted != batch) { /* until it is reached, those are told */
        memcpy(source->tallies_before, source->tallies, sizeof source->tallies);
        source->tallies_count_before = source->tallies_count;
        source->counted = batch;
    }
    weir_tally *tally = find_tally(source, part->epoch);
    if (!tally)
        return;
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
        return slot->is_fetching ? WEIR_STALL_READ : WEIR_STALL_DECODE;
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

/* With the lock held. */
static int wait_done(weir_loader *loader, uint64_t until_ns)
{
    struct timespec until = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
    if (until_ns == UINT64_MAX)
        return -pthread_cond_wait(&loader->done, &loader->lock);
    return -pthread_cond_clockwait(&loader->done, &loader->lock, CLOCK_MONOTONIC, &until);
}

/* Waits until the slot is done; -ETIMEDOUT. With the lock held. */
static int wait_for(weir_loader *loader, struct weir_slot *slot, uint64_t timeout_ns)
{
    uint64_t start_ns = now_ns(), at_ns = start_ns;
    uint64_t until_ns = timeout_ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + timeout_ns;
    int code = 0;
    if (slot->state == WEIR_SLOT_DONE)
        return 0;
    loader->stats.stalls++;
    loader->waiting = true;
    while (slot->state != WEIR_SLOT_DONE && !code) {
        bool is_made = slot->state == WEIR_SLOT_PLANNED && weir_slot_is_loaded(slot);
        int stall = is_made ? WEIR_STALL_DECODE : stall_of(slot);
        weir_work_wake(loader);
        if (at_ns >= until_ns || !weir_work_help(loader, slot))
            code = wait_done(loader, until_ns);
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
        add_tally(&loader->sources[batch->parts[i].source], &batch->parts[i],
                  loader->delivered + 1);
    loader->stats.batches++;
    loader->stats.samples += batch->info.samples;
    loader->stats.sample_bytes += batch->sample_bytes;
    if (!loader->waits) /* all is mapped, not window by window */
        loader->stats.mapped_bytes += batch->sample_bytes;
    loader->bytes -= slot->bytes;
    slot->batch = NULL;
    slot->state = WEIR_SLOT_EMPTY;
    loader->delivered++;
    loader->ready--;
    /* Where nobody has to wait for storage, threads are woken for several batches, not for each. */
    if (loader->waits || loader->lacked || loader->ready <= loader->opts.prefetch / 2)
        weir_work_wake(loader);
    return batch;
}

int weir_loader_next(weir_loader *loader, weir_batch **out, uint64_t timeout_ns)
{
    int code = check(loader);
    if (!code && !loader->threads_count)
        code = weir_work_start(loader);
    if (code)
        return code;
    if (weir_loader_position(loader, loader->delivered) >= loader->opts.end)
        return 0;
    pthread_mutex_lock(&loader->lock);
    struct weir_slot *slot = &loader->slots[loader->delivered % loader->slots_count];
    code = wait_for(loader, slot, timeout_ns);
    if (!code && slot->code)
        code = slot->text ? weir_fail_text(slot->code, slot->text) : weir_fail_memory();
    if (!code)
        *out = deliver(loader, slot);
    pthread_mutex_unlock(&loader->lock);
    return code ? code : 1;
}

/* ---- memory of the caller's ---- */

int weir_loader_lend(weir_loader *loader, void *data, uint64_t size, void (*release)(void *owner),
                     void *owner)
{
    int code = check(loader);
    if (code)
        return code;
    if (!data || (uintptr_t)data % WEIR_BATCH_ALIGN || !release || !owner || size > SIZE_MAX / 2)
        return weir_fail(EINVAL,
                         "memory for batches is aligned to %d bytes, and has an owner who "
                         "is told when it is not needed any more",
                         WEIR_BATCH_ALIGN);
    return weir_slabs_lend(loader->slabs, data, (size_t)size, release, owner);
}

uint64_t weir_loader_wants(weir_loader *loader)
{
    if (loader->generation != weir_fork_generation())
        return 0;
    uint64_t lent = weir_slabs_lent(loader->slabs);
    pthread_mutex_lock(&loader->lock);
    uint64_t bytes = loader->batch_bytes_max, there = lent + loader->ready;
    pthread_mutex_unlock(&loader->lock);
    if (!bytes) /* none was made yet */
        bytes = loader->opts.batch_size * loader->row_bytes;
    bytes += bytes / 8 + LENT_BYTES_MORE;
    /* As many as may be ready, and one; of large ones no more than half of what is allowed. */
    bool is_enough = there > loader->opts.prefetch ||
                     (there > 1 && there + 1 > loader->opts.memory_bytes_max / 2 / bytes);
    return is_enough ? 0 : bytes;
}

/* ---- where it is ---- */

/* A signal's handler and other threads ask, too, while somebody waits for the next batch; a forked
 * child, in which nobody may ever unlock the lock, gets what is there. */
static bool lock(const weir_loader *loader)
{
    if (loader->generation != weir_fork_generation())
        return false;
    pthread_mutex_lock((pthread_mutex_t *)&loader->lock);
    return true;
}

static void unlock(const weir_loader *loader, bool is_locked)
{
    if (is_locked)
        pthread_mutex_unlock((pthread_mutex_t *)&loader->lock);
}

void weir_loader_reached(weir_loader *loader, uint64_t position)
{
    bool is_locked = lock(loader);
    loader->reached = position;
    unlock(loader, is_locked);
}

/* The last batch is on its way to the caller; with the lock held. */
static bool is_held(const weir_loader *loader)
{
    return loader->opts.flags & WEIR_LOADER_HELD && loader->delivered &&
           loader->reached <= weir_loader_position(loader, loader->delivered - 1);
}

/* With the lock held. */
static uint64_t next_position(const weir_loader *loader)
{
    uint64_t position = weir_loader_position(loader, loader->delivered - is_held(loader));
    return position < loader->opts.end ? position : loader->opts.end;
}

void weir_loader_state_get(const weir_loader *loader, weir_loader_state *out)
{
    bool is_locked = lock(loader);
    *out = (weir_loader_state){
        .seed = loader->opts.seed,
        .position = next_position(loader),
        .flags = loader->opts.flags & WEIR_LOADER_SHUFFLE,
        .parts = loader->sources_count,
    };
    unlock(loader, is_locked);
}

int weir_loader_part_get(const weir_loader *loader, uint32_t part, weir_loader_part *out)
{
    if (part >= loader->sources_count)
        return weir_fail(EINVAL, "there is no part %" PRIu32 " of %" PRIu32, part,
                         loader->sources_count);
    const struct weir_feed *source = &loader->sources[part];
    bool is_locked = lock(loader);
    bool is_before = is_held(loader) && source->counted == loader->delivered;
    *out = (weir_loader_part){
        .digest = weir_data_info_get(source->supply.data)->digest,
        .samples = source->samples,
        .window = source->window,
        .position = weir_source_position(loader, part, next_position(loader)),
        .lanes = source->lanes,
        .tallies_count = is_before ? source->tallies_count_before : source->tallies_count,
    };
    memcpy(out->tallies, is_before ? source->tallies_before : source->tallies, sizeof out->tallies);
    unlock(loader, is_locked);
    return 0;
}

void weir_loader_stats_get(weir_loader *loader, weir_loader_stats *out)
{
    bool is_locked = lock(loader);
    *out = loader->stats;
    out->memory_bytes = loader->bytes;
    out->threads = loader->threads_count;
    unlock(loader, is_locked);
    for (uint32_t i = 0; i < loader->sources_count; i++) {
        uint64_t bytes[WEIR_READ_WAYS];
        weir_store_read_bytes(loader->sources[i].supply.store, bytes);
        out->cached_bytes += bytes[WEIR_READ_CACHED];
        out->buffered_bytes += bytes[WEIR_READ_THROUGH];
        out->direct_bytes += bytes[WEIR_READ_DIRECT];
    }
    out->memory_bytes_peak = weir_slabs_peak(loader->slabs);
    if (out->memory_bytes_peak < out->memory_bytes) /* mapped pieces are counted, and no slabs */
        out->memory_bytes_peak = out->memory_bytes;
    out->prefetch = loader->opts.prefetch;
}
