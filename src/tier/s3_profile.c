/* s3_profile.c - the profiles of ~/.aws/credentials and ~/.aws/config. See s3_place.h. */
#include <errno.h>
#include <string.h>

#include "tier/s3_ini.h"
#include "tier/s3_place.h"
#include "util/err.h"

int weir_s3_profile_get(const char **out, struct weir_s3_config *config, const char *profile,
                        const char *name)
{
    const struct weir_s3_file *files[] = {&config->credentials, &config->settings};
    bool raw = !strcmp(name, "credential_process"); /* a command may hold a '#' */
    for (int i = 0; i < 2; i++) {
        struct weir_s3_span value = weir_s3_ini_get(files[i]->text ? files[i]->text : "",
                                                    files[i]->size, i == 1, profile, name, raw);
        if (!value.at || !value.size)
            continue;
        *out = weir_s3_keep(config, value.at, value.size);
        return *out ? 0 : -ENOMEM;
    }
    return 0;
}

/* ---- keys that stand in a file ---- */

static int take_key(char *field, size_t room, const struct weir_s3_file *file, bool is_config,
                    const char *profile, const char *name)
{
    struct weir_s3_span value =
        weir_s3_ini_get(file->text, file->size, is_config, profile, name, false);
    return value.at && value.size ? weir_s3_got_take(field, room, name, value.at, value.size) : 0;
}

/* All of them out of one file: an id and a secret of two places do not belong together. */
static int take_keys(struct weir_s3_got *out, const struct weir_s3_file *file, bool is_config,
                     const char *profile)
{
    struct weir_s3_got got = {0};
    int code = take_key(got.id, sizeof got.id, file, is_config, profile, "aws_access_key_id");
    if (!code)
        code = take_key(got.secret, sizeof got.secret, file, is_config, profile,
                        "aws_secret_access_key");
    if (!code)
        code = take_key(got.token, sizeof got.token, file, is_config, profile, "aws_session_token");
    if (!code && (!got.id[0] != !got.secret[0]))
        code = weir_fail(EACCES, "it has no %s",
                         got.id[0] ? "aws_secret_access_key" : "aws_access_key_id");
    if (!code)
        *out = got;
    weir_s3_got_wipe(&got);
    return code;
}

/* The files are read each time: other tools write new keys into them. */
int weir_s3_ask_profile(const struct weir_s3_place *place, const struct weir_s3_try *within,
                        struct weir_s3_got *out, uint64_t *life_ns)
{
    const char *const paths[] = {place->credentials_file, place->config_file};
    (void)within;
    *life_ns = 0;
    out->id[0] = 0;
    for (int i = 0; i < 2 && !out->id[0]; i++) {
        struct weir_s3_file file;
        if (!paths[i])
            continue;
        int code = weir_s3_file_read(&file, paths[i], WEIR_S3_INI_BYTES_MAX);
        if (code == -ENOENT || code == -ENOTDIR)
            continue;
        if (!code) {
            code = take_keys(out, &file, i == 1, place->profile);
            weir_s3_file_free(&file);
        }
        if (code)
            return weir_fail_in(code, "S3 credentials of %s", place->label);
    }
    return out->id[0] ? 0 : weir_fail(EACCES, "there are no S3 keys in %s any more", place->label);
}

static int keys_place(struct weir_s3_place **out, struct weir_s3_config *config,
                      const char *profile)
{
    struct weir_s3_place *place =
        weir_s3_place_new(config, weir_s3_ask_profile, "profile '%s' of '%s'", profile,
                          config->credentials_file ? config->credentials_file : "");
    if (!place)
        return -ENOMEM;
    place->profile = profile;
    place->credentials_file = config->credentials_file;
    place->config_file = config->config_file;
    *out = place;
    return 0;
}

/* ---- roles ---- */

/* Whose keys ask for the role: another profile's, or a service's. */
static int find_source(struct weir_s3_place **out, struct weir_s3_config *config,
                       const char *profile, unsigned depth)
{
    const char *from = NULL, *service = NULL;
    int code = weir_s3_profile_get(&from, config, profile, "source_profile");
    if (!code)
        code = weir_s3_profile_get(&service, config, profile, "credential_source");
    if (code)
        return code;
    if (from && !strcmp(from, profile)) /* its own keys, and not the role again */
        return keys_place(out, config, profile);
    if (from)
        code = weir_s3_profile_place(out, config, from, depth + 1);
    else if (service && !strcmp(service, "Environment"))
        code = weir_s3_env_place(out, config);
    else if (service && !strcmp(service, "EcsContainer"))
        code = weir_s3_container_place(out, config);
    else if (service && !strcmp(service, "Ec2InstanceMetadata"))
        code = weir_s3_instance_place(out, config);
    if (!code && !*out)
        code = weir_fail(EACCES,
                         "profile '%s' has a role_arn, but no keys to assume it with: '%s' has "
                         "none; set source_profile, credential_source (Environment, EcsContainer, "
                         "Ec2InstanceMetadata) or web_identity_token_file",
                         profile,
                         from      ? from
                         : service ? service
                                   : "it");
    return code;
}

