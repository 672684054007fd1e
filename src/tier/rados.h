/* rados.h - the pieces of the RADOS tier, which share one connection to a cluster.
 *
 * A name is an object of that name in the store's namespace: its head. A small blob, and every
 * record, is its head's content. A larger one is cut into parts of a fixed size, objects named by
 * a nonce (WEIR_RADOS_PARTS), and its head says so in an attribute; the head is made last, by an
 * exclusive create, so the blob is there whole or not at all. Parts are written once under a nonce
 * of their own, so whoever knows the nonce reads those bytes or finds them gone.
 *
 * Part 0 is made first and tells the parts' state: open while they are written, done once the head
 * stands. SWEEP takes parts that are open and old by removing part 0 while it is open; the writer
 * makes it done while it is open. One of the two succeeds. So parts without a part 0 are garbage
 * whatever their age, as are parts that are done and whose head is gone.
 *
 * The cluster's clock: RADOS stamps objects with the clock of whoever writes them, which may be off
 * by days. So heads and parts 0 carry a time in an attribute, of an OSD's clock, which is asked
 * once and carried on by this machine's boot-time clock (rados_clock.c).
 */
#ifndef WEIR_TIER_RADOS_H
#define WEIR_TIER_RADOS_H

#include <pthread.h>
#include <time.h>

#include "tier/rados_lib.h"
#include "tier/tier.h"
#include "util/key.h"

#define WEIR_RADOS_PARTS ".weir/part/"
#define WEIR_RADOS_CLOCK ".weir/clock"
#define WEIR_RADOS_ATTR  "weir"      /* of a head: what it is */
#define WEIR_RADOS_OWNER "weir.head" /* of a part 0: when it was made, and for which name */
#define WEIR_RADOS_STATE "weir.state"
#define WEIR_RADOS_OPEN  "open"
#define WEIR_RADOS_DONE  "done"

enum {
    RADOS_INLINE_BYTES = 64 << 10,    /* blobs up to this are their head's content */
    RADOS_PART_BYTES_MAX = 128 << 20, /* what an OSD takes for one object */
    RADOS_PARTS_MAX = 1 << 24,        /* of one blob: 64 TiB of the usual 4 MiB */
    RADOS_PART_NAME = sizeof WEIR_RADOS_PARTS + 32 + 1 + 8,
};

struct flight;

struct rados_tier {
    struct weir_tier tier;
    const struct weir_rados_lib *lib;
    struct weir_io *io; /* whose workers run what takes several steps */
    rados_t cluster;
    rados_ioctx_t pool;
    struct weir_rados_options opts;
    char *label; /* "rados://pool/namespace", for errors */
    char *pool_name, *name_space;
    unsigned generation;  /* of fork() */
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t landed;
    struct flight *flights, *idle;
    unsigned in_flight;
    bool has_clock;
    uint64_t clock_boot_ns; /* when the cluster's clock said… */
    int64_t clock_ns;       /* …this */
};

/* What stands at a name. */
struct head {
    uint64_t version; /* of the object: never the same again under this name */
    uint64_t size;    /* of the blob */
    int64_t time_ns;
    bool in_parts, is_ours;
    uint8_t nonce[WEIR_NONCE_BYTES];
    uint64_t part_bytes;
};

/* An open blob; a sink begins with one, whose head is what it committed. */
struct rados_blob {
    struct weir_handle handle;
    struct rados_tier *tier;
    char *name;
    struct head head;
};

/* ---- rados_connect.c ---- */

/* conf: NULL for the usual places. Every failure says what is missing. */
int weir_rados_connect(struct rados_tier *t, const char *conf);
void weir_rados_disconnect(struct rados_tier *t);

/* ---- rados_op.c: one object, one answer ---- */

/* Makes a text for what librados answered (negative); code is what it becomes. */
int weir_rados_fail(struct rados_tier *t, int answer, const char *what, const char *name);
/* Send and wait; the op is released. version may be NULL. librados' answer, without a text. */
int weir_rados_read_now(struct rados_tier *t, rados_read_op_t op, const char *name,
                        uint64_t *version);
int weir_rados_write_now(struct rados_tier *t, rados_write_op_t op, const char *name,
                         uint64_t *version);
/* Looks at a name, and reads the first `size` bytes of the object. -ENOENT with a text, … */
int weir_rados_look(struct rados_tier *t, const char *name, struct head *head, void *buf,
                    size_t size);
/* Makes a head: -EEXIST if there is one that is not this. *doubt as for PUT. */
int weir_rados_head_make(struct rados_tier *t, const char *name, struct head *head,
                         const void *data, size_t size, enum weir_doubt *doubt);
/* Removes the head if it is (still) this one: -ESTALE, -ENOENT. Its parts stay. */
int weir_rados_head_drop(struct rados_tier *t, const char *name, const struct head *head,
                         enum weir_doubt *doubt);
/* The state of parts and whom they belong to, from part 0: -ENOENT without a text. */
struct part_owner {
    bool is_done;
    int64_t time_ns;
    char name[WEIR_NAME_BYTES_MAX];
};
int weir_rados_part_owner(struct rados_tier *t, const char *part, struct part_owner *out);

/* ---- rados_flight.c: many transfers at once ---- */

enum flight_kind { FLIGHT_READ, FLIGHT_READ_HEAD, FLIGHT_WRITE, FLIGHT_REMOVE };
int weir_rados_flights_open(struct rados_tier *t);
/* Waits for all that is in flight. */
void weir_rados_flights_close(struct rados_tier *t);
/* A request of several pieces: it completes after its end, when each piece has. */
void weir_rados_pieces_begin(struct weir_req *req);
void weir_rados_piece(struct rados_tier *t, struct weir_req *req, enum flight_kind kind,
                      const char *name, void *buf, size_t size, uint64_t off, uint64_t version);
void weir_rados_pieces_end(struct rados_tier *t, struct weir_req *req);
/* "<parts>/<nonce>.<index>" into out. */
void weir_rados_part_name(char out[RADOS_PART_NAME], const uint8_t nonce[WEIR_NONCE_BYTES],
                          uint64_t index);
/* Pieces of req, which has parts of these sizes under that nonce. */
void weir_rados_pieces_of(struct rados_tier *t, struct weir_req *req, enum flight_kind kind,
                          const uint8_t nonce[WEIR_NONCE_BYTES], uint64_t part_bytes, size_t size);
/* Removes so many parts, number 0 last, and waits. */
int weir_rados_parts_remove(struct rados_tier *t, const uint8_t nonce[WEIR_NONCE_BYTES],
                            uint64_t count);

/* ---- rados_sink.c, rados_list.c, rados_sweep.c, rados_clock.c: requests ---- */

int weir_rados_create(struct rados_tier *t, struct weir_req *req);
void weir_rados_write(struct rados_tier *t, struct weir_req *req);
int weir_rados_commit(struct rados_tier *t, struct weir_req *req);
int weir_rados_list(struct rados_tier *t, struct weir_req *req);
int weir_rados_sweep(struct rados_tier *t, struct weir_req *req);
int weir_rados_space(struct rados_tier *t, struct weir_req *req);
/* Is that a name of the tier's own, which LIST does not show? */
bool weir_rados_name_is_hidden(const char *name);
/* Now, by the cluster's clock. */
int64_t weir_rados_now(struct rados_tier *t);

#endif
