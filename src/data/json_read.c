/* json_read.c - see json_read.h. */
#include "data/json_read.h"

#include <errno.h>
#include <string.h>

#include "util/err.h"

int weir_json_more(struct weir_json *json)
{
    int code = weir_json_next(json);
    return code == 1 ? 0 : code ? code : weir_fail(EINVAL, "it ends too early");
}

int weir_json_over(struct weir_json *json)
{
    int code = weir_json_skip(json);
    return code < 0 ? code : 0;
}

bool weir_json_is(const struct weir_json *json, const char *key)
{
    return json->token == WEIR_JSON_KEY && json->size == strlen(key) &&
           !memcmp(json->text, key, json->size);
}

int weir_json_want(struct weir_json *json, enum weir_json_token token, const char *what)
{
    int code = weir_json_more(json);
    if (code)
        return code;
    return json->token == token ? 0 : weir_fail(EINVAL, "%s is not what it should be", what);
}

int weir_json_want_uint(struct weir_json *json, const char *what, uint64_t *out)
{
    int code = weir_json_want(json, WEIR_JSON_NUMBER, what);
    if (code)
        return code;
    return weir_json_uint(json, out) ? 0 : weir_fail(EINVAL, "%s is no such number", what);
}

int weir_json_take(const struct weir_json *json, struct weir_arena **arena, const char **out,
                   size_t *size)
{
    char *text = weir_arena_take(arena, json->size + 1);
    if (!text)
        return weir_fail_memory();
    *size = weir_json_text(json, text);
    *out = text;
    return 0;
}

int weir_json_want_text(struct weir_json *json, struct weir_arena **arena, const char *what,
                        const char **out)
{
    size_t size;
    int code = weir_json_more(json);
    if (code || json->token == WEIR_JSON_NULL)
        return code;
    if (json->token != WEIR_JSON_STRING)
        return weir_fail(EINVAL, "%s is not a string", what);
    return weir_json_take(json, arena, out, &size);
}
