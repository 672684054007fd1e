/* io.c - the front of every engine: one submit, one complete. */
#include "io/io.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/checkers.h"
#include "util/err.h"
#include "util/sys.h"

enum {
    DEPTH_MAX = 256,
    DEPTH_USUAL = 64, /* what a store asks for unless told otherwise */
    TASK_THREADS = 8, /* beside a ring: metadata only */
    /* A file has no reason to say "again" or "interrupted" for long: the threads take no signals,
     * and the ring itself waits for what is short in the kernel. One that does would be asked for
     * ever. */
    TRIES_MAX = 1000,
};

struct weir_io {
    struct weir_pool *pool;
    struct weir_workers *workers; /* NULL: inline */
    struct weir_uring *uring;     /* NULL: transfers go to the workers */
    atomic_ullong read_bytes[WEIR_READ_WAYS];
};

static const char *uring_fault(unsigned depth)
{
    if (weir_sys != &weir_sys_real)
        return "the system-call table is replaced";
    int code = weir_uring_probe(depth);
    return code ? weir_errno_text(code) : NULL;
}

const char *weir_io_uring_fault(void)
{
    return uring_fault(DEPTH_USUAL);
}

static int choose_engine(const char **out, const char *asked, unsigned depth)
{
    const char *name = asked ? asked : getenv("WEIR_IO");
    const char *fault = uring_fault(depth);
    if (!name || !*name)
        name = fault ? "threads" : "uring";
    if (strcmp(name, "uring") && strcmp(name, "threads") && strcmp(name, "inline"))
        return weir_fail(EINVAL, "WEIR_IO is '%s': it can be uring, threads or inline", name);
    if (!strcmp(name, "uring") && fault)
        return weir_fail(ENOTSUP, "io_uring is refused here (%s): set WEIR_IO=threads", fault);
    *out = name;
    return 0;
}

int weir_io_open(struct weir_io **out, const struct weir_io_options *opts)
{
    const char *engine = NULL;
    if (!opts->depth || opts->depth > DEPTH_MAX)
        return weir_fail(EINVAL, "a depth of %u is out of range (1 to %d)", opts->depth, DEPTH_MAX);
    int code = choose_engine(&engine, opts->engine, opts->depth);
    if (code)
        return code;
    struct weir_io *io = weir_alloc(sizeof *io);
    if (!io)
        return weir_fail_memory();
    bool ring = !strcmp(engine, "uring");
    code = weir_pool_open(&io->pool, opts->pool_bytes_max);
    if (!code && strcmp(engine, "inline"))
        code = weir_workers_open(&io->workers, ring ? TASK_THREADS : opts->depth);
    if (!code && ring)
        code = weir_uring_open(&io->uring, io->pool, opts->depth);
    if (code) {
        weir_io_close(io);
        return code;
    }
    *out = io;
    return 0;
}

void weir_io_close(struct weir_io *io)
{
    if (!io)
        return;
    weir_uring_close(io->uring);
    weir_workers_close(io->workers);
    weir_pool_close(io->pool);
    free(io);
}

void weir_io_set_stream(struct weir_io *io, unsigned depth)
{
    if (io->uring)
        weir_uring_set_stream(io->uring, depth);
}

const char *weir_io_engine(const struct weir_io *io)
{
    return io->uring ? "uring" : io->workers ? "threads" : "inline";
}

struct weir_pool *weir_io_pool(struct weir_io *io)
{
    return io->pool;
}

void weir_io_read_bytes(struct weir_io *io, uint64_t out[WEIR_READ_WAYS])
{
    for (int i = 0; i < WEIR_READ_WAYS; i++)
        out[i] = atomic_load_explicit(&io->read_bytes[i], memory_order_relaxed);
}

void weir_io_read_count(struct weir_io *io, uint64_t bytes)
{
    atomic_fetch_add_explicit(&io->read_bytes[WEIR_READ_DIRECT], bytes, memory_order_relaxed);
}

static void count_read(struct weir_io *io, const struct weir_req *req, bool cached)
{
    enum weir_read_way way = cached           ? WEIR_READ_CACHED
                             : req->io.direct ? WEIR_READ_DIRECT
                                              : WEIR_READ_THROUGH;
    atomic_fetch_add_explicit(&io->read_bytes[way], req->len, memory_order_relaxed);
}

static size_t round_up(size_t size)
{
    return (size + WEIR_IO_ALIGN - 1) & ~(WEIR_IO_ALIGN - 1);
}

/* What is left of the transfer goes through the page cache. */
static void go_through(struct weir_req *req)
{
    struct weir_file *file = req->io.file;
    req->io.direct = false;
    if (!weir_file_is_around(file))
        return;
    weir_sys->set_direct(file->fd, false);
    file->dfd = -1;
}

/* Whether the transfer may go around the page cache as it stands. */
static bool can_be_direct(const struct weir_req *req)
{
    if (req->keep || req->io.file->dfd < 0 || (uintptr_t)req->buf % WEIR_IO_ALIGN ||
        req->off % WEIR_IO_ALIGN)
        return false;
    if (req->op == WEIR_OP_WRITE)
        return req->len % WEIR_IO_ALIGN == 0;
    return (req->len >= WEIR_IO_DIRECT_BYTES_MIN || weir_file_is_around(req->io.file)) &&
           round_up(req->len) <= req->cap;
}

size_t weir_io_rest(const struct weir_req *req, void **buf, uint64_t *off)
{
    size_t rest = req->len - req->io.done;
    *buf = (char *)req->buf + req->io.done;
    *off = req->off + req->io.done;
    return req->io.direct && req->op == WEIR_OP_READ ? round_up(rest) : rest;
}

