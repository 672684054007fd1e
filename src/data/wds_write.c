/* wds_write.c - see wds_write.h. A field becomes the member "key.name", with an ending behind it
 * where its kind needs one: what is text, a whole number, JSON or an array reads as that again,
 * here and with webdataset. Slashes in names become dots (a suffix has none), letters small ones.
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
#include "data/npy.h"
#include "data/shards.h"
#include "data/tar.h"
#include "data/tar_write.h"
#include "data/wds_name.h"
#include "util/err.h"
#include "util/sys.h"

struct writer {
    struct weir_growing shard;
    struct weir_growing content; /* of one member, where it is made */
    struct weir_growing taken;   /* the suffixes of this sample: u16 length and text of each */
    size_t key_size;
    char key[WEIR_TAR_NAME_MAX];  /* of the sample before, in the same shard */
    char name[WEIR_TAR_NAME_MAX]; /* of a member */
};

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
static void choose_key(struct writer *writer, uint64_t number, const char *key, size_t size)
{
    bool known = is_key(key, size);
    bool again = known && size == writer->key_size && !memcmp(key, writer->key, size);
    if (known && !again) {
        memcpy(writer->key, key, size);
        writer->key_size = size;
        return;
    }
    size_t at = again ? size : 0;
    writer->key_size = at + (size_t)snprintf(writer->key + at, sizeof writer->key - at,
                                             again ? "-%" PRIu64 : "%09" PRIu64, number);
}

/* ---- suffixes ---- */

static enum weir_wds_content content_of(const struct weir_field *field)
{
    switch (field->kind) {
    case WEIR_FIELD_TEXT:
        return WEIR_WDS_TEXT;
    case WEIR_FIELD_JSON:
    case WEIR_FIELD_NONE:
        return WEIR_WDS_JSON;
    case WEIR_FIELD_ARRAY:
        return !field->ndim && weir_dtype_is_whole(field->dtype) ? WEIR_WDS_NUMBER : WEIR_WDS_NPY;
    case WEIR_FIELD_BYTES:
        break;
    }
    return WEIR_WDS_BYTES;
}

static int refuse(const struct weir_field *field, const char *why)
{
    return weir_fail(EINVAL, "field '%.*s' %s", (int)field->name_size, field->name, why);
}

/* No other member of this sample has that suffix. */
static int take_suffix(struct writer *writer, const struct weir_field *field, const char *suffix,
                       size_t size)
{
    const struct weir_growing *taken = &writer->taken;
    uint16_t length;
    for (size_t at = 0; at < taken->size; at += length) {
        memcpy(&length, taken->data + at, sizeof length);
        at += sizeof length;
        if (length == size && !memcmp(taken->data + at, suffix, size))
            return refuse(field, "would have the same suffix as another one");
    }
    length = (uint16_t)size;
    int code = weir_growing_add(&writer->taken, &length, sizeof length);
    return code ? code : weir_growing_add(&writer->taken, suffix, size);
}

/* writer->name becomes the member's name; its size, or an error. `as`: what the suffix is made of.
 */
static int make_name(struct writer *writer, const struct weir_field *field, const char *as,
                     size_t as_size)
{
    static const char *const endings[] = {"", ".txt", ".cls", ".json", ".npy"};
    enum weir_wds_content content = content_of(field);
    size_t at = writer->key_size + 1;
    if (as_size > WEIR_TAR_NAME_MAX - 8 - at)
        return refuse(field, "has a name that is too long");
    if (memchr(as, 0, as_size))
        return refuse(field, "has a NUL in its name");
    memcpy(writer->name, writer->key, writer->key_size);
    writer->name[writer->key_size] = '.';
    char *suffix = writer->name + at;
    for (size_t i = 0; i < as_size; i++) {
        char c = as[i];
        suffix[i] = c == '/' ? '.' : c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
    }
    size_t size = as_size;
    if (content != WEIR_WDS_BYTES && weir_wds_content_of(suffix, size) != content) {
        memcpy(suffix + size, endings[content], strlen(endings[content]));
        size += strlen(endings[content]);
    }
    int code = take_suffix(writer, field, suffix, size);
    return code ? code : (int)(at + size);
}

