/* limit.c - a filter that keeps reads and writes within a rate. The submitter waits: that is the
 * back-pressure a caller needs. Bursts are bounded to a twentieth of a second, or one request.
 */
#include <errno.h>
#include <stdlib.h>

#include "io/bucket.h"
#include "tier/tier.h"
#include "util/err.h"
#include "util/sys.h"

struct limit_tier {
    struct weir_tier tier;
    struct weir_bucket read, write;
    bool has_read, has_write;
};

static void pace(struct weir_bucket *bucket, uint64_t bytes)
{
    uint64_t wait_ns = weir_bucket_take(bucket, bytes);
    if (wait_ns)
        weir_sys->sleep_ns(wait_ns);
}

/* How large a record is, is known when it is there: whoever comes next waits for it. */
static void loaded(struct weir_req *req, void *arg)
{
    if (!req->code)
        weir_bucket_take(&((struct limit_tier *)arg)->read, req->result);
    weir_req_done(req);
}

static void limit_submit(struct weir_tier *tier, struct weir_req *req)
{
    struct limit_tier *t = (struct limit_tier *)tier;
    if (t->has_read && req->op == WEIR_OP_MAP) { /* nobody would see what is read of it */
        weir_req_fail(req, ENOTSUP, "what is read at a limited rate is not mapped");
        weir_req_done(req);
        return;
    }
    if (t->has_read && req->op == WEIR_OP_READ)
        pace(&t->read, req->len);
    if (t->has_read && req->op == WEIR_OP_LOAD) {
        pace(&t->read, 0);
        weir_req_push(req, loaded, t);
    }
    if (t->has_write && (req->op == WEIR_OP_WRITE || req->op == WEIR_OP_PUT))
        pace(&t->write, req->len);
    weir_tier_submit(tier->below, req);
}

static void limit_close(struct weir_tier *tier)
{
    struct limit_tier *t = (struct limit_tier *)tier;
    weir_tier_close(tier->below);
    weir_bucket_destroy(&t->read);
    weir_bucket_destroy(&t->write);
    free(t);
}

static const struct weir_tier_ops limit_ops = {"limit", limit_submit, limit_close};

int weir_tier_limit_open(struct weir_tier **out, struct weir_tier *below, uint64_t read_rate,
                         uint64_t write_rate)
{
    struct limit_tier *t = weir_alloc(sizeof *t);
    if (!t) {
        weir_tier_close(below);
        return weir_fail_memory();
    }
    t->tier = (struct weir_tier){&limit_ops,   below,          below->level,
                                 below->depth, below->lookers, below->has_names};
    t->has_read = read_rate > 0;
    t->has_write = write_rate > 0;
    weir_bucket_init(&t->read, read_rate ? read_rate : 1, read_rate / 20);
    weir_bucket_init(&t->write, write_rate ? write_rate : 1, write_rate / 20);
    *out = &t->tier;
    return 0;
}
