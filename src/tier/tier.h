/* tier.h - a place that holds named bytes. Every kind implements this one small contract, and
 * one conformance test (tests/conformance) runs against every kind. Filters are tiers in front of
 * a tier.
 *
 * A tier takes requests (util/req.h) and completes each exactly once, on any thread; submit never
 * waits for the answer unless the request is `blocking`, and may wait for room. Names are slash-
 * separated UTF-8, valid or the engine's own; the store checks keys before they come here.
 *
 *  - CREATE, WRITE at any offset in any order, each byte once, COMMIT: the bytes appear under the
 *    name whole, durable to the tier's level, or not at all; a taken name is -EEXIST. A sink that
 *    is closed without a commit leaves nothing.
 *  - PUT is the primitive all visibility rests on: among any number of racing writers exactly one
 *    succeeds, and it is durable then. -EEXIST says that what stands there is durable, too.
 *    `doubt` says what a failure leaves open.
 *  - OPEN gives bytes that stay the same, or -ESTALE, however the name fares meanwhile.
 *  - READ answers short only at the end. LOAD reads a whole record. MAP shows what is opened as
 *    memory; who uses it must know that nobody makes the file shorter.
 *  - REMOVE is done when answered; with `sync` also after a power loss. With a handle,
 *    only if name is (an alias of) what the handle holds open; with a guard, only while that
 *    record stands, atomically against its REMOVE_IF. A name that ends in '/' is a
 *    directory: where a tier has those, it goes if it is empty and was left alone for `off`
 *    nanoseconds before stat.time_ns. REMOVE_IF is atomic against other REMOVE_IFs. What its
 *    remover will not miss (`reuse`) a tier may keep to write another blob over it, as long as
 *    nobody ever sees that. Of what is not there the answer is -ENOENT; it may be 0 if who asks
 *    does not mind (`blind`).
 *  - LIST gives one directory level in no order: pages of (type 'f' or 'd', name, NUL), result
 *    says how many; 0 is the end. What is added or removed meanwhile may or may not show. One that
 *    is to `look` may give files as (type 'F', name, NUL, struct weir_blob_stat). A symbolic link
 *    is what it leads to, as for STAT and OPEN, but not for what writes or removes. A `deep`
 *    one gives all files below, their names with slashes, where a tier has no directories (else
 *    -ENOTSUP): that is one pass, where a walk through levels is one for each.
 *  - ALIAS gives people a second, plain name (one that is just that already is as good); tiers
 *    without links answer -ENOTSUP. With a guard it is atomic against the REMOVE_IF of that record,
 *    which takes the plain name (name2) along: so a plain name is never there without its record;
 *    with `sync` the record is made durable first, for who did not put it himself: so that holds
 *    after a power loss, too.
 *  - LEASE holds a name for as long as its handle is open: with others, or alone (-EBUSY while
 *    anybody else has it; it then leaves nothing behind). It dies with its holder.
 *  - Where the place itself is not there (a bucket, a pool), every request answers -ENODEV.
 *  - SWEEP drops temporaries older than `off` nanoseconds (with `dry`, only counts them), and all
 *    that is kept for reuse (stat.size is its bytes). stat.time_ns is the tier's clock then.
 */
#ifndef WEIR_TIER_TIER_H
#define WEIR_TIER_TIER_H

#include "io/io.h"
#include "util/opt.h"
#include "util/req.h"
#include "util/url.h"
#include "weir.h"

struct weir_tier;

struct weir_tier_ops {
    const char *kind;
    void (*submit)(struct weir_tier *tier, struct weir_req *req);
    void (*close)(struct weir_tier *tier); /* closes the tier below, too */
};

struct weir_tier {
    const struct weir_tier_ops *ops;
    struct weir_tier *below; /* of a filter */
    weir_level level;        /* what is committed here has reached */
    unsigned depth;          /* requests that one stream should have under way; 0: no wish */
    unsigned lookers;        /* names that gc may look at at a time; 0: one */
    bool has_names;          /* plain ones: it takes ALIAS */
};

/* A record (seal, log entry): whole in memory on both sides. Holds the largest object's seal. */
#define WEIR_RECORD_BYTES_MAX ((size_t)33 << 20)

/* Opens the tier a URL names, with the filters its options ask for. create: make it if absent. */
int weir_tier_open(struct weir_tier **out, const struct weir_url *url, struct weir_io *io,
                   bool create);
void weir_tier_close(struct weir_tier *tier);
/* The kind at the bottom: "file", "mem", … */
const char *weir_tier_kind(const struct weir_tier *tier);
/* How a blob is laid out on its storage, for people; -ENOTSUP, without a text, where a tier has
 * nothing to say. May take a moment: it may ask a tool. */
