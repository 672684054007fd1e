/* dir.c - a directory as a place to be measured. The data are one file in a directory of our own,
 * which is locked while we are at work. New files of a job go when all of its threads are done: to
 * free the space of one (ext4) holds up those who still write, by a quarter.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "io/dents.h"
#include "io/fskind.h"
#include "io/lane.h"
#include "measure/crew.h"
#include "util/sys.h"

#define PREFIX    ".weir-bench-"
#define DATA_NAME "data"

enum {
    NONCE_DIGITS = 16,
    NAME_BYTES = sizeof PREFIX + NONCE_DIGITS,
    NAMES_MAX = 100,
    FRESH_NAME_BYTES = 16,
    DATA_BLOCK_BYTES = 1 << 20,
    DATA_DEPTH = 16,
    PAGES_LOOKED_AT = 256, /* of the data, to know how much is cached */
    PAGE = 4096,
};

struct dir_place {
    struct weir_place place;
    char *path;
    int parent, own;
    char name[NAME_BYTES];
    struct weir_file data; /* fd through the page cache, dfd around it */
};

static int fail_at(const struct dir_place *d, int code, const char *what)
{
    return weir_fail(-code, "cannot %s '%s': %s", what, d->path, weir_errno_text(code));
}

/* ---- jobs ---- */

/* The file of one worker. */
static int file_of(const struct weir_worker *worker, int fresh)
{
    const struct dir_place *d = (const struct dir_place *)worker->place;
    if (worker->job->is_fresh)
        return fresh;
    return worker->job->is_direct ? d->data.dfd : d->data.fd;
}

static const char *fresh_name(char out[FRESH_NAME_BYTES], unsigned index)
{
    snprintf(out, FRESH_NAME_BYTES, "new-%u", index);
    return out;
}

/* A new file of the worker's own, with room for its part. */
static int open_fresh(const struct weir_worker *worker)
{
    const struct dir_place *d = (const struct dir_place *)worker->place;
    char name[FRESH_NAME_BYTES];
    fresh_name(name, worker->index);
    int flags = O_RDWR | O_CREAT | O_EXCL | (worker->job->is_direct ? O_DIRECT : 0);
    int fd = weir_sys->open(d->own, name, flags, 0600);
    if (fd < 0)
        return fail_at(d, fd, "make a file in");
    uint64_t size = worker->end < worker->bytes_left ? worker->end : worker->bytes_left;
    int code = weir_sys->fallocate(fd, 0, size);
    if (code && code != -EOPNOTSUPP && code != -ENOSYS) {
        weir_sys->close(fd);
        return fail_at(d, code, "allocate space in");
    }
    return fd;
}

static void drop_fresh(int own)
{
    char name[FRESH_NAME_BYTES];
    for (unsigned i = 0; i < WEIR_JOB_THREADS_MAX; i++)
        weir_sys->unlink(own, fresh_name(name, i), false);
}

static int transfer_failed(const struct weir_worker *worker, ssize_t answer)
{
    const struct dir_place *d = (const struct dir_place *)worker->place;
    const char *what = worker->job->is_write ? "write to a file in" : "read from a file in";
    if (answer >= 0) /* the file has all the bytes that are asked for */
        return weir_fail(EIO, "cannot %s '%s': %zd of %zu bytes came", what, d->path, answer,
                         worker->job->block_bytes);
    return fail_at(d, (int)answer, what);
}

struct flow {
    struct weir_worker *worker;
    struct weir_lane *lane;
    int fd;
    unsigned under_way;
    uint64_t begun_ns[WEIR_JOB_DEPTH_MAX];
};

static void send_next(struct flow *flow, unsigned slot)
{
    struct weir_worker *worker = flow->worker;
    char *buf = weir_worker_buffer(worker, slot);
    uint64_t off;
    if (!weir_worker_next(worker, buf, &off))
        return;
    flow->begun_ns[slot] = weir_sys->now_ns(WEIR_CLOCK_MONO);
    weir_lane_send(flow->lane, slot, worker->job->is_write, flow->fd, buf, worker->job->block_bytes,
                   off);
    flow->under_way++;
}

/* Keeps `depth` requests under way until there are no more. */
static int transfer(struct flow *flow)
{
    struct weir_worker *worker = flow->worker;
    int code = 0;
    for (unsigned slot = 0; slot < worker->depth; slot++)
        send_next(flow, slot);
    while (flow->under_way) {
        ssize_t answer;
        unsigned slot = weir_lane_wait(flow->lane, &answer);
        flow->under_way--;
        if (answer == (ssize_t)worker->job->block_bytes)
            weir_worker_count(worker, flow->begun_ns[slot], (uint64_t)answer);
        else if (!code)
            code = transfer_failed(worker, answer);
        if (!code)
            send_next(flow, slot);
    }
    return code;
}

