/* sums.c - see sums.h. */
#include "data/sums.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "util/err.h"

enum { HEX = 2 * WEIR_SHA256_BYTES };

void weir_sums_add(struct weir_json_out *text, const uint8_t sha256[WEIR_SHA256_BYTES],
                   const char *name)
{
    char hex[HEX + 1];
    weir_hex(hex, sha256, WEIR_SHA256_BYTES);
    if (strpbrk(name, "\\\n\r"))
        weir_json_put(text, "\\", 1);
    weir_json_put(text, hex, HEX);
    weir_json_put(text, "  ", 2);
    for (size_t plain; *name; name += plain) {
        plain = strcspn(name, "\\\n\r");
        weir_json_put(text, name, plain);
        name += plain;
        plain = *name != 0;
        if (*name)
            weir_json_put(text, *name == '\\' ? "\\\\" : *name == '\n' ? "\\n" : "\\r", 2);
    }
    weir_json_put(text, "\n", 1);
}

/* The name of a line, its escapes resolved; false if it is none. */
static bool read_name(char out[WEIR_NAME_BYTES_MAX], const char *at, const char *end, bool escaped)
{
    size_t size = 0;
    for (; at < end; at++) {
        char c = *at;
        if (escaped && c == '\\') {
            if (++at == end)
                return false;
            c = *at == '\\' ? '\\' : *at == 'n' ? '\n' : *at == 'r' ? '\r' : 0;
        }
        if (!c || size == WEIR_NAME_BYTES_MAX - 1)
            return false;
        out[size++] = c;
    }
    out[size] = 0;
    return size > 0;
}

static bool read_line(struct weir_sums_line *out, const char *at, const char *end)
{
    char hex[HEX + 1] = "";
    bool escaped = at < end && *at == '\\';
    at += escaped;
    if (end - at < HEX + 3 || at[HEX] != ' ' || (at[HEX + 1] != ' ' && at[HEX + 1] != '*'))
        return false;
    memcpy(hex, at, HEX);
    return !weir_unhex(out->sha256, WEIR_SHA256_BYTES, hex) &&
           read_name(out->name, at + HEX + 2, end, escaped);
}

int weir_sums_next(const char *begin, const char **at, const char *end, struct weir_sums_line *out)
{
    if (*at == end)
        return 0;
    const char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));
    if (!stop)
        stop = end; /* a last line that nobody ended */
    if (!read_line(out, line, stop))
        return weir_fail(EBADMSG,
                         "at byte %zu: not a line of sha256sum: 64 lower-case hex digits, two "
                         "blanks, a name",
                         (size_t)(line - begin));
    *at = stop < end ? stop + 1 : end;
    return 1;
}
