/* url.h - "scheme:rest?name=value&name=value", or a plain path, which is file:PATH. */
#ifndef WEIR_UTIL_URL_H
#define WEIR_UTIL_URL_H

#include <stddef.h>

enum { WEIR_URL_OPTIONS_MAX = 32 };

struct weir_url {
    char *text;         /* owns everything below */
    const char *scheme; /* "file" for a plain path */
    const char *path;   /* file:///x, file:/x, file:x and x all give the path */
    size_t options;
    struct {
        const char *name, *value;
    } option[WEIR_URL_OPTIONS_MAX];
};

/* %XX is decoded in option values and in paths of file: URLs (never in plain paths, whose '?' and
 * '%' are literal). -EINVAL with a text. URLs are shown to everybody (in process lists, logs and
 * errors), so one with a secret in it is refused: "secret=…", "s3://key:secret@…"; that text shows
 * nothing of it. */
int weir_url_parse(struct weir_url *out, const char *text);
void weir_url_free(struct weir_url *url);

#endif
