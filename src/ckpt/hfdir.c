/* hfdir.c - see hfdir.h. */
#include "ckpt/hfdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/names.h"
#include "ckpt/stfile.h"
#include "util/err.h"
#include "util/sys.h"

enum { PATH_BYTES_MAX = 4096, DENTS_BYTES = 32768 };

static const char index_name[] = "model.safetensors.index.json";
static const char ending[] = ".safetensors";

/* A state dict in the making, and where each tensor was found. */
struct gather {
    struct weir_arena **arena;
    struct weir_source *source;
    const char *dir;
    struct weir_value *root;
    struct weir_names files;   /* read already, by their paths */
    struct weir_names tensors; /* -> the file it is in */
};

static int gather_tensor(struct gather *g, const struct weir_stfile *st, size_t i)
{
    const char *name = st->st.tensors[i].name;
    size_t size = strlen(name);
    struct weir_from *from = weir_arena_take(g->arena, sizeof *from);
    struct weir_value *value = weir_value_new(g->arena, WEIR_VALUE_TENSOR);
    void **where = weir_names_at(&g->tensors, g->arena, name, size);
    char *copy = weir_arena_take(g->arena, size + 1);
    if (!from || !value || !where || !copy)
        return weir_fail_memory();
    if (*where)
        return weir_fail(EBADMSG, "tensor '%.200s' is in '%s' and in '%s'", name,
                         ((struct weir_source_file *)*where)->path, st->span.file->path);
    *where = st->span.file;
    memcpy(copy, name, size);
    int code = weir_stfile_tensor(st, i, g->arena, from);
    if (code)
        return weir_fail_in(code, "'%.200s'", name);
    value->tensor = from;
    return weir_value_add(g->arena, g->root, weir_value_text(g->arena, copy, size)) &&
                   weir_value_add(g->arena, g->root, value)
               ? 0
               : weir_fail_memory();
}

static void put_metadata(struct weir_json_out *out, const struct weir_st *st)
{
    weir_json_puts(out, "{");
    for (size_t i = 0; i < st->pairs; i++) {
        weir_json_puts(out, i ? "," : "");
        weir_json_put_string(out, st->metadata[i].key, strlen(st->metadata[i].key));
        weir_json_puts(out, ":");
        weir_json_put_string(out, st->metadata[i].value, strlen(st->metadata[i].value));
    }
    weir_json_puts(out, "}");
}

static int gather_file(struct gather *g, const char *path, struct weir_json_out *metadata)
{
    struct weir_source_file *file;
    struct weir_stfile st = {0};
    int code = weir_source_add(g->source, path, &file);
    if (code)
        return code;
    struct weir_extent span = {file, 0, file->size};
    code = weir_stfile_open(&st, &span);
    for (size_t i = 0; !code && i < st.st.count; i++)
        code = gather_tensor(g, &st, i);
    if (!code && metadata)
        put_metadata(metadata, &st.st);
    weir_stfile_close(&st);
    return code;
}

static int gather_begin(struct gather *g)
{
    g->root = weir_value_new(g->arena, WEIR_VALUE_DICT);
    return g->root ? 0 : weir_fail_memory();
}

static int gather_end(struct gather *g, struct weir_value **out, int code)
{
    weir_names_free(&g->files);
    weir_names_free(&g->tensors);
    if (!code)
        *out = g->root;
    return code;
}

int weir_stfile_load(struct weir_value **out, struct weir_arena **arena, struct weir_source *source,
                     const char *path, struct weir_json_out *metadata)
{
    struct gather g = {.arena = arena, .source = source};
    int code = gather_begin(&g);
    if (!code)
        code = gather_file(&g, path, metadata);
    return gather_end(&g, out, code);
}

/* ---- the index ---- */

static int path_in(char out[PATH_BYTES_MAX], const char *dir, const char *name)
{
    int size = snprintf(out, PATH_BYTES_MAX, "%s/%s", dir, name);
    return size < PATH_BYTES_MAX ? 0 : weir_fail(ENAMETOOLONG, "'%.200s…' is too long a name", out);
}

/* "tensor": "file": the file is read if it was not yet. */
static int gather_mapped(struct gather *g, const char *tensor, const char *name)
{
    char path[PATH_BYTES_MAX];
    if (!*name || strchr(name, '/'))
        return weir_fail(EBADMSG,
                         "the index says that '%.200s' is in '%.200s', which is no file "
                         "of its directory",
                         tensor, name);
    int code = path_in(path, g->dir, name);
    void **known = code ? NULL : weir_names_at(&g->files, g->arena, path, strlen(path));
    if (!code && !known)
        code = weir_fail_memory();
    if (!code && !*known) {
        *known = g;
        code = gather_file(g, path, NULL);
    }
    void **where = code ? NULL : weir_names_at(&g->tensors, g->arena, tensor, strlen(tensor));
    if (!code && !where)
        code = weir_fail_memory();
    if (!code && (!*where || strcmp(((struct weir_source_file *)*where)->path, path)))
        code = weir_fail(EBADMSG, "the index says that '%.200s' is in '%s', and it is not", tensor,
                         path);
    return code;
}

static int bad_index(struct weir_json *json)
{
    return json->code ? json->code : weir_fail(EBADMSG, "the index has no weight_map of names");
}

