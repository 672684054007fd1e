/* json_read.h - reads JSON of a known form, one value after the other: what is not as it should be
 * is -EINVAL, with a text that names it. Pure functions.
 */
#ifndef WEIR_DATA_JSON_READ_H
#define WEIR_DATA_JSON_READ_H

#include "util/arena.h"
#include "util/json.h"

/* 0, where weir_json_next() would say 1; there must be more. */
int weir_json_more(struct weir_json *json);
/* Steps over a value (of a key: over its value): 0. */
int weir_json_over(struct weir_json *json);
/* Is this token that key? */
bool weir_json_is(const struct weir_json *json, const char *key);
/* The next token is of that kind; `what` names it. */
int weir_json_want(struct weir_json *json, enum weir_json_token token, const char *what);
int weir_json_want_uint(struct weir_json *json, const char *what, uint64_t *out);
/* A string, terminated, in the arena; null leaves *out as it is. */
int weir_json_want_text(struct weir_json *json, struct weir_arena **arena, const char *what,
                        const char **out);
/* The text of the current token, a key or a string: the same. */
int weir_json_take(const struct weir_json *json, struct weir_arena **arena, const char **out,
                   size_t *size);

#endif
