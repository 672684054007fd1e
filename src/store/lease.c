/* lease.c - see lease.h. */
#include "store/lease.h"

#include <errno.h>

#include "util/err.h"

static int lease(struct weir_handle **out, weir_store *store, const char *key, bool alone)
{
    char name[WEIR_NAME_BYTES_MAX];
    struct weir_req req;
    weir_key_name(name, WEIR_DIR_LEASE, key);
    weir_req_init(&req, WEIR_OP_LEASE);
    req.name = name;
    req.alone = alone;
    int code = weir_tier_call(store->tier, &req);
    *out = code ? NULL : req.handle;
    return code == -ENOTSUP ? 0 : code;
}

int weir_lease_share(struct weir_handle **out, weir_store *store, const char *key)
{
    int code = lease(out, store, key, false);
    /* -EBUSY: a gc stands still with it. The caller looks at the log again; the grace must do. */
    bool none = code == -EACCES || code == -EPERM || code == -EROFS || code == -EBUSY ||
                code == -ENOSPC || code == -EDQUOT;
    return none ? 0 : code;
}

int weir_lease_take(struct weir_handle **out, weir_store *store, const char *key)
{
    int code = lease(out, store, key, true);
    if (code == -ENOSPC || code == -EDQUOT) /* no file, so nobody holds it */
        return 0;
    return code == -EBUSY ? weir_fail(EBUSY, "'%s' is being read", key) : code;
}
