/* field.c - see field.h. */
#include "data/field.h"

#include <string.h>

#include "util/bytes.h"
#include "util/err.h"
#include "util/json.h"
#include "util/number.h"
#include "util/utf8.h"

size_t weir_dtype_bytes(const char *dtype)
{
    static const struct {
        char name[5];
        uint8_t bytes;
    } known[] = {
        {"|b1", 1}, {"|u1", 1}, {"|i1", 1}, {"<u2", 2}, {"<i2", 2}, {"<f2", 2}, {"<u4", 4},
        {"<i4", 4}, {"<f4", 4}, {"<u8", 8}, {"<i8", 8}, {"<f8", 8}, {"<c8", 8}, {"<c16", 16},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(dtype, known[i].name))
            return known[i].bytes;
    return 0;
}

bool weir_dtype_is_whole(const char *dtype)
{
    return weir_dtype_bytes(dtype) && strchr("bui", dtype[1]);
}

bool weir_dtype_i64(const char *dtype, const uint8_t *at, int64_t *out)
{
    unsigned bytes = (unsigned)weir_dtype_bytes(dtype), unused = 64 - 8 * bytes;
    uint64_t word = weir_load_le(at, bytes);
    if (dtype[1] == 'i')
        word = (uint64_t)((int64_t)(word << unused) >> unused);
    else if (word > INT64_MAX)
        return false;
    *out = (int64_t)word;
    return true;
}

double weir_dtype_f64(const char *dtype, const uint8_t *at)
{
    int64_t whole;
    if (dtype[1] == 'f')
        return weir_number_of(dtype[2] == '2' ? "F16" : dtype[2] == '4' ? "F32" : "F64")(at);
    return weir_dtype_i64(dtype, at, &whole) ? (double)whole : (double)weir_load_le(at, 8);
}

bool weir_field_is(const struct weir_field *field, const char *name)
{
    return field->name_size == strlen(name) && !memcmp(field->name, name, field->name_size);
}

const struct weir_field *weir_field_find(const struct weir_field *fields, uint32_t count,
                                         const char *name, size_t name_size, uint32_t guess)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_field *field = &fields[(guess + i) % count];
        if (field->name_size == name_size && !memcmp(field->name, name, name_size))
            return field;
    }
    return NULL;
}

const struct weir_field *weir_field_string(const struct weir_field *fields, uint32_t count,
                                           const char *name)
{
    const struct weir_field *field = weir_field_find(fields, count, name, strlen(name), 0);
    bool is_text = field && (field->kind == WEIR_FIELD_TEXT || field->kind == WEIR_FIELD_BYTES);
    return is_text ? field : NULL;
}

bool weir_field_ends(const struct weir_field *field, const char *ending)
{
    size_t size = strlen(ending);
    return field->name_size >= size && !memcmp(field->name + field->name_size - size, ending, size);
}

void weir_field_set(struct weir_field *field, const char *name, size_t name_size,
                    enum weir_field_kind kind, const void *data, size_t size)
{
    field->name = name;
    field->name_size = name_size;
    field->kind = kind;
    field->dtype[0] = 0;
    field->ndim = 0;
    field->data = data;
    field->size = size;
    field->is_ragged = 0;
}

void weir_field_set_text(struct weir_field *field, const char *name, size_t name_size,
                         const void *data, size_t size)
{
    weir_field_set(field, name, name_size,
                   weir_utf8_valid(data, size) ? WEIR_FIELD_TEXT : WEIR_FIELD_BYTES, data, size);
}

void weir_field_set_json(struct weir_field *field, const char *name, size_t name_size,
                         const void *data, size_t size)
{
    weir_field_set(field, name, name_size,
                   weir_json_check(data, size) ? WEIR_FIELD_BYTES : WEIR_FIELD_JSON, data, size);
}

void weir_field_set_number(struct weir_field *field, const char *name, size_t name_size,
                           const char *dtype, const void *value)
{
    weir_field_set(field, name, name_size, WEIR_FIELD_ARRAY, value, weir_dtype_bytes(dtype));
    strcpy(field->dtype, dtype);
}

static int put_word(struct weir_field *field, const char *name, size_t name_size, const char *dtype,
                    uint64_t word, struct weir_arena **scratch)
{
    uint8_t *at = weir_arena_take(scratch, 8);
    if (!at)
        return weir_fail_memory();
    weir_store_le(at, word, 8);
    weir_field_set_number(field, name, name_size, dtype, at);
    return 0;
}

int weir_field_put_i64(struct weir_field *field, const char *name, size_t name_size, int64_t value,
                       struct weir_arena **scratch)
{
    return put_word(field, name, name_size, "<i8", (uint64_t)value, scratch);
}

int weir_field_put_f64(struct weir_field *field, const char *name, size_t name_size, double value,
                       struct weir_arena **scratch)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return put_word(field, name, name_size, "<f8", word, scratch);
}

uint64_t weir_field_count(const struct weir_field *field)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < field->ndim; i++)
        if (__builtin_mul_overflow(count, field->shape[i], &count))
            return UINT64_MAX;
    return count;
}

bool weir_text_i64(const char *text, size_t size, int64_t *out)
{
    static const char blanks[] = " \t\r\n";
    int64_t value = 0;
    while (size && memchr(blanks, text[size - 1], 4))
        size--;
    while (size && memchr(blanks, *text, 4))
        text++, size--;
    bool negative = size && *text == '-';
    if (size && (*text == '-' || *text == '+'))
        text++, size--;
    if (!size)
        return false;
    for (size_t i = 0; i < size; i++) { /* below zero, where there is one more */
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, (int64_t)(text[i] - '0'), &value))
            return false;
    }
    if (!negative && __builtin_sub_overflow(0, value, &value))
        return false;
    *out = value;
    return true;
}