int weir_tier_layout(struct weir_tier *tier, const char *name, char *out, size_t room);
/* Options of every kind of URL, for the reference; kinds end with a NULL kind. */
struct weir_tier_kind_doc {
    const char *kind, *example, *help;
    const struct weir_opt *options;
};
extern const struct weir_tier_kind_doc weir_tier_kinds[];

static inline void weir_tier_submit(struct weir_tier *tier, struct weir_req *req)
{
    tier->ops->submit(tier, req);
}
/* Submits a blocking request and waits; on failure its text becomes this thread's. */
int weir_tier_call(struct weir_tier *tier, struct weir_req *req);

/* One constructor for each kind. */
enum { WEIR_FILE_DEPTH_MAX = 64 }; /* what the buffers of one stream's store allow */
struct weir_file_options {
    uint64_t spare_bytes_max, spare_bytes_min; /* of deleted files kept to be written over */
    uint64_t stripe_count, stripe_bytes;       /* of large new files, on Lustre (io/stripe.h) */
    uint64_t depth;      /* requests of a stream under way; 0: the profile's, or no wish */
    const char *profile; /* of weir bench --save; "" or NULL: none */
};
int weir_tier_file_open(struct weir_tier **out, const char *path, struct weir_io *io, bool create,
                        const struct weir_file_options *opts);
int weir_tier_file_layout(struct weir_tier *tier, const char *name, char *out, size_t room);
int weir_tier_mem_open(struct weir_tier **out, uint64_t bytes_max);
int weir_tier_null_open(struct weir_tier **out);
struct weir_s3_options {
    const char *endpoint, *region, *style, *profile, *ca_file; /* "" or NULL: not given */
    const char *credentials_file, *config_file, *sts_endpoint; /* the same */
    bool anonymous;
    uint64_t timeout_ns, stall_ns;
    uint64_t requests_max; /* in flight */
    uint64_t part_bytes;   /* of an upload, at least */
    uint64_t memory_bytes_max; /* of parts being gathered and sent */
};
/* path: "bucket/prefix". create: make the bucket if it is not there. */
int weir_tier_s3_open(struct weir_tier **out, const char *path, struct weir_io *io, bool create,
                      const struct weir_s3_options *opts);
struct weir_rados_options {
    const char *conf, *user; /* conf: NULL for the usual places */
    uint64_t object_bytes;   /* larger blobs are cut into objects of this size */
    uint64_t depth;          /* transfers in flight */
    uint64_t timeout_ns;     /* the longest any request waits */
};
/* path: POOL/NAMESPACE. */
int weir_tier_rados_open(struct weir_tier **out, const char *path, struct weir_io *io,
                         const struct weir_rados_options *opts);

/* Filters take `below` over, also when they fail. */
int weir_tier_stats_open(struct weir_tier **out, struct weir_tier *below);
int weir_tier_limit_open(struct weir_tier **out, struct weir_tier *below, uint64_t read_rate,
                         uint64_t write_rate);
/* Data stays below, records (.weir/ but for .weir/data/) go to the tier of the URL. */
int weir_tier_split_open(struct weir_tier **out, struct weir_tier *below, const char *records,
                         struct weir_io *io, bool create);
struct weir_faults {
    uint64_t seed;
    uint64_t nth;      /* fail the n-th request (1 is the first); 0: none */
    double rate;       /* fail this share of requests */
    bool lasting;      /* once a request failed, all fail */
    bool after;        /* fail after doing it: the answer is lost */
    const char *error; /* errno name: EIO, ENOSPC, … */
    const char *ops;   /* names with commas; NULL: all */
    uint64_t delay_ns; /* before each request */
    double truncate;   /* share of reads cut short */
    double flip;       /* share of reads with one bit flipped */
};
int weir_tier_faulty_open(struct weir_tier **out, struct weir_tier *below,
                          const struct weir_faults *faults);

/* The stats filter's table: rows with count > 0; -ENOTSUP if there is no such filter. */
int weir_tier_stats_get(struct weir_tier *tier, weir_stat_row *rows, size_t max);

/* Pages of LIST: appends one entry; false when it does not fit. */
bool weir_list_page_add(struct weir_req *req, size_t *used, bool is_dir, const char *name);
/* A file that was looked at. */
bool weir_list_page_add_seen(struct weir_req *req, size_t *used, const char *name,
                             const struct weir_blob_stat *stat);
/* Takes the next entry of a page: its type, 'f' or 'd'; has_stat: *stat is what was seen. */
char weir_list_page_take(const char **at, const char **name, struct weir_blob_stat *stat,
                         bool *has_stat);

#endif
