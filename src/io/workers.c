/* workers.c - threads that run tasks: started when there is work and nobody idle, up to a bound;
 * they stay until the pool is closed.
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "io/io.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/thread.h"

struct weir_workers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct weir_req *head, **tail;
    unsigned queued, idle, started, max;
    bool stop;
    pthread_t threads[];
};

static void *work(void *arg)
{
    struct weir_workers *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->head && !w->stop) {
            w->idle++;
            pthread_cond_wait(&w->more, &w->lock);
            w->idle--;
        }
        if (!w->head)
            break;
        struct weir_req *req = w->head;
        w->head = req->next;
        if (!w->head)
            w->tail = &w->head;
        w->queued--;
        pthread_mutex_unlock(&w->lock);
        req->io.task(req);
        weir_req_done(req);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int weir_workers_open(struct weir_workers **out, unsigned max)
{
    struct weir_workers *w = weir_alloc(sizeof *w + max * sizeof w->threads[0]);
    if (!w)
        return weir_fail_memory();
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    w->tail = &w->head;
    w->max = max;
    *out = w;
    return 0;
}

void weir_workers_close(struct weir_workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->started; i++)
        pthread_join(w->threads[i], NULL);
    assert(!w->head);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->more);
    free(w);
}

void weir_workers_submit(struct weir_workers *w, struct weir_req *req)
{
    req->next = NULL;
    pthread_mutex_lock(&w->lock);
    if (w->queued >= w->idle && w->started < w->max &&
        weir_thread_start(&w->threads[w->started], "weir-io", work, w) == 0)
        w->started++;
    if (!w->started) {
        pthread_mutex_unlock(&w->lock);
        req->io.task(req); /* no thread can be had: slower, but it works */
        weir_req_done(req);
        return;
    }
    *w->tail = req;
    w->tail = &req->next;
    w->queued++;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
}
