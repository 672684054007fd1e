/* req.h - the one request type. Everything asynchronous in Weir is a weir_req that somebody
 * submitted and that completes exactly once, on any thread, by weir_req_done().
 *
 * Completion is a small stack of functions, so that a filter can look at an answer on its way
 * back without allocating: push before passing the request on, and the function pushed last runs
 * first. A completion function must not wait; the bottom one usually puts the request into a
 * weir_queue that its owner pops. The owner keeps the request, the names and the memory it points
 * to alive until then.
 */
#ifndef WEIR_UTIL_REQ_H
#define WEIR_UTIL_REQ_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"

enum weir_op {
    WEIR_OP_OPEN,      /* name -> handle (for reading), stat */
    WEIR_OP_READ,      /* handle, buf, len, cap, off -> result bytes */
    WEIR_OP_MAP,       /* handle, len -> buf: that much of it from its beginning, mapped to be read,
                          which weir_sys->unmap() gives back; -ENOTSUP where there are no files */
    WEIR_OP_CREATE,    /* name, off (size hint), small -> handle (for writing) */
    WEIR_OP_WRITE,     /* handle, buf, len, off, sync */
    WEIR_OP_COMMIT,    /* handle, off (final size): durable under its name, or -EEXIST */
    WEIR_OP_LOAD,      /* name, len (limit) -> buf (owned by the caller), result bytes, stat */
    WEIR_OP_PUT,       /* name, buf, len: put if absent, durable; or -EEXIST; see doubt. off: not
                          after this instant of the boot-time clock, else -ESTALE; 0: whenever */
    WEIR_OP_STAT,      /* name -> stat; with a handle: -ESTALE unless name stands for that; with
                          sync: and it survives a power loss */
    WEIR_OP_REMOVE,    /* name; with a handle: only if that is what name stands for; with a guard:
                          -ESTALE unless the record `guard` is just buf, len */
    WEIR_OP_REMOVE_IF, /* name, buf, len: remove if the content is just that, else -ESTALE;
                          before that, name2 if it stands for handle */
    WEIR_OP_ALIAS,     /* name2 -> also known as name; -EEXIST if that is another's; with a guard:
                          -ESTALE unless the record `guard` is just buf, len */
    WEIR_OP_LIST,      /* name (a directory), handle or NULL, buf, len -> handle, result count */
    WEIR_OP_LEASE,     /* name, alone -> handle that holds it; -EBUSY; -ENOTSUP without locks */
    WEIR_OP_SPACE,     /* -> space */
    WEIR_OP_SWEEP,     /* off (ns): drop temporaries older than this -> result count */
    WEIR_OPS
};
const char *weir_op_name(enum weir_op op);

/* What a failure leaves open. */
enum weir_doubt {
    WEIR_SURE,       /* it did not happen */
    WEIR_DOUBT_LOST, /* the answer was lost: looking tells */
    WEIR_DOUBT_SYNC, /* it happened, but may not survive a power loss: nothing tells */
};

/* What a tier hands out: an open blob, a sink, a list cursor. */
struct weir_handle {
    void (*close)(struct weir_handle *handle);
};
static inline void weir_handle_close(struct weir_handle *handle)
{
    if (handle)
        handle->close(handle);
}

struct weir_blob_stat {
    uint64_t size;
    int64_t time_ns; /* of the tier's own clock */
};

struct weir_space {
    uint64_t free_bytes, total_bytes;
};

/* Reads that go to the device together, where they may become one: those of small files that were
 * written one after the other. Who submits them has it, and flushes it (io.h). */
struct weir_plug {
    struct weir_req *head, *last;
};

struct weir_req;
typedef void (*weir_req_fn)(struct weir_req *req, void *arg);

struct weir_file;

/* Filters in front of one tier, the tier itself, the io layer and the owner. */
enum { WEIR_REQ_DEPTH_MAX = 8 };

