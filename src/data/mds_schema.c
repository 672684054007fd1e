/* mds_schema.c - the schema of an MDS dataset: see mds_columns.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/mds_columns.h"
#include "util/err.h"
#include "util/sys.h"

void weir_mds_schema_free(struct weir_mds_schema *schema)
{
    if (!schema)
        return;
    weir_arena_free(schema->arena);
    free(schema->exceptions);
    free(schema);
}

/* ---- from the shards ---- */

/* The number of this kind, which is new perhaps; or -errno. */
static int kind_of(struct weir_mds_schema *schema, const struct weir_mds_columns *columns)
{
    for (uint32_t i = 0; i < schema->count; i++)
        if (weir_mds_columns_same(&schema->kinds[i], columns))
            return (int)i;
    if (schema->count == WEIR_MDS_KINDS_MAX)
        return weir_fail(EINVAL, "its shards have more than %d different lists of columns",
                         WEIR_MDS_KINDS_MAX);
    struct weir_mds_columns *kind = &schema->kinds[schema->count];
    *kind = *columns;
    kind->list = weir_arena_take(&schema->arena, columns->count * sizeof *kind->list);
    if (!kind->list)
        return weir_fail_memory();
    for (uint32_t i = 0; i < columns->count; i++) {
        const struct weir_mds_column *c = &columns->list[i];
        int code = weir_mds_column_make(&kind->list[i], &schema->arena, c->name, c->name_size,
                                        c->encoding);
        if (code)
            return code;
    }
    return (int)schema->count++;
}

static int add_exception(struct weir_mds_schema *schema, const char *key, uint32_t kind)
{
    if (schema->exception_count == schema->exception_room) {
        size_t room = schema->exception_room ? 2 * schema->exception_room : 64;
        void *grown = weir_realloc(schema->exceptions, room * sizeof *schema->exceptions);
        if (!grown)
            return weir_fail_memory();
        schema->exceptions = grown;
        schema->exception_room = room;
    }
    char *copy = weir_arena_take(&schema->arena, strlen(key) + 1);
    if (!copy)
        return weir_fail_memory();
    schema->exceptions[schema->exception_count++] =
        (struct weir_mds_exception){strcpy(copy, key), kind};
    return 0;
}

int weir_mds_schema_add(struct weir_mds_schema *schema, const char *key,
                        const struct weir_mds_columns *columns)
{
    int kind = kind_of(schema, columns);
    return kind <= 0 ? kind : add_exception(schema, key, (uint32_t)kind);
}

void weir_mds_schema_write(const struct weir_mds_schema *schema, struct weir_json_out *out)
{
    weir_json_puts(out, "{\"columns\": [");
    for (uint32_t i = 0; i < schema->count; i++) {
        weir_json_puts(out, i ? ", [" : "[");
        for (uint32_t j = 0; j < schema->kinds[i].count; j++) {
            const struct weir_mds_column *c = &schema->kinds[i].list[j];
            weir_json_puts(out, j ? ", [" : "[");
            weir_json_put_string(out, c->name, c->name_size);
            weir_json_puts(out, ", ");
            weir_json_put_string(out, c->encoding, strlen(c->encoding));
            weir_json_puts(out, "]");
        }
        weir_json_puts(out, "]");
    }
    weir_json_puts(out, "]");
    for (size_t i = 0; i < schema->exception_count; i++) {
        weir_json_puts(out, i ? ", " : ", \"shards\": {");
        weir_json_put_string(out, schema->exceptions[i].key, strlen(schema->exceptions[i].key));
        weir_json_puts(out, ": ");
        weir_json_put_uint(out, schema->exceptions[i].kind);
    }
    weir_json_puts(out, schema->exception_count ? "}}" : "}");
}

/* ---- from JSON ---- */

static int bad_schema(void)
{
    return weir_fail(EINVAL, "the schema of MDS is {\"columns\": [[[name, encoding], …]]}");
}

static int next(struct weir_json *json, enum weir_json_token token)
{
    int code = weir_json_next(json);
    if (code < 0)
        return code;
    return code == 1 && json->token == token ? 0 : bad_schema();
}

/* A string as text that is terminated; NULL when there is no memory. */
static char *text_of(const struct weir_json *json, struct weir_arena **arena, size_t *size)
{
    char *text = weir_arena_take(arena, json->size + 1);
    if (text)
        *size = weir_json_text(json, text);
    return text;
}

