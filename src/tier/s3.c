/* s3.c - the S3 tier: opening it, and which request goes where. See s3.h.
 *
 * READs, WRITEs and plain REMOVEs of data are asynchronous. Whatever else waits for answers runs on
 * the submitter's thread if that would wait anyway, else on one of the io layer's.
 */
#include "tier/s3.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"

/* Of 1 MiB: enough for eight large ranges, of which each takes as long as the way there. */
enum { DEPTH = 64, LOOKERS = 32 };

static int s3_do(struct weir_s3_tier *t, struct weir_req *req)
{
    switch (req->op) {
    case WEIR_OP_OPEN:
        return weir_s3_open_blob(t, req);
    case WEIR_OP_CREATE:
        return weir_s3_create(t, req);
    case WEIR_OP_COMMIT:
        return weir_s3_commit(t, req);
    case WEIR_OP_LOAD:
        return weir_s3_load(t, req);
    case WEIR_OP_PUT:
        return weir_s3_put(t, req);
    case WEIR_OP_STAT:
        return weir_s3_stat(t, req);
    case WEIR_OP_REMOVE:
        return weir_s3_remove(t, req);
    case WEIR_OP_REMOVE_IF:
        return weir_s3_remove_if(t, req);
    case WEIR_OP_LIST:
        return weir_s3_list(t, req);
    case WEIR_OP_SWEEP:
        return weir_s3_sweep(t, req);
    case WEIR_OP_SPACE: /* nobody says */
        req->space = (struct weir_space){UINT64_MAX, UINT64_MAX};
        return 0;
    case WEIR_OP_MAP:
    case WEIR_OP_ALIAS:
    case WEIR_OP_LEASE:
        return weir_fail(ENOTSUP, "S3 has no files to map, no second names and no leases");
    case WEIR_OP_READ:
    case WEIR_OP_WRITE:
    case WEIR_OPS:
        break;
    }
    assert(!"an unknown request");
    return -EINVAL;
}

static void s3_task(struct weir_req *req)
{
    weir_req_take(req, s3_do(req->io.context, req));
}

static bool waits(enum weir_op op)
{
    return op != WEIR_OP_CREATE && op != WEIR_OP_SPACE && op != WEIR_OP_MAP &&
           op != WEIR_OP_ALIAS && op != WEIR_OP_LEASE;
}

static void s3_submit(struct weir_tier *tier, struct weir_req *req)
{
    struct weir_s3_tier *t = (struct weir_s3_tier *)tier;
    req->doubt = WEIR_SURE;
    if (req->op == WEIR_OP_READ) {
        weir_s3_read(t, req);
        return;
    }
    if (req->op == WEIR_OP_WRITE) {
        weir_s3_write(t, req);
        return;
    }
    if (req->op == WEIR_OP_REMOVE && weir_s3_is_plain(req)) {
        weir_s3_delete(t, req);
        return;
    }
    req->io.context = t;
    if (!req->blocking && waits(req->op)) {
        weir_io_task(t->io, req, s3_task);
        return;
    }
    s3_task(req);
    weir_req_done(req);
}

static void s3_close(struct weir_tier *tier)
{
    struct weir_s3_tier *t = (struct weir_s3_tier *)tier;
    weir_s3_net_close(t->net);
    weir_s3_creds_close(t->creds);
    weir_s3_site_destroy(&t->site);
    pthread_mutex_destroy(&t->reads.lock);
    pthread_mutex_destroy(&t->deletes.lock);
    weir_s3_memory_destroy(&t->memory);
    pthread_mutex_destroy(&t->probe_lock);
    free(t->ca_file);
    free(t);
}

static const struct weir_tier_ops s3_ops = {"s3", s3_submit, s3_close};

/* A text of a URL: "" is as good as none. */
static const char *given(const char *text)
{
    return text && *text ? text : NULL;
}

static int open_creds(struct weir_s3_tier *t, const struct weir_s3_options *opts)
{
    const struct weir_s3_creds_options creds = {
        .profile = given(opts->profile),
        .region = given(opts->region),
        .ca_file = given(opts->ca_file),
        .credentials_file = given(opts->credentials_file),
        .config_file = given(opts->config_file),
        .sts_endpoint = given(opts->sts_endpoint),
        .anonymous = opts->anonymous,
    };
    return weir_s3_creds_open(&t->creds, &creds);
}

static int open_parts(struct weir_s3_tier *t, const char *path, const struct weir_s3_options *opts)
{
    int code = open_creds(t, opts);
    if (code)
        return code;
    const char *ca_file = weir_s3_creds_ca_file(t->creds);
    if (ca_file && !(t->ca_file = weir_strdup(ca_file)))
        return weir_fail_memory();
    const char *endpoint = given(opts->endpoint), *region = given(opts->region);
    code = weir_s3_site_init(&t->site, path, endpoint ? endpoint : weir_s3_creds_endpoint(t->creds),
                             region ? region : weir_s3_creds_region(t->creds), opts->style);
    if (code)
        return code;
    const struct weir_s3_net_options net = {
        .site = &t->site,
        .creds = t->creds,
        .ca_file = t->ca_file,
        .timeout_ns = opts->timeout_ns,
        .stall_ns = opts->stall_ns < opts->timeout_ns ? opts->stall_ns : opts->timeout_ns,
        .requests_max = (unsigned)opts->requests_max,
        .feed = weir_s3_reads_feed,
        .feed_arg = t,
    };
    return weir_s3_net_open(&t->net, &net);
}

int weir_tier_s3_open(struct weir_tier **out, const char *path, struct weir_io *io, bool create,
                      const struct weir_s3_options *opts)
{
    struct weir_s3_tier *t = weir_alloc(sizeof *t);
    if (!t)
        return weir_fail_memory();
    t->tier = (struct weir_tier){&s3_ops, NULL, WEIR_LEVEL_HOME, DEPTH, LOOKERS, false};
    t->io = io;
    t->timeout_ns = opts->timeout_ns;
    t->part_bytes = opts->part_bytes;
    t->reads.end = &t->reads.head;
    t->deletes.end = &t->deletes.head;
    pthread_mutex_init(&t->site.lock, NULL);
    pthread_mutex_init(&t->reads.lock, NULL);
    pthread_mutex_init(&t->deletes.lock, NULL);
    weir_s3_memory_init(&t->memory, opts->memory_bytes_max);
    pthread_mutex_init(&t->probe_lock, NULL);
    int code = open_parts(t, path, opts);
    if (!code && create)
        code = weir_s3_bucket_make(t);
    if (code)
        s3_close(&t->tier);
    else
        *out = &t->tier;
    return code;
}
