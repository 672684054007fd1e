/* value.h - how the value of a field looks: a few words for people, or JSON. */
#ifndef WEIR_CLI_VALUE_H
#define WEIR_CLI_VALUE_H

#include <jansson.h>

#include "weir.h"

enum { VALUE_PREVIEW_BYTES = 256 };

/* How it begins, on one line: "12 7 9 …", "a cat on …", "89 50 4e 47 …". */
const char *value_preview(char out[VALUE_PREVIEW_BYTES], const weir_field *field);
/* The whole of it, with its name and type. */
json_t *value_json(const weir_field *field);

#endif
