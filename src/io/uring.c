/* uring.c - the io_uring engine: one thread owns the ring, everybody else hands it requests.
 *
 * The thread starts with the first request. It sleeps in the kernel, waiting for completions; an
 * eventfd read kept in flight wakes it for new requests. Each goes to the kernel as it is taken:
 * the device would wait while others are prepared. But those that were sent as a batch go together:
 * where they lie beside each other the kernel makes one request of them.
 * Some devices, virtual ones above all, answer only when they have done all they were given, and
 * stand still until they get more. So of what several streams ask for, half waits here, and goes
 * before anybody is told what has come: whoever is told begins to work, often on this processor.
 * Buffers of the pool and files are registered in small tables when the kernel and RLIMIT_MEMLOCK
 * allow it; without either, everything still works.
 */
#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "io/checkers.h"
#include "io/io.h"
#include "util/err.h"
#include "util/min.h"
#include "util/sys.h"
#include "util/thread.h"

enum {
    FILES_MAX = 64,
    /* A device takes as long to begin a small transfer as a large one: of small ones so many times
     * as many are under way. */
    SMALL_FACTOR = 4,
};

/* What a completion belongs to: a request, the sync linked behind it, or the eventfd. */
enum { TAG_TRANSFER = 0, TAG_SYNC = 1, TAG_MASK = 3 };

struct weir_uring {
    struct io_uring ring;
    struct weir_pool *pool;
    unsigned depth;          /* of transfers of a whole buffer */
    _Atomic unsigned stream; /* so many of them one stream asks for: those never wait */
    unsigned in_flight;
    uint64_t bytes_in_flight;
    struct weir_req *done, **done_tail; /* finished, and nobody knows yet */
    bool waking;                        /* the eventfd read is in flight */
    uint64_t wake_value;
    int wake_fd;
    char *arena; /* of the pool, once it has one */
    size_t arena_bytes;
    bool has_buffers, has_files; /* the ring has a table of them */
    enum { NEW, REGISTERED, REFUSED } buffers[WEIR_POOL_BUFFERS_MAX];
    bool slots[FILES_MAX];

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct weir_req *head, **tail;
    uint64_t bytes_waiting; /* of those */
    struct weir_file *forget;
    pthread_t thread;
    bool started, ready, sleeping, stop;
    int start_code;
};

/* Two for each request (a write and the sync linked behind it) and one for the eventfd. */
static unsigned ring_entries(unsigned depth)
{
    return 2 * SMALL_FACTOR * depth + 2;
}

int weir_uring_probe(unsigned depth)
{
    struct io_uring ring;
    int code = io_uring_queue_init(ring_entries(depth), &ring, 0);
    if (code == 0)
        io_uring_queue_exit(&ring);
    return code;
}

void weir_uring_set_stream(struct weir_uring *u, unsigned depth)
{
    u->stream = depth;
}

int weir_uring_open(struct weir_uring **out, struct weir_pool *pool, unsigned depth)
{
    struct weir_uring *u = weir_alloc(sizeof *u);
    if (!u)
        return weir_fail_memory();
    u->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (u->wake_fd < 0) {
        int code = errno;
        free(u);
        return weir_fail(code, "cannot make an eventfd: %s", weir_errno_text(code));
    }
    u->pool = pool;
    u->depth = depth;
    u->stream = depth;
    u->tail = &u->head;
    u->done_tail = &u->done;
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->changed, NULL);
    *out = u;
    return 0;
}

static int ring_init(struct weir_uring *u)
{
    unsigned entries = ring_entries(u->depth);
    /* Not DEFER_TASKRUN: completions would wait until the thread asks for them. */
    int code = io_uring_queue_init(entries, &u->ring,
                                   IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN);
    if (code == -EINVAL) /* before Linux 6.0 */
        code = io_uring_queue_init(entries, &u->ring, 0);
    if (code)
        return code;
    u->has_files = io_uring_register_files_sparse(&u->ring, FILES_MAX) == 0;
    u->has_buffers = io_uring_register_buffers_sparse(&u->ring, WEIR_POOL_BUFFERS_MAX) == 0;
    return 0;
}

/* Which of the pool's buffers the bytes are in; -1: none, or it cannot be registered. Each is when
 * it is first used: all at once would be memory, made and pinned, that most processes never use. */
static int register_buffer(struct weir_uring *u, char *at, size_t size)
{
    if (!u->arena)
        u->arena = weir_pool_arena(u->pool, &u->arena_bytes);
    if (!u->has_buffers || !u->arena || at < u->arena || at >= u->arena + u->arena_bytes)
        return -1;
    unsigned i = (unsigned)((size_t)(at - u->arena) / WEIR_BUFFER_BYTES);
    struct iovec iov = {u->arena + i * WEIR_BUFFER_BYTES, WEIR_BUFFER_BYTES};
    if (at + size > (char *)iov.iov_base + WEIR_BUFFER_BYTES)
        return -1;
    if (u->buffers[i] == NEW) {
        bool done = io_uring_register_buffers_update_tag(&u->ring, i, &iov, NULL, 1) == 1;
        u->buffers[i] = done ? REGISTERED : REFUSED;
    }
    return u->buffers[i] == REGISTERED ? (int)i : -1;
}

