/* Requests: the stack of completions, failures that travel, and queues between threads. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "util/req.h"

enum { SENDERS = 4, EACH = 500 };

static char order[16];

static void note(struct weir_req *req, void *arg)
{
    strncat(order, arg, 1);
    CHECK_EQ(weir_req_aux(req), (unsigned char)*(char *)arg);
    if (*(char *)arg != '1')
        weir_req_done(req);
}

/* What was pushed last runs first, and each finds its own number. */
static void stack(void)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_READ);
    *weir_req_push(&req, note, "1") = '1';
    *weir_req_push(&req, note, "2") = '2';
    *weir_req_push(&req, note, "3") = '3';
    weir_req_done(&req);
    CHECK(!strcmp(order, "321"));
    CHECK_EQ(req.depth, 0);
}

static void died(void (*fn)(void))
{
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        close(STDERR_FILENO);
        fn();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void push_too_many(void)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_READ);
    for (int i = 0; i <= WEIR_REQ_DEPTH_MAX; i++)
        weir_req_push(&req, note, "x");
}

static void done_twice(void)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_READ);
    weir_req_done(&req);
}

/* The bounds are asserted, and asserts are on. */
static void bounds(void)
{
    died(push_too_many);
    died(done_twice);
}

static void init_clears(void)
{
    struct weir_req req;
    memset(&req, 0xff, sizeof req);
    weir_req_init(&req, WEIR_OP_PUT);
    CHECK(req.op == WEIR_OP_PUT && !req.blocking && !req.sync && !req.small && !req.dry);
    CHECK(!req.name && !req.name2 && !req.handle && !req.buf && !req.len && !req.cap && !req.off);
    CHECK(!req.result && !req.code && !req.text[0] && !req.depth && !req.next && !req.owner);
    CHECK(!req.io.context && !req.io.file && !req.io.task && !req.tag && req.doubt == WEIR_SURE);
}

static void failures(void)
{
    struct weir_req req;
    weir_req_init(&req, WEIR_OP_READ);
    CHECK_EQ(weir_req_fail(&req, EIO, "no %d", 5), -EIO);
    CHECK(req.code == -EIO && !strcmp(req.text, "no 5"));
    CHECK_EQ(weir_req_take(&req, 0), 0);
    CHECK_EQ(req.code, 0);
    weir_fail(ENOSPC, "this thread's");
    CHECK_EQ(weir_req_take(&req, -ENOSPC), -ENOSPC);
    CHECK(req.code == -ENOSPC && !strcmp(req.text, "this thread's"));
}

static void queue_keeps_order(void)
{
    struct weir_queue queue;
    struct weir_req reqs[5];
    weir_queue_init(&queue);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5; i++) {
            weir_req_init(&reqs[i], WEIR_OP_READ);
            weir_req_push(&reqs[i], weir_queue_done, &queue);
            weir_req_done(&reqs[i]);
        }
        for (int i = 0; i < 5; i++)
            CHECK(weir_queue_get(&queue) == &reqs[i]);
    }
    weir_queue_destroy(&queue);
}

struct sender {
    pthread_t thread;
    struct weir_queue *queue;
    struct weir_req reqs[EACH];
};

static void *send_all(void *arg)
{
    struct sender *sender = arg;
    for (unsigned i = 0; i < EACH; i++) {
        weir_req_init(&sender->reqs[i], WEIR_OP_READ);
        sender->reqs[i].tag = i;
        sender->reqs[i].owner = sender;
        weir_req_push(&sender->reqs[i], weir_queue_done, sender->queue);
        weir_req_done(&sender->reqs[i]);
    }
    return NULL;
}

/* Many threads complete, one waits: nothing is lost, and each sender's come in their order. */
static void queue_between_threads(void)
{
    struct weir_queue queue;
    struct sender *senders = calloc(SENDERS, sizeof *senders);
    uint64_t next[SENDERS] = {0};
    weir_queue_init(&queue);
    for (int i = 0; i < SENDERS; i++) {
        senders[i].queue = &queue;
        CHECK(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]) == 0);
    }
    for (int i = 0; i < SENDERS * EACH; i++) {
        struct weir_req *req = weir_queue_get(&queue);
        size_t from = (size_t)((struct sender *)req->owner - senders);
        CHECK_EQ(req->tag, next[from]++);
    }
    for (int i = 0; i < SENDERS; i++)
        pthread_join(senders[i].thread, NULL);
    weir_queue_destroy(&queue);
    free(senders);
}

int main(void)
{
    RUN(stack);
    RUN(bounds);
    RUN(init_clears);
    RUN(failures);
    RUN(queue_keeps_order);
    RUN(queue_between_threads);
    return TEST_RESULT;
}