/* [name, encoding], whose first bracket was read. */
static int read_column(struct weir_json *json, struct weir_arena **arena,
                       struct weir_mds_column *out)
{
    size_t name_size = 0, size;
    int code = next(json, WEIR_JSON_STRING);
    if (code)
        return code;
    char *name = text_of(json, arena, &name_size);
    code = next(json, WEIR_JSON_STRING);
    if (code)
        return code;
    char *encoding = text_of(json, arena, &size);
    if (!name || !encoding)
        return weir_fail_memory();
    code = next(json, WEIR_JSON_END);
    return code ? code : weir_mds_column_make(out, arena, name, name_size, encoding);
}

/* One list of columns, whose first bracket was read. */
static int read_kind(struct weir_json *json, struct weir_mds_schema *schema)
{
    struct weir_mds_columns *kind = &schema->kinds[schema->count];
    if (schema->count == WEIR_MDS_KINDS_MAX)
        return bad_schema();
    kind->list = weir_arena_take(&schema->arena, WEIR_FIELDS_MAX * sizeof *kind->list);
    if (!kind->list)
        return weir_fail_memory();
    for (int code; (code = weir_json_next(json)) && json->token != WEIR_JSON_END;) {
        if (code < 0)
            return code;
        if (json->token != WEIR_JSON_ARRAY || kind->count == WEIR_FIELDS_MAX)
            return bad_schema();
        code = read_column(json, &schema->arena, &kind->list[kind->count++]);
        if (code)
            return code;
    }
    schema->count++;
    return weir_mds_columns_check(kind);
}

static int read_kinds(struct weir_json *json, struct weir_mds_schema *schema)
{
    int code = next(json, WEIR_JSON_ARRAY);
    while (!code && (code = weir_json_next(json)) == 1 && json->token != WEIR_JSON_END)
        code = json->token == WEIR_JSON_ARRAY ? read_kind(json, schema) : bad_schema();
    return code == 1 ? 0 : code;
}

static int read_exceptions(struct weir_json *json, struct weir_mds_schema *schema)
{
    uint64_t kind;
    size_t size;
    int code = next(json, WEIR_JSON_OBJECT);
    while (!code && (code = weir_json_next(json)) == 1 && json->token != WEIR_JSON_END) {
        char *key = text_of(json, &schema->arena, &size);
        if (!key)
            return weir_fail_memory();
        code = next(json, WEIR_JSON_NUMBER);
        if (!code && (!weir_json_uint(json, &kind) || kind >= WEIR_MDS_KINDS_MAX))
            code = bad_schema();
        if (!code)
            code = add_exception(schema, key, (uint32_t)kind);
    }
    return code == 1 ? 0 : code;
}

static int by_key(const void *a, const void *b)
{
    const struct weir_mds_exception *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static int read_schema(struct weir_mds_schema *schema, const char *text, size_t size)
{
    struct weir_json json;
    weir_json_begin(&json, text, size);
    int code = next(&json, WEIR_JSON_OBJECT);
    while (!code && (code = weir_json_next(&json)) == 1 && json.token != WEIR_JSON_END) {
        if (json.size == 7 && !memcmp(json.text, "columns", 7) && !schema->count)
            code = read_kinds(&json, schema);
        else if (json.size == 6 && !memcmp(json.text, "shards", 6))
            code = read_exceptions(&json, schema);
        else
            code = bad_schema();
    }
    if (code == 1)
        code = weir_json_next(&json); /* nothing behind it */
    if (!code && !schema->count)
        code = bad_schema();
    for (size_t i = 0; !code && i < schema->exception_count; i++)
        if (schema->exceptions[i].kind >= schema->count)
            code = bad_schema();
    if (schema->exception_count)
        qsort(schema->exceptions, schema->exception_count, sizeof *schema->exceptions, by_key);
    return code;
}

int weir_mds_schema_read(struct weir_mds_schema **out, const char *json, size_t size)
{
    struct weir_mds_schema *schema = weir_alloc(sizeof *schema);
    if (!schema)
        return weir_fail_memory();
    int code = read_schema(schema, json, size);
    if (code) {
        weir_mds_schema_free(schema);
        return code;
    }
    *out = schema;
    return 0;
}

const struct weir_mds_columns *weir_mds_schema_of(const struct weir_mds_schema *schema,
                                                  const char *key)
{
    struct weir_mds_exception wanted = {key, 0}, *found = NULL;
    if (schema->exception_count)
        found =
            bsearch(&wanted, schema->exceptions, schema->exception_count, sizeof wanted, by_key);
    return &schema->kinds[found ? found->kind : 0];
}
