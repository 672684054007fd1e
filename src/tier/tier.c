/* tier.c - opening tiers by URL, and the blocking call. */
#include "tier/tier.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"

/* Every URL option, of tiers and of the filters in front of them. */
struct settings {
    uint64_t size, read_rate, write_rate;
    bool stats;
    const char *commit; /* a URL */
    struct weir_faults faults;
    struct weir_file_options file;
    struct weir_s3_options s3;
    struct weir_rados_options rados;
};

#define AT(field) offsetof(struct settings, field)

static const struct weir_opt mem_options[] = {
    {"size", 0, WEIR_OPT_SIZE, AT(size), "1G", "SIZE", "bytes the tier may hold", 1, 0},
    {0},
};

static const struct weir_opt file_options[] = {
    {"spare", 0, WEIR_OPT_SIZE, AT(file.spare_bytes_max), "1T", "SIZE",
     "keep so much of deleted checkpoints' files (and at most half of what is free) to write the "
     "next one over them; 0: none",
     0, 0},
    {"spare_min", 0, WEIR_OPT_SIZE, AT(file.spare_bytes_min), "16M", "SIZE",
     "keep no file smaller than this", 1, 0},
    {"stripe_count", 0, WEIR_OPT_NUMBER, AT(file.stripe_count), "0", "N",
     "on Lustre: spread files of 64 MiB and more over so many servers; 0: one for each GiB, up to "
     "32",
     0, 2000},
    {"stripe_size", 0, WEIR_OPT_SIZE, AT(file.stripe_bytes), "4M", "SIZE",
     "on Lustre: bytes on one server before the next, a multiple of 64 KiB; 0: leave the layout to "
     "the file system",
     0, 0},
    {"depth", 0, WEIR_OPT_NUMBER, AT(file.depth), "0", "N",
     "requests that one stream has under way; 0: what the profile says, or 16", 0,
     WEIR_FILE_DEPTH_MAX},
    {"profile", 0, WEIR_OPT_TEXT, AT(file.profile), NULL, "FILE",
     "what weir bench --save measured here: the depth is the smallest that reached 95 % of the "
     "best "
     "rate",
     0, 0},
    {0},
};

static const struct weir_opt s3_options[] = {
    {"endpoint", 0, WEIR_OPT_TEXT, AT(s3.endpoint), NULL, "URL",
     "the server, as https://HOST:PORT (default: AWS_ENDPOINT_URL, the profile's, or AWS)", 0, 0},
    {"region", 0, WEIR_OPT_TEXT, AT(s3.region), NULL, "NAME",
     "the region (default: AWS_REGION, the profile's, or us-east-1)", 0, 0},
    {"style", 0, WEIR_OPT_TEXT, AT(s3.style), "auto", "STYLE",
     "where the bucket stands: path (HOST/BUCKET), virtual (BUCKET.HOST), or auto", 0, 0},
    {"profile", 0, WEIR_OPT_TEXT, AT(s3.profile), NULL, "NAME",
     "of the AWS configuration (default: AWS_PROFILE, or default)", 0, 0},
    {"credentials_file", 0, WEIR_OPT_TEXT, AT(s3.credentials_file), NULL, "FILE",
     "with profiles and keys (default: AWS_SHARED_CREDENTIALS_FILE, or ~/.aws/credentials)", 0, 0},
    {"config_file", 0, WEIR_OPT_TEXT, AT(s3.config_file), NULL, "FILE",
     "with profiles and settings (default: AWS_CONFIG_FILE, or ~/.aws/config)", 0, 0},
    {"sts_endpoint", 0, WEIR_OPT_TEXT, AT(s3.sts_endpoint), NULL, "URL",
     "who lends roles (default: AWS_ENDPOINT_URL_STS, or AWS's of the region)", 0, 0},
    {"anonymous", 0, WEIR_OPT_FLAG, AT(s3.anonymous), "0", NULL,
     "without credentials: public buckets", 0, 0},
    {"ca", 0, WEIR_OPT_TEXT, AT(s3.ca_file), NULL, "FILE",
     "trust the certificates that this one signed (default: the system's)", 0, 0},
    {"timeout", 0, WEIR_OPT_DURATION, AT(s3.timeout_ns), "60s", "TIME",
     "how long a request is tried again before it fails", 1, 86400},
    {"stall", 0, WEIR_OPT_DURATION, AT(s3.stall_ns), "15s", "TIME",
     "a connection on which nothing moves for so long is given up", 1, 86400},
    {"requests", 0, WEIR_OPT_NUMBER, AT(s3.requests_max), "64", "N",
     "requests in flight at most; how many pay is found out", 1, 1024},
    {"part", 0, WEIR_OPT_SIZE, AT(s3.part_bytes), "16M", "SIZE",
     "larger blobs are uploaded in parts of this size (of twice as much where there would be 64 or "
     "more, and of more where 10,000 are not enough)",
     5 << 20, 1 << 30},
    {"memory", 0, WEIR_OPT_SIZE, AT(s3.memory_bytes_max), "256M", "SIZE",
     "for the parts of all uploads", 5 << 20, 0},
    {0},
};

