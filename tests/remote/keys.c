/* keys.c - credentials on demand, for tests/remote/test_credentials.py: reads commands, one a line,
 * words separated by tabs, and answers each with a line. It prints secrets: that is what it is for.
 *
 *     open [NAME=VALUE]…   of struct weir_s3_creds_options
 *     get | try            waiting or not: ok ID SECRET TOKEN
 *     many THREADS MS      gets, at once, for so long: ok GETS FAILURES DIFFERENT-IDS
 *     refused              the keys of the last get: ok 0|1
 *     about                ok REGION ENDPOINT SOURCE
 *     close
 *
 * A failure is: error CODE TEXT.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "tier/s3_creds.h"
#include "util/sys.h"

enum { WORDS_MAX = 16, IDS_MAX = 64 };

static struct weir_s3_creds *creds;
static const struct weir_s3_keys *last;

static void answer(int code)
{
    if (code)
        printf("error\t%d\t%s\n", -code, weir_fail_last());
    else
        printf("ok\n");
}

static int open_with(char **words, size_t count)
{
    struct weir_s3_creds_options opts = {0};
    for (size_t i = 1; i < count; i++) {
        char *value = strchr(words[i], '=');
        CHECK(value);
        *value++ = 0;
        const struct {
            const char *name, **field;
        } fields[] = {
            {"profile", &opts.profile},         {"credentials_file", &opts.credentials_file},
            {"config_file", &opts.config_file}, {"sts_endpoint", &opts.sts_endpoint},
            {"region", &opts.region},           {"ca_file", &opts.ca_file}};
        bool known = false;
        for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++)
            if (!strcmp(words[i], fields[f].name))
                *fields[f].field = value, known = true;
        if (!strcmp(words[i], "anonymous"))
            opts.anonymous = known = true;
        if (!strcmp(words[i], "timeout_ms"))
            opts.timeout_ns = strtoull(value, NULL, 10) * 1000000, known = true;
        CHECK(known);
    }
    return weir_s3_creds_open(&creds, &opts);
}

static void get(bool wait)
{
    const struct weir_s3_keys *keys = NULL;
    int code = weir_s3_creds_get(creds, wait, &keys);
    if (code) {
        answer(code);
        return;
    }
    weir_s3_keys_release(last);
    last = keys;
    if (keys)
        printf("ok\t%s\t%s\t%s\n", keys->id, keys->secret, keys->token ? keys->token : "");
    else
        printf("ok\tanonymous\t\t\n");
}

/* ---- many at once ---- */

static atomic_uint gets, failures;
static uint64_t until_ns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char ids[IDS_MAX][WEIR_S3_ID_MAX];
static unsigned different;

static void note(const char *id)
{
    unsigned i = 0;
    pthread_mutex_lock(&lock);
    while (i < different && strcmp(ids[i], id))
        i++;
    if (i == different && different < IDS_MAX)
        strcpy(ids[different++], id);
    pthread_mutex_unlock(&lock);
}

static void *get_many(void *arg)
{
    (void)arg;
    while (weir_sys->now_ns(WEIR_CLOCK_MONO) < until_ns) {
        const struct weir_s3_keys *keys;
        if (weir_s3_creds_get(creds, false, &keys)) {
            failures++;
        } else {
            gets++;
            note(keys->id);
            weir_s3_keys_release(keys);
        }
        weir_sys->sleep_ns(1000000);
    }
    return NULL;
}

static void many(unsigned threads, uint64_t ms)
{
    pthread_t thread[64];
    CHECK(threads <= 64);
    gets = failures = different = 0;
    until_ns = weir_sys->now_ns(WEIR_CLOCK_MONO) + ms * 1000000;
    for (unsigned i = 0; i < threads; i++)
        CHECK(!pthread_create(&thread[i], NULL, get_many, NULL));
    for (unsigned i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("ok\t%u\t%u\t%u\n", gets, failures, different);
}

static void done(void)
{
    weir_s3_keys_release(last);
    weir_s3_creds_close(creds);
    last = NULL;
    creds = NULL;
}

static const char *or_none(const char *text)
{
    return text ? text : "";
}

static void command(char **words, size_t count)
{
    if (!strcmp(words[0], "open"))
        answer(open_with(words, count));
    else if (!strcmp(words[0], "get") || !strcmp(words[0], "try"))
        get(words[0][0] == 'g');
    else if (!strcmp(words[0], "many") && count == 3)
        many((unsigned)atoi(words[1]), strtoull(words[2], NULL, 10));
    else if (!strcmp(words[0], "refused"))
        printf("ok\t%d\n", weir_s3_creds_refused(creds, last));
    else if (!strcmp(words[0], "about"))
        printf("ok\t%s\t%s\t%s\n", or_none(weir_s3_creds_region(creds)),
               or_none(weir_s3_creds_endpoint(creds)), weir_s3_creds_source(creds));
    else
        done(), answer(0);
}

int main(void)
{
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        char *words[WORDS_MAX], *rest = line;
        size_t count = 0;
        line[strcspn(line, "\n")] = 0;
        while (rest && count < WORDS_MAX)
            words[count++] = strsep(&rest, "\t");
        command(words, count);
        fflush(stdout);
    }
    done();
    return 0;
}
