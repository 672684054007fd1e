/* markup.c - see markup.h. */
#include "cli/markup.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "util/utf8.h"

static const char unknown[] = "\xef\xbf\xbd";

static const char *entity_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '\t':
    case '\n':
    case '\r':
        return " ";
    default:
        return (unsigned char)c < 0x20 || c == 0x7f ? unknown : NULL;
    }
}

/* U+0080 to U+009F are control characters, U+FFFE and U+FFFF are none at all. */
static bool is_forbidden(const unsigned char *s, size_t length)
{
    return (length == 2 && s[0] == 0xc2 && s[1] < 0xa0) ||
           (length == 3 && s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe);
}

/* Writes the character at `at` and returns its length. */
static size_t put_one(FILE *out, const char *at, size_t room)
{
    const unsigned char *s = (const unsigned char *)at;
    size_t length = weir_utf8_length(s, room);
    const char *entity = length == 1 ? entity_of(*at) : NULL;
    if (!length || is_forbidden(s, length))
        fputs(unknown, out);
    else if (entity)
        fputs(entity, out);
    else
        fwrite(at, 1, length, out);
    return length ? length : 1;
}

static size_t length_of(const char *at, size_t room)
{
    size_t length = weir_utf8_length((const unsigned char *)at, room);
    return length ? length : 1;
}

void markup_text_cut(FILE *out, const char *text, int characters_max)
{
    size_t size = strlen(text);
    for (size_t at = 0; at < size; characters_max--) {
        if (characters_max <= 1 && at + length_of(text + at, size - at) < size) {
            fputs("…", out);
            return;
        }
        at += put_one(out, text + at, size - at);
    }
}

void markup_text(FILE *out, const char *text)
{
    markup_text_cut(out, text, INT_MAX);
}
