/* null.c - the null tier: takes everything at once and keeps nothing. What remains is the cost of
 * the engine itself.
 */
#include <errno.h>
#include <stdlib.h>

#include "tier/tier.h"
#include "util/err.h"
#include "util/sys.h"

static void nothing(struct weir_handle *handle)
{
    (void)handle;
}

static struct weir_handle handle = {nothing};

static void null_submit(struct weir_tier *tier, struct weir_req *req)
{
    (void)tier;
    req->code = 0;
    req->doubt = WEIR_SURE;
    req->result = 0;
    switch (req->op) {
    case WEIR_OP_CREATE:
    case WEIR_OP_LIST:
        req->handle = &handle;
        break;
    case WEIR_OP_ALIAS:
    case WEIR_OP_LEASE:
    case WEIR_OP_MAP:
        weir_req_fail(req, ENOTSUP, "the null tier has no plain names, no leases and no files");
        break;
    case WEIR_OP_SPACE:
        req->space = (struct weir_space){UINT64_MAX, UINT64_MAX};
        break;
    case WEIR_OP_SWEEP:
        req->len = 0;
        req->stat.time_ns = (int64_t)weir_sys->now_ns(WEIR_CLOCK_REAL);
        break;
    case WEIR_OP_WRITE:
    case WEIR_OP_COMMIT:
    case WEIR_OP_PUT:
        break;
    default:
        weir_req_fail(req, ENOENT, "the null tier keeps nothing: '%s' is not there",
                      req->name ? req->name : "");
    }
    weir_req_done(req);
}

static void null_close(struct weir_tier *tier)
{
    free(tier);
}

static const struct weir_tier_ops null_ops = {"null", null_submit, null_close};

int weir_tier_null_open(struct weir_tier **out)
{
    struct weir_tier *tier = weir_alloc(sizeof *tier);
    if (!tier)
        return weir_fail_memory();
    *tier = (struct weir_tier){&null_ops, NULL, WEIR_LEVEL_NONE, 0, 0, false};
    *out = tier;
    return 0;
}
