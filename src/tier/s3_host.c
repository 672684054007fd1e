/* s3_host.c - credentials that the machine itself has: a container's (ECS, EKS Pod Identity) and an
 * instance's (EC2, IMDSv2). Both are asked by plain HTTP, but only on this machine. See s3_place.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tier/s3_place.h"
#include "util/err.h"
#include "util/sys.h"

enum { URL_MAX = 1024, LINE_MAX_BYTES = 8192 };

/* Asks for one document; the lines' header, if any, carries a token. */
static int get(struct weir_s3_fetch *fetch, const struct weir_s3_try *within, const char *method,
               const char *url, const char *line)
{
    const char *const lines[] = {line, NULL};
    *fetch = (struct weir_s3_fetch){.within = within,
                                    .what = "the service",
                                    .method = method,
                                    .url = url,
                                    .lines = lines,
                                    .direct = true};
    int code = weir_s3_fetch(fetch);
    fetch->lines = NULL;
    if (!code && fetch->status != 200) {
        code = weir_fail(EACCES, "the service answered %ld", fetch->status);
        weir_s3_fetch_free(fetch);
    }
    return code;
}

/* Makes "Name: token"; tokens are one line of printable characters. */
static int make_line(char line[LINE_MAX_BYTES], const char *name, const char *token)
{
    size_t size = strcspn(token, "\r\n");
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)token[i] < 0x20 || (unsigned char)token[i] >= 0x7f)
            return weir_fail(EACCES, "its token is none");
    if (!size || token[size + strspn(token + size, "\r\n")] ||
        size + strlen(name) + 3 > LINE_MAX_BYTES)
        return weir_fail(EACCES, "its token is %s", size ? "too long, or several lines" : "empty");
    snprintf(line, LINE_MAX_BYTES, "%s: %.*s", name, (int)size, token);
    return 0;
}

/* The document with the keys in it. */
static int get_keys(const struct weir_s3_try *within, struct weir_s3_got *out, uint64_t *life_ns,
                    const char *url, const char *line)
{
    struct weir_s3_fetch fetch;
    int code = get(&fetch, within, "GET", url, line);
    if (code)
        return code;
    code = weir_s3_got_json(out, fetch.answer, fetch.size, false);
    if (!code)
        code = weir_s3_life(life_ns, out->until_ns, fetch.date_s);
    weir_s3_fetch_free(&fetch);
    return code;
}

/* ---- containers ---- */

/* Plain HTTP is for addresses of this machine: loopback and link-local ones. */
static bool is_near(const char *host)
{
    struct in_addr four;
    struct in6_addr six;
    if (!strcasecmp(host, "localhost"))
        return true;
    if (inet_pton(AF_INET, host, &four) == 1) {
        uint32_t address = ntohl(four.s_addr);
        return address >> 24 == 127 || address >> 16 == (169u << 8 | 254);
    }
    if (inet_pton(AF_INET6, host, &six) != 1)
        return false;
    static const uint8_t pods[] = {0xfd, 0x00, 0x0e, 0xc2}; /* fd00:ec2::23, EKS's */
    return IN6_IS_ADDR_LOOPBACK(&six) || IN6_IS_ADDR_LINKLOCAL(&six) ||
           !memcmp(six.s6_addr, pods, sizeof pods);
}

static bool url_is_safe(const char *url)
{
    char host[256];
    if (!strncasecmp(url, "https://", 8))
        return true;
    if (strncasecmp(url, "http://", 7))
        return false;
    const char *at = url + 7;
    bool six = *at == '[';
    size_t size = six ? strcspn(++at, "]") : strcspn(at, ":/?#@");
    if (size >= sizeof host || at[size] == '@' || (six && at[size] != ']') ||
        (!six && memchr(at + size, '@', strcspn(at + size, "/?#"))))
        return false;
    memcpy(host, at, size);
    host[size] = 0;
    return is_near(host);
}

int weir_s3_ask_container(const struct weir_s3_place *place, const struct weir_s3_try *within,
                          struct weir_s3_got *out, uint64_t *life_ns)
{
    char line[LINE_MAX_BYTES] = "";
    struct weir_s3_file token = {0};
    int code = 0;
    if (place->auth_file) /* which is written anew now and then */
        code = weir_s3_file_read(&token, place->auth_file, LINE_MAX_BYTES);
    if (!code && (token.text || place->auth))
        code = make_line(line, "Authorization", token.text ? token.text : place->auth);
    if (!code)
        code = get_keys(within, out, life_ns, place->url, line[0] ? line : NULL);
    weir_s3_file_free(&token);
    OPENSSL_cleanse(line, sizeof line);
    return code ? weir_fail_in(code, "S3 credentials of %s", place->label) : 0;
}