static void register_file(struct weir_uring *u, struct weir_file *file)
{
    if (!u->has_files || file->registered || file->dfd < 0 || weir_file_is_around(file))
        return; /* for one transfer it is not worth it */
    for (int i = 0; i < FILES_MAX; i++) {
        if (u->slots[i])
            continue;
        if (io_uring_register_files_update(&u->ring, (unsigned)i, &file->dfd, 1) == 1) {
            u->slots[i] = true;
            file->slot = i;
            file->registered = true;
        }
        return;
    }
}

static void prepare(struct weir_uring *u, struct weir_req *req)
{
    void *buf;
    uint64_t off;
    size_t size = weir_io_rest(req, &buf, &off);
    int buffer = register_buffer(u, buf, size);
    register_file(u, req->io.file);
    bool slot = req->io.direct && req->io.file->registered;
    int fd = slot ? req->io.file->slot : weir_io_fd(req);
    bool sync = req->op == WEIR_OP_WRITE && req->sync;

    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    assert(sqe); /* the ring has room for all that may be in flight */
    if (req->op == WEIR_OP_READ && buffer >= 0)
        io_uring_prep_read_fixed(sqe, fd, buf, (unsigned)size, off, buffer);
    else if (req->op == WEIR_OP_READ)
        io_uring_prep_read(sqe, fd, buf, (unsigned)size, off);
    else if (buffer >= 0)
        io_uring_prep_write_fixed(sqe, fd, buf, (unsigned)size, off, buffer);
    else
        io_uring_prep_write(sqe, fd, buf, (unsigned)size, off);
    if (slot)
        sqe->flags |= IOSQE_FIXED_FILE;
    if (sync)
        sqe->flags |= IOSQE_IO_LINK;
    io_uring_sqe_set_data64(sqe, (uintptr_t)req | TAG_TRANSFER);
    req->io.pending = 1;
    req->io.sync_answer = 0;
    if (sync) {
        sqe = io_uring_get_sqe(&u->ring);
        assert(sqe);
        io_uring_prep_fsync(sqe, req->io.file->fd, IORING_FSYNC_DATASYNC);
        io_uring_sqe_set_data64(sqe, (uintptr_t)req | TAG_SYNC);
        req->io.pending = 2;
    }
}

/* A transfer's answer, or its linked sync's. When both are in, the request is finished or goes
 * round again with what is left: a short write cancels the sync behind it. */
static void answered(struct weir_uring *u, struct weir_req *req, bool sync, int answer)
{
    if (sync)
        req->io.sync_answer = answer;
    else
        req->io.finished = weir_io_complete(req, answer);
    if (--req->io.pending)
        return;
    if (!req->io.finished) {
        prepare(u, req);
        return;
    }
    if (!req->code && req->io.sync_answer < 0)
        weir_req_fail(req, -req->io.sync_answer, "cannot sync '%s': %s", req->io.file->label,
                      weir_errno_text(req->io.sync_answer));
    u->in_flight--;
    u->bytes_in_flight -= req->len;
    req->next = NULL;
    *u->done_tail = req;
    u->done_tail = &req->next;
}

static void tell(struct weir_uring *u)
{
    struct weir_req *req = u->done;
    u->done = NULL;
    u->done_tail = &u->done;
    for (struct weir_req *next; req; req = next) {
        next = req->next;
        weir_req_done(req);
    }
}

static void reap(struct weir_uring *u)
{
    struct io_uring_cqe *cqe;
    while (io_uring_peek_cqe(&u->ring, &cqe) == 0) {
        uint64_t data = io_uring_cqe_get_data64(cqe);
        int answer = cqe->res;
        io_uring_cqe_seen(&u->ring, cqe);
        if (data == 0)
            u->waking = false;
        else
            answered(u, (struct weir_req *)(uintptr_t)(data & ~(uint64_t)TAG_MASK),
                     (data & TAG_MASK) == TAG_SYNC, answer);
    }
}

/* valgrind (3.19) lets no other thread run while one is in io_uring_enter(2): there, the thread
 * waits in poll(2) instead. What the kernel does not take now stays in the ring for the next call.
 */
static void submit(struct weir_uring *u, bool wait)
{
    struct pollfd ring = {.fd = u->ring.ring_fd, .events = POLLIN};
    bool polls = wait && RUNNING_ON_VALGRIND;
    int code = io_uring_submit_and_wait(&u->ring, wait && !polls);
    assert(code >= 0 || code == -EINTR || code == -EAGAIN || code == -EBUSY);
    if (polls)
        poll(&ring, 1, -1);
}