static int role_place(struct weir_s3_place **out, struct weir_s3_config *config,
                      const char *profile, const char *role, unsigned depth)
{
    const char *mfa = NULL;
    struct weir_s3_place *place = weir_s3_place_new(config, weir_s3_ask_role,
                                                    "role %s of profile '%s'", role, profile),
                         *source = NULL;
    if (!place)
        return -ENOMEM;
    const struct {
        const char *name, **field;
    } fields[] = {{"role_session_name", &place->session},
                  {"external_id", &place->external_id},
                  {"duration_seconds", &place->duration_s},
                  {"web_identity_token_file", &place->token_file},
                  {"mfa_serial", &mfa}};
    int code = 0;
    for (size_t i = 0; !code && i < sizeof fields / sizeof fields[0]; i++)
        code = weir_s3_profile_get(fields[i].field, config, profile, fields[i].name);
    if (!code && mfa)
        code = weir_fail(EACCES,
                         "profile '%s' asks for an MFA code (mfa_serial), which nobody is there to "
                         "type: get keys with `aws configure export-credentials --profile %s "
                         "--format env`, or as a credential_process",
                         profile, profile);
    if (!code && !place->token_file)
        code = find_source(&source, config, profile, depth);
    place->role = role;
    place->source = source;
    *out = place;
    return code;
}

/* ---- a profile ---- */

static int process_place(struct weir_s3_place **out, struct weir_s3_config *config,
                         const char *profile, const char *command)
{
    *out = weir_s3_place_new(config, weir_s3_ask_process, "the credential_process of profile '%s'",
                             profile);
    if (!*out)
        return -ENOMEM;
    (*out)->command = command;
    return 0;
}

/* Logins in a browser are the AWS CLI's to renew: it hands out what comes of them. */
static int refuse_login(struct weir_s3_config *config, const char *profile)
{
    static const char *const names[] = {"sso_session", "sso_start_url", "login_session"};
    const char *found = NULL;
    int code = 0;
    for (size_t i = 0; !code && !found && i < sizeof names / sizeof names[0]; i++) {
        code = weir_s3_profile_get(&found, config, profile, names[i]);
        if (found)
            code = weir_fail(EACCES,
                             "profile '%s' logs in with %s, which Weir does not do: let the AWS "
                             "CLI hand the keys over, with a profile of its own that says "
                             "\"credential_process = aws configure export-credentials --profile %s "
                             "--format process\"",
                             profile, names[i], profile);
    }
    return code;
}

int weir_s3_profile_place(struct weir_s3_place **out, struct weir_s3_config *config,
                          const char *profile, unsigned depth)
{
    const char *role = NULL, *id = NULL, *secret = NULL, *command = NULL;
    if (depth == WEIR_S3_ROLES_MAX)
        return weir_fail(EACCES,
                         "profile '%s': more than %d profiles that assume a role from the "
                         "next, or a circle of them",
                         profile, WEIR_S3_ROLES_MAX);
    int code = weir_s3_profile_get(&role, config, profile, "role_arn");
    if (!code && role)
        return role_place(out, config, profile, role, depth);
    if (!code)
        code = weir_s3_profile_get(&id, config, profile, "aws_access_key_id");
    if (!code && !id) /* half of a pair is a mistake to be told, not a reason to look elsewhere;
                         that it is a secret is why it is only looked for */
        secret = weir_s3_ini_get(config->credentials.text ? config->credentials.text : "",
                                 config->credentials.size, false, profile, "aws_secret_access_key",
                                 false)
                     .at;
    if (!code && (id || secret))
        return keys_place(out, config, profile);
    if (!code)
        code = weir_s3_profile_get(&command, config, profile, "credential_process");
    if (!code && command)
        return process_place(out, config, profile, command);
    return code ? code : refuse_login(config, profile);
}