/* ---- members ---- */

/* What a member holds: the field's own bytes, or some that are made. */
static int make_content(struct writer *writer, const struct weir_field *field, const void **data,
                        size_t *size)
{
    char text[24];
    int64_t value;
    int code = 0;
    *data = field->data;
    *size = field->size;
    if (field->kind == WEIR_FIELD_NONE) {
        *data = "null";
        *size = 4;
        return 0;
    }
    if (field->kind != WEIR_FIELD_ARRAY)
        return 0;
    writer->content.size = 0;
    if (content_of(field) == WEIR_WDS_NPY)
        code = weir_npy_put(&writer->content, field);
    else if (weir_dtype_i64(field->dtype, field->data, &value))
        code = weir_growing_add(&writer->content, text,
                                (size_t)snprintf(text, sizeof text, "%" PRId64, value));
    else
        code = refuse(field, "is a number above 2^63");
    *data = writer->content.data;
    *size = writer->content.size;
    return code;
}

static int add_member(struct writer *writer, const struct weir_field *field, const char *as,
                      size_t as_size)
{
    const void *data;
    size_t size;
    int name_size = make_name(writer, field, as, as_size);
    int code = name_size < 0 ? name_size : make_content(writer, field, &data, &size);
    if (!code)
        code = weir_tar_put_header(&writer->shard, writer->name, (size_t)name_size, size);
    if (!code)
        code = weir_growing_add(&writer->shard, data, size);
    return code ? code : weir_tar_put_padding(&writer->shard, size);
}

static const struct weir_field *find(const struct weir_field *fields, uint32_t count,
                                     const char *name, enum weir_field_kind kind)
{
    for (uint32_t i = 0; i < count; i++)
        if (fields[i].kind == kind && weir_field_is(&fields[i], name))
            return &fields[i];
    return NULL;
}

/* The suffix that a plain file had, if its path is "key.suffix". */
static bool suffix_of_file(const struct writer *writer, const struct weir_field *path,
                           struct weir_wds_name *out)
{
    return path && weir_wds_split(out, path->data, path->size) && out->suffix_size &&
           out->key_size == writer->key_size && !memcmp(out->key, writer->key, out->key_size);
}

static int add_members(struct writer *writer, const struct weir_field *fields, uint32_t count)
{
    const struct weir_field *path = find(fields, count, "path", WEIR_FIELD_TEXT);
    const struct weir_field *file = find(fields, count, "data", WEIR_FIELD_BYTES);
    struct weir_wds_name was;
    bool plain = file && suffix_of_file(writer, path, &was);
    int code = 0;
    for (uint32_t i = 0; !code && i < count; i++) {
        const struct weir_field *field = &fields[i];
        if (weir_field_is(field, "__key__") || (plain && field == path))
            continue; /* the names say it */
        if (plain && field == file)
            code = add_member(writer, field, was.suffix, was.suffix_size);
        else
            code = add_member(writer, field, field->name, field->name_size);
    }
    if (!code && !writer->taken.size)
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
    if (!key) {
        const struct weir_field *own = find(fields, count, "__key__", WEIR_FIELD_TEXT);
        key = own ? own->data : "";
        size = own ? own->size : 0;
    }
    choose_key(writer, number, key, size);
    writer->taken.size = 0;
    int code = add_members(writer, fields, count);
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
    writer->key_size = 0;
    return code;
}

static void close_writer(void *arg)
{
    struct writer *writer = arg;
    if (!writer)
        return;
    weir_growing_free(&writer->shard);
    weir_growing_free(&writer->content);
    weir_growing_free(&writer->taken);
    free(writer);
}

const struct weir_format_writer weir_wds_writer = {
    .name = name,
    .open = open_writer,
    .add = add,
    .drain = drain,
    .finish = finish,
    .close = close_writer,
};