static const struct weir_opt rados_options[] = {
    {"conf", 0, WEIR_OPT_TEXT, AT(rados.conf), NULL, "FILE",
     "Ceph's configuration (default: $CEPH_CONF, /etc/ceph/ceph.conf)", 0, 0},
    {"user", 0, WEIR_OPT_TEXT, AT(rados.user), "admin", "NAME",
     "who to be for the cluster: client.NAME, with the key in its keyring", 0, 0},
    {"object_size", 0, WEIR_OPT_SIZE, AT(rados.object_bytes), "4M", "SIZE",
     "cut larger blobs into objects of this size, which lie on different OSDs", 65536, 1 << 26},
    {"depth", 0, WEIR_OPT_NUMBER, AT(rados.depth), "64", "N", "objects in transfer at once", 1,
     1024},
    {"timeout", 0, WEIR_OPT_DURATION, AT(rados.timeout_ns), "2m", "TIME",
     "the longest a request may wait for the cluster", 2, 86400},
    {0},
};

static const struct weir_opt filter_options[] = {
    {"commit", 0, WEIR_OPT_TEXT, AT(commit), NULL, "URL",
     "keep seals, logs and other records there, and only data here (in URL, write %26 for &)", 0,
     0},
    {"stats", 0, WEIR_OPT_FLAG, AT(stats), "0", NULL, "count requests, bytes and latencies", 0, 0},
    {"read_rate", 0, WEIR_OPT_SIZE, AT(read_rate), "0", "SIZE",
     "limit reads to this many bytes a second; 0: no limit", 0, 0},
    {"write_rate", 0, WEIR_OPT_SIZE, AT(write_rate), "0", "SIZE",
     "limit writes to this many bytes a second; 0: no limit", 0, 0},
    {"fault_nth", 0, WEIR_OPT_NUMBER, AT(faults.nth), "0", "N", "for tests: fail the n-th request",
     0, 0},
    {"fault_rate", 0, WEIR_OPT_RATIO, AT(faults.rate), "0", "P",
     "for tests: fail this share of requests", 0, 1},
    {"fault_error", 0, WEIR_OPT_TEXT, AT(faults.error), "EIO", "NAME",
     "for tests: what failing requests answer", 0, 0},
    {"fault_ops", 0, WEIR_OPT_TEXT, AT(faults.ops), NULL, "OP,OP",
     "for tests: which requests can fail (default: all)", 0, 0},
    {"fault_lasting", 0, WEIR_OPT_FLAG, AT(faults.lasting), "0", NULL,
     "for tests: after the first failure, fail all", 0, 0},
    {"fault_after", 0, WEIR_OPT_FLAG, AT(faults.after), "0", NULL,
     "for tests: do the request, then lose the answer", 0, 0},
    {"fault_delay", 0, WEIR_OPT_DURATION, AT(faults.delay_ns), "0", "TIME",
     "for tests: wait before each request", 0, 60},
    {"fault_truncate", 0, WEIR_OPT_RATIO, AT(faults.truncate), "0", "P",
     "for tests: cut this share of reads short", 0, 1},
    {"fault_flip", 0, WEIR_OPT_RATIO, AT(faults.flip), "0", "P",
     "for tests: flip one bit in this share of reads", 0, 1},
    {"fault_seed", 0, WEIR_OPT_NUMBER, AT(faults.seed), "1", "N",
     "for tests: the faults are a function of this", 0, 0},
    {0},
};