static int work(struct weir_worker *worker)
{
    struct dir_place *d = (struct dir_place *)worker->place;
    struct flow flow = {.worker = worker};
    int fresh = worker->job->is_fresh ? open_fresh(worker) : -1, code = 0;
    if (worker->job->is_fresh && fresh < 0)
        return fresh;
    flow.fd = file_of(worker, fresh);
    code = weir_lane_open(&flow.lane, worker->depth);
    if (!code && weir_worker_begin(worker)) {
        code = transfer(&flow);
        uint64_t begun_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
        int sync = !code && worker->job->is_write ? weir_sys->fdatasync(flow.fd) : 0;
        worker->sync_ns = weir_sys->now_ns(WEIR_CLOCK_MONO) - begun_ns;
        worker->end_ns = begun_ns + worker->sync_ns;
        if (sync)
            code = fail_at(d, sync, "sync a file in");
    }
    weir_lane_close(flow.lane);
    if (fresh >= 0)
        weir_sys->close(fresh);
    return code;
}

/* How much of the data is in the page cache, by a look at some pages. */
static double cached_share(const struct dir_place *d)
{
    unsigned seen = 0;
    uint64_t pages = d->place.data_bytes / PAGE, step = pages / PAGES_LOOKED_AT;
    for (unsigned i = 0; i < PAGES_LOOKED_AT && step; i++)
        seen += weir_sys->resident(d->data.fd, i * step * PAGE, PAGE) == 1;
    return step ? (double)seen / PAGES_LOOKED_AT : 0;
}

/* The same start for every job: what was written is on the device, and nothing is cached. */
static int forget(struct dir_place *d, const struct weir_job *job)
{
    int code = weir_sys->fdatasync(d->data.fd);
    if (code)
        return fail_at(d, code, "sync a file in");
    weir_sys->advise(d->data.fd, POSIX_FADV_DONTNEED);
    weir_sys->advise(d->data.fd, job->is_random ? POSIX_FADV_RANDOM : POSIX_FADV_SEQUENTIAL);
    return 0;
}

static int dir_run(struct weir_place *place, const struct weir_job *job,
                   struct weir_job_result *result)
{
    struct dir_place *d = (struct dir_place *)place;
    if (job->is_direct && !place->has_direct)
        return weir_fail(ENOTSUP, "'%s' refuses direct I/O", d->path);
    /* What goes through the page cache must not come back to a page of it: that would measure
     * memory. So it ends after one pass. */
    bool is_cached = !job->is_direct && !place->is_memory;
    int code = forget(d, job);
    if (code)
        return code;
    result->cached = cached_share(d);
    code = weir_crew_run(place, job, !is_cached && !job->is_fresh, work, result);
    if (job->is_fresh)
        drop_fresh(d->own);
    return code;
}

/* ---- the data ---- */

/* A file of `bytes`, all of which were written: reading what is only allocated asks no device. */
static int dir_prepare(struct weir_place *place, uint64_t bytes, uint64_t time_ns)
{
    struct dir_place *d = (struct dir_place *)place;
    const struct weir_job job = {.is_write = true,
                                 .is_direct = place->has_direct,
                                 .block_bytes = DATA_BLOCK_BYTES,
                                 .depth = place->has_rings ? DATA_DEPTH : 1,
                                 .threads = 1,
                                 .time_ns = time_ns,
                                 .bytes = bytes};
    struct weir_job_result *result = weir_alloc(sizeof *result);
    if (!result)
        return weir_fail_memory();
    int code = weir_sys->fallocate(d->data.fd, 0, bytes);
    if (code == -EOPNOTSUPP || code == -ENOSYS)
        code = 0;
    if (code)
        code = fail_at(d, code, "allocate space in");
    place->data_bytes = bytes;
    if (!code)
        code = weir_crew_run(place, &job, false, work, result);
    place->data_bytes = code ? 0 : result->bytes;
    if (!code && !result->bytes)
        code = weir_fail(ETIMEDOUT, "not even 1 MiB could be written to '%s' in time", d->path);
    free(result);
    return code;
}

/* ---- our own directory ---- */

static int make_own(struct dir_place *d)
{
    uint64_t nonce;
    for (int tries = 0; tries < NAMES_MAX; tries++) {
        int code = weir_sys->random(&nonce, sizeof nonce);
        if (code)
            return weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
        snprintf(d->name, sizeof d->name, PREFIX "%016llx", (unsigned long long)nonce);
        code = weir_sys->mkdir(d->parent, d->name, 0700);
        if (code && code != -EEXIST)
            return fail_at(d, code, "make a directory in");
        if (code)
            continue;
        d->own = weir_sys->open(d->parent, d->name, O_RDONLY | O_DIRECTORY, 0);
        if (d->own < 0 && d->own != -ENOENT) {
            weir_sys->unlink(d->parent, d->name, true);
            return fail_at(d, d->own, "open a directory in");
        }
        /* Who tidies up may be faster: then it is gone again. */
        if (d->own >= 0 && weir_sys->flock(d->own, LOCK_EX | LOCK_NB) != -EWOULDBLOCK)
            return 0;
        if (d->own >= 0)
            weir_sys->close(d->own);
        d->own = -1;
    }
    return weir_fail(EEXIST, "cannot make a directory in '%s' under any name", d->path);
}