/* The members of the weight_map, whose first token is the next. */
static int gather_map(struct gather *g, struct weir_json *json, char *tensor, char *file)
{
    int code = weir_json_next(json);
    if (code != 1 || json->token != WEIR_JSON_OBJECT)
        return bad_index(json);
    for (;;) {
        if (weir_json_next(json) != 1)
            return bad_index(json);
        if (json->token == WEIR_JSON_END)
            return 0;
        weir_json_text(json, tensor);
        if (weir_json_next(json) != 1 || json->token != WEIR_JSON_STRING)
            return bad_index(json);
        weir_json_text(json, file);
        code = gather_mapped(g, tensor, file);
        if (code)
            return code;
    }
}

static int read_index(struct gather *g, const char *text, size_t size)
{
    struct weir_json json;
    bool found = false;
    int code = 0;
    char *tensor = weir_alloc(size + 1), *file = weir_alloc(size + 1);
    weir_json_begin(&json, text, size);
    if (!tensor || !file)
        code = weir_fail_memory();
    else if (weir_json_next(&json) != 1 || json.token != WEIR_JSON_OBJECT)
        code = bad_index(&json);
    while (!code && weir_json_next(&json) == 1 && json.token == WEIR_JSON_KEY) {
        bool map = json.size == 10 && !memcmp(json.text, "weight_map", 10);
        if (map && !found)
            code = gather_map(g, &json, tensor, file);
        else if (weir_json_skip(&json) != 1)
            code = bad_index(&json);
        found |= map;
    }
    if (!code && (json.code || !found))
        code = bad_index(&json);
    free(tensor);
    free(file);
    return code;
}

static int gather_index(struct gather *g, struct weir_source_file *file)
{
    if (file->size > WEIR_HF_INDEX_BYTES_MAX)
        return weir_fail(EFBIG, "the index has %" PRIu64 " bytes: %d is the limit", file->size,
                         WEIR_HF_INDEX_BYTES_MAX);
    char *text = weir_alloc((size_t)file->size + 1);
    int code = text ? weir_source_read(file, 0, text, (size_t)file->size) : weir_fail_memory();
    if (!code)
        code = read_index(g, text, (size_t)file->size);
    free(text);
    return code ? weir_fail_in(code, "'%s'", file->path) : 0;
}

/* ---- without an index ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int add_name(struct gather *g, const char *name, const char ***names, size_t *count)
{
    size_t size = strlen(name), end = sizeof ending - 1;
    if (name[0] == '.' || size <= end || strcmp(name + size - end, ending))
        return 0;
    char *copy = weir_arena_take(g->arena, size + 1);
    const char **more = weir_realloc(*names, (*count + 1) * sizeof *more);
    if (more)
        *names = more;
    if (!copy || !more)
        return weir_fail_memory();
    memcpy(copy, name, size);
    more[(*count)++] = copy;
    return 0;
}

/* The names of all *.safetensors; the caller frees the array. */
static int list_files(struct gather *g, const char ***names, size_t *count)
{
    char dents[DENTS_BYTES] __attribute__((aligned(8)));
    int fd = weir_sys->open(AT_FDCWD, g->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), code = 0;
    if (fd < 0)
        return weir_fail(-fd, "cannot open '%s': %s", g->dir, weir_errno_text(fd));
    while (!code) {
        ssize_t n = weir_sys->getdents(fd, dents, sizeof dents);
        if (n < 0)
            code = weir_fail((int)-n, "cannot list '%s': %s", g->dir, weir_errno_text((int)n));
        if (n <= 0)
            break;
        for (ssize_t at = 0; !code && at < n;) {
            const struct dirent64 *dent = (const struct dirent64 *)(dents + at);
            code = add_name(g, dent->d_name, names, count);
            at += dent->d_reclen;
        }
    }
    weir_sys->close(fd);
    return code;
}

static int gather_listed(struct gather *g)
{
    const char **names = NULL;
    size_t count = 0;
    char path[PATH_BYTES_MAX];
    int code = list_files(g, &names, &count);
    if (!code && !count)
        code = weir_fail(ENOENT, "'%s' has neither %s nor a file %s", g->dir, index_name, ending);
    if (!code)
        qsort(names, count, sizeof *names, by_text);
    for (size_t i = 0; !code && i < count; i++) {
        code = path_in(path, g->dir, names[i]);
        if (!code)
            code = gather_file(g, path, NULL);
    }
    free(names);
    return code;
}

int weir_hfdir_load(struct weir_value **out, struct weir_arena **arena, struct weir_source *source,
                    const char *dir)
{
    struct gather g = {.arena = arena, .source = source, .dir = dir};
    struct weir_source_file *file;
    char path[PATH_BYTES_MAX];
    int code = gather_begin(&g);
    if (!code)
        code = path_in(path, dir, index_name);
    if (!code)
        code = weir_source_add(source, path, &file);
    if (!code)
        return gather_end(&g, out, gather_index(&g, file));
    if (code == -ENOENT)
        code = path_in(path, dir, "model.safetensors");
    if (!code)
        code = gather_file(&g, path, NULL);
    if (code == -ENOENT)
        code = gather_listed(&g);
    return gather_end(&g, out, code);
}
