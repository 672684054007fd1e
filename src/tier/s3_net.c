/* s3_net.c - see s3_net.h. One lock guards the queues and the gauge; libcurl's things belong to the
 * thread ("lane") that has them.
 */
#include "tier/s3_net.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/s3_gauge.h"
#include "tier/s3_fetch.h"
#include "tier/s3_retry.h"
#include "util/sys.h"
#include "util/thread.h"

enum {
    LANES_MAX = 8,
    IDLE_MAX = 64, /* easy handles kept by a lane */
    POLL_MS_MAX = 1000,
    STALL_BYTES = 1024,      /* a second: less, for as long as `stall`, is a stalled connection */
    EARNING_BYTES = 1 << 20, /* that came are worth another second for tries */
    BYTES_PER_SECOND = 65536 /* the least that a large body's time is reckoned with */
};
#define SECOND_NS     1000000000ull
#define CONNECT_MS    10000l
#define KEYS_PAUSE_NS 50000000ull

struct lane {
    struct weir_s3_net *net;
    pthread_t thread;
    CURLM *multi;
    CURL *idle[IDLE_MAX];
    unsigned idles;
    unsigned active; /* guarded by the net's lock */
};

struct weir_s3_net {
    struct weir_s3_net_options opts;
    struct weir_s3_clock clock;
    pthread_mutex_t lock; /* guards everything below */
    struct weir_s3_trip *ready, **ready_end, *later;
    struct weir_s3_gauge gauge;
    unsigned active, lanes, turn;
    bool stop, unheard; /* unheard: somebody had something to feed on when there was no room */
    struct lane lane[LANES_MAX];
};

static uint64_t now_ns(void)
{
    return weir_sys->now_ns(WEIR_CLOCK_MONO);
}

int64_t weir_s3_net_now_s(const struct weir_s3_net *net)
{
    return weir_s3_clock_now(&net->clock);
}

/* ---- trips ---- */

static void fail_here(struct weir_s3_trip *trip, int code)
{
    trip->code = code;
    snprintf(trip->fail, sizeof trip->fail, "%s", weir_fail_last());
}

/* What was read and not answered yet gets the failure. */
static void finish(struct weir_s3_trip *trip)
{
    weir_s3_keys_release(trip->keys);
    trip->keys = NULL;
    trip->done(trip);
}

/* The time is up: says so, and what the last try met. */
static void give_up(struct weir_s3_net *net, struct weir_s3_trip *trip)
{
    char last[256];
    if (!trip->code)
        snprintf(last, sizeof last, "%ld %s", trip->status, trip->error.code);
    else
        snprintf(last, sizeof last, "%.250s", trip->fail);
    uint64_t timeout_ns = trip->timeout_ns ? trip->timeout_ns : net->opts.timeout_ns;
    if (trip->code != -EHOSTUNREACH)
        trip->code = -ETIMEDOUT;
    snprintf(trip->fail, sizeof trip->fail, "no answer within %.1f s (timeout=), in %u %s: %s",
             (double)timeout_ns / 1e9, trip->tries, trip->tries == 1 ? "try" : "tries", last);
}

/* Puts it aside until `due`, unless its time is up then. */
static void put_off(struct weir_s3_net *net, struct weir_s3_trip *trip, uint64_t pause_ns)
{
    trip->due_ns = now_ns() + pause_ns;
    if (trip->due_ns >= trip->deadline_ns) {
        give_up(net, trip);
        finish(trip);
        return;
    }
    pthread_mutex_lock(&net->lock);
    trip->next = net->later;
    net->later = trip;
    pthread_mutex_unlock(&net->lock);
}

static CURL *take_easy(struct lane *lane)
{
    return lane->idles ? lane->idle[--lane->idles] : curl_easy_init();
}

static void give_easy(struct lane *lane, struct weir_s3_trip *trip)
{
    if (lane->idles < IDLE_MAX)
        lane->idle[lane->idles++] = trip->easy;
    else
        curl_easy_cleanup(trip->easy);
    trip->easy = NULL;
}

/* A try that stalls ends with the trip's time at the latest; one whose bytes come may go on beyond
 * it, as long as so many take. */
