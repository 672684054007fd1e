/* wds_write.c - see wds_write.h. A field becomes a member of the tar: member.h says how.
 *
 * A plain file ("data" and "path") becomes a member named as the file was.
 */
#include "data/wds_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/field.h"
#include "data/member.h"
#include "data/shards.h"
#include "data/tar.h"
#include "data/tar_write.h"
#include "data/wds_name.h"
#include "util/err.h"
#include "util/sys.h"

struct writer {
    struct weir_growing shard;
    struct weir_members members; /* the key is that of the sample before, in the same shard */
};

/* What readers call the key of a sample, among its fields. */
#define OWN_KEY "__key__"

/* ---- keys ---- */

/* Would a member of that key belong to it? */
static bool is_key(const char *key, size_t size)
{
    char name[WEIR_TAR_NAME_MAX];
    struct weir_wds_name parts;
    if (!size || size > WEIR_TAR_NAME_MAX / 2)
        return false;
    memcpy(name, key, size);
    memcpy(name + size, ".x", 2);
    return weir_wds_split(&parts, name, size + 2) && parts.key_size == size;
}

/* The sample's key, or its number where it has none that can be one. Two in a row are not alike:
 * they would be one sample. */
static void choose_key(struct weir_members *m, uint64_t number, const char *key, size_t size)
{
    bool known = is_key(key, size);
    bool again = known && size == m->key_size && !memcmp(key, m->key, size);
    if (known && !again) {
        memcpy(m->key, key, size);
        m->key_size = size;
        return;
    }
    size_t at = again ? size : 0;
    m->key_size = at + (size_t)snprintf(m->key + at, sizeof m->key - at,
                                        again ? "-%" PRIu64 : "%09" PRIu64, number);
}

/* ---- members ---- */

static int add_member(struct writer *writer, const struct weir_field *field, const char *as,
                      size_t as_size)
{
    struct weir_members *m = &writer->members;
    const void *data;
    size_t size;
    int code = weir_member_name(m, field, as, as_size);
    if (!code && m->name_size - m->key_size == sizeof OWN_KEY &&
        !memcmp(m->name + m->key_size + 1, OWN_KEY, sizeof OWN_KEY - 1))
        code = weir_member_refuse(field, "is not what its sample is called, and readers of a tar "
                                         "would take it for that");
    if (!code)
        code = weir_member_content(m, field, &data, &size);
    if (!code)
        code = weir_tar_put_header(&writer->shard, m->name, m->name_size, size);
    if (!code)
        code = weir_growing_add(&writer->shard, data, size);
    return code ? code : weir_tar_put_padding(&writer->shard, size);
}

/* The suffix that a plain file had, if its path is "key.suffix". */
static bool suffix_of_file(const struct weir_members *m, const struct weir_field *path,
                           struct weir_wds_name *out)
{
    return path && weir_wds_split(out, path->data, path->size) && out->suffix_size &&
           out->key_size == m->key_size && !memcmp(out->key, m->key, out->key_size);
}

static int add_members(struct writer *writer, const struct weir_field *fields, uint32_t count,
                       bool has_key)
{
    const struct weir_members *m = &writer->members;
    const struct weir_field *own = weir_field_string(fields, count, OWN_KEY);
    const struct weir_field *path = weir_member_path(fields, count, has_key);
    const struct weir_field *file = weir_field_string(fields, count, "data");
    struct weir_wds_name was;
    struct weir_field text; /* the key, where it names nothing */
    bool plain = file && file->kind == WEIR_FIELD_BYTES && suffix_of_file(m, path, &was);
    bool names_it = own && own->size == m->key_size && !memcmp(own->data, m->key, m->key_size);
    int code = 0;
    for (uint32_t i = 0; !code && i < count; i++) {
        const struct weir_field *field = &fields[i];
        if ((names_it && field == own) || (plain && field == path))
            continue; /* the names say it */
        if (field == own) {
            weir_field_set_text(&text, field->name, field->name_size, field->data, field->size);
            field = &text;
        }
        if (plain && field == file)
            code = add_member(writer, field, was.suffix, was.suffix_size);
        else
            code = add_member(writer, field, field->name, field->name_size);
    }
    if (!code && !weir_members_any(m))
        code = weir_fail(EINVAL, "a sample without fields, which a tar cannot hold");
    return code;
}

/* ---- the writer ---- */

static void name(char out[64], uint32_t i, const char *codec)
{
    weir_shard_name(out, i, ".tar", codec);
}

static int open_writer(void **out, const struct weir_writing *how)
{
    (void)how;
    *out = weir_alloc(sizeof(struct writer));
    return *out ? 0 : weir_fail_memory();
}

static int add(void *arg, uint64_t number, const char *key, const struct weir_field *fields,
               uint32_t count)
{
    struct writer *writer = arg;
    size_t begin = writer->shard.size, size = key ? strlen(key) : 0;
    bool has_key = key;
    if (!has_key) {
        const struct weir_field *own = weir_field_string(fields, count, OWN_KEY);
        key = own ? own->data : "";
        size = own ? own->size : 0;
    }
    choose_key(&writer->members, number, key, size);
    weir_members_begin(&writer->members);
    int code = add_members(writer, fields, count, has_key);
    if (code)
        writer->shard.size = begin;
    return code;
}

static void drain(void *arg, struct weir_made *out)
{
    struct writer *writer = arg;
    *out = (struct weir_made){.body = writer->shard.data, .body_size = writer->shard.size};
    writer->shard.size = 0;
}

static int finish(void *arg, struct weir_made *out)
{
    struct writer *writer = arg;
    int code = weir_tar_put_end(&writer->shard);
    drain(writer, out);
    writer->members.key_size = 0;
    return code;
}

static void close_writer(void *arg)
{
    struct writer *writer = arg;
    if (!writer)
        return;
    weir_growing_free(&writer->shard);
    weir_members_free(&writer->members);
    free(writer);
}

const struct weir_format_writer weir_wds_writer = {
    .keeps_members = true,
    .name = name,
    .open = open_writer,
    .add = add,
    .drain = drain,
    .finish = finish,
    .close = close_writer,
};
