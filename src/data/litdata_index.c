/* litdata_index.c - see litdata_index.h. */
#include "data/litdata_index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/json_read.h"
#include "util/err.h"

/* What the config says, before it is looked at. */
struct config {
    const char *spec, *loader, *level, *ipc;
    const char *formats[WEIR_FIELDS_MAX];
    uint32_t count;
    bool encrypted;
};

/* ---- chunks ---- */

static int read_chunk(struct weir_json *json, struct weir_arena **arena,
                      struct weir_litdata_chunk *out)
{
    bool counted = false;
    int code = 0;
    *out = (struct weir_litdata_chunk){0};
    while (!code && !(code = weir_json_more(json)) && json->token == WEIR_JSON_KEY) {
        if (weir_json_is(json, "filename")) {
            code = weir_json_want_text(json, arena, "filename", &out->name);
        } else if (weir_json_is(json, "chunk_size")) {
            code = weir_json_want_uint(json, "chunk_size", &out->samples);
            counted = true;
        } else {
            code = weir_json_over(json);
        }
    }
    if (!code && (!out->name || !counted || out->samples > UINT32_MAX))
        code = weir_fail(EINVAL, "a chunk lacks its filename or its chunk_size");
    return code;
}

/* The list grows within the arena, which forgets nothing: twice what it holds. */
static int read_chunks(struct weir_json *json, struct weir_arena **arena, struct weir_litdata *out)
{
    size_t room = 0;
    int code = weir_json_want(json, WEIR_JSON_ARRAY, "chunks");
    out->chunk_count = 0;
    while (!code && !(code = weir_json_more(json)) && json->token != WEIR_JSON_END) {
        if (json->token != WEIR_JSON_OBJECT)
            return weir_fail(EINVAL, "a chunk is no object");
        if (out->chunk_count == room) {
            struct weir_litdata_chunk *grown;
            room = room ? 2 * room : 64;
            grown = weir_arena_take(arena, room * sizeof *grown);
            if (!grown)
                return weir_fail_memory();
            if (out->chunk_count)
                memcpy(grown, out->chunks, out->chunk_count * sizeof *grown);
            out->chunks = grown;
        }
        code = read_chunk(json, arena, &out->chunks[out->chunk_count++]);
    }
    return code;
}

/* ---- config ---- */

static int read_formats(struct weir_json *json, struct weir_arena **arena, struct config *config)
{
    size_t size;
    int code = weir_json_more(json);
    config->count = 0;
    if (code || json->token == WEIR_JSON_NULL)
        return code;
    if (json->token != WEIR_JSON_ARRAY)
        return weir_fail(EINVAL, "data_format is no list");
    while (!code && !(code = weir_json_more(json)) && json->token != WEIR_JSON_END) {
        if (json->token != WEIR_JSON_STRING || config->count == WEIR_FIELDS_MAX)
            return weir_fail(EINVAL, "data_format is not a list of at most %d strings",
                             WEIR_FIELDS_MAX);
        code = weir_json_take(json, arena, &config->formats[config->count++], &size);
    }
    return code;
}

static int read_config(struct weir_json *json, struct weir_arena **arena, struct weir_litdata *out,
                       struct config *config)
{
    int code = weir_json_want(json, WEIR_JSON_OBJECT, "config");
    while (!code && !(code = weir_json_more(json)) && json->token == WEIR_JSON_KEY) {
        if (weir_json_is(json, "data_format"))
            code = read_formats(json, arena, config);
        else if (weir_json_is(json, "data_spec"))
            code = weir_json_want_text(json, arena, "data_spec", &config->spec);
        else if (weir_json_is(json, "compression"))
            code = weir_json_want_text(json, arena, "compression", &out->compression);
        else if (weir_json_is(json, "compression_level"))
            code = weir_json_want_text(json, arena, "compression_level", &config->level);
        else if (weir_json_is(json, "ipc_compression"))
            code = weir_json_want_text(json, arena, "ipc_compression", &config->ipc);
        else if (weir_json_is(json, "item_loader"))
            code = weir_json_want_text(json, arena, "item_loader", &config->loader);
        else if (weir_json_is(json, "encryption") && !(code = weir_json_more(json))) {
            config->encrypted = json->token != WEIR_JSON_NULL;
            code = weir_json_over(json);
        } else if (!code)
            code = weir_json_over(json);
    }
    return code;
}

/* What Weir reads, and what it does not. */
static int check_config(const struct config *config, struct weir_litdata *out)
{
    if (config->encrypted)
        return weir_fail(ENOTSUP, "it is encrypted, which Weir does not read");
    if (*config->level && strcmp(config->level, "chunk") != 0)
        return weir_fail(ENOTSUP,
                         "its chunks are compressed inside (compression_level '%.20s'), which Weir "
                         "does not read: optimize() it with compression_level='chunk'",
                         config->level);
    if (*config->ipc)
        return weir_fail(ENOTSUP, "its items are rows of Arrow, which Weir does not read");
    out->tokens = !strcmp(config->loader, "TokensLoader");
    if (!out->tokens && strcmp(config->loader, "PyTreeLoader") != 0)
        return weir_fail(ENOTSUP,
                         "its item_loader is '%.40s'; Weir reads PyTreeLoader and "
                         "TokensLoader",
                         config->loader);
    if (!config->count || (out->tokens && config->count != 1))
        return weir_fail(EINVAL, "items of %" PRIu32 " leaves are none of this loader",
                         config->count);
    return 0;
}

