/* sums.h - SHA256SUMS, the text that sha256sum(1) writes and checks: one line a file, its SHA-256
 * in lower-case hex, two blanks (or a blank and '*') and its name. Where a name has a backslash or
 * a line break, the line begins with a backslash and those are written \\, \n and \r. Pure
 * functions.
 */
#ifndef WEIR_DATA_SUMS_H
#define WEIR_DATA_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "util/hash.h"
#include "util/json.h"
#include "util/key.h"

/* Adds a line to a text that grows. */
void weir_sums_add(struct weir_json_out *text, const uint8_t sha256[WEIR_SHA256_BYTES],
                   const char *name);

struct weir_sums_line {
    uint8_t sha256[WEIR_SHA256_BYTES];
    char name[WEIR_NAME_BYTES_MAX];
};
/* Takes the next line off [*at, end): 1, 0 at the end, or -EBADMSG, which names the byte. begin is
 * where the text begins. */
int weir_sums_next(const char *begin, const char **at, const char *end, struct weir_sums_line *out);

#endif