static void set_times(struct weir_s3_net *net, struct weir_s3_trip *trip)
{
    uint64_t now = now_ns();
    uint64_t left_ns = now < trip->deadline_ns ? trip->deadline_ns - now : 1;
    uint64_t stall_ns = net->opts.stall_ns < left_ns ? net->opts.stall_ns : left_ns;
    uint64_t bytes = trip->body_bytes + (trip->range_end - trip->range_begin) + trip->text_max;
    long left_ms = (long)(left_ns / 1000000) + 1;
    long stall_s = (long)((stall_ns + SECOND_NS - 1) / SECOND_NS);
    curl_easy_setopt(trip->easy, CURLOPT_TIMEOUT_MS,
                     left_ms + (long)(bytes / BYTES_PER_SECOND) * 1000);
    curl_easy_setopt(trip->easy, CURLOPT_CONNECTTIMEOUT_MS,
                     left_ms < CONNECT_MS ? left_ms : CONNECT_MS);
    curl_easy_setopt(trip->easy, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES);
    curl_easy_setopt(trip->easy, CURLOPT_LOW_SPEED_TIME, trip->patient ? 0l : stall_s);
}

static int arm(struct lane *lane, struct weir_s3_trip *trip)
{
    struct weir_s3_net *net = lane->net;
    trip->easy = take_easy(lane);
    if (!trip->easy)
        return weir_fail_memory();
    int code =
        weir_s3_trip_arm(trip, net->opts.site, weir_s3_clock_now(&net->clock), net->opts.ca_file);
    if (code) {
        weir_s3_trip_disarm(trip, CURLE_FAILED_INIT);
        give_easy(lane, trip);
        return code;
    }
    set_times(net, trip);
    if (curl_multi_add_handle(lane->multi, trip->easy)) {
        weir_s3_trip_disarm(trip, CURLE_OUT_OF_MEMORY);
        give_easy(lane, trip);
        return weir_fail_memory();
    }
    return 0;
}

/* Sends it off. false: it did not go, and its place is free again. */
static bool begin(struct lane *lane, struct weir_s3_trip *trip)
{
    struct weir_s3_net *net = lane->net;
    int code;
    if (trip->until_ns && weir_sys->now_ns(WEIR_CLOCK_BOOT) > trip->until_ns) {
        trip->code = -ESTALE;
        snprintf(trip->fail, sizeof trip->fail, "it is too late for it");
        finish(trip);
        return false;
    }
    if (now_ns() >= trip->deadline_ns) {
        give_up(net, trip);
        finish(trip);
        return false;
    }
    code = weir_s3_creds_get(net->opts.creds, false, &trip->keys);
    if (code == -EAGAIN) {
        trip->keys = NULL;
        put_off(net, trip, KEYS_PAUSE_NS);
        return false;
    }
    if (!code) {
        trip->tries++;
        code = arm(lane, trip);
    }
    if (code) {
        fail_here(trip, code);
        finish(trip);
    }
    return !code;
}

/* A try is over. */
static void end_try(struct lane *lane, struct weir_s3_trip *trip, CURLcode result)
{
    struct weir_s3_net *net = lane->net;
    curl_multi_remove_handle(lane->multi, trip->easy);
    weir_s3_trip_disarm(trip, result);
    if (trip->date_s)
        weir_s3_clock_learn(&net->clock, trip->date_s);
    enum weir_s3_verdict verdict =
        weir_s3_retry_judge(trip, result, net->opts.site, net->opts.creds, trip->keys);
    give_easy(lane, trip);
    weir_s3_keys_release(trip->keys);
    trip->keys = NULL;
    pthread_mutex_lock(&net->lock);
    net->active--;
    lane->active--;
    if (trip->slow)
        weir_s3_gauge_slow_down(&net->gauge, now_ns());
    else
        weir_s3_gauge_answer(&net->gauge, trip->moved_bytes, now_ns());
    pthread_mutex_unlock(&net->lock);
    if (trip->range_end) /* what was read stays read, and has earned more time */
        trip->deadline_ns += trip->moved_bytes * SECOND_NS / EARNING_BYTES;
    trip->moved_bytes = 0;
    if (verdict == WEIR_S3_DONE)
        finish(trip);
    else
        put_off(net, trip, verdict == WEIR_S3_LATER ? weir_s3_retry_pause_ns(trip->tries) : 0);
}

/* ---- the threads ---- */

static struct lane *choose_lane(struct weir_s3_net *net);

/* Moves what is due to the ready ones; returns when the next will be, or 0. Under the lock. */
static uint64_t move_due(struct weir_s3_net *net, uint64_t now)
{
    uint64_t next = 0;
    for (struct weir_s3_trip **at = &net->later; *at;) {
        struct weir_s3_trip *trip = *at;
        if (trip->due_ns > now) {
            next = !next || trip->due_ns < next ? trip->due_ns : next;
            at = &trip->next;
            continue;
        }
        *at = trip->next;
        trip->next = NULL;
        *net->ready_end = trip;
        net->ready_end = &trip->next;
    }
    return next;
}

