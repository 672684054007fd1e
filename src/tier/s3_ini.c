/* s3_ini.c - see s3_ini.h. */
#include "tier/s3_ini.h"

#include <string.h>
#include <strings.h>

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct weir_s3_span trim(struct weir_s3_span span)
{
    while (span.size && blank(span.at[0]))
        span.at++, span.size--;
    while (span.size && blank(span.at[span.size - 1]))
        span.size--;
    return span;
}

static bool is(struct weir_s3_span span, const char *text)
{
    return span.size == strlen(text) && !memcmp(span.at, text, span.size);
}

/* Cuts the first line off *rest. */
static bool next_line(struct weir_s3_span *rest, struct weir_s3_span *line)
{
    if (!rest->size)
        return false;
    const char *end = memchr(rest->at, '\n', rest->size);
    size_t size = end ? (size_t)(end - rest->at) : rest->size;
    *line = (struct weir_s3_span){rest->at, size};
    rest->at += size + (end != NULL);
    rest->size -= size + (end != NULL);
    return true;
}

/* The profile that a section is of; an empty span if it is of none. */
static struct weir_s3_span section_profile(struct weir_s3_span line, bool is_config)
{
    const struct weir_s3_span none = {line.at, 0};
    const char *end = memchr(line.at, ']', line.size);
    if (!end)
        return none;
    struct weir_s3_span name =
        trim((struct weir_s3_span){line.at + 1, (size_t)(end - line.at) - 1});
    if (!is_config || is(name, "default"))
        return name;
    if (name.size < 9 || memcmp(name.at, "profile", 7) || !blank(name.at[7]))
        return none;
    name = trim((struct weir_s3_span){name.at + 7, name.size - 7});
    if (name.size > 2 && name.at[0] == '"' && name.at[name.size - 1] == '"')
        name = (struct weir_s3_span){name.at + 1, name.size - 2};
    return name;
}

static struct weir_s3_span without_comment(struct weir_s3_span value)
{
    for (size_t i = 1; i < value.size; i++)
        if ((value.at[i] == '#' || value.at[i] == ';') && blank(value.at[i - 1]))
            return trim((struct weir_s3_span){value.at, i});
    return value;
}

/* Walks over the lines of the profile's sections; name NULL asks for the section itself. */
static struct weir_s3_span find(const char *text, size_t size, bool is_config, const char *profile,
                                const char *name, bool raw)
{
    struct weir_s3_span rest = {text, size}, line, found = {NULL, 0};
    bool inside = false;
    while (next_line(&rest, &line)) {
        if (line.size && line.at[0] == '[') {
            inside = is(section_profile(line, is_config), profile);
            if (inside && !name)
                return line;
        }
        if (!inside || !name || !line.size || strchr("#;[ \t\r", line.at[0]))
            continue;
        const char *equals = memchr(line.at, '=', line.size);
        if (!equals)
            continue;
        struct weir_s3_span key = trim((struct weir_s3_span){line.at, (size_t)(equals - line.at)});
        if (key.size != strlen(name) || strncasecmp(key.at, name, key.size))
            continue;
        size_t used = (size_t)(equals - line.at) + 1;
        found = trim((struct weir_s3_span){equals + 1, line.size - used});
        if (!raw)
            found = without_comment(found);
    }
    return found;
}

bool weir_s3_ini_has(const char *text, size_t size, bool is_config, const char *profile)
{
    return find(text, size, is_config, profile, NULL, false).at != NULL;
}

struct weir_s3_span weir_s3_ini_get(const char *text, size_t size, bool is_config,
                                    const char *profile, const char *name, bool raw)
{
    return find(text, size, is_config, profile, name, raw);
}
