/* member.c - see member.h. */
#include "data/member.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/field.h"
#include "data/npy.h"
#include "data/wds_name.h"
#include "util/err.h"

/* The longest of what may stand behind a name, ".json", and a zero byte. */
enum { ENDING_MAX = 8 };

void weir_members_free(struct weir_members *m)
{
    weir_growing_free(&m->content);
    weir_growing_free(&m->taken);
}

void weir_members_begin(struct weir_members *m)
{
    m->taken.size = 0;
}

bool weir_members_any(const struct weir_members *m)
{
    return m->taken.size;
}

int weir_member_refuse(const struct weir_field *field, const char *why)
{
    int shown = (int)(field->name_size < 100 ? field->name_size : 100);
    return weir_fail(EINVAL, "field '%.*s' %s", shown, field->name, why);
}

const struct weir_field *weir_member_path(const struct weir_field *fields, uint32_t count,
                                          bool has_key)
{
    const struct weir_field *path = weir_field_string(fields, count, "path");
    return path && has_key && path->kind == WEIR_FIELD_BYTES ? NULL : path;
}

/* ---- names ---- */

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

/* No other file of this sample has the name that m->name is now. */
static int take_name(struct weir_members *m, const struct weir_field *field)
{
    uint16_t length, size = (uint16_t)m->name_size;
    for (size_t at = 0; at < m->taken.size; at += length) {
        memcpy(&length, m->taken.data + at, sizeof length);
        at += sizeof length;
        if (length == size && !memcmp(m->taken.data + at, m->name, size))
            return weir_member_refuse(field, "would have the same name as another one");
    }
    int code = weir_growing_add(&m->taken, &size, sizeof size);
    return code ? code : weir_growing_add(&m->taken, m->name, size);
}

int weir_member_name(struct weir_members *m, const struct weir_field *field, const char *as,
                     size_t as_size)
{
    static const char *const endings[] = {"", ".txt", ".cls", ".json", ".npy"};
    enum weir_wds_content content = content_of(field);
    size_t at = m->key_size + 1;
    if (at > WEIR_TAR_NAME_MAX - ENDING_MAX || as_size > WEIR_TAR_NAME_MAX - ENDING_MAX - at)
        return weir_member_refuse(field, "has a name that is too long");
    if (memchr(as, 0, as_size))
        return weir_member_refuse(field, "has a NUL in its name");
    memcpy(m->name, m->key, m->key_size);
    m->name[m->key_size] = '.';
    char *suffix = m->name + at;
    for (size_t i = 0; i < as_size; i++) {
        char c = as[i];
        suffix[i] = c == '/' ? '.' : c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
    }
    size_t size = as_size;
    if (content != WEIR_WDS_BYTES && weir_wds_content_of(suffix, size) != content) {
        memcpy(suffix + size, endings[content], strlen(endings[content]));
        size += strlen(endings[content]);
    }
    m->name_size = at + size;
    return take_name(m, field);
}

int weir_member_name_whole(struct weir_members *m, const struct weir_field *field, const char *name,
                           size_t size)
{
    if (size > WEIR_TAR_NAME_MAX - ENDING_MAX)
        return weir_member_refuse(field, "has a name that is too long");
    memcpy(m->name, name, size);
    m->name_size = size;
    return take_name(m, field);
}

/* ---- content ---- */

int weir_member_content(struct weir_members *m, const struct weir_field *field, const void **data,
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
    m->content.size = 0;
    if (content_of(field) == WEIR_WDS_NPY)
        code = weir_npy_put(&m->content, field);
    else if (weir_dtype_i64(field->dtype, field->data, &value))
        code = weir_growing_add(&m->content, text,
                                (size_t)snprintf(text, sizeof text, "%" PRId64, value));
    else
        code = weir_member_refuse(field, "is a number above 2^63");
    *data = m->content.data;
    *size = m->content.size;
    return code;
}