int weir_s3_container_place(struct weir_s3_place **out, struct weir_s3_config *config)
{
    const char *below = weir_s3_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *whole = weir_s3_env("AWS_CONTAINER_CREDENTIALS_FULL_URI"), *auth, *file;
    char url[URL_MAX];
    if (!below && !whole)
        return 0;
    int size = below ? snprintf(url, sizeof url, "http://169.254.170.2%s%s",
                                below[0] == '/' ? "" : "/", below)
                     : snprintf(url, sizeof url, "%s", whole);
    if (size >= (int)sizeof url || !url_is_safe(url))
        return weir_fail(EACCES, "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https: nor http: "
                                 "to this machine (a loopback or link-local address): keys are not "
                                 "asked for there");
    file = weir_s3_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    auth = file ? NULL : weir_s3_env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    struct weir_s3_place *place =
        weir_s3_place_new(config, weir_s3_ask_container, "the container (AWS_CONTAINER_…_URI)");
    if (!place)
        return -ENOMEM;
    *out = place;
    place->url = weir_s3_keep(config, url, strlen(url));
    if (file)
        place->auth_file = weir_s3_keep(config, file, strlen(file));
    if (auth)
        place->auth = config->auth = weir_s3_keep(config, auth, strlen(auth));
    return place->url && (!file || place->auth_file) && (!auth || place->auth) ? 0 : -ENOMEM;
}

/* ---- instances ---- */

/* The name of the role that the instance has: the first line of a list of one. */
static int get_role(char role[256], const struct weir_s3_try *within, const char *url,
                    const char *line)
{
    struct weir_s3_fetch fetch;
    int code = get(&fetch, within, "GET", url, line);
    if (code)
        return code;
    size_t size = strcspn(fetch.answer, "\r\n");
    if (!size || 3 * size >= 256 || strlen(fetch.answer) != fetch.size) {
        code = weir_fail(EACCES, "the instance has no role");
    } else {
        fetch.answer[size] = 0;
        weir_s3_encode(role, fetch.answer, false);
    }
    weir_s3_fetch_free(&fetch);
    return code;
}

static int ask_instance(const struct weir_s3_place *place, const struct weir_s3_try *within,
                        struct weir_s3_got *out, uint64_t *life_ns, char *line)
{
    static const char keys[] = "/latest/meta-data/iam/security-credentials/";
    char url[URL_MAX + 320], role[256];
    struct weir_s3_fetch fetch;
    snprintf(url, sizeof url, "%s/latest/api/token", place->url);
    int code = get(&fetch, within, "PUT", url, "X-aws-ec2-metadata-token-ttl-seconds: 300");
    if (code)
        return code;
    code = strlen(fetch.answer) == fetch.size
               ? make_line(line, "X-aws-ec2-metadata-token", fetch.answer)
               : weir_fail(EACCES, "its token is none");
    weir_s3_fetch_free(&fetch);
    snprintf(url, sizeof url, "%s%s", place->url, keys);
    if (!code)
        code = get_role(role, within, url, line);
    if (!code) {
        snprintf(url, sizeof url, "%s%s%s", place->url, keys, role);
        code = get_keys(within, out, life_ns, url, line);
    }
    return code;
}

int weir_s3_ask_instance(const struct weir_s3_place *place, const struct weir_s3_try *within,
                         struct weir_s3_got *out, uint64_t *life_ns)
{
    char line[LINE_MAX_BYTES] = "";
    int code = ask_instance(place, within, out, life_ns, line);
    OPENSSL_cleanse(line, sizeof line);
    return code ? weir_fail_in(code, "S3 credentials of %s", place->label) : 0;
}

int weir_s3_instance_place(struct weir_s3_place **out, struct weir_s3_config *config)
{
    const char *off = weir_s3_env("AWS_EC2_METADATA_DISABLED");
    const char *url = weir_s3_env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *mode = weir_s3_env("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    if (off && !strcasecmp(off, "true"))
        return 0;
    if (!url)
        url =
            mode && !strcasecmp(mode, "ipv6") ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
    size_t size = strlen(url);
    while (size && url[size - 1] == '/')
        size--;
    if (size >= URL_MAX)
        return weir_fail(EACCES, "AWS_EC2_METADATA_SERVICE_ENDPOINT is too long");
    *out = weir_s3_place_new(config, weir_s3_ask_instance, "this instance (%.*s)",
                             size > 200 ? 200 : (int)size, url);
    if (!*out)
        return -ENOMEM;
    (*out)->url = weir_s3_keep(config, url, size);
    return (*out)->url ? 0 : -ENOMEM;
}
