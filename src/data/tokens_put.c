/* tokens_put.c - see tokens_put.h. The samples of a shard follow each other without anything
 * between them. Only Megatron's layout says where documents begin: where the field "starts" of a
 * sample does, or without one, with every sample; and with every file, for none goes on in the
 * next.
 *
 * The schema may say {"dtype": "u16" or "u32", "layout": "llm.c", "nanogpt" or "megatron"}. Without
 * it, tokens are u32 where the first sample's numbers are wider than 16 bits (i32 in Megatron's),
 * and the layout is llm.c's, unless that sample says that a document begins with its first token:
 * this is known from an index (the token that ends one cannot tell), and would be lost.
 */
#include "data/tokens_put.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/field.h"
#include "data/token_file.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/json.h"
#include "util/sys.h"

#define TOKENS_MAX INT32_MAX /* the head of llm.c counts in 32 bits */

enum layout { UNKNOWN, LLMC, NANOGPT, MEGATRON };
static const char *const layouts[] = {NULL, "llm.c", "nanogpt", "megatron"};

struct writer {
    struct weir_growing tokens;
    struct weir_growing starts; /* u32 each: where documents begin, of Megatron's */
    uint64_t count;
    uint32_t given, width; /* 0: not known yet */
    enum layout given_layout, layout;
    uint8_t head[WEIR_LLMC_HEAD_BYTES]; /* of the last shard */
};

static void name(char out[64], uint32_t i, const char *codec)
{
    (void)codec;
    snprintf(out, 64, "tokens_%06u.bin", i);
}

static bool is_text(const char *text, size_t size, const char *word)
{
    return size == strlen(word) && !memcmp(text, word, size);
}

static int read_member(struct writer *w, const char *member, size_t size,
                       const struct weir_json *value)
{
    char text[32] = "";
    if (value->token == WEIR_JSON_STRING && value->size < sizeof text)
        text[weir_json_text(value, text)] = 0;
    if (is_text(member, size, "dtype")) {
        const char *dtype = weir_token_dtype(text);
        if (!dtype || (strcmp(dtype, "<u2") && strcmp(dtype, "<u4")))
            return weir_fail(EINVAL, "tokens are written as u16 or u32, not as '%s'", text);
        w->given = (uint32_t)weir_dtype_bytes(dtype);
    } else if (is_text(member, size, "layout")) {
        for (enum layout i = LLMC; i <= MEGATRON; i++)
            if (!strcmp(text, layouts[i]))
                w->given_layout = i;
        if (!w->given_layout)
            return weir_fail(
                EINVAL, "the layout of token files is llm.c, nanogpt or megatron, not '%s'", text);
    } else {
        return weir_fail(EINVAL, "a schema for tokens has dtype and layout, not '%.*s'", (int)size,
                         member);
    }
    return 0;
}

static int read_schema(struct writer *w, const char *text)
{
    struct weir_json json;
    int code;
    weir_json_begin(&json, text, strlen(text));
    if (weir_json_next(&json) != 1 || json.token != WEIR_JSON_OBJECT)
        return weir_fail(EINVAL, "the schema for tokens is no JSON object");
    while ((code = weir_json_next(&json)) == 1 && json.token == WEIR_JSON_KEY) {
        const char *member = json.text;
        size_t size = json.size;
        if ((code = weir_json_next(&json)) == 1)
            code = read_member(w, member, size, &json);
        if (code < 0)
            return code;
    }
    return code < 0 ? code : 0;
}

static int open_writer(void **out, const struct weir_writing *how)
{
    if (how->codec && *how->codec)
        return weir_fail(EINVAL, "token files are not compressed: they are read at any place");
    struct writer *w = weir_alloc(sizeof *w);
    if (!w)
        return weir_fail_memory();
    int code = how->schema ? read_schema(w, how->schema) : 0;
    if (code)
        free(w);
    else
        *out = w;
    return code;
}

static void close_writer(void *writer)
{
    struct writer *w = writer;
    weir_growing_free(&w->tokens);
    weir_growing_free(&w->starts);
    free(w);
}

/* The field with the tokens: the one of that name, else the only array. */
static const struct weir_field *find_tokens(const struct weir_field *fields, uint32_t count)
{
    const struct weir_field *only = NULL;
    uint32_t arrays = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (fields[i].kind != WEIR_FIELD_ARRAY)
            continue;
        if (weir_field_is(&fields[i], "tokens"))
            return &fields[i];
        only = &fields[i];
        arrays++;
    }
    return arrays == 1 ? only : NULL;
}

static const struct weir_field *find_starts(const struct weir_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (weir_field_is(&fields[i], "starts") && fields[i].kind == WEIR_FIELD_ARRAY &&
            weir_token_dtype(fields[i].dtype))
            return &fields[i];
    return NULL;
}

/* -1 is 2^64 - 1: too large for any token. */
static uint64_t number_at(const struct weir_field *field, uint64_t i, uint32_t width)
{
    uint64_t value = weir_load_le((const uint8_t *)field->data + i * width, width);
    bool negative = field->dtype[1] == 'i' && value >> (8 * width - 1);
    return negative ? UINT64_MAX : value;
}

/* Megatron has no u32. */
static uint64_t token_max(const struct writer *w)
{
    return w->width == 2 ? UINT16_MAX : w->layout == MEGATRON ? INT32_MAX : UINT32_MAX;
}

