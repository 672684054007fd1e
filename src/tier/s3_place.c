/* s3_place.c - finds where credentials come from, once, when a store is opened; and the simplest
 * place, the environment. See s3_place.h and, for the order, s3_creds.h. */
#include "tier/s3_place.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tier/s3_ini.h"
#include "util/err.h"
#include "util/sys.h"

const char *weir_s3_env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

char *weir_s3_keep(struct weir_s3_config *config, const char *text, size_t size)
{
    char *copy = weir_arena_take(&config->arena, size + 1);
    if (!copy) {
        weir_fail_memory();
        return NULL;
    }
    memcpy(copy, text, size); /* which is zeroed behind it */
    return copy;
}

struct weir_s3_place *weir_s3_place_new(struct weir_s3_config *config, weir_s3_ask ask,
                                        const char *fmt, ...)
{
    char label[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(label, sizeof label, fmt, args);
    va_end(args);
    struct weir_s3_place *place = weir_arena_take(&config->arena, sizeof *place);
    char *kept = place ? weir_s3_keep(config, label, strlen(label)) : NULL;
    if (!kept) {
        weir_fail_memory();
        return NULL;
    }
    place->ask = ask;
    place->label = kept;
    place->region = config->region;
    place->sts_endpoint = config->sts_endpoint;
    return place;
}

/* Keeps a text that may not be there. */
static int keep(const char **out, struct weir_s3_config *config, const char *text)
{
    if (!text)
        return 0;
    *out = weir_s3_keep(config, text, strlen(text));
    return *out ? 0 : -ENOMEM;
}

/* ---- files ---- */

/* The path that is asked for, or the environment's, or ~/.aws/NAME; "~/" is the user's. */
static int keep_path(const char **out, struct weir_s3_config *config, const char *asked,
                     const char *variable, const char *name)
{
    char path[4096], below[64];
    const char *from = asked ? asked : weir_s3_env(variable), *user = weir_s3_env("HOME");
    snprintf(below, sizeof below, "~/.aws/%s", name);
    if (!from)
        from = below;
    if (!strncmp(from, "~/", 2) && !user)
        return 0; /* there is no such file */
    int size = !strncmp(from, "~/", 2) ? snprintf(path, sizeof path, "%s%s", user, from + 1)
                                       : snprintf(path, sizeof path, "%s", from);
    if (size >= (int)sizeof path)
        return weir_fail(ENAMETOOLONG, "the path of %s is too long", below);
    return keep(out, config, path);
}

/* A file that nobody named need not be there. */
static int load(struct weir_s3_file *out, const char *path, bool named)
{
    int code = path ? weir_s3_file_read(out, path, WEIR_S3_INI_BYTES_MAX) : 0;
    return (code == -ENOENT || code == -ENOTDIR) && !named ? 0 : code;
}

static int load_files(struct weir_s3_config *config, const struct weir_s3_creds_options *opts)
{
    int code = keep_path(&config->credentials_file, config, opts->credentials_file,
                         "AWS_SHARED_CREDENTIALS_FILE", "credentials");
    if (!code)
        code =
            keep_path(&config->config_file, config, opts->config_file, "AWS_CONFIG_FILE", "config");
    if (!code)
        code = load(&config->credentials, config->credentials_file, opts->credentials_file);
    if (!code)
        code = load(&config->settings, config->config_file, opts->config_file);
    return code;
}

/* ---- the environment ---- */

int weir_s3_ask_env(const struct weir_s3_place *place, const struct weir_s3_try *within,
                    struct weir_s3_got *out, uint64_t *life_ns)
{
    (void)within;
    *out = *place->own;
    *life_ns = 0;
    return 0;
}

static int take_env(struct weir_s3_got *got, const char *id, const char *secret)
{
    const char *token = weir_s3_env("AWS_SESSION_TOKEN");
    if (!token)
        token = weir_s3_env("AWS_SECURITY_TOKEN"); /* its name of old */
    int code = weir_s3_got_take(got->id, sizeof got->id, "AWS_ACCESS_KEY_ID", id, strlen(id));
    if (!code)
        code = weir_s3_got_take(got->secret, sizeof got->secret, "AWS_SECRET_ACCESS_KEY", secret,
                                strlen(secret));
    if (!code && token)
        code = weir_s3_got_take(got->token, sizeof got->token, "AWS_SESSION_TOKEN", token,
                                strlen(token));
    return code ? weir_fail_in(code, "S3 credentials of the environment") : 0;
}

static int web_identity_place(struct weir_s3_place **out, struct weir_s3_config *config)
{
    const char *role = weir_s3_env("AWS_ROLE_ARN"), *session = weir_s3_env("AWS_ROLE_SESSION_NAME");
    if (!role)
        return weir_fail(EACCES, "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not: "
                                 "set both, or neither");
    struct weir_s3_place *place =
        weir_s3_place_new(config, weir_s3_ask_role, "role %s (AWS_WEB_IDENTITY_TOKEN_FILE)", role);
    if (!place)
        return -ENOMEM;
    *out = place;
    int code = keep(&place->role, config, role);
    if (!code)
        code = keep(&place->session, config, session);
    return code ? code
                : keep(&place->token_file, config, weir_s3_env("AWS_WEB_IDENTITY_TOKEN_FILE"));
}

int weir_s3_env_place(struct weir_s3_place **out, struct weir_s3_config *config)
{
    const char *id = weir_s3_env("AWS_ACCESS_KEY_ID"),
               *secret = weir_s3_env("AWS_SECRET_ACCESS_KEY");
    if (!id && !secret)
        return weir_s3_env("AWS_WEB_IDENTITY_TOKEN_FILE") ? web_identity_place(out, config) : 0;
    if (!id || !secret)
        return weir_fail(EACCES, "%s is set, but %s is not: set both, or neither",
                         id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                         id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
    if (!config->env)
        config->env = weir_alloc(sizeof *config->env);
    if (!config->env)
        return weir_fail_memory();
    weir_s3_got_wipe(config->env);
    int code = take_env(config->env, id, secret);
    if (code)
        return code;
    *out = weir_s3_place_new(config, weir_s3_ask_env, "the environment (AWS_ACCESS_KEY_ID)");
    if (!*out)
        return -ENOMEM;
    (*out)->own = config->env;
    return 0;
}

/* ---- all together ---- */

int weir_s3_nothing_found(const struct weir_s3_config *config)
{
    return weir_fail(EACCES,
                     "no S3 credentials: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor "
                     "AWS_WEB_IDENTITY_TOKEN_FILE are set, there is no profile '%s' in '%s' or "
                     "'%s', and no container or instance says any; set one of them (a profile is "
                     "named with ?profile=NAME), or use ?anonymous=1 for what everybody may read",
                     config->profile, config->credentials_file ? config->credentials_file : "",
                     config->config_file ? config->config_file : "");
}

/* What the environment says counts more than the profile. */
static int find_settings(struct weir_s3_config *config, const struct weir_s3_creds_options *opts)
{
    static const char *const regions[] = {"AWS_REGION", "AWS_DEFAULT_REGION"};
    static const char *const endpoints[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"};
    static const char *const sts[] = {"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"};
    const char *asked[3] = {opts->region, NULL, opts->sts_endpoint};
    for (int i = 0; i < 2; i++) {
        asked[0] = asked[0] ? asked[0] : weir_s3_env(regions[i]);
        asked[1] = asked[1] ? asked[1] : weir_s3_env(endpoints[i]);
        asked[2] = asked[2] ? asked[2] : weir_s3_env(sts[i]);
    }
    int code = keep(&config->region, config, asked[0]);
    if (!code)
        code = keep(&config->endpoint, config, asked[1]);
    if (!code)
        code = keep(&config->sts_endpoint, config, asked[2]);
    if (!code)
        code = keep(&config->ca_file, config,
                    opts->ca_file ? opts->ca_file : weir_s3_env("AWS_CA_BUNDLE"));
    if (!code && !config->region)
        code = weir_s3_profile_get(&config->region, config, config->profile, "region");
    if (!code && !config->endpoint)
        code = weir_s3_profile_get(&config->endpoint, config, config->profile, "endpoint_url");
    return code;
}

static int find_place(struct weir_s3_config *config, const struct weir_s3_creds_options *opts)
{
    int code = 0;
    if (opts->anonymous) {
        config->place = weir_s3_place_new(config, NULL, "nobody (anonymous=1)");
        return config->place ? 0 : -ENOMEM;
    }
    if (!opts->profile && !opts->credentials_file && !opts->config_file)
        code = weir_s3_env_place(&config->place, config);
    if (!code && !config->place)
        code = weir_s3_profile_place(&config->place, config, config->profile, 0);
    if (!code && !config->place && config->profile_asked)
        return weir_fail(EACCES,
                         "there is no profile '%s' with S3 credentials in '%s' or '%s': "
                         "make one with `aws configure --profile %s`, or name another",
                         config->profile, config->credentials_file ? config->credentials_file : "",
                         config->config_file ? config->config_file : "", config->profile);
    if (!code && !config->place)
        code = weir_s3_container_place(&config->place, config);
    if (!code && !config->place)
        code = weir_s3_instance_place(&config->place, config);
    return code || config->place ? code : weir_s3_nothing_found(config);
}

int weir_s3_config_find(struct weir_s3_config *out, const struct weir_s3_creds_options *opts)
{
    struct weir_s3_config config = {0};
    const char *profile = opts->profile ? opts->profile : weir_s3_env("AWS_PROFILE");
    if (!profile)
        profile = weir_s3_env("AWS_DEFAULT_PROFILE");
    config.profile_asked = profile != NULL;
    int code = keep(&config.profile, &config, profile ? profile : "default");
    if (!code && !opts->anonymous)
        code = load_files(&config, opts);
    if (!code)
        code = find_settings(&config, opts);
    if (!code)
        code = find_place(&config, opts);
    weir_s3_file_free(&config.credentials);
    weir_s3_file_free(&config.settings);
    if (code)
        weir_s3_config_free(&config);
    else
        *out = config;
    return code;
}

void weir_s3_config_free(struct weir_s3_config *config)
{
    if (config->env)
        weir_s3_got_wipe(config->env);
    free(config->env);
    if (config->auth)
        OPENSSL_cleanse(config->auth, strlen(config->auth));
    weir_arena_free(config->arena);
    *config = (struct weir_s3_config){0};
}

int weir_s3_life(uint64_t *life_ns, int64_t until_ns, int64_t now_s)
{
    int64_t now_ns = now_s * 1000000000;
    *life_ns = 0;
    if (!until_ns)
        return 0;
    if (until_ns <= now_ns)
        return weir_fail(EACCES, "what it gives has expired already");
    *life_ns = (uint64_t)(until_ns - now_ns);
    return 0;
}
