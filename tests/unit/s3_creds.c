/* Credentials that many threads use while they are replaced: every set is whole, and stays so for
 * as long as anybody holds it. (All places they come from: tests/remote/test_credentials.py.) */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "test.h"
#include "tier/s3_creds.h"
#include "tmpdir.h"
#include "util/sys.h"

enum { THREADS = 8, ROUNDS = 200 };

static struct weir_s3_creds *creds;
static atomic_uint refusals, waits;

/* Each set is made of one number: what does not fit together is of two. */
static void check_keys(const struct weir_s3_keys *keys)
{
    CHECK(!strncmp(keys->id, "id-", 3) && !strncmp(keys->secret, "secret-", 7));
    CHECK(!strcmp(keys->id + 3, keys->secret + 7) && keys->token);
    CHECK(!strncmp(keys->token, "token-", 6) && !strcmp(keys->id + 3, keys->token + 6));
}

static void *use(void *arg)
{
    unsigned number = (unsigned)(uintptr_t)arg;
    const struct weir_s3_keys *kept = NULL;
    for (unsigned i = 0; i < ROUNDS; i++) {
        const struct weir_s3_keys *keys;
        int code = weir_s3_creds_get(creds, i % 2, &keys);
        if (code == -EAGAIN) {
            waits++;
            continue;
        }
        CHECK_EQ(code, 0);
        check_keys(keys);
        if (kept)
            check_keys(kept); /* others may have come since */
        if ((i + number) % 50 == 0 && weir_s3_creds_refused(creds, keys))
            refusals++;
        weir_s3_keys_release(kept);
        kept = keys;
    }
    weir_s3_keys_release(kept);
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    refusals = waits = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, use, (void *)i));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void write_config(const char *path, const char *text)
{
    file_write(path, text, strlen(text));
}

/* A process that counts: every time it is asked it prints the next set. */
static void replaced_under_way(void)
{
    const char *config = tmp_path("config"), *count = tmp_path("count");
    char text[4 * PATH_MAX];
    snprintf(text, sizeof text,
             "[profile p]\ncredential_process = echo >> %s; n=$(wc -l < %s); echo "
             "\"{\\\"Version\\\": 1, \\\"AccessKeyId\\\": \\\"id-$n\\\", \\\"SecretAccessKey\\\": "
             "\\\"secret-$n\\\", \\\"SessionToken\\\": \\\"token-$n\\\"}\"\n",
             count, count);
    write_config(config, text);
    const struct weir_s3_creds_options opts = {.profile = "p", .config_file = config};
    OK(weir_s3_creds_open(&creds, &opts));
    run_threads();
    CHECK(refusals > 0);
    const struct weir_s3_keys *keys;
    OK(weir_s3_creds_get(creds, true, &keys));
    CHECK(strcmp(keys->id, "id-1")); /* they were replaced */
    weir_s3_creds_close(creds);
    check_keys(keys); /* whose holder outlives it */
    weir_s3_keys_release(keys);
}

/* Closing while the next set is fetched ends that. */
static void closed_under_way(void)
{
    const char *config = tmp_path("config"), *flag = tmp_path("flag");
    char text[4 * PATH_MAX];
    snprintf(text, sizeof text,
             "[profile p]\ncredential_process = test -e %s && sleep 1000; touch %s; echo "
             "'{\"Version\": 1, \"AccessKeyId\": \"a\", \"SecretAccessKey\": \"b\"}'\n",
             flag, flag);
    write_config(config, text);
    const struct weir_s3_creds_options opts = {.profile = "p", .config_file = config};
    const struct weir_s3_keys *keys;
    OK(weir_s3_creds_open(&creds, &opts));
    OK(weir_s3_creds_get(creds, true, &keys));
    CHECK(weir_s3_creds_refused(creds, keys));
    weir_s3_keys_release(keys);
    CHECK_EQ(weir_s3_creds_get(creds, false, &keys), -EAGAIN);
    weir_s3_creds_close(creds);
}

/* Without memory it fails, and leaks nothing. */
static atomic_int until_fail;

static void *failing_realloc(void *ptr, size_t size)
{
    return until_fail-- == 0 ? NULL : weir_sys_real.realloc(ptr, size);
}

static void out_of_memory(void)
{
    const char *config = tmp_path("config");
    struct weir_sys table = weir_sys_real;
    write_config(config, "[default]\nregion = r\n[profile p]\naws_access_key_id = id-1\n"
                         "aws_secret_access_key = secret-1\naws_session_token = token-1\n");
    const struct weir_s3_creds_options opts = {.profile = "p", .config_file = config};
    table.realloc = failing_realloc;
    weir_sys = &table;
    int code = -ENOMEM, failures = 0;
    for (; code && failures < 1000; failures++) {
        until_fail = failures;
        code = weir_s3_creds_open(&creds, &opts);
        CHECK(!code || code == -ENOMEM);
    }
    weir_sys = &weir_sys_real;
    CHECK(failures > 5 && !code);
    weir_s3_creds_close(creds);
}

int main(void)
{
    CHECK(!setenv("HOME", tmpdir(), 1));
    RUN(replaced_under_way);
    RUN(closed_under_way);
    RUN(out_of_memory);
    return TEST_RESULT;
}
