/* json.h - reads JSON from memory, one token at a time, without building a tree: headers and
 * manifests have millions of entries. Pure functions; the reader takes any bytes.
 *
 *     struct weir_json json;
 *     weir_json_begin(&json, text, size);
 *     while ((code = weir_json_next(&json)) == 1)
 *         … json.token, json.text, json.size, json.depth …
 *
 * It accepts RFC 8259: valid UTF-8, no duplicate check (that is the caller's), at most
 * WEIR_JSON_DEPTH_MAX levels. After the first failure it stays failed.
 */
#ifndef WEIR_UTIL_JSON_H
#define WEIR_UTIL_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_JSON_DEPTH_MAX = 64 };

enum weir_json_token {
    WEIR_JSON_OBJECT, /* { */
    WEIR_JSON_ARRAY,  /* [ */
    WEIR_JSON_END,    /* } or ] of what depth says, after it was left */
    WEIR_JSON_KEY,    /* a member's name; its value is the next token */
    WEIR_JSON_STRING,
    WEIR_JSON_NUMBER,
    WEIR_JSON_TRUE,
    WEIR_JSON_FALSE,
    WEIR_JSON_NULL,
};

struct weir_json {
    enum weir_json_token token;
    const char *text; /* of a key, string or number: as written, without the quotes */
    size_t size;
    bool escaped; /* the text of a key or string has escapes: see weir_json_text() */
    unsigned depth;

    const char *begin, *at, *end; /* the reader's */
    uint64_t objects;             /* one bit for each level: is it an object? */
    uint8_t want;
    int code;
};

void weir_json_begin(struct weir_json *json, const char *text, size_t size);
/* 1: a token; 0: the end; -EINVAL with a text that names the byte. */
int weir_json_next(struct weir_json *json);
/* Is that one JSON text? 0, or -EINVAL as above. */
int weir_json_check(const char *text, size_t size);
/* Steps over the rest of the value whose first token is the current one (a key: over its value). */
int weir_json_skip(struct weir_json *json);
/* Copies a key or string with its escapes resolved: its length, which is at most json->size; out
 * has room for that and a NUL. */
size_t weir_json_text(const struct weir_json *json, char *out);
/* A number that is a whole one and fits; false if not. */
bool weir_json_uint(const struct weir_json *json, uint64_t *out);

/* A JSON text being written, in memory that grows. The first failure sticks. */
struct weir_json_out {
    char *text; /* the caller frees it; not terminated */
    size_t size, room;
    bool failed; /* out of memory */
};
void weir_json_put(struct weir_json_out *out, const char *text, size_t size);
void weir_json_puts(struct weir_json_out *out, const char *text);
/* With quotes and escapes; bytes that are not UTF-8 are the caller's mistake. */
void weir_json_put_string(struct weir_json_out *out, const char *text, size_t size);
void weir_json_put_uint(struct weir_json_out *out, uint64_t value);
/* A finite number: the shortest text that reads back as the same, and looks like no whole one. */
void weir_json_put_double(struct weir_json_out *out, double value);

#endif