const struct weir_tier_kind_doc weir_tier_kinds[] = {
    {"file", "file:///mnt/nvme/store", "a directory on any mounted file system; a plain path too",
     file_options},
    {"s3", "s3://bucket/prefix?endpoint=https://s3.example:9000", "a bucket of any S3 server",
     s3_options},
    {"rados", "rados://pool/namespace?user=weir", "a namespace of a Ceph pool", rados_options},
    {"mem", "mem:?size=4G", "memory of this process", mem_options},
    {"null", "null:", "takes everything, keeps nothing: tests the engine itself", NULL},
    {"any", "file:///data?write_rate=500M&stats=1", "filters in front of any tier", filter_options},
    {0},
};

/* How each kind of tier is opened; its options are those of weir_tier_kinds. */
static int open_file(struct weir_tier **out, const struct weir_url *url, struct weir_io *io,
                     bool create, const struct settings *set)
{
    return weir_tier_file_open(out, url->path, io, create, &set->file);
}

static int open_s3(struct weir_tier **out, const struct weir_url *url, struct weir_io *io,
                   bool create, const struct settings *set)
{
    return weir_tier_s3_open(out, url->path, io, create, &set->s3);
}

/* A namespace is there once something is in it. */
static int open_rados(struct weir_tier **out, const struct weir_url *url, struct weir_io *io,
                      bool create, const struct settings *set)
{
    (void)create;
    return weir_tier_rados_open(out, url->path, io, &set->rados);
}

static int open_mem(struct weir_tier **out, const struct weir_url *url, struct weir_io *io,
                    bool create, const struct settings *set)
{
    (void)url, (void)io, (void)create;
    return weir_tier_mem_open(out, set->size);
}

static int open_null(struct weir_tier **out, const struct weir_url *url, struct weir_io *io,
                     bool create, const struct settings *set)
{
    (void)url, (void)io, (void)create, (void)set;
    return weir_tier_null_open(out);
}

static const struct opener {
    const char *scheme;
    const struct weir_opt *options;
    int (*open)(struct weir_tier **out, const struct weir_url *url, struct weir_io *io, bool create,
                const struct settings *set);
} openers[] = {
    {"file", file_options, open_file},
    {"s3", s3_options, open_s3},
    {"rados", rados_options, open_rados},
    {"mem", mem_options, open_mem},
    {"null", NULL, open_null},
};

static const struct opener *find_opener(const char *scheme)
{
    for (size_t i = 0; i < sizeof openers / sizeof openers[0]; i++)
        if (!strcmp(openers[i].scheme, scheme))
            return &openers[i];
    weir_fail(ENOTSUP, "no store of kind '%s:' (see: weir help urls)", scheme);
    return NULL;
}