static unsigned share(const struct weir_s3_net *net)
{
    return (net->gauge.limit + net->lanes - 1) / net->lanes;
}

/* Takes the next trip that may go, and counts it; NULL: none. */
static struct weir_s3_trip *take(struct lane *lane, uint64_t *wait_ns)
{
    struct weir_s3_net *net = lane->net;
    struct weir_s3_trip *trip = NULL;
    uint64_t now = now_ns(), due, feed_wait = 0;
    unsigned spare = 0;
    struct lane *other = NULL;
    pthread_mutex_lock(&net->lock);
    due = move_due(net, now);
    bool full = net->active >= net->gauge.limit || lane->active >= share(net);
    if (full) {
        weir_s3_gauge_full(&net->gauge);
        if (net->active >= net->gauge.limit)
            net->unheard = true; /* what else there is to feed on waits for room, too */
        else if (net->ready || net->unheard)
            other = choose_lane(net); /* it has room, and may be asleep */
    } else {
        spare = net->gauge.limit - net->active;
        trip = net->ready;
        if (trip && !(net->ready = trip->next))
            net->ready_end = &net->ready;
        if (!net->active)
            weir_s3_gauge_begin(&net->gauge, now);
        net->active++; /* also for what may be fed */
        lane->active++;
        net->unheard = false;
    }
    pthread_mutex_unlock(&net->lock);
    if (other && other != lane)
        curl_multi_wakeup(other->multi);
    *wait_ns = due ? due - now : 0;
    if (full || trip)
        return trip;
    if (net->opts.feed)
        trip = net->opts.feed(net->opts.feed_arg, spare, &feed_wait);
    if (trip) {
        trip->deadline_ns = 0;
        return trip;
    }
    if (feed_wait && (!*wait_ns || feed_wait < *wait_ns))
        *wait_ns = feed_wait;
    pthread_mutex_lock(&net->lock);
    net->active--;
    lane->active--;
    if (net->ready || net->unheard)
        *wait_ns = 1; /* somebody else may have seen no room while this was counted */
    pthread_mutex_unlock(&net->lock);
    return NULL;
}

/* When the last try may begin. */
static void set_deadline(const struct weir_s3_net *net, struct weir_s3_trip *trip)
{
    trip->deadline_ns = now_ns() + (trip->timeout_ns ? trip->timeout_ns : net->opts.timeout_ns);
}

static uint64_t send_all(struct lane *lane)
{
    struct weir_s3_net *net = lane->net;
    struct weir_s3_trip *trip;
    uint64_t wait_ns;
    while ((trip = take(lane, &wait_ns))) {
        trip->next = NULL;
        if (!trip->deadline_ns)
            set_deadline(net, trip);
        if (begin(lane, trip))
            continue;
        pthread_mutex_lock(&net->lock);
        net->active--;
        lane->active--;
        pthread_mutex_unlock(&net->lock);
    }
    return wait_ns;
}

static bool reap_all(struct lane *lane)
{
    CURLMsg *message;
    bool any = false;
    int left;
    while ((message = curl_multi_info_read(lane->multi, &left))) {
        struct weir_s3_trip *trip;
        CURLcode result = message->data.result;
        assert(message->msg == CURLMSG_DONE);
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &trip);
        end_try(lane, trip, result);
        any = true;
    }
    return any;
}

/* Nothing is left, and nothing will come. */
static bool is_over(struct lane *lane)
{
    struct weir_s3_net *net = lane->net;
    pthread_mutex_lock(&net->lock);
    bool over = net->stop && !net->active && !net->ready && !net->later;
    pthread_mutex_unlock(&net->lock);
    return over;
}

static void *run_lane(void *arg)
{
    struct lane *lane = arg;
    int running;
    while (!is_over(lane)) {
        uint64_t wait_ns = send_all(lane);
        curl_multi_perform(lane->multi, &running);
        if (reap_all(lane))
            continue;
        uint64_t ms = wait_ns ? wait_ns / 1000000 + 1 : POLL_MS_MAX;
        curl_multi_poll(lane->multi, NULL, 0, (int)(ms < POLL_MS_MAX ? ms : POLL_MS_MAX), NULL);
    }
    /* The others may be waiting for no more than this one was. */
    for (unsigned i = 0; i < lane->net->lanes; i++)
        curl_multi_wakeup(lane->net->lane[i].multi);
    return NULL;
}

/* ---- the interface ---- */

