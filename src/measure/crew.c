/* crew.c - see crew.h. */
#include "measure/crew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/huge.h"
#include "util/sys.h"
#include "util/thread.h"

enum { PAGE = 4096, SLOT_NS_MIN = 5000000 };

uint64_t weir_worker_chance(struct weir_worker *worker, uint64_t limit)
{
    return weir_rng_below(&worker->rng, limit);
}

static size_t buffers_bytes(const struct weir_worker *worker)
{
    return weir_huge_room(worker->job->block_bytes * worker->depth);
}

/* Bytes that no drive can compress. Those that are read into are filled, too: memory that is
 * touched for the first time is none of the drive's time. Huge pages, as a store's own buffers
 * have: of single pages, 1 MiB is more pieces than many drives take at once, and becomes two
 * requests. */
static int make_buffers(struct weir_worker *worker)
{
    size_t size = buffers_bytes(worker);
    worker->buffers = weir_huge_map(size);
    if (!worker->buffers)
        return weir_fail_memory();
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint64_t word = weir_rng_next(&worker->rng);
        memcpy(worker->buffers + i, &word, sizeof word);
    }
    return 0;
}

bool weir_worker_begin(struct weir_worker *worker)
{
    struct weir_crew *crew = worker->crew;
    pthread_mutex_lock(&crew->lock);
    crew->ready++;
    pthread_cond_broadcast(&crew->go);
    while (!crew->is_begun && !crew->is_off)
        pthread_cond_wait(&crew->go, &crew->lock);
    bool is_on = !crew->is_off;
    pthread_mutex_unlock(&crew->lock);
    return is_on;
}

/* No two pages are the same: no drive can store them once. */
static void stamp(struct weir_worker *worker, char *buf)
{
    for (size_t at = 0; at < worker->job->block_bytes; at += PAGE) {
        uint64_t word = ++worker->stamp;
        memcpy(buf + at, &word, sizeof word);
    }
}

static bool next_at_random(struct weir_worker *worker, uint64_t *off)
{
    struct weir_crew *crew = worker->crew;
    uint64_t size = worker->job->block_bytes, block;
    if (crew->wraps) {
        block = weir_worker_chance(worker, worker->end / size);
    } else {
        if (worker->turn >= crew->perm.n)
            return false;
        block = weir_perm_at(&crew->perm, worker->turn);
        worker->turn += crew->count;
    }
    *off = block * size;
    return true;
}

static bool next_in_order(struct weir_worker *worker, uint64_t *off)
{
    uint64_t size = worker->job->block_bytes;
    if (worker->at + size > worker->end) {
        if (!worker->crew->wraps)
            return false;
        worker->at = worker->begin;
    }
    *off = worker->at;
    worker->at += size;
    return true;
}

bool weir_worker_next(struct weir_worker *worker, char *buf, uint64_t *off)
{
    const struct weir_job *job = worker->job;
    struct weir_crew *crew = worker->crew;
    uint64_t size = job->block_bytes;
    bool is_late = weir_sys->now_ns(WEIR_CLOCK_MONO) - crew->begin_ns >= job->time_ns;
    if (worker->bytes_left < size || crew->is_over || worker->place->is_stopped() ||
        (is_late && worker->has_begun)) /* one request each, however busy the machine is */
        return false;
    worker->has_begun = true;
    if (!(job->is_random ? next_at_random(worker, off) : next_in_order(worker, off)))
        return false;
    worker->bytes_left -= size;
    if (job->is_write)
        stamp(worker, buf);
    return true;
}

void weir_worker_count(struct weir_worker *worker, uint64_t begun_ns, uint64_t bytes)
{
    struct weir_crew *crew = worker->crew;
    uint64_t now_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    worker->bytes += bytes;
    worker->requests++;
    weir_hist_add(&worker->hist, now_ns - begun_ns);
    if (crew->slot_ns) {
        uint64_t slot = (now_ns - crew->begin_ns) / crew->slot_ns;
        slot = slot < WEIR_JOB_SLOTS_MAX ? slot : WEIR_JOB_SLOTS_MAX - 1;
        atomic_fetch_add_explicit(&crew->slots[slot], bytes, memory_order_relaxed);
    }
}

static void *work(void *arg)
{
    struct weir_worker *worker = arg;
    struct weir_crew *crew = worker->crew;
    int code = make_buffers(worker);
    if (!code)
        code = crew->work(worker);
    if (!worker->end_ns) /* else it has tidied up since then */
        worker->end_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    if (code) {
        worker->code = code;
        snprintf(worker->text, sizeof worker->text, "%s", weir_fail_last());
        crew->is_over = true;
        pthread_mutex_lock(&crew->lock);
        crew->is_off = true; /* if it has not begun */
        pthread_cond_broadcast(&crew->go);
        pthread_mutex_unlock(&crew->lock);
    }
    if (worker->buffers)
        munmap(worker->buffers, buffers_bytes(worker));
    return NULL;
}

