/* build.c - see build.h. Threads take the shards in order; whoever finds that a second has passed
 * since the last part writes the next one, while the others go on.
 */
#include "data/build.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/found.h"
#include "data/index_file.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/thread.h"

enum { PART_NS = 1000000000 };          /* what a kill costs, beside shards that are not done */
enum { PART_ENTRIES_BYTES = 16 << 20 }; /* held in memory until then */

/* What is known of a shard. */
struct slot {
    const struct weir_index *from; /* an index has it, as its shard `row` */
    uint64_t row;
    struct weir_found *found; /* or it was just scanned */
};

struct work {
    struct weir_build *build;
    struct weir_finder finder;
    struct slot *slots;
    size_t count, next;
    uint64_t total; /* bytes of the shards to scan */
    pthread_mutex_t lock;
    pthread_mutex_t telling; /* progress is told by one at a time */
    uint64_t part_ns;        /* when the last part was written */
    uint64_t held_bytes;     /* of entries in memory */
    bool is_writing, no_parts, stop;
    int code, cache_code; /* the first failure: of a shard, or to keep a part */
    char text[WEIR_TEXT_MAX];
};

static int tell(void *arg, uint64_t more)
{
    struct work *work = arg;
    struct weir_build *build = work->build;
    if (!build->progress)
        return 0;
    pthread_mutex_lock(&work->telling);
    int stop = build->progress(build->progress_arg, more, work->total);
    pthread_mutex_unlock(&work->telling);
    return stop;
}

static bool needs_scan(const struct weir_shard_plan *plan)
{
    return !plan->each_bytes || plan->marks_key;
}

/* ---- parts ---- */

static int part_key(const struct weir_build *build, char out[WEIR_KEY_BYTES_MAX])
{
    uint8_t nonce[8];
    char hex[2 * sizeof nonce + 1];
    int code = weir_sys->random(nonce, sizeof nonce);
    if (code)
        return weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
    weir_hex(hex, nonce, sizeof nonce);
    snprintf(out, WEIR_KEY_BYTES_MAX, "%s%s", build->parts, hex);
    return 0;
}

/* Which slots go into the next part: those that have been scanned. Under the lock. */
static size_t choose(struct work *work, size_t *chosen)
{
    size_t count = 0;
    for (size_t i = 0; i < work->next; i++)
        if (work->slots[i].found)
            chosen[count++] = i;
    return count;
}

static int write_part(struct work *work, const size_t *chosen, size_t count,
                      struct weir_index **out)
{
    struct weir_build *build = work->build;
    char key[WEIR_KEY_BYTES_MAX];
    struct weir_index_put *put = NULL;
    size_t size;
    const char *schema = weir_survey_schema_get(build->survey, &size);
    int code = part_key(build, key);
    if (!code)
        code =
            weir_index_put_open(&put, build->cache->store, key, build->format->name, schema, size);
    for (size_t i = 0; !code && i < count; i++) {
        const struct weir_found *found = work->slots[chosen[i]].found;
        code = weir_index_put_shard(put, &found->shard, found->entries.data, found->marks.data);
    }
    if (!code)
        code = weir_index_put_commit(put, NULL);
    weir_index_put_close(put);
    return code ? code : weir_index_open(out, build->cache->store, key);
}

/* The part has them now: under the lock. */
static void release(struct work *work, const size_t *chosen, size_t count, struct weir_index *index)
{
    if (weir_sources_add(work->build->sources, index)) {
        work->no_parts = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct slot *slot = &work->slots[chosen[i]];
        work->held_bytes -= slot->found->entries.size + slot->found->marks.size;
        weir_found_free(slot->found);
        free(slot->found);
        *slot = (struct slot){.from = index, .row = i};
    }
}

static void stop_under_lock(struct work *work, int *first, int code)
{
    if (!work->code && !work->cache_code) {
        *first = code;
        snprintf(work->text, sizeof work->text, "%s", weir_fail_last());
    }
    work->stop = true;
}

/* Called, and returns, under the lock. A part that cannot be written is no failure: a kill will
 * cost more. */