static int make_data(struct dir_place *d)
{
    int fd = weir_sys->open(d->own, DATA_NAME, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return fail_at(d, fd, "make a file in");
    d->data.fd = fd;
    fd = weir_sys->open(d->own, DATA_NAME, O_RDWR | O_DIRECT, 0);
    d->data.dfd = fd < 0 ? -1 : fd;
    d->place.has_direct = fd >= 0;
    return 0;
}

static int dir_close(struct weir_place *place)
{
    struct dir_place *d = (struct dir_place *)place;
    int code = 0;
    if (d->data.dfd >= 0)
        weir_sys->close(d->data.dfd);
    if (d->data.fd >= 0)
        weir_sys->close(d->data.fd);
    if (d->own >= 0) {
        weir_sys->unlink(d->own, DATA_NAME, false);
        code = weir_sys->unlink(d->parent, d->name, true);
        if (code)
            code = fail_at(d, code, "remove a directory from");
        weir_sys->close(d->own);
    }
    if (d->parent >= 0)
        weir_sys->close(d->parent);
    free(d->path);
    free(d);
    return code;
}

static const struct weir_place_ops ops = {dir_prepare, dir_run, dir_close};

static int open_all(struct dir_place *d)
{
    struct weir_sys_space space;
    d->parent = weir_sys->open(AT_FDCWD, d->path, O_RDONLY | O_DIRECTORY, 0);
    if (d->parent < 0)
        return fail_at(d, d->parent, "measure");
    int code = weir_sys->space(d->parent, &space);
    if (code)
        return fail_at(d, code, "ask for the free space of");
    d->place.free_bytes = space.total_bytes ? space.free_bytes : UINT64_MAX;
    d->place.kind = weir_fskind_of(space.magic)->name;
    d->place.is_memory = !strcmp(d->place.kind, "tmpfs") || !strcmp(d->place.kind, "ramfs");
    code = make_own(d);
    return code ? code : make_data(d);
}

int weir_place_open_dir(struct weir_place **out, const char *path,
                        const struct weir_place_options *opts)
{
    struct dir_place *d = weir_alloc(sizeof *d);
    if (!d)
        return weir_fail_memory();
    d->place = (struct weir_place){
        .ops = &ops, .has_rings = opts->has_rings, .is_stopped = opts->is_stopped};
    d->parent = d->own = -1;
    d->data = (struct weir_file){.fd = -1, .dfd = -1};
    d->path = weir_strdup(path);
    int code = d->path ? open_all(d) : weir_fail_memory();
    if (code)
        dir_close(&d->place);
    else
        *out = &d->place;
    return code;
}

/* ---- what others left ---- */

static bool is_ours(const char *name)
{
    size_t prefix = strlen(PREFIX);
    return !strncmp(name, PREFIX, prefix) && strlen(name) == prefix + NONCE_DIGITS &&
           strspn(name + prefix, "0123456789abcdef") == NONCE_DIGITS;
}

/* Only files that we could have made go, and only if nobody has the directory locked. */
static bool is_left(int parent, const char *name, bool remove)
{
    int fd = weir_sys->open(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0)
        return false;
    bool left = weir_sys->flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (left && remove) {
        weir_sys->unlink(fd, DATA_NAME, false);
        drop_fresh(fd);
        left = weir_sys->unlink(parent, name, true) == 0;
    }
    weir_sys->close(fd);
    return left;
}

int weir_place_leftovers_dir(const char *path, bool remove, uint64_t *count)
{
    struct weir_dents *dents = weir_alloc(sizeof *dents);
    if (!dents)
        return weir_fail_memory();
    struct weir_dir dir = {.fd = weir_sys->open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0)};
    int code = dir.fd < 0 ? dir.fd : weir_dents_open(dents, &dir), type = 0;
    const char *name;
    *count = 0;
    if (!code) {
        for (; (type = weir_dents_look(dents, &name)) > 0; weir_dents_skip(dents))
            *count += type == 'd' && is_ours(name) && is_left(dir.fd, name, remove);
        code = type;
        weir_dents_close(dents);
    }
    if (dir.fd >= 0)
        weir_sys->close(dir.fd);
    free(dents);
    return code ? weir_fail(-code, "cannot list '%s': %s", path, weir_errno_text(code)) : 0;
}