/* Cuts the data, and the bytes of the job, into one part for each. */
static void hand_out(struct weir_crew *crew, struct weir_worker *worker, unsigned index,
                     unsigned depth)
{
    const struct weir_job *job = crew->job;
    uint64_t whole = job->is_fresh ? job->bytes : crew->place->data_bytes;
    uint64_t part = whole / crew->count / job->block_bytes * job->block_bytes;
    *worker =
        (struct weir_worker){.crew = crew,
                             .job = job,
                             .place = crew->place,
                             .index = index,
                             .depth = depth,
                             .turn = index,
                             .bytes_left = job->bytes ? job->bytes / crew->count : UINT64_MAX};
    if (worker->bytes_left < job->block_bytes)
        worker->bytes_left = job->block_bytes; /* one each, at least */
    worker->begin = job->is_fresh || job->is_random ? 0 : index * part;
    worker->end = job->is_random ? whole : worker->begin + part;
    worker->at = worker->begin;
    uint64_t seed = index;
    weir_sys->random(&seed, sizeof seed); /* if there is none, the index will do */
    worker->rng = weir_rng_fork(seed, index);
    worker->stamp = seed;
}

/* Starts all, waits until all are ready, lets them go, and waits for them. */
static int run_all(struct weir_crew *crew)
{
    unsigned started = 0;
    int code = 0;
    for (; started < crew->count && !code; started += !code)
        code = weir_thread_start(&crew->workers[started].thread, "weir-bench", work,
                                 &crew->workers[started]);
    pthread_mutex_lock(&crew->lock);
    crew->is_off = crew->is_off || code;
    while (crew->ready < crew->count && !crew->is_off)
        pthread_cond_wait(&crew->go, &crew->lock);
    crew->begin_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    crew->is_begun = true;
    pthread_cond_broadcast(&crew->go);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned i = 0; i < started; i++)
        pthread_join(crew->workers[i].thread, NULL);
    return code;
}

static int gather(struct weir_crew *crew, struct weir_job_result *result)
{
    struct weir_hist *all = weir_alloc(sizeof *all);
    if (!all)
        return weir_fail_memory();
    int code = 0;
    uint64_t end_ns = crew->begin_ns + 1;
    for (unsigned i = 0; i < crew->count; i++) {
        struct weir_worker *worker = &crew->workers[i];
        if (worker->code && !code)
            code = weir_fail_text(worker->code, worker->text);
        result->bytes += worker->bytes;
        result->requests += worker->requests;
        end_ns = worker->end_ns > end_ns ? worker->end_ns : end_ns;
        if (worker->sync_ns > result->sync_ns_max)
            result->sync_ns_max = worker->sync_ns;
        weir_hist_merge(all, &worker->hist);
    }
    result->time_ns = end_ns - crew->begin_ns;
    result->latency_ns_p50 = weir_hist_quantile(all, 0.5);
    result->latency_ns_p99 = weir_hist_quantile(all, 0.99);
    result->latency_ns_max = all->max_ns;
    free(all);
    if (crew->slot_ns) {
        result->slot_ns = crew->slot_ns;
        for (uint32_t i = 0; i < WEIR_JOB_SLOTS_MAX; i++) {
            result->slot_bytes[i] = crew->slots[i];
            result->slots = crew->slots[i] ? i + 1 : result->slots;
        }
    }
    return code;
}

int weir_crew_run(struct weir_place *place, const struct weir_job *job, bool wraps,
                  int (*work_fn)(struct weir_worker *worker), struct weir_job_result *result)
{
    bool splits = !place->has_rings && !place->is_remote; /* a thread for each request */
    unsigned depth = splits ? 1 : job->depth;
    struct weir_crew *crew = weir_alloc(sizeof *crew);
    unsigned count = splits ? job->threads * job->depth : job->threads;
    struct weir_worker *workers = crew ? weir_alloc(count * sizeof *workers) : NULL;
    if (!workers) {
        free(crew);
        return weir_fail_memory();
    }
    crew->job = job;
    crew->place = place;
    crew->workers = workers;
    crew->count = count;
    crew->wraps = wraps;
    crew->work = work_fn;
    if (job->keeps_slots)
        crew->slot_ns = job->time_ns / (WEIR_JOB_SLOTS_MAX - 1) > SLOT_NS_MIN
                            ? job->time_ns / (WEIR_JOB_SLOTS_MAX - 1)
                            : SLOT_NS_MIN;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->go, NULL);
    for (unsigned i = 0; i < count; i++)
        hand_out(crew, &workers[i], i, depth);
    if (job->is_random && !wraps)
        weir_perm_init(&crew->perm, workers[0].stamp, place->data_bytes / job->block_bytes);
    int code = run_all(crew);
    if (!code)
        code = gather(crew, result);
    if (!code && place->is_stopped())
        code = -EINTR;
    pthread_mutex_destroy(&crew->lock);
    pthread_cond_destroy(&crew->go);
    free(workers);
    free(crew);
    return code;
}
