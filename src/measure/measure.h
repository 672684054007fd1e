/* measure.h - what a place gives. A place is a directory, or a tier that is none (a bucket, a
 * pool); in it, a job reads or writes for some time, by some threads, and its result says how much,
 * and how long the requests took.
 *
 * A place writes nothing but files (blobs) of its own in a directory (below a prefix) of its own,
 * which was not there before, and removes them. What a process leaves that is killed is known by
 * its name, and can be removed. One thread owns a place; it is where the threads of a job are
 * waited for. They look at `is_stopped` before each request.
 */
#ifndef WEIR_MEASURE_MEASURE_H
#define WEIR_MEASURE_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/io.h"
#include "util/url.h"

enum {
    WEIR_JOB_THREADS_MAX = 256,
    WEIR_JOB_DEPTH_MAX = 256,
    WEIR_JOB_SLOTS_MAX = 2048,
    WEIR_JOB_MEMORY_MAX = 1 << 30, /* threads x depth x block */
};

struct weir_job {
    bool is_write, is_random;
    bool is_direct; /* around the page cache; on a tier that has none it says nothing */
    bool is_fresh;  /* a write: to new files, one a thread; else over the data there is */
    size_t block_bytes;
    uint32_t depth, threads;
    uint64_t time_ns, bytes; /* it ends with whichever comes first; bytes 0: no bound */
    bool keeps_slots;        /* its rate over time is wanted */
};

struct weir_job_result {
    uint64_t bytes, requests, time_ns;
    uint64_t latency_ns_p50, latency_ns_p99, latency_ns_max;
    double cached;        /* the share of the data that was in the page cache when it began */
    uint64_t sync_ns_max; /* of a write: how long the last sync took */
    uint64_t slot_ns;
    uint32_t slots;
    uint64_t slot_bytes[WEIR_JOB_SLOTS_MAX];
};

struct weir_place;
struct weir_place_ops {
    /* Writes the data that jobs work on: at most `bytes`, for at most time_ns; sets data_bytes. */
    int (*prepare)(struct weir_place *place, uint64_t bytes, uint64_t time_ns);
    int (*run)(struct weir_place *place, const struct weir_job *job,
               struct weir_job_result *result);
    /* Removes all of its own; what cannot be removed stays, and it says why. */
    int (*close)(struct weir_place *place);
};

struct weir_place {
    const struct weir_place_ops *ops;
    const char *kind;    /* ext4, tmpfs, s3, … */
    bool is_remote;      /* a tier: no page cache, writes are of whole blobs */
    bool is_memory;      /* there is nothing behind the page cache */
    bool has_direct;     /* O_DIRECT is taken */
    bool has_rings;      /* else more under way needs more threads */
    uint64_t free_bytes; /* UINT64_MAX: not known */
    uint64_t data_bytes;
    bool (*is_stopped)(void);
};

struct weir_place_options {
    bool has_rings;
    bool (*is_stopped)(void);
};

/* Of a directory that is there; io is not needed for it, nor is it for rings of jobs. */
int weir_place_open_dir(struct weir_place **out, const char *path,
                        const struct weir_place_options *opts);
/* Of any other tier. */
int weir_place_open_tier(struct weir_place **out, const struct weir_url *url, struct weir_io *io,
                         const struct weir_place_options *opts);
static inline int weir_place_close(struct weir_place *place)
{
    return place ? place->ops->close(place) : 0;
}
int weir_place_prepare(struct weir_place *place, uint64_t bytes, uint64_t time_ns);
/* Checks the job, then runs it. -EINTR without a text when it was stopped. */
int weir_place_run(struct weir_place *place, const struct weir_job *job,
                   struct weir_job_result *result);

/* What runs that were killed left: counts them, and removes them if `remove`. Ones that are still
 * at work in a directory are left alone; in a bucket or pool that cannot be told. */
int weir_place_leftovers_dir(const char *path, bool remove, uint64_t *count);
int weir_place_leftovers_tier(const struct weir_url *url, struct weir_io *io, bool remove,
                              uint64_t *count);

#endif
