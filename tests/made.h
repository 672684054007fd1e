/* made.h - fields made by hand, for tests of what is written. */
#ifndef WEIR_TESTS_MADE_H
#define WEIR_TESTS_MADE_H

#include "data/field.h"
#include "data/format.h"
#include "test.h"

static inline struct weir_field made(const char *name, enum weir_field_kind kind, const char *text)
{
    struct weir_field field = {0};
    weir_field_set(&field, name, strlen(name), kind, text, strlen(text));
    return field;
}

static inline struct weir_field made_bytes(const char *name, const char *text)
{
    return made(name, WEIR_FIELD_BYTES, text);
}

static inline struct weir_field made_text(const char *name, const char *text)
{
    return made(name, WEIR_FIELD_TEXT, text);
}

static inline struct weir_field made_array(const char *name, const char *dtype, const void *data,
                                           uint32_t ndim, uint64_t first, uint64_t second)
{
    struct weir_field field = {.name = name,
                               .name_size = strlen(name),
                               .kind = WEIR_FIELD_ARRAY,
                               .ndim = ndim,
                               .shape = {first, second},
                               .data = data};
    strcpy(field.dtype, dtype);
    field.size = weir_field_count(&field) * weir_dtype_bytes(dtype);
    return field;
}

static inline struct weir_field made_none(const char *name)
{
    return (struct weir_field){.name = name, .name_size = strlen(name), .kind = WEIR_FIELD_NONE};
}

/* A finished shard as one piece. */
static inline int made_whole(const struct weir_format_writer *way, void *writer,
                             struct weir_growing *out)
{
    struct weir_made shard;
    int code = way->finish(writer, &shard);
    return code ? code : weir_made_join(&shard, out);
}

#endif
