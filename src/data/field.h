/* field.h - makes and checks fields (weir.h) of samples. Pure functions. */
#ifndef WEIR_DATA_FIELD_H
#define WEIR_DATA_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"
#include "weir.h"

/* Bytes of one element of "|b1", "|u1", "<i8", "<f4", "<c16", …; 0: not little-endian numbers. */
size_t weir_dtype_bytes(const char *dtype);
/* Are they whole ("|b1", "<u8", "<i4")? */
bool weir_dtype_is_whole(const char *dtype);
/* The whole number at that place; false if it does not fit. */
bool weir_dtype_i64(const char *dtype, const uint8_t *at, int64_t *out);
/* The number at that place; not of complex ones. */
double weir_dtype_f64(const char *dtype, const uint8_t *at);

bool weir_field_is(const struct weir_field *field, const char *name);
/* The one of that name, which is looked for from `guess` on; NULL. */
const struct weir_field *weir_field_find(const struct weir_field *fields, uint32_t count,
                                         const char *name, size_t name_size, uint32_t guess);
/* The one of that name, if it is text or bytes; NULL. */
const struct weir_field *weir_field_string(const struct weir_field *fields, uint32_t count,
                                           const char *name);
bool weir_field_ends(const struct weir_field *field, const char *ending);
/* Of that kind, and no array. */
void weir_field_set(struct weir_field *field, const char *name, size_t name_size,
                    enum weir_field_kind kind, const void *data, size_t size);
/* TEXT, or BYTES if it is not UTF-8. */
void weir_field_set_text(struct weir_field *field, const char *name, size_t name_size,
                         const void *data, size_t size);
/* JSON, or BYTES if it is not. */
void weir_field_set_json(struct weir_field *field, const char *name, size_t name_size,
                         const void *data, size_t size);
/* An array without dimensions: one number, which the caller has where it stays. */
void weir_field_set_number(struct weir_field *field, const char *name, size_t name_size,
                           const char *dtype, const void *value);
/* The same with the number put into scratch; -ENOMEM. */
int weir_field_put_i64(struct weir_field *field, const char *name, size_t name_size, int64_t value,
                       struct weir_arena **scratch);
int weir_field_put_f64(struct weir_field *field, const char *name, size_t name_size, double value,
                       struct weir_arena **scratch);
/* How many elements an array has; UINT64_MAX if its dimensions overflow. */
uint64_t weir_field_count(const struct weir_field *field);

/* A whole number with nothing around it but blanks; false if it is none or does not fit. */
bool weir_text_i64(const char *text, size_t size, int64_t *out);

#endif