/* Makes the whole transfer here and now. */
static void transfer(struct weir_req *req)
{
    bool done = false;
    while (!done) {
        void *buf;
        uint64_t off;
        size_t size = weir_io_rest(req, &buf, &off);
        int fd = weir_io_fd(req);
        ssize_t n = req->op == WEIR_OP_READ ? weir_sys->pread(fd, buf, size, off)
                                            : weir_sys->pwrite(fd, buf, size, off);
        done = weir_io_complete(req, n);
    }
    if (!req->code && req->op == WEIR_OP_WRITE && req->sync) {
        int code = weir_sys->fdatasync(req->io.file->fd);
        if (code)
            weir_req_fail(req, -code, "cannot sync '%s': %s", req->io.file->label,
                          weir_errno_text(code));
    }
}

/* A list of requests, which end with the last. */
static void send(struct weir_io *io, struct weir_req *head, struct weir_req *last)
{
    last->next = NULL;
    if (io->uring && !weir_uring_submit(io->uring, head, last))
        return;
    for (struct weir_req *req = head, *next; req; req = next) {
        next = req->next;
        req->io.task = transfer;
        weir_workers_submit(io->workers, req);
    }
}

static void add_to_plug(struct weir_plug *plug, struct weir_req *req)
{
    if (plug->head) {
        plug->last->next = req;
        plug->last->io.has_next = true;
    } else {
        plug->head = req;
    }
    plug->last = req;
}

void weir_io_submit(struct weir_io *io, struct weir_req *req, struct weir_file *file)
{
    assert(req->op == WEIR_OP_READ || req->op == WEIR_OP_WRITE);
    assert(req->op == WEIR_OP_WRITE || req->cap >= req->len);
    req->io.file = file;
    req->io.done = 0;
    req->io.tries = 0;
    req->io.has_next = false;
    req->io.direct = can_be_direct(req);
    if (!req->io.direct && weir_file_is_around(file))
        go_through(req);
    req->code = 0;
    req->result = 0;
    /* The kernel writes behind the backs of memory checkers: show them what it may touch. */
#ifdef WEIR_ASAN
    assert(!__asan_region_is_poisoned(req->buf, req->op == WEIR_OP_READ ? req->cap : req->len));
#endif
    if (req->op == WEIR_OP_WRITE)
        (void)VALGRIND_CHECK_MEM_IS_DEFINED(req->buf, req->len);
    else
        (void)VALGRIND_CHECK_MEM_IS_ADDRESSABLE(req->buf, req->cap);

    bool cached = req->op == WEIR_OP_READ && !weir_file_is_around(file) &&
                  weir_sys->resident(file->fd, req->off, req->len) == 1;
    if (cached)
        req->io.direct = false;
    if (req->op == WEIR_OP_READ)
        count_read(io, req, cached);
    if (cached || req->blocking || !io->workers) {
        transfer(req);
        weir_req_done(req);
    } else if (req->plug && io->uring) {
        add_to_plug(req->plug, req);
    } else {
        send(io, req, req);
    }
}

void weir_io_flush(struct weir_io *io, struct weir_plug *plug)
{
    if (plug->head)
        send(io, plug->head, plug->last);
    *plug = (struct weir_plug){0};
}

bool weir_io_complete(struct weir_req *req, ssize_t answer)
{
    const char *what = req->op == WEIR_OP_READ ? "read" : "write";
    if ((answer == -EINTR || answer == -EAGAIN) && ++req->io.tries < TRIES_MAX)
        return false;
    if (answer == -EINVAL && req->io.direct) {
        go_through(req); /* a file system that opens O_DIRECT and then refuses it */
        return false;
    }
    if (answer == -ESTALE) {
        weir_req_fail(req, ESTALE,
                      "cannot %s '%s': it was removed on another machine while it was open here",
                      what, req->io.file->label);
        return true;
    }
    if (answer < 0) {
        weir_req_fail(req, (int)-answer, "cannot %s %zu bytes at %llu of '%s': %s", what, req->len,
                      (unsigned long long)req->off, req->io.file->label,
                      weir_errno_text((int)answer));
        return true;
    }
    if (answer == 0 && req->op == WEIR_OP_WRITE) {
        weir_req_fail(req, EIO, "cannot write to '%s': the file takes no more bytes",
                      req->io.file->label);
        return true;
    }
    size_t asked = req->len - req->io.done;
    if (req->op == WEIR_OP_READ)
        VALGRIND_MAKE_MEM_DEFINED((char *)req->buf + req->io.done, answer);
    req->io.done += (size_t)answer < asked ? (size_t)answer : asked;
    req->result = req->io.done;
    if (req->io.done == req->len || answer == 0)
        return true;
    /* What is left after a short direct transfer need not be aligned any more. */
    if (req->io.direct && req->io.done % WEIR_IO_ALIGN)
        go_through(req);
    return false;
}

void weir_io_task(struct weir_io *io, struct weir_req *req, void (*task)(struct weir_req *req))
{
    req->code = 0;
    if (req->blocking || !io->workers) {
        task(req);
        weir_req_done(req);
    } else {
        req->io.task = task;
        weir_workers_submit(io->workers, req);
    }
}

void weir_io_file_close(struct weir_io *io, struct weir_file *file)
{
    if (file->registered)
        weir_uring_forget(io->uring, file);
    if (file->dfd >= 0 && !weir_file_is_around(file))
        weir_sys->close(file->dfd);
    if (file->fd >= 0)
        weir_sys->close(file->fd);
    free(file->label);
    *file = (struct weir_file){.fd = -1, .dfd = -1};
}
