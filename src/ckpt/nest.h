/* nest.h - builds a tree of dicts and lists from paths, as torch.distributed.checkpoint does: a
 * text in a path is a key of a dict, a number is a place in a list.
 */
#ifndef WEIR_CKPT_NEST_H
#define WEIR_CKPT_NEST_H

#include "ckpt/names.h"
#include "ckpt/value.h"
#include "util/json.h"

struct weir_nest {
    struct weir_arena **arena;
    struct weir_value *root;
    struct weir_names containers; /* by their paths */
    struct weir_json_out path;
};

int weir_nest_begin(struct weir_nest *nest, struct weir_arena **arena);
/* path: a tuple of texts and numbers. -EBADMSG if it contradicts another one. */
int weir_nest_set(struct weir_nest *nest, const struct weir_value *path, struct weir_value *value);
void weir_nest_end(struct weir_nest *nest);

#endif