static void maybe_write_part(struct work *work)
{
    uint64_t now_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    if (!work->build->parts || work->no_parts || work->is_writing ||
        (now_ns - work->part_ns < PART_NS && work->held_bytes < PART_ENTRIES_BYTES))
        return;
    size_t *chosen = weir_alloc(work->next * sizeof *chosen);
    size_t count = chosen ? choose(work, chosen) : 0;
    struct weir_index *index = NULL;
    work->is_writing = true;
    pthread_mutex_unlock(&work->lock);
    int code = count ? write_part(work, chosen, count, &index) : 0;
    pthread_mutex_lock(&work->lock);
    work->is_writing = false;
    work->part_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    if (code)
        work->no_parts = true;
    if (code && work->build->must_keep && weir_cache_is_shut(code))
        stop_under_lock(work, &work->cache_code, code); /* the whole will not fit, either */
    else if (index)
        release(work, chosen, count, index);
    free(chosen);
}

/* ---- scanning ---- */

/* Which shard is next, or the count. Under the lock. */
static size_t take_next(struct work *work)
{
    while (work->next < work->count) {
        size_t i = work->next++;
        if (!work->slots[i].from && needs_scan(weir_survey_shard(work->build->survey, i)))
            return i;
    }
    return work->count;
}

static void *scan_thread(void *arg)
{
    struct work *work = arg;
    pthread_mutex_lock(&work->lock);
    for (size_t i; !work->stop && (i = take_next(work)) < work->count;) {
        pthread_mutex_unlock(&work->lock);
        struct weir_found *found = weir_alloc(sizeof *found);
        int code =
            found ? weir_found_scan(found, &work->finder, weir_survey_shard(work->build->survey, i))
                  : weir_fail_memory();
        pthread_mutex_lock(&work->lock);
        if (code) {
            free(found);
            stop_under_lock(work, &work->code, code);
            break;
        }
        work->slots[i].found = found;
        work->held_bytes += found->entries.size + found->marks.size;
        work->build->scanned++;
        maybe_write_part(work);
    }
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

static uint32_t thread_count(const struct work *work, size_t shards)
{
    uint64_t count = work->build->threads ? work->build->threads : weir_processors();
    count = count > WEIR_BUILD_THREADS_MAX ? WEIR_BUILD_THREADS_MAX : count;
    return (uint32_t)(count > shards ? shards : count);
}

static int scan_all(struct work *work, size_t shards)
{
    pthread_t threads[WEIR_BUILD_THREADS_MAX];
    uint32_t count = thread_count(work, shards), started = 0;
    while (started + 1 < count && /* this one works, too */
           !weir_thread_start(&threads[started], "weir-index", scan_thread, work))
        started++;
    if (shards)
        scan_thread(work);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return work->code ? weir_fail_text(work->code, work->text) : 0;
}

/* Does an index have the shard, and is what it has of it in order? Else it is scanned again. */
static bool is_known(const struct work *work, const struct weir_shard_plan *plan, struct slot *slot)
{
    struct weir_shard shard;
    const uint8_t *entries, *marks;
    uint64_t bytes, bytes_max;
    if (!weir_sources_find(work->build->sources, plan, &slot->from, &slot->row))
        return false;
    if (!weir_index_row(slot->from, slot->row, &shard, &entries, &marks) &&
        !weir_shard_measure(&shard, entries, &bytes, &bytes_max))
        return true;
    slot->from = NULL;
    return false;
}

/* Looks up what is known; returns how many shards are to be scanned. */
static size_t look_up(struct work *work)
{
    size_t shards = 0;
    for (size_t i = 0; i < work->count; i++) {
        const struct weir_shard_plan *plan = weir_survey_shard(work->build->survey, i);
        struct slot *slot = &work->slots[i];
        if (!needs_scan(plan) || is_known(work, plan, slot))
            continue;
        work->total += plan->file_bytes;
        shards++;
    }
    return shards;
}

/* ---- putting it together ---- */

static int put_slot(struct work *work, struct weir_index_put *put, size_t i)
{
    const struct weir_shard_plan *plan = weir_survey_shard(work->build->survey, i);
    const struct slot *slot = &work->slots[i];
    struct weir_found plain;
    struct weir_shard shard;
    const uint8_t *entries, *marks;
    if (slot->from) {
        int code = weir_index_row(slot->from, slot->row, &shard, &entries, &marks);
        if (code)
            return code;
        if (plan->each_bytes) { /* which samples those of one size are, the options say */
            shard.raw_bytes = plan->raw_bytes;
            shard.samples = plan->samples;
            shard.first_bytes = plan->first_bytes;
            shard.each_bytes = plan->each_bytes;
            shard.step_bytes = plan->step_bytes ? plan->step_bytes : plan->each_bytes;
        }
        return weir_index_put_shard(put, &shard, entries, marks);
    }
    if (slot->found)
        return weir_index_put_shard(put, &slot->found->shard, slot->found->entries.data,
                                    slot->found->marks.data);
    int code = weir_found_scan(&plain, &(struct weir_finder){.prefix = ""}, plan);
    return code ? code : weir_index_put_shard(put, &plain.shard, NULL, NULL);
}

static int put_files(struct work *work, struct weir_index_put *put)
{
    const struct weir_shard_plan *plans[WEIR_INDEX_FILES];
    int code = 0;
    for (size_t i = 0, n = 0; !code && i < work->count; i += n) {
        struct weir_found found;
        for (n = 0; n < WEIR_INDEX_FILES && i + n < work->count; n++)
            plans[n] = weir_survey_shard(work->build->survey, i + n);
        code = weir_found_files(&found, plans, n);
        if (code)
            break;
        code = weir_index_put_shard(put, &found.shard, found.entries.data, NULL);
        weir_found_free(&found);
    }
    return code;
}

static int put_all(struct work *work, weir_store *store, const char *key,
                   const uint8_t *fingerprint)
{
    struct weir_index_put *put;
    size_t size;
    const struct weir_format *format = work->build->format;
    const char *schema = weir_survey_schema_get(work->build->survey, &size);
    int code = weir_index_put_open(&put, store, key, format->name, schema, size);
    if (code)
        return code;
    if (format->is_files)
        code = put_files(work, put);
    for (size_t i = 0; !code && !format->is_files && i < work->count; i++)
        code = put_slot(work, put, i);
    if (!code)
        code = weir_index_put_commit(put, fingerprint);
    weir_index_put_close(put);
    return code;
}

/* There, or where the cache is when it cannot take it. */
static int put_somewhere(struct work *work, weir_store *store, const char *key,
                         const uint8_t *fingerprint)
{
    struct weir_cache *cache = work->build->cache;
    int code = work->cache_code ? weir_fail_text(work->cache_code, work->text)
                                : put_all(work, store, key, fingerprint);
    if (!code || store != cache->store || (code = weir_cache_leave(cache, code)))
        return code;
    return work->build->must_keep ? weir_cache_fail(cache)
                                  : put_all(work, cache->store, key, fingerprint);
}

static int open_schema(struct work *work, void **schema)
{
    size_t size;
    const char *json = weir_survey_schema_get(work->build->survey, &size);
    if (!work->build->format->schema_open)
        return 0;
    int code = work->build->format->schema_open(schema, json, size);
    work->finder.schema = *schema;
    return code;
}

int weir_build_index(struct weir_build *build, weir_store *store, const char *key,
                     const uint8_t fingerprint[WEIR_SHA256_BYTES])
{
    struct work work = {
        .build = build,
        .finder = {.store = weir_survey_store(build->survey),
                   .prefix = weir_survey_prefix(build->survey),
                   .format = build->format,
                   .progress = tell},
        .count = weir_survey_shards(build->survey),
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .telling = PTHREAD_MUTEX_INITIALIZER,
        .part_ns = weir_sys->now_ns(WEIR_CLOCK_MONO),
    };
    void *schema = NULL;
    work.finder.arg = &work;
    work.slots = weir_alloc(work.count * sizeof *work.slots);
    if (!work.slots)
        return weir_fail_memory();
    int code = open_schema(&work, &schema);
    if (!code && !build->format->is_files)
        code = scan_all(&work, look_up(&work));
    if (!code)
        code = put_somewhere(&work, store, key, fingerprint);
    for (size_t i = 0; i < work.count; i++)
        if (work.slots[i].found) {
            weir_found_free(work.slots[i].found);
            free(work.slots[i].found);
        }
    free(work.slots);
    if (schema)
        build->format->schema_close(schema);
    return code;
}
