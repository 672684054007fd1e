/* rados_none.c - in place of the RADOS tier where its header was not there when Weir was built. */
#include <errno.h>

#include "tier/tier.h"
#include "util/err.h"

int weir_tier_rados_open(struct weir_tier **out, const char *path, struct weir_io *io,
                         const struct weir_rados_options *opts)
{
    (void)out, (void)io, (void)opts;
    return weir_fail(ENOTSUP,
                     "cannot open rados://%s: this Weir was built without librados (install the "
                     "package librados-dev and build it again)",
                     path);
}
