/* stripe.h - over how many servers a large new file is spread, on Lustre: set when the file is
 * made, and shown, by the file system's own tool (lfs). Where the tool is missing, fails or takes
 * too long, a file has the layout that its directory gives it: nothing ever fails for this. Any
 * thread may call.
 */
#ifndef WEIR_IO_STRIPE_H
#define WEIR_IO_STRIPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/dirs.h"
#include "io/publish.h"

struct weir_stripes {
    uint64_t count;      /* servers; 0: by the size of the file */
    uint64_t bytes;      /* on one before the next; 0: the layout is left to the file system */
    atomic_bool missing; /* the tool, when last tried */
};

/* Opens a temporary like weir_tmp_open(), laid out for `size` bytes (0: not known). */
int weir_stripe_open(struct weir_tmp *tmp, struct weir_dirs *dirs, struct weir_stripes *stripes,
                     uint64_t size);
/* How the file `name` is laid out: "8 stripes of 4194304 bytes". -ENOTSUP without a text where
 * there is nothing to say. */
int weir_stripe_show(char *out, size_t room, const struct weir_dirs *dirs, const char *name);

#endif
