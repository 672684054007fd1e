/* s3_got.c - see s3_got.h. */
#include "tier/s3_got.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tier/s3_time.h"
#include "tier/s3_xml.h"
#include "util/err.h"
#include "util/json.h"
#include "util/sys.h"

void weir_s3_got_wipe(struct weir_s3_got *got)
{
    OPENSSL_cleanse(got, sizeof *got);
}

int weir_s3_got_take(char *field, size_t room, const char *what, const char *text, size_t size)
{
    if (field[0])
        return weir_fail(EACCES, "it has the %s twice", what);
    if (!size || size >= room)
        return weir_fail(EACCES, "its %s is %s", what, size ? "too long to be one" : "empty");
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] <= 0x20 || (unsigned char)text[i] >= 0x7f)
            return weir_fail(EACCES, "its %s holds blanks or characters that none has", what);
    memcpy(field, text, size);
    field[size] = 0;
    return 0;
}

/* What both forms call their fields. */
static int take_field(struct weir_s3_got *got, const char *name, const char *text, size_t size)
{
    if (!strcmp(name, "AccessKeyId"))
        return weir_s3_got_take(got->id, sizeof got->id, "access key id", text, size);
    if (!strcmp(name, "SecretAccessKey"))
        return weir_s3_got_take(got->secret, sizeof got->secret, "secret access key", text, size);
    if (!strcmp(name, "SessionToken") || !strcmp(name, "Token"))
        return size ? weir_s3_got_take(got->token, sizeof got->token, "session token", text, size)
                    : 0;
    if (!strcmp(name, "Expiration") &&
        (!weir_s3_time_iso(&got->until_ns, text, size) || !got->until_ns))
        return weir_fail(EACCES, "its expiration is no time");
    return 0;
}

static int complete(const struct weir_s3_got *got)
{
    if (!got->id[0] || !got->secret[0])
        return weir_fail(EACCES, "it has no %s",
                         got->id[0] ? "secret access key" : "access key id");
    return 0;
}

/* ---- JSON ---- */

enum { NAME_MAX_BYTES = 32 };

struct json_answer {
    struct weir_s3_got *got;
    char *text;     /* for unescaped values, as large as the answer */
    char code[64];  /* of IMDS: "Success", or why not */
    bool version_1; /* it said so */
};

static int skip(struct weir_json *json)
{
    int code = weir_json_skip(json);
    return code < 0 ? code : 0;
}

/* The value behind a name of the outermost object. */
static int json_value(struct json_answer *answer, struct weir_json *json, const char *name)
{
    uint64_t version;
    if (!strcmp(name, "Version")) {
        answer->version_1 =
            json->token == WEIR_JSON_NUMBER && weir_json_uint(json, &version) && version == 1;
        return skip(json);
    }
    if (json->token != WEIR_JSON_STRING)
        return skip(json);
    size_t size = weir_json_text(json, answer->text);
    if (strlen(answer->text) != size)
        return weir_fail(EACCES, "it holds a NUL");
    if (!strcasecmp(name, "Code") && size < sizeof answer->code)
        memcpy(answer->code, answer->text, size + 1);
    return take_field(answer->got, name, answer->text, size);
}

static int read_json(struct json_answer *answer, const char *text, size_t size)
{
    struct weir_json json;
    char name[NAME_MAX_BYTES];
    weir_json_begin(&json, text, size);
    int code = weir_json_next(&json);
    if (code == 1 && json.token != WEIR_JSON_OBJECT)
        return weir_fail(EACCES, "it is no JSON object");
    while (code == 1 && (code = weir_json_next(&json)) == 1) {
        if (json.token != WEIR_JSON_KEY)
            continue;
        name[0] = 0;
        if (json.size < sizeof name)
            weir_json_text(&json, name);
        code = weir_json_next(&json);
        if (code == 1 && (code = json_value(answer, &json, name)) == 0)
            code = 1;
    }
    if (code == -EINVAL)
        return weir_fail(EACCES, "it is no JSON");
    return code;
}

/* Codes are words like "AssumeRoleUnauthorizedAccess"; what is not is not shown. */
static bool is_code(const char *text)
{
    return text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.")] == 0;
}

int weir_s3_got_json(struct weir_s3_got *out, const char *text, size_t size, bool versioned)
{
    struct weir_s3_got got = {0};
    struct json_answer answer = {.got = &got};
    if (size > WEIR_S3_GOT_BYTES_MAX)
        return weir_fail(EACCES, "it is larger than %d bytes", WEIR_S3_GOT_BYTES_MAX);
    answer.text = weir_alloc(size + 1);
    if (!answer.text)
        return weir_fail_memory();
    int code = read_json(&answer, text, size);
    if (!code && answer.code[0] && strcmp(answer.code, "Success"))
        code = weir_fail(EACCES, "it says '%s'", is_code(answer.code) ? answer.code : "no");
    if (!code && versioned && !answer.version_1)
        code = weir_fail(EACCES, "it does not say \"Version\": 1");
    if (!code)
        code = complete(&got);
    if (!code)
        *out = got;
    weir_s3_got_wipe(&got);
    OPENSSL_cleanse(answer.text, size + 1);
    free(answer.text);
    return code;
}

/* ---- XML ---- */

static int read_xml(struct weir_s3_got *got, char *value, const char *text, size_t size)
{
    struct weir_s3_xml xml;
    char error[64] = "";
    int code;
    weir_s3_xml_begin(&xml, text, size);
    while ((code = weir_s3_xml_next(&xml)) == 1) {
        if (xml.token != WEIR_S3_XML_CLOSE || !xml.text)
            continue;
        size_t length = weir_s3_xml_text(&xml, value);
        if (weir_s3_xml_in(&xml, "Error") && !strcmp(xml.name, "Code") && length < sizeof error)
            memcpy(error, value, length + 1);
        if (weir_s3_xml_in(&xml, "Credentials") &&
            (code = take_field(got, xml.name, value, length)))
            return code;
    }
    if (code)
        return weir_fail(EACCES, "it is no XML");
    if (error[0])
        return weir_fail(EACCES, "it says '%s'", is_code(error) ? error : "no");
    return complete(got);
}

int weir_s3_got_xml(struct weir_s3_got *out, const char *text, size_t size)
{
    struct weir_s3_got got = {0};
    if (size > WEIR_S3_GOT_BYTES_MAX)
        return weir_fail(EACCES, "it is larger than %d bytes", WEIR_S3_GOT_BYTES_MAX);
    char *value = weir_alloc(size + 1);
    if (!value)
        return weir_fail_memory();
    int code = read_xml(&got, value, text, size);
    if (!code)
        *out = got;
    weir_s3_got_wipe(&got);
    OPENSSL_cleanse(value, size + 1);
    free(value);
    return code;
}
