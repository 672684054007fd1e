/* s3_role.c - roles that STS lends: to who signs with keys (AssumeRole), or shows a token that an
 * identity provider wrote into a file (AssumeRoleWithWebIdentity). See s3_place.h.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/s3_place.h"
#include "util/err.h"
#include "util/hash.h"
#include "util/sys.h"

enum { WEB_TOKEN_MAX = 20000, BODY_MAX = 3 * WEB_TOKEN_MAX + 16384, ENDPOINT_MAX = 1024 };

static const char form[] = "application/x-www-form-urlencoded; charset=utf-8";

/* Appends "&name=value", encoded; what does not fit is dropped whole, and noticed. */
static void add(char *body, size_t room, bool *full, const char *name, const char *value)
{
    size_t used = strlen(body), need = strlen(name) + 3 * strlen(value) + 3;
    if (need > room - used) {
        *full = true;
        return;
    }
    used += (size_t)sprintf(body + used, "&%s=", name);
    weir_s3_encode(body + used, value, false);
}

static int make_body(char *body, const struct weir_s3_place *place)
{
    struct weir_s3_file token = {0};
    bool full = false;
    if (place->token_file) {
        int code = weir_s3_file_read(&token, place->token_file, WEB_TOKEN_MAX);
        if (code)
            return code;
        token.text[strcspn(token.text, " \t\r\n")] = 0;
        if (!token.text[0])
            full = true;
    }
    snprintf(body, BODY_MAX, "Action=%s&Version=2011-06-15",
             place->token_file ? "AssumeRoleWithWebIdentity" : "AssumeRole");
    add(body, BODY_MAX, &full, "RoleArn", place->role);
    add(body, BODY_MAX, &full, "RoleSessionName", place->session ? place->session : "weir");
    if (place->external_id)
        add(body, BODY_MAX, &full, "ExternalId", place->external_id);
    if (place->duration_s)
        add(body, BODY_MAX, &full, "DurationSeconds", place->duration_s);
    if (place->token_file)
        add(body, BODY_MAX, &full, "WebIdentityToken", token.text);
    weir_s3_file_free(&token);
    return full ? weir_fail(EACCES, "the role or its token is empty or too long") : 0;
}

/* The pieces of "https://host:port/path". */
static int split_url(char host[ENDPOINT_MAX], char path[ENDPOINT_MAX], const char *url)
{
    const char *at = strstr(url, "://");
    size_t size = at ? strcspn(at + 3, "/?#") : 0;
    if (!size || strlen(url) >= ENDPOINT_MAX ||
        (strncmp(url, "http://", 7) && strncmp(url, "https://", 8)))
        return weir_fail(EACCES, "the STS endpoint is no http: or https: URL");
    at += 3;
    memcpy(host, at, size);
    host[size] = 0;
    snprintf(path, ENDPOINT_MAX, "%s", at[size] == '/' ? at + size : "/");
    return 0;
}

/* Signs with the keys of who asks for the role. */
static int sign(struct weir_s3_signed *out, const struct weir_s3_got *got, const char *host,
                const char *path, const char *region, const char *body)
{
    char digest[2 * WEIR_SHA256_BYTES + 1];
    uint8_t sum[WEIR_SHA256_BYTES];
    const struct weir_s3_pair header = {"Content-Type", form};
    const struct weir_s3_keys keys = {got->id, got->secret, got->token[0] ? got->token : NULL};
    weir_sha256(sum, body, strlen(body));
    weir_hex(digest, sum, sizeof sum);
    const struct weir_s3_call call = {
        .method = "POST",
        .host = host,
        .path = path,
        .headers = 1,
        .header = &header,
        .payload = digest,
        .region = region,
        .service = "sts",
        .time_s = (int64_t)(weir_sys->now_ns(WEIR_CLOCK_REAL) / 1000000000),
    };
    return weir_s3_sign(out, &call, &keys);
}

static int post(struct weir_s3_got *out, uint64_t *life_ns, struct weir_s3_fetch *fetch)
{
    int code = weir_s3_fetch(fetch);
    if (code)
        return code;
    code = weir_s3_got_xml(out, fetch->answer, fetch->size);
    if (!code && fetch->status != 200)
        code = weir_fail(EACCES, "it answered %ld", fetch->status);
    else if (code && fetch->status != 200)
        code = weir_fail_in(code, "it answered %ld", fetch->status);
    if (!code)
        code = weir_s3_life(life_ns, out->until_ns, fetch->date_s);
    weir_s3_fetch_free(fetch);
    return code ? weir_fail_in(code, "%s", fetch->what) : 0;
}

/* Asks the endpoint for the role, signed if somebody is there to sign. */
static int ask(const struct weir_s3_place *place, const struct weir_s3_try *within,
               struct weir_s3_got *out, uint64_t *life_ns, const char *body)
{
    char host[ENDPOINT_MAX], path[ENDPOINT_MAX], url[ENDPOINT_MAX], line[2][ENDPOINT_MAX + 32];
    const char *region = place->region ? place->region : "us-east-1";
    const char *lines[8] = {line[0], line[1]};
    struct weir_s3_signed signature = {0};
    struct weir_s3_got source = {0};
    uint64_t source_life;
    if (place->sts_endpoint)
        snprintf(url, sizeof url, "%s", place->sts_endpoint);
    else
        snprintf(url, sizeof url, "https://sts.%s.amazonaws.com/", region);
    int code = split_url(host, path, url);
    if (!code && place->source) {
        code = place->source->ask(place->source, within, &source, &source_life);
        if (!code)
            code = sign(&signature, &source, host, path, region, body);
    }
    snprintf(line[0], sizeof line[0], "Content-Type: %s", form);
    snprintf(line[1], sizeof line[1], "Host: %s", host);
    for (size_t i = 0; i < signature.count; i++)
        lines[2 + i] = signature.line[i];
    struct weir_s3_fetch fetch = {.within = within,
                                  .what = "STS",
                                  .method = "POST",
                                  .url = url,
                                  .body = body,
                                  .lines = lines};
    if (!code)
        code = post(out, life_ns, &fetch);
    weir_s3_got_wipe(&source);
    weir_s3_signed_free(&signature);
    return code;
}

int weir_s3_ask_role(const struct weir_s3_place *place, const struct weir_s3_try *within,
                     struct weir_s3_got *out, uint64_t *life_ns)
{
    char *body = weir_alloc(BODY_MAX);
    if (!body)
        return weir_fail_memory();
    int code = make_body(body, place);
    if (!code)
        code = ask(place, within, out, life_ns, body);
    OPENSSL_cleanse(body, BODY_MAX);
    free(body);
    return code ? weir_fail_in(code, "S3 credentials of %s", place->label) : 0;
}
