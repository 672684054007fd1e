/* mds_index.c - see mds_index.h. */
#include "data/mds_index.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "data/json_read.h"
#include "util/err.h"

enum { VERSION = 2 };

/* A shard as it stands in JSON: three lists that belong together. */
struct lists {
    const char *names[WEIR_FIELDS_MAX], *encodings[WEIR_FIELDS_MAX];
    size_t name_sizes[WEIR_FIELDS_MAX];
    uint64_t sizes[WEIR_FIELDS_MAX]; /* 0: null */
    uint32_t name_count, encoding_count, size_count;
};

/* ---- columns ---- */

/* ["a", "b"]; sizes may be NULL. */
static int read_strings(struct weir_json *json, struct weir_arena **arena, const char *what,
                        const char **list, size_t *sizes, uint32_t *count)
{
    size_t size;
    int code = weir_json_want(json, WEIR_JSON_ARRAY, what);
    *count = 0;
    while (!code && !(code = weir_json_more(json)) && json->token != WEIR_JSON_END) {
        if (json->token != WEIR_JSON_STRING || *count == WEIR_FIELDS_MAX)
            return weir_fail(EINVAL, "%s is not a list of at most %d strings", what,
                             WEIR_FIELDS_MAX);
        code = weir_json_take(json, arena, &list[*count], sizes ? &sizes[*count] : &size);
        ++*count;
    }
    return code;
}

static int read_sizes(struct weir_json *json, struct lists *lists)
{
    int code = weir_json_want(json, WEIR_JSON_ARRAY, "column_sizes");
    lists->size_count = 0;
    while (!code && !(code = weir_json_more(json)) && json->token != WEIR_JSON_END) {
        uint64_t size = 0;
        if (lists->size_count == WEIR_FIELDS_MAX ||
            (json->token != WEIR_JSON_NULL &&
             (json->token != WEIR_JSON_NUMBER || !weir_json_uint(json, &size))))
            return weir_fail(EINVAL, "column_sizes is not a list of numbers and nulls");
        lists->sizes[lists->size_count++] = size;
    }
    return code;
}

static int make_columns(struct weir_mds_columns *out, struct weir_arena **arena,
                        const struct lists *lists)
{
    uint32_t count = lists->name_count;
    if (lists->encoding_count != count || lists->size_count != count)
        return weir_fail(EINVAL, "it has %u column_names, %u column_encodings and %u column_sizes",
                         count, lists->encoding_count, lists->size_count);
    out->count = count;
    out->list = weir_arena_take(arena, (count ? count : 1) * sizeof *out->list);
    if (!out->list)
        return weir_fail_memory();
    for (uint32_t i = 0; i < count; i++) {
        struct weir_mds_column *c = &out->list[i];
        int code = weir_mds_column_make(c, arena, lists->names[i], lists->name_sizes[i],
                                        lists->encodings[i]);
        if (code)
            return code;
        if (c->bytes != lists->sizes[i])
            return weir_fail(EINVAL,
                             "column '%.100s' is of %" PRIu64 " bytes (0: of any number), where %s "
                             "has %" PRIu64,
                             c->name, lists->sizes[i], c->encoding, c->bytes);
    }
    return weir_mds_columns_check(out);
}

/* ---- a shard ---- */

/* {"basename": …, "bytes": …, "hashes": …} or null. */
static int read_file(struct weir_json *json, struct weir_arena **arena, struct weir_mds_file *out)
{
    bool sized = false;
    int code = weir_json_more(json);
    if (code || json->token == WEIR_JSON_NULL)
        return code;
    if (json->token != WEIR_JSON_OBJECT)
        return weir_fail(EINVAL, "raw_data or zip_data is no object");
    while (!code && !(code = weir_json_more(json)) && json->token == WEIR_JSON_KEY) {
        if (weir_json_is(json, "basename")) {
            code = weir_json_want_text(json, arena, "basename", &out->name);
        } else if (weir_json_is(json, "bytes")) {
            code = weir_json_want_uint(json, "bytes", &out->bytes);
            sized = true;
        } else {
            code = weir_json_over(json);
        }
    }
    if (!code && (!out->name || !sized))
        return weir_fail(EINVAL, "raw_data or zip_data lacks its basename or its bytes");
    return code;
}

/* Version and format are Streaming's, of which there is one that we read. */
static int check_version(struct weir_json *json)
{
    uint64_t version;
    int code = weir_json_want_uint(json, "version", &version);
    if (!code && version != VERSION)
        return weir_fail(ENOTSUP, "it is of version %" PRIu64 "; Weir knows version %d", version,
                         VERSION);
    return code;
}

