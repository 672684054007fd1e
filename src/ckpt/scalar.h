/* scalar.h - values that are no containers, as tagged JSON (tagged.h). */
#ifndef WEIR_CKPT_SCALAR_H
#define WEIR_CKPT_SCALAR_H

#include "ckpt/value.h"
#include "util/json.h"

/* False if it is none. */
bool weir_scalar_put(struct weir_json_out *out, const struct weir_value *value);
/* As Python's str() has it, for the paths of tensors; false if it is neither text nor number. */
bool weir_scalar_str(struct weir_json_out *out, const struct weir_value *value);

#endif
