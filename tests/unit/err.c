/* Failures: the code and its text belong together, for each thread its own. */
#include <errno.h>
#include <pthread.h>

#include "test.h"
#include "util/err.h"
#include "util/req.h"
#include "weir.h"

static void text_and_code(void)
{
    CHECK_EQ(weir_fail(ENOENT, "no '%s' in %d", "a", 7), -ENOENT);
    CHECK(!strcmp(weir_fail_last(), "no 'a' in 7"));
    CHECK(weir_error_text() == weir_fail_last());
    CHECK_EQ(weir_fail_in(-ENOENT, "cannot open '%s'", "s"), -ENOENT);
    CHECK(!strcmp(weir_fail_last(), "cannot open 's': no 'a' in 7"));
    CHECK_EQ(weir_fail_memory(), -ENOMEM);
    CHECK(strstr(weir_fail_last(), "memory"));
    CHECK_EQ(weir_fail_text(-EIO, "from elsewhere"), -EIO);
    CHECK(!strcmp(weir_fail_last(), "from elsewhere"));
    CHECK_EQ(weir_fail_text(-EIO, weir_fail_last()), -EIO);
    CHECK(!strcmp(weir_fail_last(), "from elsewhere"));
}

static void long_texts_are_cut(void)
{
    char big[2 * WEIR_TEXT_MAX];
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = 0;
    weir_fail(EIO, "%s", big);
    CHECK_EQ(strlen(weir_fail_last()), WEIR_TEXT_MAX - 1);
    weir_fail_in(-EIO, "in front");
    CHECK(!strncmp(weir_fail_last(), "in front: xxx", 13));
    CHECK_EQ(strlen(weir_fail_last()), WEIR_TEXT_MAX - 1);
    weir_fail_in(-EIO, "%s", big);
    CHECK_EQ(strlen(weir_fail_last()), WEIR_TEXT_MAX - 1);
}

static void *other_thread(void *arg)
{
    CHECK(!*weir_fail_last());
    weir_fail(EIO, "mine");
    CHECK(!strcmp(weir_fail_last(), "mine"));
    return arg;
}

static void each_thread_its_own(void)
{
    pthread_t thread;
    weir_fail(EIO, "ours");
    CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
    pthread_join(thread, NULL);
    CHECK(!strcmp(weir_fail_last(), "ours"));
}

static void errno_texts(void)
{
    CHECK(!strcmp(weir_errno_text(ENOENT), weir_errno_text(-ENOENT)));
    CHECK(strstr(weir_errno_text(ENOSPC), "space"));
    CHECK(!strcmp(weir_errno_text(99999), "unknown error"));
}

static void names_for_people(void)
{
    CHECK(!strcmp(weir_level_name(WEIR_LEVEL_NONE), "none"));
    CHECK(!strcmp(weir_level_name(WEIR_LEVEL_HOME), "home"));
    CHECK(!strcmp(weir_level_name((weir_level)99), "?"));
    CHECK(!strcmp(weir_level_name((weir_level)-1), "?"));
    CHECK(strchr(weir_version(), '.'));
    for (unsigned op = 0; op < WEIR_OPS; op++)
        for (unsigned other = 0; other < op; other++)
            CHECK(strcmp(weir_op_name(op), weir_op_name(other)));
}

static int seen_line(void *arg, const char *name, const char *value)
{
    unsigned *lines = arg;
    CHECK(*name && *value);
    return ++*lines == 3 ? -ECANCELED : 0;
}

/* Every line of the description is there, and the caller may stop it. */
static void description(void)
{
    unsigned lines = 0;
    CHECK_EQ(weir_describe(seen_line, &lines), -ECANCELED);
    CHECK_EQ(lines, 3);
    lines = 100;
    OK(weir_describe(seen_line, &lines));
    CHECK(lines >= 105);
}

int main(void)
{
    RUN(text_and_code);
    RUN(long_texts_are_cut);
    RUN(each_thread_its_own);
    RUN(errno_texts);
    RUN(names_for_people);
    RUN(description);
    return TEST_RESULT;
}