static int check_format(struct weir_json *json, struct weir_arena **arena)
{
    const char *format = "null";
    int code = weir_json_want_text(json, arena, "format", &format);
    if (!code && strcmp(format, "mds") != 0)
        return weir_fail(ENOTSUP, "its format is '%.40s', not mds", format);
    return code;
}

static int read_member(struct weir_json *json, struct weir_arena **arena,
                       struct weir_mds_shard *out, struct lists *lists)
{
    if (weir_json_is(json, "version"))
        return check_version(json);
    if (weir_json_is(json, "format"))
        return check_format(json, arena);
    if (weir_json_is(json, "compression"))
        return weir_json_want_text(json, arena, "compression", &out->compression);
    if (weir_json_is(json, "samples"))
        return weir_json_want_uint(json, "samples", &out->samples);
    if (weir_json_is(json, "raw_data"))
        return read_file(json, arena, &out->raw);
    if (weir_json_is(json, "zip_data"))
        return read_file(json, arena, &out->zip);
    if (weir_json_is(json, "column_names"))
        return read_strings(json, arena, "column_names", lists->names, lists->name_sizes,
                            &lists->name_count);
    if (weir_json_is(json, "column_encodings"))
        return read_strings(json, arena, "column_encodings", lists->encodings, NULL,
                            &lists->encoding_count);
    if (weir_json_is(json, "column_sizes"))
        return read_sizes(json, lists);
    return weir_json_over(json);
}

/* The object whose brace was read. */
static int read_shard(struct weir_json *json, struct weir_arena **arena, struct weir_mds_shard *out)
{
    struct lists *lists = weir_arena_take(arena, sizeof *lists);
    if (!lists)
        return weir_fail_memory();
    int code = 0;
    *out = (struct weir_mds_shard){.compression = "", .samples = UINT64_MAX};
    while (!code && !(code = weir_json_more(json)) && json->token == WEIR_JSON_KEY)
        code = read_member(json, arena, out, lists);
    return code ? code : make_columns(&out->columns, arena, lists);
}

int weir_mds_header_read(struct weir_mds_shard *out, struct weir_arena **arena, const char *text,
                         size_t size)
{
    struct weir_json json;
    weir_json_begin(&json, text, size);
    int code = weir_json_want(&json, WEIR_JSON_OBJECT, "the header");
    return code ? code : read_shard(&json, arena, out);
}

/* ---- index.json ---- */

static int check_shard(const struct weir_mds_shard *shard)
{
    if (!shard->raw.name || shard->samples == UINT64_MAX)
        return weir_fail(EINVAL, "it lacks raw_data or samples");
    if (*shard->compression && !shard->zip.name)
        return weir_fail(EINVAL, "it is compressed, and lacks zip_data");
    if (shard->raw.bytes > UINT32_MAX || shard->samples > UINT32_MAX ||
        4 * (shard->samples + 2) > shard->raw.bytes)
        return weir_fail(EINVAL, "%" PRIu64 " samples in %" PRIu64 " bytes cannot be",
                         shard->samples, shard->raw.bytes);
    return 0;
}

static int read_shards(struct weir_json *json,
                       int (*fn)(void *arg, const struct weir_mds_shard *shard), void *arg)
{
    uint64_t number = 0;
    int code = weir_json_want(json, WEIR_JSON_ARRAY, "shards");
    while (!code && !(code = weir_json_more(json)) && json->token != WEIR_JSON_END) {
        struct weir_arena *arena = NULL;
        struct weir_mds_shard shard;
        if (json->token != WEIR_JSON_OBJECT)
            code = weir_fail(EINVAL, "it is no object");
        if (!code)
            code = read_shard(json, &arena, &shard);
        if (!code)
            code = check_shard(&shard);
        if (code)
            code = weir_fail_in(code, "shard %" PRIu64, number);
        else
            code = fn(arg, &shard);
        weir_arena_free(arena);
        number++;
    }
    return code;
}

int weir_mds_index_read(const char *text, size_t size,
                        int (*fn)(void *arg, const struct weir_mds_shard *shard), void *arg)
{
    struct weir_json json;
    bool found = false;
    weir_json_begin(&json, text, size);
    int code = weir_json_want(&json, WEIR_JSON_OBJECT, "the whole");
    while (!code && !(code = weir_json_more(&json)) && json.token == WEIR_JSON_KEY) {
        if (weir_json_is(&json, "version")) {
            code = check_version(&json);
        } else if (weir_json_is(&json, "shards") && !found) {
            found = true;
            code = read_shards(&json, fn, arg);
        } else {
            code = weir_json_over(&json);
        }
    }
    if (!code && !found)
        return weir_fail(EINVAL, "it has no 'shards'");
    return code ? code : weir_json_next(&json); /* nothing behind it */
}
