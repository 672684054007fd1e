/* s3_ini.h - the files ~/.aws/credentials and ~/.aws/config: sections of "name = value". Pure
 * functions; they take any bytes. Nothing is kept: a question is a walk over the text, since there
 * are a dozen questions and a few kilobytes.
 */
#ifndef WEIR_TIER_S3_INI_H
#define WEIR_TIER_S3_INI_H

#include <stdbool.h>
#include <stddef.h>

enum { WEIR_S3_INI_BYTES_MAX = 1 << 20 };

/* A piece of the text. */
struct weir_s3_span {
    const char *at; /* NULL: there is none */
    size_t size;
};

/* Is there a section of that name? is_config: sections are called "profile NAME", but for
 * "default", which may be either. */
bool weir_s3_ini_has(const char *text, size_t size, bool is_config, const char *profile);
/* The value, without blanks around it and without a comment behind it (a '#' or ';' after a blank);
 * `raw` leaves that. Indented lines belong to the value before them, and are not looked at. Where a
 * name or a section comes twice, the last one counts. */
struct weir_s3_span weir_s3_ini_get(const char *text, size_t size, bool is_config,
                                    const char *profile, const char *name, bool raw);

#endif
