/* What storage cannot take yet does not fill memory: all streams of a store together have half of
 * its pool on its way, each an equal share.
 */
#include "store/store.h"
#include "stores.h"
#include "util/thread.h"

enum { POOL_BUFFERS = 64, DEPTH = 16, STREAMS = 8, BYTES = 40 << 20 };

/* A filter that holds writes until no more come, and counts those that it has. */
struct slow_tier {
    struct weir_tier tier;
    pthread_t thread;
    pthread_mutex_t lock;
    struct weir_req *head, **tail;
    unsigned under_way, most;
    uint64_t came; /* writes, so far */
    bool is_closing;
};

static void written(struct weir_req *req, void *arg)
{
    struct slow_tier *t = arg;
    pthread_mutex_lock(&t->lock);
    t->under_way--;
    pthread_mutex_unlock(&t->lock);
    weir_req_done(req);
}

static void slow_submit(struct weir_tier *tier, struct weir_req *req)
{
    struct slow_tier *t = (struct slow_tier *)tier;
    if (req->op != WEIR_OP_WRITE) {
        weir_tier_submit(t->tier.below, req);
        return;
    }
    weir_req_push(req, written, t);
    req->next = NULL;
    pthread_mutex_lock(&t->lock);
    t->under_way++;
    t->came++;
    t->most = t->under_way > t->most ? t->under_way : t->most;
    *t->tail = req;
    t->tail = &req->next;
    pthread_mutex_unlock(&t->lock);
}

/* Whoever writes has come as far as he can when nothing comes for a while; should he only have been
 * slow, less is counted than he might have had: never more. */
static void *let_go(void *arg)
{
    struct slow_tier *t = arg;
    uint64_t seen = 0;
    pthread_mutex_lock(&t->lock);
    while (!t->is_closing || t->head) {
        bool is_idle = t->came == seen;
        struct weir_req *req = is_idle || t->is_closing ? t->head : NULL;
        seen = t->came;
        if (req && !(t->head = req->next))
            t->tail = &t->head;
        pthread_mutex_unlock(&t->lock);
        if (req)
            weir_tier_submit(t->tier.below, req);
        else
            nanosleep(&(struct timespec){0, 20000000}, NULL);
        pthread_mutex_lock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void slow_close(struct weir_tier *tier)
{
    struct slow_tier *t = (struct slow_tier *)tier;
    pthread_mutex_lock(&t->lock);
    t->is_closing = true;
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    weir_tier_close(t->tier.below);
    free(t);
}

static const struct weir_tier_ops slow_ops = {"slow", slow_submit, slow_close};

static struct slow_tier *make_slow(weir_store *store)
{
    struct slow_tier *t = calloc(1, sizeof *t);
    CHECK(t);
    t->tier = *store->tier;
    t->tier.ops = &slow_ops;
    t->tier.below = store->tier;
    t->tail = &t->head;
    pthread_mutex_init(&t->lock, NULL);
    OK(weir_thread_start(&t->thread, "slow", let_go, t));
    store->tier = &t->tier;
    return t;
}

/* The most that one of so many streams had on its way. */
static unsigned most_of(int streams)
{
    weir_store *store = store_sized("mem:", NULL, POOL_BUFFERS << 20, DEPTH);
    struct slow_tier *slow = make_slow(store);
    weir_put *puts[STREAMS];
    uint8_t *data = data_buffer(1 << 20, 1);
    data_fill(data, 1 << 20, 1, 0);
    for (int i = 0; i < streams; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        OK(weir_put_open(&puts[i], store, key, NULL));
    }
    for (size_t at = 0; at < BYTES; at += 1 << 20)
        OK(weir_put_write(puts[0], data, 1 << 20));
    unsigned most = slow->most;
    for (int i = 0; i < streams; i++)
        weir_put_close(puts[i]);
    weir_store_close(store);
    data_free(data, 1);
    return most;
}

static void shares(void)
{
    unsigned one = most_of(1); /* the share of one is more than what a stream may have */
    printf("# of 1, 4, 8 streams: %u", one);
    CHECK(one > 1 && one <= DEPTH);
    unsigned four = most_of(4), eight = most_of(8);
    printf(", %u, %u\n", four, eight);
    CHECK(four > 1 && four <= POOL_BUFFERS / 2 / 4);
    CHECK(eight > 1 && eight <= POOL_BUFFERS / 2 / 8);
}

int main(void)
{
    RUN(shares);
    return TEST_RESULT;
}
