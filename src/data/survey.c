/* survey.c - see survey.h. */
#include "data/survey.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/proof.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/key.h"
#include "util/sys.h"
#include "util/url.h"

struct weir_survey {
    weir_store *store;
    weir_data_listed_fn listed; /* or NULL */
    void *arg;
    char *prefix;
    struct weir_url options;
    struct weir_arena *arena; /* strings */
    struct weir_survey_file *files;
    size_t file_count, file_room;
    bool has_faults; /* some files cannot be read */
    struct weir_shard_plan *shards;
    size_t shard_count, shard_room;
    char *schema;
    size_t schema_size;
    bool used[WEIR_URL_OPTIONS_MAX]; /* options that the format has asked for */
};

static const char *keep(struct weir_survey *s, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = weir_arena_take(&s->arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* Room for one more in an array that doubles. */
static bool grow(void **array, size_t count, size_t *room, size_t each)
{
    if (count < *room)
        return true;
    size_t more = *room ? *room * 2 : 64;
    void *grown = weir_realloc(*array, more * each);
    if (!grown)
        return false;
    *array = grown;
    *room = more;
    return true;
}

/* ---- files ---- */

bool weir_survey_is_ours(const char *name)
{
    size_t size = strlen(name);
    return (size >= 5 && !strcmp(name + size - 5, ".weir")) || weir_proof_has(name);
}

bool weir_survey_is_hidden(const char *name)
{
    return name[0] == '.' || strstr(name, "/.");
}

bool weir_survey_is_left_behind(const char *name)
{
    size_t size = strlen(name);
    return weir_survey_is_hidden(name) || (size && name[size - 1] == '~');
}

int weir_survey_fault(const struct weir_survey_file *file)
{
    return file->why ? weir_fail(-file->code, "%s", file->why) : 0;
}

static int name_file(struct weir_survey *s, struct weir_survey_file *file, const weir_entry *entry)
{
    char quoted[4 * WEIR_KEY_BYTES_MAX];
    const char *name = entry->key + strlen(s->prefix);
    *file = (struct weir_survey_file){.code = entry->error};
    if (entry->error) {
        file->why = keep(s, weir_fail_last());
        weir_key_quote(quoted, sizeof quoted, name);
        file->key = keep(s, quoted);
        s->has_faults = true;
        return file->why && file->key ? 0 : weir_fail_memory();
    }
    file->key = keep(s, name);
    file->size_bytes = entry->size_bytes;
    file->time_ns = (int64_t)entry->time_ns;
    return file->key ? 0 : weir_fail_memory();
}

static int add_file(struct weir_survey *s, const weir_entry *entry)
{
    size_t prefix = strlen(s->prefix);
    if (strncmp(entry->key, s->prefix, prefix) || !entry->key[prefix] ||
        (entry->is_dir && !entry->error) || weir_survey_is_ours(entry->key + prefix))
        return 0;
    if (entry->error && entry->kind == WEIR_KIND_FOREIGN &&
        weir_survey_is_left_behind(entry->key + prefix))
        return 0;
    if (entry->error && (entry->is_dir || entry->kind == WEIR_KIND_SEALED))
        return entry->error;
    if (s->file_count == WEIR_SURVEY_FILES_MAX)
        return weir_fail(EINVAL, "there are more than %d files: pack them into shards, in parts",
                         WEIR_SURVEY_FILES_MAX);
    if (!grow((void **)&s->files, s->file_count, &s->file_room, sizeof *s->files))
        return weir_fail_memory();
    struct weir_survey_file *file = &s->files[s->file_count];
    int code = name_file(s, file, entry);
    s->file_count += !code;
    return code;
}

static int by_key(const void *a, const void *b)
{
    const struct weir_survey_file *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static int list_files(struct weir_survey *s)
{
    weir_list *list;
    const weir_entry *entry;
    int code = weir_list_open(&list, s->store, s->prefix,
                              WEIR_LIST_RECURSIVE | WEIR_LIST_DETAIL | WEIR_LIST_ODD);
    if (code)
        return code;
    while ((code = weir_list_next(list, &entry)) == 1) {
        code = add_file(s, entry);
        if (!code && s->listed && s->listed(s->arg))
            code = weir_fail(ECANCELED, "stopped");
        if (code)
            break;
    }
    weir_list_close(list);
    if (s->file_count)
        qsort(s->files, s->file_count, sizeof *s->files, by_key);
    return code;
}

/* "a=1&b=2" is what stands behind the '?' of a URL. */
static int parse_options(struct weir_survey *s, const char *options)
{
    size_t size = strlen(options) + sizeof "data:?";
    char *text = weir_alloc(size);
    if (!text)
        return weir_fail_memory();
    strcpy(text, "data:?");
    strcat(text, options);
    int code = weir_url_parse(&s->options, text);
    free(text);
    return code;
}

int weir_survey_open(struct weir_survey **out, weir_store *store, const char *prefix,
                     const char *options, weir_data_listed_fn listed, void *arg)
{
    struct weir_survey *s = weir_alloc(sizeof *s);
    if (!s)
        return weir_fail_memory();
    s->store = store;
    s->listed = listed;
    s->arg = arg;
    s->prefix = weir_strdup(prefix);
    int code = s->prefix ? 0 : weir_fail_memory();
    if (!code && options && *options)
        code = parse_options(s, options);
    if (!code)
        code = list_files(s);
    if (code) {
        weir_survey_close(s);
        return code;
    }
    *out = s;
    return 0;
}

void weir_survey_close(struct weir_survey *s)
{
    if (!s)
        return;
    weir_url_free(&s->options);
    weir_arena_free(s->arena);
    free(s->files);
    free(s->shards);
    free(s->schema);
    free(s->prefix);
    free(s);
}

weir_store *weir_survey_store(const struct weir_survey *s)
{
    return s->store;
}

const char *weir_survey_prefix(const struct weir_survey *s)
{
    return s->prefix;
}

int weir_survey_file(const struct weir_survey *s, size_t i, struct weir_survey_file *out)
{
    if (i >= s->file_count)
        return 0;
    *out = s->files[i];
    return 1;
}

bool weir_survey_find(const struct weir_survey *s, const char *key, struct weir_survey_file *out)
{
    struct weir_survey_file wanted = {.key = key};
    const struct weir_survey_file *file =
        s->file_count ? bsearch(&wanted, s->files, s->file_count, sizeof *s->files, by_key) : NULL;
    if (file)
        *out = *file;
    return file;
}

static int find_option(const struct weir_survey *s, const char *name)
{
    for (size_t i = 0; i < s->options.options; i++)
        if (!strcmp(s->options.option[i].name, name))
            return (int)i;
    return -1;
}

bool weir_survey_given(const struct weir_survey *s, const char *name)
{
    return find_option(s, name) >= 0;
}

const char *weir_survey_option(const struct weir_survey *s, const char *name)
{
    int i = find_option(s, name);
    if (i < 0)
        return NULL;
    ((struct weir_survey *)s)->used[i] = true;
    return s->options.option[i].value;
}

void weir_survey_keep(struct weir_survey *s, const char *key)
{
    struct weir_survey_file file;
    bool found = weir_survey_find(s, key, &file);
    if (found)
        s->files[0] = file;
    s->file_count = found;
}

/* ---- contents ---- */

static int read_all(weir_object *object, const char *key, size_t max, uint8_t **out, size_t *size)
{
    uint64_t bytes = weir_object_info(object)->size_bytes;
    size_t got;
    if (bytes > max)
        return weir_fail(EFBIG, "'%s' has %" PRIu64 " bytes; the limit is %zu", key, bytes, max);
    uint8_t *data = weir_realloc(NULL, bytes ? (size_t)bytes : 1);
    if (!data)
        return weir_fail_memory();
    int code = weir_object_read(object, data, (size_t)bytes, 0, &got);
    if (!code && got != bytes)
        code = weir_fail(EBADMSG, "'%s' became shorter while it was read", key);
    if (code) {
        free(data);
        return code;
    }
    *out = data;
    *size = got;
    return 0;
}

static int open_file(const struct weir_survey *s, const char *key, weir_object **out)
{
    char full[WEIR_KEY_BYTES_MAX + 1];
    if (strlen(s->prefix) + strlen(key) > WEIR_KEY_BYTES_MAX)
        return weir_fail(ENAMETOOLONG, "'%.40s…' is too long a name", key);
    strcpy(full, s->prefix);
    strcat(full, key);
    return weir_object_open(out, s->store, full);
}

int weir_survey_load(struct weir_survey *s, const char *key, size_t max, uint8_t **out,
                     size_t *size)
{
    weir_object *object;
    int code = open_file(s, key, &object);
    if (code)
        return code;
    code = read_all(object, weir_object_info(object)->key, max, out, size);
    weir_object_close(object);
    return code;
}

static int read_some(const struct weir_survey *s, const char *key, uint8_t *out, size_t room,
                     uint64_t off, size_t *got)
{
    weir_object *object;
    int code = open_file(s, key, &object);
    if (code)
        return code;
    code = weir_object_read(object, out, room, off, got);
    weir_object_close(object);
    return code;
}

int weir_survey_head(const struct weir_survey *s, const char *key, uint8_t *out, size_t room,
                     size_t *got)
{
    return read_some(s, key, out, room, 0, got);
}

int weir_survey_read(const struct weir_survey *s, const char *key, uint8_t *out, size_t size,
                     uint64_t off)
{
    size_t got;
    int code = read_some(s, key, out, size, off, &got);
    if (!code && got < size)
        code = weir_fail(EBADMSG, "'%s' became shorter while it was read", key);
    return code;
}

/* ---- what the format says ---- */

int weir_survey_add(struct weir_survey *s, const struct weir_shard_plan *shard)
{
    struct weir_survey_file file;
    int code =
        s->has_faults && weir_survey_find(s, shard->key, &file) ? weir_survey_fault(&file) : 0;
    if (code)
        return code;
    if (!grow((void **)&s->shards, s->shard_count, &s->shard_room, sizeof *s->shards))
        return weir_fail_memory();
    struct weir_shard_plan *added = &s->shards[s->shard_count];
    *added = *shard;
    added->key = keep(s, shard->key);
    added->codec = keep(s, shard->codec);
    added->marks_key = shard->marks_key ? keep(s, shard->marks_key) : NULL;
    if (!added->key || !added->codec || (shard->marks_key && !added->marks_key))
        return weir_fail_memory();
    s->shard_count++;
    return 0;
}

size_t weir_survey_shards(const struct weir_survey *s)
{
    return s->shard_count;
}

const struct weir_shard_plan *weir_survey_shard(const struct weir_survey *s, size_t i)
{
    return &s->shards[i];
}

int weir_survey_schema(struct weir_survey *s, const char *json, size_t size)
{
    char *copy = weir_alloc(size + 1);
    if (!copy)
        return weir_fail_memory();
    memcpy(copy, json, size);
    free(s->schema);
    s->schema = copy;
    s->schema_size = size;
    return 0;
}

const char *weir_survey_schema_get(const struct weir_survey *s, size_t *size)
{
    *size = s->schema_size;
    return s->schema ? s->schema : "";
}

int weir_survey_run(struct weir_survey *s, const struct weir_format *format)
{
    int code = format->survey(s);
    for (size_t i = 0; !code && i < s->options.options; i++)
        if (!s->used[i])
            code = weir_fail(EINVAL, "the format '%s' has no option '%s'", format->name,
                             s->options.option[i].name);
    return code;
}

static void fingerprint_shard(struct weir_sha256_stream *stream,
                              const struct weir_shard_plan *shard)
{
    uint8_t numbers[40];
    weir_store_le(numbers, shard->file_bytes, 8);
    weir_store_le(numbers + 8, (uint64_t)shard->time_ns, 8);
    weir_store_le(numbers + 16, shard->first_bytes, 8);
    weir_store_le(numbers + 24, shard->each_bytes, 8);
    weir_store_le(numbers + 32, shard->step_bytes, 8);
    weir_sha256_more(stream, shard->key, strlen(shard->key) + 1);
    weir_sha256_more(stream, shard->codec, strlen(shard->codec) + 1);
    weir_sha256_more(stream, numbers, sizeof numbers);
    if (!shard->marks_key)
        return;
    weir_store_le(numbers, shard->marks_stamp, 8);
    weir_sha256_more(stream, shard->marks_key, strlen(shard->marks_key) + 1);
    weir_sha256_more(stream, numbers, 8);
}

int weir_survey_fingerprint(const struct weir_survey *s, uint8_t out[WEIR_SHA256_BYTES])
{
    struct weir_sha256_stream stream;
    int code = weir_sha256_begin(&stream);
    if (code)
        return code;
    weir_sha256_more(&stream, s->schema, s->schema_size);
    for (size_t i = 0; i < s->shard_count; i++)
        fingerprint_shard(&stream, &s->shards[i]);
    weir_sha256_end(&stream, out);
    return 0;
}
