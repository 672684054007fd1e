/* jsonl.h - what reading and writing of JSON lines share. */
#ifndef WEIR_DATA_JSONL_H
#define WEIR_DATA_JSONL_H

#include "data/format.h"
#include "util/json.h"

/* A line beyond this is no sample: somebody's file without newlines. */
#define WEIR_JSONL_LINE_MAX ((uint64_t)64 << 20)

/* A field as JSON; -EINVAL for one that has no form in it: bytes, numbers that are not finite. */
int weir_jsonl_put_value(struct weir_json_out *out, const struct weir_field *field);

extern const struct weir_format_writer weir_jsonl_writer;

#endif
