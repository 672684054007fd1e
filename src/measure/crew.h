/* crew.h - the threads of one job: they begin together, and each keeps its own count. What to do
 * next is the same for every kind of place; how it is done is the place's.
 */
#ifndef WEIR_MEASURE_CREW_H
#define WEIR_MEASURE_CREW_H

#include <pthread.h>
#include <stdatomic.h>

#include "measure/measure.h"
#include "util/err.h"
#include "util/hist.h"
#include "util/perm.h"
#include "util/rng.h"

struct weir_crew;

struct weir_worker {
    struct weir_crew *crew;
    const struct weir_job *job;
    struct weir_place *place;
    unsigned index, depth; /* depth: of its own requests */
    pthread_t thread;
    uint64_t begin, end, at; /* its part of the data; the next request in order, */
    uint64_t turn;           /* or in the crew's, which has each block once */
    uint64_t bytes_left;     /* that may still be asked for */
    bool has_begun;          /* it has asked for something */
    struct weir_rng rng;
    uint64_t stamp;
    char *buffers;
    uint64_t bytes, requests, end_ns, sync_ns;
    struct weir_hist hist;
    int code;
    char text[WEIR_TEXT_MAX];
};

struct weir_crew {
    const struct weir_job *job;
    struct weir_place *place;
    struct weir_worker *workers;
    unsigned count;
    bool wraps;            /* what was met may be met again */
    struct weir_perm perm; /* of a random job that does not wrap: the order of all blocks */
    int (*work)(struct weir_worker *worker);
    pthread_mutex_t lock;
    pthread_cond_t go;
    unsigned ready;
    bool is_begun, is_off; /* off: somebody failed before it began */
    uint64_t begin_ns;
    atomic_bool is_over; /* somebody failed */
    uint64_t slot_ns;
    atomic_ullong slots[WEIR_JOB_SLOTS_MAX];
};

/* Runs work() on every thread of the job. 0, -EINTR, or the first failure with its text. `wraps`:
 * in order it begins again at the end, at random each request is by chance; else the job ends, at
 * the latest, when all threads together have met each block of the data once. */
int weir_crew_run(struct weir_place *place, const struct weir_job *job, bool wraps,
                  int (*work)(struct weir_worker *worker), struct weir_job_result *result);

/* ---- for work() ---- */

/* Waits until all are ready; called once, after what does not count. False: it is off. */
bool weir_worker_begin(struct weir_worker *worker);
/* Where the next request goes; false: no more are to be made. Of a write, buf gets new bytes. */
bool weir_worker_next(struct weir_worker *worker, char *buf, uint64_t *off);
static inline char *weir_worker_buffer(const struct weir_worker *worker, unsigned slot)
{
    return worker->buffers + slot * worker->job->block_bytes;
}
/* Counts one request that is done. */
void weir_worker_count(struct weir_worker *worker, uint64_t begun_ns, uint64_t bytes);
/* A number below `limit`, by chance. */
uint64_t weir_worker_chance(struct weir_worker *worker, uint64_t limit);

#endif