struct weir_req {
    enum weir_op op;
    bool blocking; /* the submitter would only wait: the work may run on its thread */
    bool small;    /* CREATE: one small write follows; do not preallocate, do not go direct */
    bool keep;     /* READ: it will be read again: it may go through the kernel's cache, and stay */
    bool once;     /* OPEN: one thread will read all of it, one time, a transfer after the other */
    bool around;   /* OPEN, out: for that it goes around the kernel's cache, being small: such reads
                      are best sent to the device together (plug) */
    bool sync;     /* WRITE: durable when complete; the handle's other writes are complete */
    bool dry;      /* SWEEP: only count */
    bool look;     /* LIST: with what STAT tells of a file, where that is at hand */
    bool deep;     /* LIST: all files below, whatever the level; -ENOTSUP where there are levels */
    bool alone;    /* LEASE: nobody else may hold it */
    bool reuse;    /* REMOVE: the tier may keep the file, to write another over it; REMOVE_IF, out:
                      name2 was the only other name of handle, and is gone for good */
    bool blind;    /* REMOVE: 0 also if nothing was there: not worth a look */
    bool fresh;    /* STAT: of what shall be made if it is not there: -ELOOP where nothing may be */
    enum weir_doubt doubt; /* out, of a failed COMMIT, PUT, REMOVE or REMOVE_IF */

    const char *name, *name2, *guard;
    struct weir_handle *handle;
    void *buf;
    size_t len; /* wanted */
    size_t cap; /* READ: bytes that may be written at buf; at least len */
    uint64_t off;
    struct weir_plug *plug; /* READ: it may wait there until that is flushed; NULL */

    uint64_t result;
    struct weir_blob_stat stat;
    struct weir_space space;
    int code; /* 0 or -errno */
    char text[WEIR_TEXT_MAX];

    /* The io layer's, while the request is with it. */
    struct {
        void *context; /* the tier's */
        struct weir_file *file;
        size_t done;
        unsigned tries;   /* that were to be repeated */
        unsigned pending; /* answers the ring still owes */
        int sync_answer;
        bool direct, finished;
        bool has_next; /* the next one in the queue goes with it */
        void (*task)(struct weir_req *req);
    } io;

    struct weir_req *next; /* whoever holds the request may queue it */
    void *owner;           /* the owner's */
    uint64_t tag;          /* the owner's */
    unsigned depth;
    struct {
        weir_req_fn fn;
        void *arg;
        uint64_t aux;
    } stack[WEIR_REQ_DEPTH_MAX];
};

/* Readies a request: everything zero but op. Cheap: the text is not cleared. */
void weir_req_init(struct weir_req *req, enum weir_op op);
/* Returns the frame's aux, for the pusher to keep a number in. */
uint64_t *weir_req_push(struct weir_req *req, weir_req_fn fn, void *arg);
/* Completes: pops one function and calls it; that one calls weir_req_done() in turn, but for the
 * bottom one. aux is the popped frame's. */
void weir_req_done(struct weir_req *req);
/* Within a completion function: the aux of its frame. */
uint64_t weir_req_aux(const struct weir_req *req);
/* Sets code and text. code is a positive errno. Returns -code. */
int weir_req_fail(struct weir_req *req, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Takes this thread's text over into the request. code is negative or 0. Returns code. */
int weir_req_take(struct weir_req *req, int code);

/* Completed requests on their way to their owner: one bound, one waiter. */
struct weir_queue {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct weir_req *head, **tail;
};
void weir_queue_init(struct weir_queue *queue);
void weir_queue_destroy(struct weir_queue *queue);
void weir_queue_put(struct weir_queue *queue, struct weir_req *req);
/* Waits for one. */
struct weir_req *weir_queue_get(struct weir_queue *queue);
/* A completion function: puts the request into the weir_queue that arg is. */
void weir_queue_done(struct weir_req *req, void *queue);

#endif
