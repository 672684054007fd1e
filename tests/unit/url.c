/* URLs and plain paths. */
#include <errno.h>

#include "test.h"
#include "util/url.h"

static void parsed(const char *text, const char *scheme, const char *path, size_t options)
{
    struct weir_url url;
    OK(weir_url_parse(&url, text));
    CHECK(!strcmp(url.scheme, scheme));
    CHECK(!strcmp(url.path, path));
    CHECK_EQ(url.options, options);
    weir_url_free(&url);
    weir_url_free(&url);
}

static void refused(const char *text, int code)
{
    struct weir_url url = {.options = 77};
    CHECK_EQ(weir_url_parse(&url, text), -code);
    CHECK_EQ(url.options, 77);
    CHECK(*weir_fail_last());
}

static void paths(void)
{
    parsed("/a/b", "file", "/a/b", 0);
    parsed("a/b", "file", "a/b", 0);
    parsed("./x?y=1", "file", "./x?y=1", 0);
    parsed("100%", "file", "100%", 0);
    parsed("a%41", "file", "a%41", 0);
    parsed("a/b:c", "file", "a/b:c", 0);
    parsed("c:x", "file", "c:x", 0);
    parsed("", "file", "", 0);
    parsed(":", "file", ":", 0);
    parsed("-a:b", "file", "-a:b", 0);
}

static void schemes(void)
{
    parsed("file:x", "file", "x", 0);
    parsed("file:/x", "file", "/x", 0);
    parsed("file:///x", "file", "/x", 0);
    parsed("file:", "file", "", 0);
    parsed("file:///a%20b%3f", "file", "/a b?", 0);
    parsed("mem:", "mem", "", 0);
    parsed("mem:?size=4G", "mem", "", 1);
    parsed("s3://bucket/a%20b", "s3", "bucket/a%20b", 0);
    parsed("a+b-c.d:x", "a+b-c.d", "x", 0);
    parsed("file:x?", "file", "x", 0);
    parsed("file:x?&&a=1&&b&", "file", "x", 2);
}

static void options(void)
{
    struct weir_url url;
    OK(weir_url_parse(&url, "null:?stats&a=1=2&b=%2F%25&c=&d=x?y"));
    static const char *const want[][2] = {
        {"stats", ""}, {"a", "1=2"}, {"b", "/%"}, {"c", ""}, {"d", "x?y"}};
    CHECK_EQ(url.options, 5);
    for (size_t i = 0; i < 5; i++) {
        CHECK(!strcmp(url.option[i].name, want[i][0]));
        CHECK(!strcmp(url.option[i].value, want[i][1]));
    }
    weir_url_free(&url);
}

static void bad_urls(void)
{
    refused("file:%", EINVAL);
    refused("file:%4", EINVAL);
    refused("file:%4g", EINVAL);
    refused("file:%00x", EINVAL);
    refused("mem:?a=%", EINVAL);
    refused("mem:?a=%zz", EINVAL);
    char many[512] = "mem:?";
    for (int i = 0; i < WEIR_URL_OPTIONS_MAX; i++)
        strcat(many, "o=1&");
    parsed(many, "mem", "", WEIR_URL_OPTIONS_MAX);
    strcat(many, "o=1");
    refused(many, E2BIG);
}

/* A URL with a secret in it is refused, and is not shown. */
static void secrets(void)
{
    static const char *const bad[] = {
        "s3://b?secret=HIDDEN",
        "s3://b?AWS_SECRET_ACCESS_KEY=HIDDEN",
        "s3://b?access_key=HIDDEN",
        "s3://b?session_token=HIDDEN",
        "s3://b?password=HIDDEN",
        "s3://b?key=HIDDEN",
        "s3://b?AccessKey=HIDDEN",
        "s3://b?a=1&token=HIDDEN",
        "s3://id:HIDDEN@bucket/x",
        "s3://b?endpoint=http://id:HIDDEN@host/",
        "s3://b?endpoint=http://id%3AHIDDEN%40host/",
        "s3://b?endpoint=id:HIDDEN@host",
        "mem:?commit=s3://id:HIDDEN@bucket",
        "mem:?commit=s3://b%3Fregion=r%26secret=HIDDEN",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refused(bad[i], EINVAL);
        CHECK(strstr(weir_fail_last(), "secret") && !strstr(weir_fail_last(), "HIDDEN"));
        CHECK(strstr(weir_fail_last(), "AWS_SECRET_ACCESS_KEY"));
    }
    parsed("s3://b?profile=me@home&credentials_file=/x&tokens=1&keyring=/y", "s3", "b", 4);
    parsed("s3://b/a:b@c?endpoint=http://[::1]:80/", "s3", "b/a:b@c", 1);
    parsed("file:a:b@c", "file", "a:b@c", 0);
    parsed("a:b@c", "file", "a:b@c", 0);
}

int main(void)
{
    RUN(paths);
    RUN(schemes);
    RUN(options);
    RUN(bad_urls);
    RUN(secrets);
    return TEST_RESULT;
}
