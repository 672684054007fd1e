/* files_write.c - see files_write.h. A sample that was a file ("data" and "path") is that file
 * again, with whatever name it had; its label says nothing that its path does not. Other fields,
 * and other samples, are files named by the sample's key, or by its number where it has none.
 *
 * What pack seals for every shard is the list of its files: when that is there, all of them are.
 */
#include "data/files_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/field.h"
#include "data/member.h"
#include "data/survey.h"
#include "data/wds_name.h"
#include "util/err.h"
#include "util/key.h"
#include "util/sys.h"

struct writer {
    struct weir_growing list; /* a line for each file */
    struct weir_members members;
    /* The sample, and how many of its fields were looked at. */
    const struct weir_field *fields;
    uint32_t count, at;
    const struct weir_field *data, *path, *label; /* path: of a plain file, or NULL; label: its
                                                     first directory, or NULL */
    const struct weir_field *key;                 /* what its files are named by, or NULL */
};

/* ---- the sample ---- */

/* How much of a name to leave out, so that it is below the root of a tree: "./a" and "/a" are "a",
 * as tar has it. */
static size_t above_root(const char *name, size_t size)
{
    size_t skip = 0;
    while (skip < size)
        if (name[skip] == '/')
            skip++;
        else if (size - skip > 1 && !memcmp(name + skip, "./", 2))
            skip += 2;
        else
            break;
    return skip;
}

/* The path of a plain file, below the root of the tree. */
static const char *path_of(const struct writer *w, size_t *size)
{
    const char *path = w->path->data;
    size_t skip = above_root(path, w->path->size);
    *size = w->path->size - skip;
    return path + skip;
}

static void find_plain(struct writer *w, bool has_key)
{
    const struct weir_field *label = weir_field_string(w->fields, w->count, "label");
    size_t size;
    w->data = weir_field_string(w->fields, w->count, "data");
    w->path = w->data ? weir_member_path(w->fields, w->count, has_key) : NULL;
    w->label = NULL;
    if (!w->path)
        return;
    const char *path = path_of(w, &size), *slash = memchr(path, '/', size);
    if (label && slash && label->size == (size_t)(slash - path) &&
        !memcmp(label->data, path, label->size))
        w->label = label;
}

/* What the names of its files begin with. */
static int choose_key(struct weir_members *m, uint64_t number, const char *key, size_t size)
{
    if (size > WEIR_KEY_BYTES_MAX)
        return weir_fail(EINVAL, "its name has %zu bytes: a file's has at most %d", size,
                         WEIR_KEY_BYTES_MAX);
    memcpy(m->key, key, size);
    m->key_size = size;
    if (!size)
        m->key_size = (size_t)snprintf(m->key, sizeof m->key, "%09" PRIu64, number);
    return 0;
}

static int add(void *arg, uint64_t number, const char *key, const struct weir_field *fields,
               uint32_t count)
{
    struct writer *w = arg;
    w->fields = fields;
    w->count = count;
    w->at = 0;
    const struct weir_field *own = weir_field_string(fields, count, "__key__");
    size_t size = key ? strlen(key) : 0;
    weir_members_begin(&w->members);
    find_plain(w, key);
    if (w->path) {
        key = path_of(w, &size);
        size = weir_wds_stem(key, size);
    } else if (!key && own) {
        key = own->data;
        size = own->size;
    }
    w->key = own && size && own->size == size && !memcmp(own->data, key, size) ? own : NULL;
    size_t skip = size ? above_root(key, size) : 0;
    return choose_key(&w->members, number, size ? key + skip : "", size - skip);
}

/* ---- its files ---- */

/* Is that a file which a reader of the tree would find? */
static int check_name(struct weir_members *m)
{
    m->name[m->name_size] = 0;
    if (strlen(m->name) != m->name_size)
        return weir_fail(EINVAL, "its file would have a NUL in its name");
    int code = weir_key_check(m->name);
    if (code)
        return code == -ENAMETOOLONG ? -EINVAL : code;
    if (weir_survey_is_hidden(m->name))
        return weir_fail(EINVAL, "'%s' would be hidden, and hidden files are of no dataset",
                         m->name);
    if (weir_survey_is_ours(m->name))
        return weir_fail(EINVAL, "'%s' would be taken for one of Weir's own files", m->name);
    return 0;
}

static int make_file(struct writer *w, const struct weir_field *field, struct weir_made *out)
{
    struct weir_members *m = &w->members;
    const void *data;
    size_t size;
    int code;
    if (field == w->data && w->path) {
        const char *path = path_of(w, &size);
        code = weir_member_name_whole(m, field, path, size);
    } else {
        code = weir_member_name(m, field, field->name, field->name_size);
    }
    if (!code)
        code = check_name(m);
    if (!code)
        code = weir_member_content(m, field, &data, &size);
    if (!code)
        code = weir_growing_add(&w->list, m->name, m->name_size);
    if (!code)
        code = weir_growing_add(&w->list, "\n", 1);
    if (!code)
        *out = (struct weir_made){.body = data, .body_size = size};
    return code;
}

static int file(void *arg, const char **name, struct weir_made *out)
{
    struct writer *w = arg;
    while (w->at < w->count) {
        const struct weir_field *field = &w->fields[w->at++];
        if (field == w->path || field == w->label || field == w->key)
            continue; /* the names say it */
        int code = make_file(w, field, out);
        *name = w->members.name;
        return code ? code : 1;
    }
    return weir_members_any(&w->members)
               ? 0
               : weir_fail(EINVAL, "a sample without fields, of which there is no file");
}

/* ---- the writer ---- */

static void name(char out[64], uint32_t i, const char *codec)
{
    (void)codec;
    snprintf(out, 64, ".pack/%06u.weir", i);
}

static int open_writer(void **out, const struct weir_writing *how)
{
    (void)how;
    *out = weir_alloc(sizeof(struct writer));
    return *out ? 0 : weir_fail_memory();
}

static void drain(void *arg, struct weir_made *out)
{
    struct writer *w = arg;
    *out = (struct weir_made){.body = w->list.data, .body_size = w->list.size};
    w->list.size = 0;
}

static int finish(void *arg, struct weir_made *out)
{
    drain(arg, out);
    return 0;
}

static void close_writer(void *arg)
{
    struct writer *w = arg;
    if (!w)
        return;
    weir_growing_free(&w->list);
    weir_members_free(&w->members);
    free(w);
}

const struct weir_format_writer weir_files_writer = {
    .keeps_members = true,
    .name = name,
    .open = open_writer,
    .add = add,
    .file = file,
    .drain = drain,
    .finish = finish,
    .close = close_writer,
};
