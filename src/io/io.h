/* io.h - transfers. A weir_io owns the buffer pool and one engine:
 *
 *   uring    one thread with its own ring, registered files and buffers, linked syncs
 *   threads  a pool of threads making the same transfers by pread and pwrite
 *   inline   everything on the submitter's thread; for tests and debugging
 *
 * weir_io_submit() is the only way in and weir_io_complete() the only way out; both are here, and
 * are the same for every engine. Work that is not a transfer (a sequence of metadata calls) is a
 * task: it runs on a worker thread and must not wait for another request.
 */
#ifndef WEIR_IO_IO_H
#define WEIR_IO_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "io/pool.h"
#include "util/req.h"

/* Smaller reads gain nothing from going around the page cache. */
enum { WEIR_IO_DIRECT_BYTES_MIN = 131072 };

struct weir_io;

struct weir_io_options {
    const char *engine; /* NULL: $WEIR_IO, else the best that works */
    unsigned depth;     /* transfers the engine has in flight, of whole buffers */
    uint64_t pool_bytes_max;
};

/* An open file: fd goes through the page cache, dfd (or -1) around it. slot belongs to the ring.
 * Where fd and dfd are the same, it is read around the cache as far as that is possible, by one
 * transfer at a time: the descriptor becomes an ordinary one when it is not. */
struct weir_file {
    int fd, dfd;
    int slot;
    bool registered;
    char *label; /* for errors */
};

static inline bool weir_file_is_around(const struct weir_file *file)
{
    return file->fd == file->dfd;
}

int weir_io_open(struct weir_io **out, const struct weir_io_options *opts);
/* Waits for what is in flight. */
void weir_io_close(struct weir_io *io);
/* How many whole buffers one stream has under way; until it is told, as many as the engine. */
void weir_io_set_stream(struct weir_io *io, unsigned depth);
const char *weir_io_engine(const struct weir_io *io);
struct weir_pool *weir_io_pool(struct weir_io *io);
/* How reads were made, so far: from the page cache, through it, around it. */
enum weir_read_way { WEIR_READ_CACHED, WEIR_READ_THROUGH, WEIR_READ_DIRECT, WEIR_READ_WAYS };
void weir_io_read_bytes(struct weir_io *io, uint64_t out[WEIR_READ_WAYS]);
/* Bytes that came from storage without the io layer: a tier's own way. */
void weir_io_read_count(struct weir_io *io, uint64_t bytes);
/* Why io_uring is not used here, or NULL if it can be. */
const char *weir_io_uring_fault(void);

/* Transfers req (READ or WRITE) on file. Reads that find all their bytes in the page cache
 * complete at once, on the submitter's thread; so do blocking requests. */
void weir_io_submit(struct weir_io *io, struct weir_req *req, struct weir_file *file);
/* Sends off what waits in the batch. */
void weir_io_flush(struct weir_io *io, struct weir_plug *plug);
/* Runs task(req), which sets req->code, and then completes req. */
void weir_io_task(struct weir_io *io, struct weir_req *req, void (*task)(struct weir_req *req));
/* Closes the descriptors; the file must have no transfer in flight. */
void weir_io_file_close(struct weir_io *io, struct weir_file *file);

/* ---- for engines ---- */

/* Takes the answer of one system call or ring entry, and returns true when the request is
 * finished (its code and result are set); false: make the transfer of the rest. */
bool weir_io_complete(struct weir_req *req, ssize_t answer);
/* What is left of the transfer: where from, how much. Direct reads ask for whole sectors. */
size_t weir_io_rest(const struct weir_req *req, void **buf, uint64_t *off);
static inline int weir_io_fd(const struct weir_req *req)
{
    return req->io.direct ? req->io.file->dfd : req->io.file->fd;
}

struct weir_workers;
int weir_workers_open(struct weir_workers **out, unsigned max);
void weir_workers_close(struct weir_workers *workers);
/* Runs req's task on a thread, or here if no thread can be had. */
void weir_workers_submit(struct weir_workers *workers, struct weir_req *req);

struct weir_uring;
int weir_uring_open(struct weir_uring **out, struct weir_pool *pool, unsigned depth);
void weir_uring_close(struct weir_uring *uring);
void weir_uring_set_stream(struct weir_uring *uring, unsigned depth);
/* A list of requests. 0, or -errno and none is taken: no thread or no ring can be had. */
int weir_uring_submit(struct weir_uring *uring, struct weir_req *head, struct weir_req *last);
/* Gives the file's slot back; waits until the ring's thread has done it. */
void weir_uring_forget(struct weir_uring *uring, struct weir_file *file);
/* 0, or -errno if this kernel or container refuses a ring of that depth. */
int weir_uring_probe(unsigned depth);

#endif
