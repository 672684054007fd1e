/* s3_site.c - see s3_site.h. */
#include "tier/s3_site.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/err.h"

#define REGION_DEFAULT "us-east-1"

static int take_bucket(struct weir_s3_site *p, const char *path)
{
    size_t size = strcspn(path, "/");
    if (!size)
        return weir_fail(EINVAL, "an S3 URL names a bucket: s3://bucket/prefix");
    if (size >= sizeof p->bucket || strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789.-_"
                                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ:") < size)
        return weir_fail(EINVAL, "'%.*s' is no name of an S3 bucket", (int)size, path);
    memcpy(p->bucket, path, size);
    path += size;
    path += strspn(path, "/");
    size = strlen(path);
    while (size && path[size - 1] == '/')
        size--;
    if (size > WEIR_S3_KEY_MAX / 2)
        return weir_fail(ENAMETOOLONG, "a prefix of %zu bytes: the limit is %d", size,
                         WEIR_S3_KEY_MAX / 2);
    if (size)
        snprintf(p->prefix, sizeof p->prefix, "%.*s/", (int)size, path);
    return 0;
}

/* Splits "https://host:port" off; what follows the host must be nothing or '/'. */
static int take_endpoint(struct weir_s3_site *p, const char *endpoint)
{
    const char *host = endpoint;
    if (strchr(endpoint, '@')) /* what is in front of it may be secret */
        return weir_fail(EINVAL, "an endpoint names a host and a port, nothing else");
    p->is_https = !strncmp(endpoint, "https://", 8);
    if (p->is_https)
        host += 8;
    else if (!strncmp(endpoint, "http://", 7))
        host += 7;
    else
        return weir_fail(EINVAL, "endpoint '%s': it begins with http:// or https://", endpoint);
    size_t size = strcspn(host, "/");
    if (!size || strspn(host + size, "/") < strlen(host + size))
        return weir_fail(EINVAL, "endpoint '%s': it is https://HOST or https://HOST:PORT",
                         endpoint);
    struct weir_s3_address *a = &p->address;
    if (size + WEIR_S3_BUCKET_MAX + 16 > sizeof a->host)
        return weir_fail(EINVAL, "the host of the endpoint is too long");
    size_t shown = size; /* the port that goes without saying is not in the Host header */
    const char *port = p->is_https ? ":443" : ":80";
    if (size > strlen(port) && !memcmp(host + size - strlen(port), port, strlen(port)))
        shown -= strlen(port);
    snprintf(a->host, sizeof a->host, "%s%s%.*s", p->is_virtual ? p->bucket : "",
             p->is_virtual ? "." : "", (int)shown, host);
    snprintf(a->base, sizeof a->base, "%s://%s%s%.*s", p->is_https ? "https" : "http",
             p->is_virtual ? p->bucket : "", p->is_virtual ? "." : "", (int)size, host);
    return 0;
}

static int take_aws(struct weir_s3_site *p)
{
    char endpoint[128];
    snprintf(endpoint, sizeof endpoint, "https://s3.%s.amazonaws.com", p->address.region);
    return take_endpoint(p, endpoint);
}

static bool is_region(const char *text)
{
    size_t size = strlen(text);
    return size && size < WEIR_S3_REGION_MAX &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == size;
}

static int take_style(struct weir_s3_site *p, const char *style)
{
    if (!strcmp(style, "path") || !strcmp(style, "virtual"))
        p->is_virtual = style[0] == 'v';
    else if (!strcmp(style,
                     "auto")) /* a dot in the bucket's name would not fit AWS's certificate */
        p->is_virtual = p->is_aws && !strchr(p->bucket, '.');
    else
        return weir_fail(EINVAL, "style '%s': it is auto, path or virtual", style);
    return 0;
}

int weir_s3_site_init(struct weir_s3_site *out, const char *path, const char *endpoint,
                      const char *region, const char *style)
{
    struct weir_s3_site p = {0};
    if (!region || !*region)
        region = REGION_DEFAULT;
    if (!is_region(region))
        return weir_fail(EINVAL, "'%s' is no name of a region", region);
    strcpy(p.address.region, region);
    p.is_implied = !endpoint || !*endpoint;
    p.is_aws = p.is_implied || strstr(endpoint, ".amazonaws.com");
    int code = take_bucket(&p, path);
    if (!code)
        code = take_style(&p, style);
    if (!code)
        code = p.is_implied ? take_aws(&p) : take_endpoint(&p, endpoint);
    if (code)
        return code;
    strcpy(p.shown, p.address.base);
    *out = p;
    pthread_mutex_init(&out->lock, NULL);
    return 0;
}

void weir_s3_site_destroy(struct weir_s3_site *site)
{
    pthread_mutex_destroy(&site->lock);
}

int weir_s3_site_path(const struct weir_s3_site *site, const char *name, char out[WEIR_S3_PATH_MAX])
{
    size_t key = name ? strlen(site->prefix) + strlen(name) : 0;
    if (key > WEIR_S3_KEY_MAX)
        return weir_fail(ENAMETOOLONG,
                         "'%s%s' is %zu bytes long: S3 takes names of at most %d bytes",
                         site->prefix, name, key, WEIR_S3_KEY_MAX);
    snprintf(out, WEIR_S3_PATH_MAX, "/%s%s%s%s", site->is_virtual ? "" : site->bucket,
             site->is_virtual || !name ? "" : "/", name ? site->prefix : "", name ? name : "");
    return 0;
}

void weir_s3_site_address(struct weir_s3_site *site, struct weir_s3_address *out)
{
    pthread_mutex_lock(&site->lock);
    *out = site->address;
    pthread_mutex_unlock(&site->lock);
}

bool weir_s3_site_correct(struct weir_s3_site *site, const char *used, const char *region)
{
    if (!is_region(region))
        return false;
    pthread_mutex_lock(&site->lock);
    char *known = site->address.region;
    bool news = strcmp(used, known) != 0; /* somebody else was told */
    if (!news && !site->corrected && strcmp(region, known)) {
        strcpy(known, region);
        if (site->is_implied)
            take_aws(site);
        site->corrected = news = true;
    }
    pthread_mutex_unlock(&site->lock);
    return news;
}