/* Names from the tree; without one, leaves are counted. */
static int name_fields(const struct config *config, struct weir_arena **arena,
                       struct weir_litdata *out)
{
    out->count = config->count;
    out->fields = weir_arena_take(arena, WEIR_FIELDS_MAX * sizeof *out->fields);
    if (!out->fields)
        return weir_fail_memory();
    int count = config->spec ? weir_litdata_leaves(out->fields, WEIR_FIELDS_MAX, arena,
                                                   config->spec, strlen(config->spec))
                             : 0;
    if (count < 0)
        return count;
    if (config->spec && (uint32_t)count != config->count)
        return weir_fail(EINVAL, "its data_spec has %d leaves, its data_format %" PRIu32, count,
                         config->count);
    for (uint32_t i = 0; i < config->count; i++) {
        out->fields[i].serializer = config->formats[i];
        if (config->spec)
            continue;
        char *name = weir_arena_take(arena, 16);
        if (!name)
            return weir_fail_memory();
        snprintf(name, 16, "%" PRIu32, i);
        out->fields[i].name = name;
    }
    return 0;
}

int weir_litdata_index_read(struct weir_litdata *out, struct weir_arena **arena, const char *text,
                            size_t size)
{
    struct weir_json json;
    struct config *config = weir_arena_take(arena, sizeof *config);
    bool configured = false;
    if (!config)
        return weir_fail_memory();
    config->loader = "PyTreeLoader";
    config->level = config->ipc = "";
    *out = (struct weir_litdata){.compression = ""};
    weir_json_begin(&json, text, size);
    int code = weir_json_want(&json, WEIR_JSON_OBJECT, "the whole");
    while (!code && !(code = weir_json_more(&json)) && json.token == WEIR_JSON_KEY) {
        if (weir_json_is(&json, "chunks")) {
            code = read_chunks(&json, arena, out);
        } else if (weir_json_is(&json, "config")) {
            configured = true;
            code = read_config(&json, arena, out, config);
        } else {
            code = weir_json_over(&json);
        }
    }
    if (!code && (!configured || !out->chunk_count))
        code = weir_fail(EINVAL, "it has no chunks, or no config");
    if (!code)
        code = weir_json_next(&json); /* nothing behind it */
    if (!code)
        code = check_config(config, out);
    return code ? code : name_fields(config, arena, out);
}

/* ---- the schema ---- */

void weir_litdata_schema_write(const struct weir_litdata *data, struct weir_json_out *out)
{
    weir_json_puts(out, "{\"fields\": [");
    for (uint32_t i = 0; i < data->count; i++) {
        weir_json_puts(out, i ? ", [" : "[");
        weir_json_put_string(out, data->fields[i].name, strlen(data->fields[i].name));
        weir_json_puts(out, ", ");
        weir_json_put_string(out, data->fields[i].serializer, strlen(data->fields[i].serializer));
        weir_json_puts(out, "]");
    }
    weir_json_puts(out, data->tokens ? "], \"tokens\": true}" : "]}");
}

static int bad_schema(void)
{
    return weir_fail(EINVAL, "the schema of LitData is {\"fields\": [[name, serializer], …]}");
}

/* [name, serializer] */
static int read_field(struct weir_json *json, struct weir_arena **arena,
                      struct weir_litdata_field *out)
{
    if (json->token != WEIR_JSON_ARRAY)
        return bad_schema();
    int code = weir_json_want_text(json, arena, "a name", &out->name);
    if (!code)
        code = weir_json_want_text(json, arena, "a serializer", &out->serializer);
    if (!code)
        code = weir_json_want(json, WEIR_JSON_END, "a field");
    return code ? code : out->name && out->serializer ? 0 : bad_schema();
}

static int read_fields(struct weir_json *json, struct weir_arena **arena, struct weir_litdata *out)
{
    int code = weir_json_want(json, WEIR_JSON_ARRAY, "fields");
    out->count = 0;
    while (!code && !(code = weir_json_more(json)) && json->token != WEIR_JSON_END)
        code = out->count < WEIR_FIELDS_MAX ? read_field(json, arena, &out->fields[out->count++])
                                            : bad_schema();
    return code;
}

int weir_litdata_schema_read(struct weir_litdata *out, struct weir_arena **arena, const char *text,
                             size_t size)
{
    struct weir_json json;
    *out = (struct weir_litdata){.compression = ""};
    out->fields = weir_arena_take(arena, WEIR_FIELDS_MAX * sizeof *out->fields);
    if (!out->fields)
        return weir_fail_memory();
    weir_json_begin(&json, text, size);
    int code = weir_json_want(&json, WEIR_JSON_OBJECT, "the schema");
    while (!code && !(code = weir_json_more(&json)) && json.token == WEIR_JSON_KEY) {
        if (weir_json_is(&json, "fields")) {
            code = read_fields(&json, arena, out);
        } else if (weir_json_is(&json, "tokens") && !(code = weir_json_more(&json))) {
            out->tokens = json.token == WEIR_JSON_TRUE;
        } else if (!code) {
            code = bad_schema();
        }
    }
    if (!code && (!out->count || (out->tokens && out->count != 1)))
        code = bad_schema();
    return code ? code : weir_json_next(&json);
}
