/* s3_creds.c - see s3_creds.h. A set of keys is counted and never changes; `now` is the one that
 * counts. When it nears its end, get() starts a thread that asks the place for the next one; that
 * thread is joined by who starts the next, or closes.
 */
#include "tier/s3_creds.h"

#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tier/s3_place.h"
#include "util/err.h"
#include "util/sys.h"
#include "util/thread.h"

#define SECOND_NS    1000000000ull
#define TIMEOUT_NS   (30 * SECOND_NS)      /* of one fetch */
#define SOON_NS      (15 * 60 * SECOND_NS) /* a set is replaced so long before its end, as by AWS */
#define MARGIN_NS    (30 * SECOND_NS)      /* no request is begun with it so long before its end */
#define RETRY_NS_MIN (SECOND_NS / 4)       /* after a failed fetch; twice that after the next */
#define RETRY_NS_MAX (30 * SECOND_NS)

struct set {
    struct weir_s3_keys keys; /* of got; first, since keys are what is handed out */
    atomic_uint refs;
    uint64_t soon_ns, end_ns; /* of the boot-time clock; 0: never */
    bool refused;             /* by a server, and not asked for again since */
    bool confirmed;           /* asked for again, and the same came back */
    struct weir_s3_got got;
};

struct weir_s3_creds {
    struct weir_s3_config config;
    uint64_t timeout_ns;
    atomic_bool stop;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t change;
    struct set *now;
    bool fetching, has_thread;
    pthread_t thread;
    uint64_t fetches;  /* that have ended */
    uint64_t retry_ns; /* not before this instant */
    uint64_t pause_ns; /* after the next failure */
    int code;          /* of the last fetch, and its text */
    char text[WEIR_TEXT_MAX];
};

/* ---- sets ---- */

static void set_release(struct set *set)
{
    if (!set || atomic_fetch_sub(&set->refs, 1) != 1)
        return;
    OPENSSL_cleanse(set, sizeof *set);
    free(set);
}