static int add_numbers(struct writer *w, uint64_t number, const struct weir_field *field)
{
    uint32_t width = (uint32_t)weir_dtype_bytes(field->dtype);
    uint64_t count = field->size / width, max = token_max(w);
    int code = weir_growing_room(&w->tokens, count * w->width);
    for (uint64_t i = 0; !code && i < count; i++) {
        uint64_t token = number_at(field, i, width);
        if (token > max)
            return weir_fail(EINVAL, "sample %" PRIu64 ": token %" PRIu64 " does not fit into %s%s",
                             number, i,
                             w->width == 2      ? "u16"
                             : max == INT32_MAX ? "i32"
                                                : "u32",
                             w->width == 2 ? ": choose dtype u32" : "");
        weir_store_le(w->tokens.data + w->tokens.size + i * w->width, token, w->width);
    }
    if (!code) {
        w->tokens.size += count * w->width;
        w->count += count;
    }
    return code;
}

/* A document begins at this token of the shard; one that is empty is none. */
static int add_start(struct writer *w, uint64_t at)
{
    uint32_t start = (uint32_t)at, last = 0;
    if (w->starts.size)
        memcpy(&last, w->starts.data + w->starts.size - sizeof last, sizeof last);
    if (w->starts.size && start <= last)
        return 0;
    return weir_growing_add(&w->starts, &start, sizeof start);
}

/* Of a sample of so many tokens, which is not yet counted. */
static int add_starts(struct writer *w, uint64_t number, uint64_t tokens,
                      const struct weir_field *starts)
{
    int code = w->count ? 0 : add_start(w, 0);
    if (!starts)
        return code ? code : add_start(w, w->count);
    uint32_t width = (uint32_t)weir_dtype_bytes(starts->dtype);
    for (uint64_t i = 0; !code && i < starts->size / width; i++) {
        uint64_t start = number_at(starts, i, width);
        if (start > tokens)
            return weir_fail(EINVAL,
                             "sample %" PRIu64 ": 'starts' says that a document begins at token "
                             "%" PRIu64 ", and it has %" PRIu64,
                             number, start, tokens);
        code = add_start(w, w->count + start);
    }
    return code;
}

/* What was not given goes by the first sample. */
static void settle(struct writer *w, const struct weir_field *tokens,
                   const struct weir_field *starts)
{
    uint32_t width = (uint32_t)weir_dtype_bytes(tokens->dtype);
    if (w->width)
        return;
    w->width = w->given ? w->given : width <= 2 ? 2 : 4;
    w->layout = w->given_layout;
    if (w->layout)
        return;
    bool told =
        starts && starts->size && !number_at(starts, 0, (uint32_t)weir_dtype_bytes(starts->dtype));
    w->layout = told ? MEGATRON : LLMC;
}

static int add(void *writer, uint64_t number, const char *key, const struct weir_field *fields,
               uint32_t count)
{
    struct writer *w = writer;
    const struct weir_field *field = find_tokens(fields, count);
    const struct weir_field *starts = find_starts(fields, count);
    (void)key;
    if (!field || !weir_token_dtype(field->dtype))
        return weir_fail(EINVAL,
                         "sample %" PRIu64 " has no field 'tokens' that is an array of whole "
                         "numbers: token files hold nothing else",
                         number);
    settle(w, field, starts);
    uint64_t tokens = field->size / (uint32_t)weir_dtype_bytes(field->dtype);
    if (tokens > TOKENS_MAX - w->count)
        return weir_fail(EFBIG, "a token file holds at most %d tokens: make smaller shards",
                         TOKENS_MAX);
    int code = w->layout == MEGATRON ? add_starts(w, number, tokens, starts) : 0;
    return code ? code : add_numbers(w, number, field);
}

static int schema(const void *writer, struct weir_growing *out)
{
    const struct writer *w = writer;
    char text[64];
    int size = snprintf(text, sizeof text, "{\"dtype\":\"u%u\",\"layout\":\"%s\"}", 8 * w->width,
                        layouts[w->layout]);
    return weir_growing_add(out, text, (size_t)size);
}

static int beside(void *writer, char out_name[64], uint32_t i, struct weir_growing *out)
{
    const struct writer *w = writer;
    const uint32_t *starts = (const uint32_t *)(const void *)w->starts.data;
    uint32_t count = (uint32_t)(w->starts.size / sizeof *starts);
    if (w->layout != MEGATRON)
        return 0;
    if (count && starts[count - 1] == w->count) /* it would be empty */
        count--;
    snprintf(out_name, 64, "tokens_%06u.idx", i);
    int code = weir_megatron_make(out, (uint32_t)w->count, w->width, starts, count);
    return code ? code : 1;
}

static int expect(const void *writer, uint64_t samples, uint64_t *head_bytes)
{
    const struct writer *w = writer;
    (void)samples;
    if (!w->given_layout)
        return weir_fail(EINVAL, "no layout of token files is given");
    *head_bytes = w->given_layout == LLMC ? sizeof w->head : 0;
    return 0;
}

static void drain(void *writer, struct weir_made *out)
{
    struct writer *w = writer;
    *out = (struct weir_made){.body = w->tokens.data, .body_size = w->tokens.size};
    w->tokens.size = 0;
}

static int finish(void *writer, struct weir_made *out)
{
    struct writer *w = writer;
    weir_token_head_make(w->head, (uint32_t)w->count, w->width ? w->width : 2);
    drain(w, out);
    out->head = w->head;
    out->head_size = w->layout <= LLMC ? sizeof w->head : 0;
    w->starts.size = 0;
    w->count = 0;
    w->width = 0;
    return 0;
}

const struct weir_format_writer weir_tokens_writer = {
    .name = name,
    .open = open_writer,
    .add = add,
    .beside = beside,
    .expect = expect,
    .drain = drain,
    .finish = finish,
    .close = close_writer,
    .schema = schema,
};
