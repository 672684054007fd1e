/* tagged.h - the values of a checkpoint as "tagged JSON", and its tensors by name.
 *
 * A rank's state is {"weir": "state/1", "root": VALUE}. What JSON has, is written as it is; the
 * rest is an object that begins with "$":
 *
 *     {"$":"tensor","name":N}               a tensor of the checkpoint
 *     {"$":"tuple","items":[…]}             also "set", "frozenset", and "size" for torch.Size
 *     {"$":"dict","items":[[k,v],…]}        if a key is no text, or is "$"
 *     {"$":"ordered","items":[[k,v],…]}     collections.OrderedDict
 *     {"$":"float","value":"nan"}           "inf", "-inf"
 *     {"$":"bytes","base64":…}  {"$":"complex","re":…,"im":…}
 *     {"$":"dtype","name":"torch.bfloat16"}  {"$":"device","name":"cuda:0"}
 *
 * The name of a tensor is its path joined with ".", as "optimizer.state.0.exp_avg"; a second one of
 * the same name becomes "…~2".
 */
#ifndef WEIR_CKPT_TAGGED_H
#define WEIR_CKPT_TAGGED_H

#include "ckpt/from.h"
#include "ckpt/value.h"
#include "util/json.h"

enum {
    WEIR_TAGGED_VALUES_MAX =
        16 << 20, /* a value that is reached in several ways counts each time */
    WEIR_TAGGED_PATH_BYTES_MAX = 65536,
};
#define WEIR_TAGGED_BYTES_MAX ((size_t)256 << 20)

struct weir_tagged_tensor {
    const char *name; /* in the arena */
    const struct weir_from *from;
};

struct weir_tagged {
    char *text; /* the state, terminated; the caller frees it */
    size_t size;
    struct weir_tagged_tensor *tensors; /* in the order they were found; free */
    size_t count;
    char *skipped; /* "path: class" lines, terminated, or NULL; free */
    size_t skips;
};

/* skip: what has no place in there is left out and listed; else it is refused (-ENOTSUP), by name.
 */
int weir_tagged_make(struct weir_tagged *out, struct weir_arena **arena,
                     const struct weir_value *root, bool skip);
void weir_tagged_free(struct weir_tagged *tagged);

#endif