/* Under the lock: at first use. Fewer lanes than wanted are no failure. */
static int start_lanes(struct weir_s3_net *net)
{
    unsigned cores = weir_processors();
    unsigned want = cores < 8 ? 2 : cores < 32 ? cores / 4 : LANES_MAX;
    int code = weir_s3_curl_begin();
    while (!code && net->lanes < want) {
        struct lane *lane = &net->lane[net->lanes];
        lane->net = net;
        lane->multi = curl_multi_init();
        if (!lane->multi) {
            code = weir_fail_memory();
            break;
        }
        curl_multi_setopt(lane->multi, CURLMOPT_MAXCONNECTS, (long)net->opts.requests_max);
        code = weir_thread_start(&lane->thread, "weir-s3", run_lane, lane);
        if (code)
            curl_multi_cleanup(lane->multi);
        else
            net->lanes++;
    }
    return net->lanes ? 0 : code;
}

int weir_s3_net_open(struct weir_s3_net **out, const struct weir_s3_net_options *opts)
{
    struct weir_s3_net *net = weir_alloc(sizeof *net);
    if (!net)
        return weir_fail_memory();
    net->opts = *opts;
    pthread_mutex_init(&net->lock, NULL);
    net->ready_end = &net->ready;
    weir_s3_gauge_init(&net->gauge, opts->requests_max, now_ns());
    *out = net;
    return 0;
}

void weir_s3_net_close(struct weir_s3_net *net)
{
    if (!net)
        return;
    pthread_mutex_lock(&net->lock);
    net->stop = true;
    pthread_mutex_unlock(&net->lock);
    for (unsigned i = 0; i < net->lanes; i++)
        curl_multi_wakeup(net->lane[i].multi);
    for (unsigned i = 0; i < net->lanes; i++)
        pthread_join(net->lane[i].thread, NULL);
    for (unsigned i = 0; i < net->lanes; i++) {
        struct lane *lane = &net->lane[i];
        while (lane->idles)
            curl_easy_cleanup(lane->idle[--lane->idles]);
        curl_multi_cleanup(lane->multi);
    }
    pthread_mutex_destroy(&net->lock);
    free(net);
}

/* The lane that has least to do. Under the lock; NULL: none could be started. */
static struct lane *choose_lane(struct weir_s3_net *net)
{
    struct lane *best = NULL;
    if (!net->lanes && start_lanes(net))
        return NULL;
    net->turn++;
    for (unsigned i = 0; i < net->lanes; i++) {
        struct lane *lane = &net->lane[(net->turn + i) % net->lanes];
        if (!best || lane->active < best->active)
            best = lane;
    }
    return best;
}

void weir_s3_net_submit(struct weir_s3_net *net, struct weir_s3_trip *trip)
{
    set_deadline(net, trip);
    trip->next = NULL;
    pthread_mutex_lock(&net->lock);
    struct lane *lane = choose_lane(net);
    if (lane) {
        *net->ready_end = trip;
        net->ready_end = &trip->next;
    }
    pthread_mutex_unlock(&net->lock);
    if (lane) {
        curl_multi_wakeup(lane->multi);
        return;
    }
    fail_here(trip, -EAGAIN);
    trip->done(trip);
}

bool weir_s3_net_start(struct weir_s3_net *net)
{
    pthread_mutex_lock(&net->lock);
    bool started = net->lanes || !start_lanes(net);
    pthread_mutex_unlock(&net->lock);
    return started;
}

void weir_s3_net_wake(struct weir_s3_net *net)
{
    struct lane *lane = NULL;
    pthread_mutex_lock(&net->lock);
    if (net->active < net->gauge.limit)
        lane = choose_lane(net);
    else
        net->unheard = true;
    pthread_mutex_unlock(&net->lock);
    if (lane)
        curl_multi_wakeup(lane->multi);
}

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool is_over;
};

static void end_waiting(struct weir_s3_trip *trip)
{
    struct waiting *waiting = trip->owner;
    pthread_mutex_lock(&waiting->lock);
    waiting->is_over = true;
    pthread_cond_signal(&waiting->over); /* under the lock: the waiter destroys it */
    pthread_mutex_unlock(&waiting->lock);
}

bool weir_s3_net_run(struct weir_s3_net *net, struct weir_s3_trip *trip)
{
    struct waiting waiting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    trip->owner = &waiting;
    trip->done = end_waiting;
    weir_s3_net_submit(net, trip);
    pthread_mutex_lock(&waiting.lock);
    while (!waiting.is_over)
        pthread_cond_wait(&waiting.over, &waiting.lock);
    pthread_mutex_unlock(&waiting.lock);
    pthread_mutex_destroy(&waiting.lock);
    pthread_cond_destroy(&waiting.over);
    return weir_s3_trip_ok(trip);
}