void weir_s3_keys_release(const struct weir_s3_keys *keys)
{
    _Static_assert(offsetof(struct set, keys) == 0, "keys are the beginning of a set");
    set_release((struct set *)keys);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Short lives are measured in shares of them. */
static void set_times(struct set *set, uint64_t began_ns, uint64_t life_ns)
{
    set->soon_ns = set->end_ns = 0;
    if (!life_ns)
        return;
    set->end_ns = began_ns + life_ns - less(MARGIN_NS, life_ns / 10);
    set->soon_ns = began_ns + life_ns - less(SOON_NS, life_ns / 3);
}

static bool set_same(const struct set *a, const struct set *b)
{
    return a && !strcmp(a->got.id, b->got.id) && !strcmp(a->got.secret, b->got.secret) &&
           !strcmp(a->got.token, b->got.token);
}

/* ---- fetching ---- */

/* Asks the place. Called without the lock. */
static int fetch(struct weir_s3_creds *creds, struct set **out)
{
    const struct weir_s3_place *place = creds->config.place;
    uint64_t began_ns = weir_sys->now_ns(WEIR_CLOCK_BOOT), life_ns = 0;
    const struct weir_s3_try within = {weir_sys->now_ns(WEIR_CLOCK_MONO) + creds->timeout_ns,
                                       &creds->stop, creds->config.ca_file};
    struct set *set = weir_alloc(sizeof *set);
    if (!set)
        return weir_fail_memory();
    atomic_init(&set->refs, 1);
    int code = place->ask(place, &within, &set->got, &life_ns);
    if (code) {
        set_release(set);
        return code;
    }
    set->keys = (struct weir_s3_keys){set->got.id, set->got.secret,
                                      set->got.token[0] ? set->got.token : NULL};
    set_times(set, began_ns, life_ns);
    *out = set;
    return 0;
}

/* What a fetch brought becomes what counts. Called with the lock. */
static void settle(struct weir_s3_creds *creds, int code, struct set *set)
{
    creds->code = code;
    creds->fetches++;
    if (code) {
        strncpy(creds->text, weir_fail_last(), sizeof creds->text - 1);
        creds->retry_ns = weir_sys->now_ns(WEIR_CLOCK_BOOT) + creds->pause_ns;
        creds->pause_ns = less(2 * creds->pause_ns, RETRY_NS_MAX);
    } else {
        set->confirmed = set_same(creds->now, set);
        set_release(creds->now);
        creds->now = set;
        creds->retry_ns = 0;
        creds->pause_ns = RETRY_NS_MIN;
    }
}

static void *fetch_thread(void *arg)
{
    struct weir_s3_creds *creds = arg;
    struct set *set = NULL;
    int code = fetch(creds, &set);
    pthread_mutex_lock(&creds->lock);
    settle(creds, code, set);
    creds->fetching = false;
    pthread_cond_broadcast(&creds->change);
    pthread_mutex_unlock(&creds->lock);
    return NULL;
}

/* Called with the lock, while nobody fetches. */
static void start(struct weir_s3_creds *creds)
{
    assert(!creds->fetching);
    if (creds->has_thread)
        pthread_join(creds->thread, NULL); /* it has done all but return */
    int code = weir_thread_start(&creds->thread, "weir-s3-creds", fetch_thread, creds);
    creds->has_thread = creds->fetching = !code;
    if (code)
        settle(creds, code, NULL);
}

/* ---- for everybody ---- */

static bool is_valid(const struct set *set, uint64_t now_ns)
{
    return set && !set->refused && (!set->end_ns || now_ns < set->end_ns);
}

/* A failure that was kept; what is wrong with credentials is a refusal. */
static int kept_failure(const struct weir_s3_creds *creds)
{
    bool known = creds->code == -ETIMEDOUT || creds->code == -ENOMEM || creds->code == -EACCES;
    return weir_fail_text(known ? creds->code : -EACCES, creds->text);
}

static int wait_until(struct weir_s3_creds *creds, uint64_t deadline_ns)
{
    struct timespec at = {(time_t)(deadline_ns / SECOND_NS), (long)(deadline_ns % SECOND_NS)};
    if (pthread_cond_timedwait(&creds->change, &creds->lock, &at) == ETIMEDOUT)
        return weir_fail(ETIMEDOUT, "S3 credentials of %s: no answer in time",
                         creds->config.place->label);
    return 0;
}

/* Waits, with the lock, until there is a valid set. */
static int need(struct weir_s3_creds *creds, bool wait)
{
    uint64_t deadline_ns = weir_sys->now_ns(WEIR_CLOCK_MONO) + creds->timeout_ns + SECOND_NS;
    uint64_t first = creds->fetches;
    for (;;) {
        uint64_t now_ns = weir_sys->now_ns(WEIR_CLOCK_BOOT);
        if (is_valid(creds->now, now_ns))
            return 0;
        if (creds->code && (creds->fetches != first || now_ns < creds->retry_ns) &&
            !creds->fetching)
            return kept_failure(creds);
        if (!creds->fetching)
            start(creds);
        if (!creds->fetching)
            continue; /* it could not be started, which is kept */
        if (!wait)
            return weir_fail(EAGAIN, "S3 credentials are being fetched");
        int code = wait_until(creds, deadline_ns);
        if (code)
            return code;
    }
}

int weir_s3_creds_get(struct weir_s3_creds *creds, bool wait, const struct weir_s3_keys **out)
{
    if (!creds->config.place->ask) {
        *out = NULL;
        return 0;
    }
    pthread_mutex_lock(&creds->lock);
    int code = need(creds, wait);
    if (!code) {
        uint64_t now_ns = weir_sys->now_ns(WEIR_CLOCK_BOOT);
        if (creds->now->soon_ns && now_ns >= creds->now->soon_ns && now_ns >= creds->retry_ns &&
            !creds->fetching)
            start(creds);
        atomic_fetch_add(&creds->now->refs, 1);
        *out = &creds->now->keys;
    }
    pthread_mutex_unlock(&creds->lock);
    return code;
}

bool weir_s3_creds_refused(struct weir_s3_creds *creds, const struct weir_s3_keys *keys)
{
    const struct weir_s3_place *place = creds->config.place;
    if (!place->ask || place->ask == weir_s3_ask_env || !keys)
        return false;
    pthread_mutex_lock(&creds->lock);
    bool others = keys != &creds->now->keys;
    bool again = others || !creds->now->confirmed;
    if (!others && again)
        creds->now->refused = true; /* so that the next get() asks for others */
    pthread_mutex_unlock(&creds->lock);
    return again;
}

/* The first keys are got here, so that what is wrong is told where the store is opened. */
static int first(struct weir_s3_creds *creds)
{
    if (!creds->config.place->ask)
        return 0;
    int code = fetch(creds, &creds->now);
    if (creds->config.place->ask == weir_s3_ask_instance &&
        (code == -ETIMEDOUT || code == -ECONNREFUSED || code == -EIO))
        return weir_s3_nothing_found(&creds->config);
    return code && code != -ENOMEM && code != -ETIMEDOUT ? weir_fail_text(-EACCES, weir_fail_last())
                                                         : code;
}

int weir_s3_creds_open(struct weir_s3_creds **out, const struct weir_s3_creds_options *opts)
{
    struct weir_s3_creds *creds = weir_alloc(sizeof *creds);
    pthread_condattr_t attr;
    if (!creds)
        return weir_fail_memory();
    creds->timeout_ns = opts->timeout_ns ? opts->timeout_ns : TIMEOUT_NS;
    creds->pause_ns = RETRY_NS_MIN;
    pthread_mutex_init(&creds->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&creds->change, &attr);
    pthread_condattr_destroy(&attr);
    int code = weir_s3_config_find(&creds->config, opts);
    if (!code)
        code = first(creds);
    if (code)
        weir_s3_creds_close(creds);
    else
        *out = creds;
    return code;
}

void weir_s3_creds_close(struct weir_s3_creds *creds)
{
    if (!creds)
        return;
    atomic_store(&creds->stop, true);
    if (creds->has_thread)
        pthread_join(creds->thread, NULL);
    set_release(creds->now);
    weir_s3_config_free(&creds->config);
    pthread_cond_destroy(&creds->change);
    pthread_mutex_destroy(&creds->lock);
    free(creds);
}

const char *weir_s3_creds_region(const struct weir_s3_creds *creds)
{
    return creds->config.region;
}

const char *weir_s3_creds_endpoint(const struct weir_s3_creds *creds)
{
    return creds->config.endpoint;
}

const char *weir_s3_creds_ca_file(const struct weir_s3_creds *creds)
{
    return creds->config.ca_file;
}

const char *weir_s3_creds_source(const struct weir_s3_creds *creds)
{
    return creds->config.place->label;
}
