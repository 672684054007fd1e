/* file.h - reads a plan file from memory: JSON, with a section for each part of what is planned.
 *
 *     {"model":   {"parameters": "70B", "state": "mixed"},
 *      "cluster": {"gpus": 512},
 *      "storage": {"write_rate": "100GB/s", "interval": "30min"}}
 *
 * Sections and keys are those of weir_plan_keys, with '_' for '-'; values are texts, as options
 * have them, or numbers (bytes, seconds). What is wrong is told with its line and its name. Takes
 * any bytes.
 */
#ifndef WEIR_PLAN_FILE_H
#define WEIR_PLAN_FILE_H

#include "plan/keys.h"

enum {
    WEIR_PLAN_VALUES_MAX = 128, /* more than there are keys; none may be there twice */
    WEIR_PLAN_VALUE_MAX = 64,
    WEIR_PLAN_FILE_BYTES_MAX = 1 << 20,
};

struct weir_plan_value {
    const struct weir_plan_key *key;
    unsigned line;
    char text[WEIR_PLAN_VALUE_MAX];
};

struct weir_plan_file {
    unsigned count;
    struct weir_plan_value at[WEIR_PLAN_VALUES_MAX];
};

/* 0, or -EINVAL with a text that begins with "line N: ". Values are checked for their types and
 * ranges, too: each can be set. */
int weir_plan_file_read(struct weir_plan_file *out, const char *text, size_t size);
/* "gpu_memory", of "gpu-memory". */
const char *weir_plan_key_name(char out[WEIR_PLAN_VALUE_MAX], const struct weir_plan_key *key);

#endif