/* Called with the lock held. */
static void forget(struct weir_uring *u)
{
    int none = -1;
    io_uring_register_files_update(&u->ring, (unsigned)u->forget->slot, &none, 1);
    u->slots[u->forget->slot] = false;
    u->forget->registered = false;
    u->forget = NULL;
    pthread_cond_broadcast(&u->changed);
}

/* Half of all that is asked for may go, and in any case what one stream asks for. */
static bool is_full(const struct weir_uring *u, uint64_t bytes_waiting)
{
    uint64_t most = (uint64_t)u->depth * WEIR_BUFFER_BYTES;
    uint64_t stream = (uint64_t)u->stream * WEIR_BUFFER_BYTES;
    uint64_t half = (u->bytes_in_flight + bytes_waiting) / 2, limit = half > stream ? half : stream;
    return u->in_flight == SMALL_FACTOR * u->depth || u->bytes_in_flight >= weir_min(limit, most);
}

/* Takes the first off the queue, if it may go now; with the lock held. */
static struct weir_req *next_waiting(struct weir_uring *u)
{
    struct weir_req *req = u->head;
    if (!req || is_full(u, u->bytes_waiting))
        return NULL;
    u->head = req->next;
    if (!u->head)
        u->tail = &u->head;
    u->bytes_waiting -= req->len;
    return req;
}

/* Sends what is in the queue off, until as much is under way as may be, while others add to it.
 * Returns false when the thread may end. */
static bool take(struct weir_uring *u)
{
    struct weir_req *req;
    pthread_mutex_lock(&u->lock);
    for (;;) {
        if (u->forget)
            forget(u);
        req = next_waiting(u);
        if (!req)
            break;
        uint64_t bytes_waiting = u->bytes_waiting;
        pthread_mutex_unlock(&u->lock);
        u->in_flight++;
        u->bytes_in_flight += req->len;
        prepare(u, req);
        if (!req->io.has_next || is_full(u, bytes_waiting))
            submit(u, false);
        pthread_mutex_lock(&u->lock);
    }
    bool more = !u->stop || u->head || u->in_flight || u->done;
    u->sleeping = !u->done;
    pthread_mutex_unlock(&u->lock);
    return more;
}

static void arm_wake(struct weir_uring *u)
{
    if (u->waking)
        return;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    assert(sqe);
    io_uring_prep_read(sqe, u->wake_fd, &u->wake_value, sizeof u->wake_value, 0);
    io_uring_sqe_set_data64(sqe, 0);
    u->waking = true;
}

static void *drive(void *arg)
{
    struct weir_uring *u = arg;
    int code = ring_init(u);
    pthread_mutex_lock(&u->lock);
    u->start_code = code;
    u->ready = true;
    pthread_cond_broadcast(&u->changed);
    pthread_mutex_unlock(&u->lock);
    if (code)
        return NULL;
    while (take(u)) {
        if (u->done) {
            tell(u);
            continue;
        }
        arm_wake(u);
        submit(u, true);
        pthread_mutex_lock(&u->lock);
        u->sleeping = false;
        pthread_mutex_unlock(&u->lock);
        reap(u);
    }
    io_uring_queue_exit(&u->ring);
    return NULL;
}

/* Called with the lock held. */
static int start(struct weir_uring *u)
{
    if (u->started)
        return u->start_code;
    int code = weir_thread_start(&u->thread, "weir-uring", drive, u);
    if (code)
        return code;
    u->started = true;
    while (!u->ready)
        pthread_cond_wait(&u->changed, &u->lock);
    return u->start_code;
}

/* Called with the lock held. */
static void wake(struct weir_uring *u)
{
    uint64_t one = 1;
    if (!u->sleeping)
        return;
    u->sleeping = false;
    ssize_t n = write(u->wake_fd, &one, sizeof one);
    assert(n == sizeof one);
}

int weir_uring_submit(struct weir_uring *u, struct weir_req *head, struct weir_req *last)
{
    pthread_mutex_lock(&u->lock);
    int code = start(u);
    if (!code) {
        *u->tail = head;
        u->tail = &last->next;
        for (const struct weir_req *req = head; req; req = req->next)
            u->bytes_waiting += req->len;
        wake(u);
    }
    pthread_mutex_unlock(&u->lock);
    return code;
}

void weir_uring_forget(struct weir_uring *u, struct weir_file *file)
{
    pthread_mutex_lock(&u->lock);
    while (u->forget)
        pthread_cond_wait(&u->changed, &u->lock);
    u->forget = file;
    wake(u);
    while (u->forget == file)
        pthread_cond_wait(&u->changed, &u->lock);
    pthread_mutex_unlock(&u->lock);
}

void weir_uring_close(struct weir_uring *u)
{
    if (!u)
        return;
    pthread_mutex_lock(&u->lock);
    u->stop = true;
    wake(u);
    pthread_mutex_unlock(&u->lock);
    if (u->started)
        pthread_join(u->thread, NULL);
    close(u->wake_fd);
    pthread_mutex_destroy(&u->lock);
    pthread_cond_destroy(&u->changed);
    free(u);
}
