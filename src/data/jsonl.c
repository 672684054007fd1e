/* jsonl.c - JSON lines: a sample is a line, without its newline; blank lines are none. The members
 * of its object are the fields; what is nested stays JSON. A line that is no object is one field
 * "json".
 */
#include "data/jsonl.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/field.h"
#include "data/shards.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/json.h"

static bool is_jsonl(const char *name, size_t size)
{
    return weir_name_ends(name, size, ".jsonl") || weir_name_ends(name, size, ".ndjson");
}

static int match(const struct weir_survey *survey)
{
    return weir_shards_match(survey, is_jsonl);
}

static int survey_lines(struct weir_survey *survey)
{
    return weir_shards_survey(survey, is_jsonl, "*.jsonl or *.ndjson");
}

/* ---- lines ---- */

/* The line that is being read. */
struct line {
    uint64_t number, begin, end;
    bool blank;
    uint8_t last; /* its last byte so far */
};

static int end_line(struct line *line, uint64_t next, weir_sample_fn fn, void *arg)
{
    uint64_t size = line->end - line->begin - (line->last == '\r');
    int code = line->blank ? 0 : fn(arg, line->begin, size);
    *line = (struct line){line->number + 1, next, next, true, 0};
    return code;
}

static int add_piece(struct line *line, const uint8_t *data, size_t size)
{
    for (size_t i = 0; line->blank && i < size; i++)
        line->blank = data[i] == ' ' || data[i] == '\t' || data[i] == '\r';
    if (size)
        line->last = data[size - 1];
    line->end += size;
    if (line->end - line->begin > WEIR_JSONL_LINE_MAX)
        return weir_fail(EBADMSG, "line %" PRIu64 " is longer than %" PRIu64 " MiB", line->number,
                         WEIR_JSONL_LINE_MAX >> 20);
    return 0;
}

/* Some editors begin a file with a mark that it is UTF-8. */
static int skip_mark(struct weir_flow *flow, struct line *line)
{
    const uint8_t *data;
    size_t size;
    int code = weir_flow_peek(flow, 3, &data, &size);
    if (code || size < 3 || memcmp(data, "\xef\xbb\xbf", 3))
        return code;
    line->begin = line->end = 3;
    return weir_flow_skip(flow, 3);
}

static int scan(struct weir_flow *flow, const struct weir_shard_plan *shard, const void *schema,
                weir_sample_fn fn, void *arg)
{
    (void)shard;
    (void)schema;
    struct line line = {.number = 1, .blank = true};
    int code = skip_mark(flow, &line);
    while (!code) {
        const uint8_t *data, *newline;
        size_t size;
        code = weir_flow_peek(flow, 1, &data, &size);
        if (code)
            return code;
        if (!size)
            return end_line(&line, 0, fn, arg);
        newline = memchr(data, '\n', size);
        size_t piece = newline ? (size_t)(newline - data) : size;
        code = add_piece(&line, data, piece);
        if (!code)
            code = weir_flow_skip(flow, piece + (newline != NULL));
        if (!code && newline)
            code = end_line(&line, weir_flow_at(flow), fn, arg);
    }
    return code;
}

/* ---- numbers ---- */

enum { NUMBER_BYTES = 64 }; /* longer ones are copied elsewhere */

/* A whole number that fits; 0 is not told from -0. */
static bool whole_of(const struct weir_json *json, int64_t *out)
{
    return weir_text_i64(json->text, json->size, out);
}

/* Is it written as a whole number? */
static bool looks_whole(const struct weir_json *json)
{
    for (size_t i = 0; i < json->size; i++)
        if (strchr(".eE", json->text[i]))
            return false;
    return true;
}

static int double_of(const struct weir_json *json, struct weir_arena **scratch, double *out)
{
    char room[NUMBER_BYTES], *text = room;
    if (json->size >= NUMBER_BYTES && !(text = weir_arena_take(scratch, json->size + 1)))
        return weir_fail_memory();
    memcpy(text, json->text, json->size);
    text[json->size] = 0;
    *out = strtod(text, NULL);
    return 0;
}

/* ---- arrays ---- */

/* What an array holds; `whole` and `other` count numbers. */
struct array {
    const char *begin;
    size_t size;
    uint64_t whole, other;
    bool plain; /* nothing but numbers that can be kept exactly */
};

/* Steps over the array whose first token is the current one. */
static int walk_array(struct weir_json *json, struct array *out)
{
    unsigned depth = json->depth - 1;
    bool large = false; /* beyond 2^53: not exact among others that have a point */
    int code;
    *out = (struct array){.begin = json->at - 1, .plain = true};
    while ((code = weir_json_next(json)) == 1 && json->depth > depth) {
        int64_t value;
        if (json->token != WEIR_JSON_NUMBER || json->depth != depth + 1) {
            out->plain = false;
        } else if (!looks_whole(json)) {
            out->other++;
        } else {
            out->whole++;
            out->plain = out->plain && whole_of(json, &value);
            large = large || (out->plain && (value > 1ll << 53 || value < -(1ll << 53)));
        }
    }
    out->size = (size_t)(json->at - out->begin);
    out->plain = out->plain && out->whole + out->other && !(large && out->other);
    return code < 0 ? code : 0;
}

static int fill_array(const struct array *array, struct weir_arena **scratch, uint8_t *at)
{
    struct weir_json json;
    weir_json_begin(&json, array->begin, array->size);
    while (weir_json_next(&json) == 1) {
        int64_t whole = 0;
        double real = 0;
        uint64_t word;
        if (json.token != WEIR_JSON_NUMBER)
            continue;
        if (array->other) {
            int code = double_of(&json, scratch, &real);
            if (code)
                return code;
            memcpy(&word, &real, sizeof word);
        } else {
            (void)whole_of(&json, &whole);
            word = (uint64_t)whole;
        }
        weir_store_le(at, word, 8);
        at += 8;
    }
    return 0;
}

