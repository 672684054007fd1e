/* s3.h - the S3 tier, inside: what its files share. The contract is tier.h's.
 *
 * Names are keys below a prefix. Objects of ours carry an id of their own as metadata, so that two
 * of equal bytes can be told apart and a lost answer can be settled by looking.
 *
 * What is put (a record) is removed by a tombstone that takes its place: S3 has no removal of just
 * what was compared everywhere, but it has a PUT of that kind. A tombstone is a small object with
 * an id of its own; for everybody who asks, nothing is there. Data, whose names are used once, is
 * deleted.
 */
#ifndef WEIR_TIER_S3_H
#define WEIR_TIER_S3_H

#include <pthread.h>
#include <stdatomic.h>

#include "tier/s3_memory.h"
#include "tier/s3_net.h"
#include "tier/tier.h"
#include "util/key.h"

enum {
    WEIR_S3_TOMB_BYTES = 59, /* of a tombstone: no record of ours has just that size */
};

/* What is known of a server, once it was tried. */
enum weir_s3_habit { WEIR_S3_UNKNOWN, WEIR_S3_HONOURS, WEIR_S3_IGNORES, WEIR_S3_REFUSES };

/* READs that wait for a connection. */
struct weir_s3_reads {
    pthread_mutex_t lock;
    struct weir_req *head, **end;
    uint64_t bytes, last_ns;
};

/* Removals of data on their way (s3_delete.c). */
struct weir_s3_deletes {
    pthread_mutex_t lock;
    struct weir_req *head, **end; /* that wait for a request to go with */
    size_t waiting, active;       /* active: requests under way */
    atomic_bool refused;          /* the server deletes one key at a time */
    atomic_uint failures;         /* of many at a time, since it last went well */
};

struct weir_s3_tier {
    struct weir_tier tier;
    struct weir_s3_site site;
    struct weir_s3_creds *creds;
    struct weir_s3_net *net;
    struct weir_io *io;
    char *ca_file;
    uint64_t timeout_ns, part_bytes;
    struct weir_s3_reads reads;
    struct weir_s3_memory memory;
    struct weir_s3_deletes deletes;
    pthread_mutex_t probe_lock; /* guards the habits */
    atomic_uint probe_failures; /* and, under the lock, what the last one said: */
    int probe_code;
    char probe_text[WEIR_TEXT_MAX];
    _Atomic enum weir_s3_habit put_habit; /* may be looked at without the lock */
    enum weir_s3_habit swap_habit, delete_habit;
    atomic_bool unquoted; /* If-Match of a PUT wants the ETag without its quotes (RGW 16.2) */
};

/* An open blob; a sink begins with one, too. */
struct weir_s3_blob {
    struct weir_handle handle;
    struct weir_s3_tier *tier;
    char *name;
    char etag[WEIR_S3_ETAG_MAX]; /* "" of a sink before its commit */
    char id[WEIR_S3_ID_HEX + 1]; /* "" of what others put there */
    int64_t modified_s;
    uint64_t size;
};

/* 32 digits of chance. */
int weir_s3_id_make(char out[WEIR_S3_ID_HEX + 1]);
/* `"etag"`, or without the quotes. */
void weir_s3_match(char out[WEIR_S3_ETAG_MAX + 2], const char *etag, bool quoted);
/* What is left of a budget that began at start_ns; at least a second. */
uint64_t weir_s3_left_ns(const struct weir_s3_tier *t, uint64_t start_ns);

/* HEAD: 0, -ENOENT (of a tombstone, too) or another failure; *trip is the answer. */
int weir_s3_head(struct weir_s3_tier *t, struct weir_s3_trip *trip, const char *name,
                 const char *doing);
/* Is what was answered what the blob is? */
bool weir_s3_same(const struct weir_s3_trip *trip, const struct weir_s3_blob *blob,
                  const char *name);
struct weir_blob_stat weir_s3_stat_of(const struct weir_s3_trip *trip);

/* The requests. Those that take a req and answer a code may wait. */
int weir_s3_open_blob(struct weir_s3_tier *t, struct weir_req *req);
int weir_s3_stat(struct weir_s3_tier *t, struct weir_req *req);
int weir_s3_load(struct weir_s3_tier *t, struct weir_req *req);
int weir_s3_put(struct weir_s3_tier *t, struct weir_req *req);
int weir_s3_remove(struct weir_s3_tier *t, struct weir_req *req);
int weir_s3_remove_if(struct weir_s3_tier *t, struct weir_req *req);
int weir_s3_list(struct weir_s3_tier *t, struct weir_req *req);
/* A page of the server's: keys that begin with prefix; more: its token, or NULL for the first. */
int weir_s3_page(struct weir_s3_tier *t, const char *prefix, bool deep, const char *more,
                 struct weir_s3_page *out);
int weir_s3_sweep(struct weir_s3_tier *t, struct weir_req *req);
int weir_s3_create(struct weir_s3_tier *t, struct weir_req *req);
int weir_s3_commit(struct weir_s3_tier *t, struct weir_req *req);
/* Those that do not wait for answers complete req themselves. */
void weir_s3_write(struct weir_s3_tier *t, struct weir_req *req);
void weir_s3_read(struct weir_s3_tier *t, struct weir_req *req);
/* Deletes data, whether it is there or not, together with what else goes. */
void weir_s3_delete(struct weir_s3_tier *t, struct weir_req *req);
/* Is a REMOVE no more than that? Then it need not wait for answers. */
bool weir_s3_is_plain(const struct weir_req *req);
struct weir_s3_trip *weir_s3_reads_feed(void *tier, unsigned spare, uint64_t *wait_ns);

/* Puts an object whole, if nothing stands there (a tombstone is nothing); id: its own, made
 * before. until_ns: as of a PUT. *doubt is set when it failed. */
struct weir_s3_new {
    const char *name, *id;
    const void *data;
    size_t size;
    uint64_t until_ns;
};
int weir_s3_put_new(struct weir_s3_tier *t, const struct weir_s3_new *object,
                    enum weir_doubt *doubt);

/* Does the server keep to If-None-Match of a PUT, to If-Match of one, to If-Match of a DELETE?
 * Tried once. 0 (and *out), or a failure to find out. */
int weir_s3_probe_put(struct weir_s3_tier *t, enum weir_s3_habit *out);
int weir_s3_probe_swap(struct weir_s3_tier *t, enum weir_s3_habit *out);
int weir_s3_probe_delete(struct weir_s3_tier *t, enum weir_s3_habit *out);
/* With `weir init`: the bucket is made if it is not there. */
int weir_s3_bucket_make(struct weir_s3_tier *t);

#endif
