/* req.c - see req.h. */
#include "util/req.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *weir_op_name(enum weir_op op)
{
    static const char *const names[WEIR_OPS] = {
        "open", "read",   "map",       "create", "write", "commit", "load",  "put",
        "stat", "remove", "remove-if", "alias",  "list",  "lease",  "space", "sweep",
    };
    return names[op];
}

void weir_req_init(struct weir_req *req, enum weir_op op)
{
    memset(req, 0, offsetof(struct weir_req, text));
    memset(&req->io, 0, sizeof *req - offsetof(struct weir_req, io));
    req->op = op;
    req->text[0] = 0;
}

uint64_t *weir_req_push(struct weir_req *req, weir_req_fn fn, void *arg)
{
    assert(req->depth < WEIR_REQ_DEPTH_MAX);
    req->stack[req->depth].fn = fn;
    req->stack[req->depth].arg = arg;
    req->stack[req->depth].aux = 0;
    return &req->stack[req->depth++].aux;
}

void weir_req_done(struct weir_req *req)
{
    assert(req->depth > 0);
    req->depth--;
    req->stack[req->depth].fn(req, req->stack[req->depth].arg);
}

uint64_t weir_req_aux(const struct weir_req *req)
{
    return req->stack[req->depth].aux;
}

int weir_req_fail(struct weir_req *req, int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(req->text, sizeof req->text, fmt, args);
    va_end(args);
    req->code = -code;
    return -code;
}

int weir_req_take(struct weir_req *req, int code)
{
    req->code = code;
    if (code < 0)
        snprintf(req->text, sizeof req->text, "%s", weir_fail_last());
    return code;
}

void weir_queue_init(struct weir_queue *queue)
{
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->more, NULL);
    queue->head = NULL;
    queue->tail = &queue->head;
}

void weir_queue_destroy(struct weir_queue *queue)
{
    assert(!queue->head);
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->more);
}

void weir_queue_put(struct weir_queue *queue, struct weir_req *req)
{
    req->next = NULL;
    pthread_mutex_lock(&queue->lock);
    *queue->tail = req;
    queue->tail = &req->next;
    /* Signalled under the lock: the waiter may destroy the queue as soon as it has the request. */
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
}

struct weir_req *weir_queue_get(struct weir_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (!queue->head)
        pthread_cond_wait(&queue->more, &queue->lock);
    struct weir_req *req = queue->head;
    queue->head = req->next;
    if (!queue->head)
        queue->tail = &queue->head;
    pthread_mutex_unlock(&queue->lock);
    return req;
}

void weir_queue_done(struct weir_req *req, void *queue)
{
    weir_queue_put(queue, req);
}
