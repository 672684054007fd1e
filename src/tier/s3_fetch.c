/* s3_fetch.c - see s3_fetch.h. */
#include "tier/s3_fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tier/s3_got.h"
#include "tier/s3_time.h"
#include "util/err.h"
#include "util/sys.h"

enum { TRIES_MAX = 4, DIRECT_CONNECT_MS = 1000, CONNECT_MS = 10000 };
#define PAUSE_NS 100000000u /* before the second try; twice that before the next */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode ready;

static void init(void)
{
    ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

int weir_s3_curl_begin(void)
{
    pthread_once(&once, init);
    return ready ? weir_fail(EIO, "libcurl cannot begin: %s", curl_easy_strerror(ready)) : 0;
}

static size_t take(char *data, size_t one, size_t count, void *arg)
{
    struct weir_s3_fetch *fetch = arg;
    size_t size = one * count;
    if (size > WEIR_S3_GOT_BYTES_MAX - fetch->size)
        return 0; /* which ends it */
    memcpy(fetch->answer + fetch->size, data, size);
    fetch->size += size;
    return size;
}

static int watch(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct weir_s3_fetch *fetch = arg;
    (void)a, (void)b, (void)c, (void)d;
    return atomic_load(fetch->within->stop);
}

static uint64_t left_ms(const struct weir_s3_fetch *fetch)
{
    uint64_t now = weir_sys->now_ns(WEIR_CLOCK_MONO);
    return now < fetch->within->deadline_ns ? (fetch->within->deadline_ns - now) / 1000000 + 1 : 0;
}

static void set_up(CURL *curl, struct weir_s3_fetch *fetch, struct curl_slist *lines)
{
    long ms = (long)left_ms(fetch), connect = fetch->direct ? DIRECT_CONNECT_MS : CONNECT_MS;
    curl_easy_setopt(curl, CURLOPT_URL, fetch->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, ms);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, connect < ms ? connect : ms);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, fetch);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, watch);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, fetch);
    if (fetch->direct)
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (fetch->within->ca_file)
        curl_easy_setopt(curl, CURLOPT_CAINFO, fetch->within->ca_file);
    if (fetch->body)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, fetch->body);
    if (strcmp(fetch->method, fetch->body ? "POST" : "GET"))
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, fetch->method);
}

static void take_date(CURL *curl, struct weir_s3_fetch *fetch)
{
    struct curl_header *date;
    if (curl_easy_header(curl, "Date", 0, CURLH_HEADER, -1, &date) ||
        !weir_s3_time_http(&fetch->date_s, date->value, strlen(date->value)))
        fetch->date_s = (int64_t)(weir_sys->now_ns(WEIR_CLOCK_REAL) / 1000000000);
}

static int failed(const struct weir_s3_fetch *fetch, CURLcode why)
{
    int code = EIO;
    if (why == CURLE_WRITE_ERROR)
        return weir_fail(EMSGSIZE, "%s: the answer is larger than %d bytes", fetch->what,
                         WEIR_S3_GOT_BYTES_MAX);
    if (why == CURLE_ABORTED_BY_CALLBACK)
        return weir_fail(ECANCELED, "%s: given up", fetch->what);
    if (why == CURLE_OPERATION_TIMEDOUT)
        code = ETIMEDOUT;
    else if (why == CURLE_COULDNT_CONNECT || why == CURLE_COULDNT_RESOLVE_HOST)
        code = ECONNREFUSED;
    return weir_fail(code, "%s: %s", fetch->what, curl_easy_strerror(why));
}

static int perform(struct weir_s3_fetch *fetch, struct curl_slist *lines)
{
    CURL *curl = curl_easy_init();
    if (!curl)
        return weir_fail_memory();
    fetch->size = 0;
    set_up(curl, fetch, lines);
    CURLcode why = curl_easy_perform(curl);
    int code = why == CURLE_OK ? 0 : failed(fetch, why);
    if (!code) {
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &fetch->status);
        fetch->answer[fetch->size] = 0;
        take_date(curl, fetch);
    }
    curl_easy_cleanup(curl);
    return code;
}

/* Is it worth another try? A service of this machine that does not answer is not there. */
static bool again(const struct weir_s3_fetch *fetch, int code)
{
    if (code == -EIO || (!fetch->direct && code == -ECONNREFUSED))
        return true;
    return !code && (fetch->status == 429 || fetch->status >= 500);
}

static struct curl_slist *make_lines(const struct weir_s3_fetch *fetch)
{
    struct curl_slist *lines = NULL;
    /* Without this curl waits for a "100 Continue" in front of large bodies. */
    struct curl_slist *more = curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; more && fetch->lines && fetch->lines[i]; i++) {
        lines = more;
        more = curl_slist_append(lines, fetch->lines[i]);
    }
    if (!more)
        curl_slist_free_all(lines);
    return more;
}

void weir_s3_lines_free(struct curl_slist *lines)
{
    for (struct curl_slist *at = lines; at; at = at->next)
        OPENSSL_cleanse(at->data, strlen(at->data));
    curl_slist_free_all(lines);
}

static int perform_in_time(struct weir_s3_fetch *fetch, struct curl_slist *lines)
{
    for (unsigned tries = 0;; tries++) {
        if (!left_ms(fetch))
            return weir_fail(ETIMEDOUT, "%s: no answer in time", fetch->what);
        int code = perform(fetch, lines);
        uint64_t pause_ns = (uint64_t)PAUSE_NS << tries;
        if (!again(fetch, code) || tries + 1 == TRIES_MAX || atomic_load(fetch->within->stop) ||
            left_ms(fetch) <= pause_ns / 1000000)
            return code;
        weir_sys->sleep_ns(pause_ns);
    }
}

int weir_s3_fetch(struct weir_s3_fetch *fetch)
{
    int code = weir_s3_curl_begin();
    if (code)
        return code;
    fetch->answer = weir_alloc(WEIR_S3_GOT_BYTES_MAX + 1);
    struct curl_slist *lines = make_lines(fetch);
    code = fetch->answer && lines ? perform_in_time(fetch, lines) : weir_fail_memory();
    weir_s3_lines_free(lines);
    if (code)
        weir_s3_fetch_free(fetch);
    return code;
}

void weir_s3_fetch_free(struct weir_s3_fetch *fetch)
{
    if (fetch->answer)
        OPENSSL_cleanse(fetch->answer, WEIR_S3_GOT_BYTES_MAX + 1);
    free(fetch->answer);
    fetch->answer = NULL;
}