static int read_options(struct settings *set, const struct weir_url *url,
                        const struct weir_opt *own)
{
    for (size_t i = 0; weir_tier_kinds[i].kind; i++)
        if (weir_tier_kinds[i].options)
            weir_opt_defaults(weir_tier_kinds[i].options, set);
    for (size_t i = 0; i < url->options; i++) {
        const struct weir_opt *opt = own ? weir_opt_find(own, url->option[i].name) : NULL;
        if (!opt)
            opt = weir_opt_find(filter_options, url->option[i].name);
        if (!opt)
            return weir_fail(EINVAL, "a %s: store has no option '%s' (see: weir help urls)",
                             url->scheme, url->option[i].name);
        int code = weir_opt_set(opt, set, url->option[i].value);
        if (code)
            return code;
    }
    return 0;
}

static int add_filters(struct weir_tier **tier, const struct settings *set)
{
    const struct weir_faults *f = &set->faults;
    int code = 0;
    if (f->nth || f->rate > 0 || f->delay_ns || f->truncate > 0 || f->flip > 0)
        code = weir_tier_faulty_open(tier, *tier, f);
    if (!code && (set->read_rate || set->write_rate))
        code = weir_tier_limit_open(tier, *tier, set->read_rate, set->write_rate);
    if (!code && set->stats)
        code = weir_tier_stats_open(tier, *tier);
    return code;
}

int weir_tier_open(struct weir_tier **out, const struct weir_url *url, struct weir_io *io,
                   bool create)
{
    struct settings set = {0};
    struct weir_tier *tier = NULL;
    const struct opener *opener = find_opener(url->scheme);
    if (!opener)
        return -ENOTSUP;
    int code = read_options(&set, url, opener->options);
    if (!code)
        code = opener->open(&tier, url, io, create, &set);
    if (!code && set.commit)
        code = weir_tier_split_open(&tier, tier, set.commit, io, create);
    if (!code)
        code = add_filters(&tier, &set);
    if (!code)
        *out = tier;
    return code;
}

void weir_tier_close(struct weir_tier *tier)
{
    if (tier)
        tier->ops->close(tier);
}

const char *weir_tier_kind(const struct weir_tier *tier)
{
    while (tier->below)
        tier = tier->below;
    return tier->ops->kind;
}

int weir_tier_layout(struct weir_tier *tier, const char *name, char *out, size_t room)
{
    while (tier->below)
        tier = tier->below;
    return strcmp(tier->ops->kind, "file") ? -ENOTSUP
                                           : weir_tier_file_layout(tier, name, out, room);
}

int weir_tier_call(struct weir_tier *tier, struct weir_req *req)
{
    struct weir_queue queue;
    weir_queue_init(&queue);
    req->blocking = true;
    weir_req_push(req, weir_queue_done, &queue);
    weir_tier_submit(tier, req);
    weir_queue_get(&queue);
    weir_queue_destroy(&queue);
    return req->code ? weir_fail_text(req->code, req->text) : 0;
}

static bool add_entry(struct weir_req *req, size_t *used, char type, const char *name,
                      const void *more, size_t more_size)
{
    size_t size = strlen(name) + 1;
    if (1 + size + more_size > req->len - *used)
        return false;
    char *at = (char *)req->buf + *used;
    at[0] = type;
    memcpy(at + 1, name, size);
    if (more_size)
        memcpy(at + 1 + size, more, more_size);
    *used += 1 + size + more_size;
    req->result++;
    return true;
}

bool weir_list_page_add(struct weir_req *req, size_t *used, bool is_dir, const char *name)
{
    return add_entry(req, used, is_dir ? 'd' : 'f', name, NULL, 0);
}

bool weir_list_page_add_seen(struct weir_req *req, size_t *used, const char *name,
                             const struct weir_blob_stat *stat)
{
    return add_entry(req, used, 'F', name, stat, sizeof *stat);
}

char weir_list_page_take(const char **at, const char **name, struct weir_blob_stat *stat,
                         bool *has_stat)
{
    char type = **at;
    *name = *at + 1;
    *at = *name + strlen(*name) + 1;
    *has_stat = type == 'F';
    if (!*has_stat)
        return type;
    memcpy(stat, *at, sizeof *stat);
    *at += sizeof *stat;
    return 'f';
}
