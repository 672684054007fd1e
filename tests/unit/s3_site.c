/* Where requests go: endpoints, styles, prefixes, and a region that the server corrects once. */
#include <errno.h>

#include "test.h"
#include "tier/s3_site.h"

static void is(const char *path, const char *endpoint, const char *style, const char *base,
               const char *host, const char *want)
{
    struct weir_s3_site site;
    char out[WEIR_S3_PATH_MAX];
    OK(weir_s3_site_init(&site, path, endpoint, "eu-west-1", style));
    CHECK(!strcmp(site.address.base, base));
    CHECK(!strcmp(site.address.host, host));
    OK(weir_s3_site_path(&site, ".weir/store", out));
    CHECK(!strcmp(out, want));
    weir_s3_site_destroy(&site);
}

static void addresses(void)
{
    is("bu", "http://h:80", "auto", "http://h:80", "h", "/bu/.weir/store");
    is("bu/", "https://h:443/", "path", "https://h:443", "h", "/bu/.weir/store");
    is("bu/p/q", "http://h:8080", "virtual", "http://bu.h:8080", "bu.h:8080", "/p/q/.weir/store");
    is("bu//p//", "http://h", "auto", "http://h", "h", "/bu/p/.weir/store");
    is("bu", NULL, "auto", "https://bu.s3.eu-west-1.amazonaws.com", "bu.s3.eu-west-1.amazonaws.com",
       "/.weir/store");
    is("b.u", NULL, "auto", "https://s3.eu-west-1.amazonaws.com", "s3.eu-west-1.amazonaws.com",
       "/b.u/.weir/store");
}

static void refused(const char *path, const char *endpoint, const char *region, const char *style)
{
    struct weir_s3_site site;
    CHECK_EQ(weir_s3_site_init(&site, path, endpoint, region, style), -EINVAL);
}

static void wrong_ones(void)
{
    refused("", NULL, NULL, "auto");
    refused("/x", NULL, NULL, "auto");
    refused("b u", NULL, NULL, "auto");
    refused("bu", "ftp://h", NULL, "auto");
    refused("bu", "http://", NULL, "auto");
    refused("bu", "http://h/x", NULL, "auto");
    refused("bu", "http://u@h", NULL, "auto");
    refused("bu", NULL, "no region", "auto");
    refused("bu", NULL, "evil.example/", "auto");
    refused("bu", NULL, NULL, "best");
}

static void a_region_is_corrected_once(void)
{
    struct weir_s3_site site;
    struct weir_s3_address address;
    OK(weir_s3_site_init(&site, "bu", NULL, NULL, "auto"));
    CHECK(!weir_s3_site_correct(&site, "us-east-1", ""));
    CHECK(!weir_s3_site_correct(&site, "us-east-1", "evil.example/"));
    CHECK(!weir_s3_site_correct(&site, "us-east-1", "us-east-1"));
    CHECK(weir_s3_site_correct(&site, "us-east-1", "eu-north-1"));
    weir_s3_site_address(&site, &address);
    CHECK(!strcmp(address.region, "eu-north-1"));
    CHECK(!strcmp(address.base, "https://bu.s3.eu-north-1.amazonaws.com"));
    CHECK(weir_s3_site_correct(&site, "us-east-1", "ap-south-1"));   /* was signed before */
    CHECK(!weir_s3_site_correct(&site, "eu-north-1", "ap-south-1")); /* a server in doubt */
    weir_s3_site_destroy(&site);
}

static void long_names(void)
{
    struct weir_s3_site site;
    char name[WEIR_S3_KEY_MAX + 1], out[WEIR_S3_PATH_MAX];
    memset(name, 'n', sizeof name);
    name[WEIR_S3_KEY_MAX - 2] = 0;
    OK(weir_s3_site_init(&site, "bu/p", "http://h", NULL, "auto"));
    OK(weir_s3_site_path(&site, name, out));
    CHECK_EQ(strlen(out), strlen("/bu/p/") + strlen(name));
    name[WEIR_S3_KEY_MAX - 2] = 'n';
    name[WEIR_S3_KEY_MAX - 1] = 0;
    CHECK_EQ(weir_s3_site_path(&site, name, out), -ENAMETOOLONG);
    weir_s3_site_destroy(&site);
}

int main(void)
{
    RUN(addresses);
    RUN(wrong_ones);
    RUN(a_region_is_corrected_once);
    RUN(long_names);
    return TEST_RESULT;
}
