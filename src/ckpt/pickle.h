/* pickle.h - reads the pickles of PyTorch's checkpoints, and runs nothing.
 *
 * A pickle is a program for a small stack machine, and Python's own reader calls whatever functions
 * the program names. This one calls none: a name is only a name (WEIR_VALUE_GLOBAL), a call is only
 * a record of who would have been called with what (WEIR_VALUE_OBJECT). The few that build plain
 * data, like OrderedDict, are carried out here by hand (pickle_call.c). It knows the opcodes that
 * protocols 2 to 5 use for such data, and takes any bytes.
 */
#ifndef WEIR_CKPT_PICKLE_H
#define WEIR_CKPT_PICKLE_H

#include "ckpt/value.h"

enum {
    WEIR_PICKLE_BYTES_MAX = 256 << 20, /* a million tensors take half of it */
    WEIR_PICKLE_VALUES_MAX = 32 << 20, /* 1.3 GiB of memory */
    WEIR_PICKLE_INT_BYTES_MAX = 1024,  /* Python prints none of more than 4,300 digits */
};

/* *out and all below it are in the arena and point into the bytes; objects get the owner. *used
 * (may be NULL): how long the pickle was. -EBADMSG says what is wrong at which byte; -ENOTSUP names
 * what is not known. */
int weir_pickle_load(struct weir_value **out, struct weir_arena **arena, const void *bytes,
                     size_t size, void *owner, size_t *used);

/* What a call makes: one of the kinds of plain data, or an object. For pickle.c. */
int weir_pickle_call(struct weir_value **out, struct weir_arena **arena, struct weir_value *global,
                     struct weir_value *args, void *owner);

#endif
