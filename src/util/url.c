/* url.c - see url.h. */
#include "util/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/err.h"
#include "util/hash.h"
#include "util/sys.h"

static int decode(char *text)
{
    char *out = text;
    for (; *text; text++) {
        if (*text != '%') {
            *out++ = *text;
            continue;
        }
        char pair[3] = {0};
        uint8_t byte;
        for (int i = 0; i < 2 && text[1 + i]; i++)
            pair[i] = (char)tolower((unsigned char)text[1 + i]);
        if (weir_unhex(&byte, 1, pair) || !byte)
            return -EINVAL;
        *out++ = (char)byte;
        text += 2;
    }
    *out = 0;
    return 0;
}

/* Length of a scheme at the front of text, or 0: a path like "a/b:c" has none. */
static size_t scheme_length(const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || (n && strchr("+-.", text[n]) && text[n]))
        n++;
    return n > 1 && text[n] == ':' ? n : 0;
}

/* Is that how somebody would call a secret? "aws_" in front and '_' within are as they like. */
static bool names_secret(const char *name)
{
    static const char *const words[] = {
        "key",   "accesskey",    "accesskeyid",   "secret",   "secretkey", "secretaccesskey",
        "token", "sessiontoken", "securitytoken", "password", "passwd",    "credentials"};
    char plain[32];
    size_t size = 0;
    if (!strncasecmp(name, "aws_", 4))
        name += 4;
    for (; *name && size < sizeof plain - 1; name++)
        if (*name != '_' && *name != '-')
            plain[size++] = (char)tolower((unsigned char)*name);
    plain[size] = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(plain, words[i]))
            return true;
    return false;
}

/* "user:password@" at the front of a host. */
static bool has_password(const char *text)
{
    const char *begin = strstr(text, "://");
    text = begin ? begin + 3 : text;
    size_t size = strcspn(text, "/?#");
    const char *colon = memchr(text, ':', size);
    return colon && memchr(colon, '@', size - (size_t)(colon - text));
}

/* Options of a URL that is an option's value. */
static bool holds_secret(const char *value)
{
    for (const char *at = strpbrk(value, "?&"); at; at = strpbrk(at + 1, "?&")) {
        char name[32];
        size_t size = strcspn(at + 1, "=&");
        memcpy(name, at + 1, size < sizeof name ? size : 0);
        name[size < sizeof name ? size : 0] = 0;
        if (names_secret(name))
            return true;
    }
    return has_password(value);
}

static int fail_secret(const char *where)
{
    return weir_fail(EINVAL,
                     "a URL must not hold a secret (%.32s): everybody can see it; put S3 keys into "
                     "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or into a profile "
                     "of ~/.aws/credentials (?profile=NAME)",
                     where);
}

static int parse_options(struct weir_url *url, char *query)
{
    for (char *save, *item = strtok_r(query, "&", &save); item; item = strtok_r(NULL, "&", &save)) {
        if (url->options == WEIR_URL_OPTIONS_MAX)
            return weir_fail(E2BIG, "more than %d options in a URL", WEIR_URL_OPTIONS_MAX);
        char *value = strchr(item, '=');
        if (value)
            *value++ = 0;
        else
            value = item + strlen(item);
        if (names_secret(item))
            return fail_secret(item);
        if (decode(value))
            return weir_fail(EINVAL, "option '%s': bad %%XX", item);
        if (holds_secret(value))
            return fail_secret(item);
        url->option[url->options].name = item;
        url->option[url->options++].value = value;
    }
    return 0;
}

int weir_url_parse(struct weir_url *out, const char *text)
{
    struct weir_url url = {.text = weir_strdup(text), .scheme = "file"};
    if (!url.text)
        return weir_fail_memory();
    int code = 0;
    size_t n = scheme_length(url.text);
    char *path = url.text;
    if (n) {
        url.text[n] = 0;
        url.scheme = url.text;
        path = url.text + n + 1;
        if (!strncmp(path, "//", 2))
            path += 2;
        char *query = strchr(path, '?');
        if (query)
            *query++ = 0;
        if (strcmp(url.scheme, "file") && has_password(path))
            code = fail_secret("in front of an @");
        else if (!strcmp(url.scheme, "file") && decode(path))
            code = weir_fail(EINVAL, "store '%s': bad %%XX in the path", text);
        else if (query)
            code = parse_options(&url, query);
    }
    url.path = path;
    if (code)
        weir_url_free(&url);
    else
        *out = url;
    return code;
}

void weir_url_free(struct weir_url *url)
{
    free(url->text);
    url->text = NULL;
}