static int set_array(struct weir_field *field, const char *name, size_t name_size,
                     const struct array *array, struct weir_arena **scratch)
{
    if (!array->plain) {
        weir_field_set(field, name, name_size, WEIR_FIELD_JSON, array->begin, array->size);
        return 0;
    }
    uint64_t count = array->whole + array->other; /* each took a byte at least */
    uint8_t *data = weir_arena_take(scratch, (size_t)count * 8);
    if (!data)
        return weir_fail_memory();
    weir_field_set(field, name, name_size, WEIR_FIELD_ARRAY, data, (size_t)count * 8);
    strcpy(field->dtype, array->other ? "<f8" : "<i8");
    field->ndim = 1;
    field->shape[0] = count;
    return fill_array(array, scratch, data);
}

/* ---- fields ---- */

/* A key or string: where it is, or with its escapes resolved. */
static int text_of(const struct weir_json *json, struct weir_arena **scratch, const char **out,
                   size_t *size)
{
    *out = json->text;
    *size = json->size;
    if (!json->escaped)
        return 0;
    char *copy = weir_arena_take(scratch, json->size + 1);
    if (!copy)
        return weir_fail_memory();
    *size = weir_json_text(json, copy);
    *out = copy;
    return 0;
}

static int set_number(struct weir_field *field, const char *name, size_t name_size,
                      const struct weir_json *json, struct weir_arena **scratch)
{
    int64_t whole;
    double real = 0;
    if (whole_of(json, &whole))
        return weir_field_put_i64(field, name, name_size, whole, scratch);
    if (looks_whole(json)) { /* with more digits than a number here has */
        weir_field_set(field, name, name_size, WEIR_FIELD_JSON, json->text, json->size);
        return 0;
    }
    int code = double_of(json, scratch, &real);
    return code ? code : weir_field_put_f64(field, name, name_size, real, scratch);
}

/* The value whose first token is the current one; steps over all of it. */
static int set_value(struct weir_field *field, const char *name, size_t name_size,
                     struct weir_json *json, struct weir_arena **scratch)
{
    static const uint8_t truths[] = {0, 1};
    const char *text = json->at - 1;
    struct array array;
    size_t size;
    int code;
    switch (json->token) {
    case WEIR_JSON_STRING:
        code = text_of(json, scratch, &text, &size);
        if (!code)
            weir_field_set(field, name, name_size, WEIR_FIELD_TEXT, text, size);
        return code;
    case WEIR_JSON_NUMBER:
        return set_number(field, name, name_size, json, scratch);
    case WEIR_JSON_TRUE:
    case WEIR_JSON_FALSE:
        weir_field_set_number(field, name, name_size, "|b1",
                              &truths[json->token == WEIR_JSON_TRUE]);
        return 0;
    case WEIR_JSON_NULL:
        weir_field_set(field, name, name_size, WEIR_FIELD_NONE, NULL, 0);
        return 0;
    case WEIR_JSON_ARRAY:
        code = walk_array(json, &array);
        return code ? code : set_array(field, name, name_size, &array, scratch);
    default:
        code = weir_json_skip(json);
        weir_field_set(field, name, name_size, WEIR_FIELD_JSON, text, (size_t)(json->at - text));
        return code < 0 ? code : 0;
    }
}

/* One member, whose name is the current token. */
static int take_member(struct weir_json *json, struct weir_arena **scratch,
                       struct weir_field *fields, uint32_t used, uint32_t room)
{
    const char *name;
    size_t size;
    int code = text_of(json, scratch, &name, &size);
    if (code)
        return code;
    for (uint32_t i = 0; i < used; i++)
        if (fields[i].name_size == size && !memcmp(fields[i].name, name, size))
            return weir_fail(EBADMSG, "two members are named '%.*s'", (int)size, name);
    if (used == room)
        return weir_fail(EBADMSG, "more than %u members", room);
    code = weir_json_next(json);
    return code < 0 ? code : set_value(&fields[used], name, size, json, scratch);
}

/* A failure of the JSON reader is one of the data. */
static int as_damage(int code)
{
    return code == -EINVAL ? weir_fail_in(-EBADMSG, "a line") : code;
}

static int fields(const void *schema, const struct weir_sample *sample, struct weir_arena **scratch,
                  struct weir_field *fields, uint32_t *count)
{
    (void)schema;
    struct weir_json json;
    uint32_t used = 0;
    int code;
    weir_json_begin(&json, (const char *)sample->data, sample->size);
    code = weir_json_next(&json);
    if (code == 1 && json.token != WEIR_JSON_OBJECT && *count) {
        code = weir_json_check((const char *)sample->data, sample->size);
        weir_field_set(&fields[0], "json", 4, WEIR_FIELD_JSON, sample->data, sample->size);
        *count = 1;
        return as_damage(code);
    }
    while (code == 1 && (code = weir_json_next(&json)) == 1 && json.token == WEIR_JSON_KEY) {
        code = take_member(&json, scratch, fields, used++, *count);
        code = code ? code : 1;
    }
    if (code == 1)
        code = weir_json_next(&json); /* nothing behind it */
    *count = used;
    return as_damage(code);
}

const struct weir_format weir_format_jsonl = {
    .name = "jsonl",
    .about = "JSON lines: an object a line, its members are the fields",
    .match = match,
    .survey = survey_lines,
    .scan = scan,
    .fields = fields,
    .writer = &weir_jsonl_writer,
};
