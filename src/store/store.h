/* store.h - what the files of this layer share: the store, the records, the seals. */
#ifndef WEIR_STORE_STORE_H
#define WEIR_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/io.h"
#include "store/landing.h"
#include "store/seal.h"
#include "store/span.h"
#include "tier/tier.h"
#include "weir.h"

enum { WEIR_VOID_LIFE_S = 60 }; /* how long a void stays: longer than any request in flight */

struct weir_store {
    struct weir_io *io;
    struct weir_tier *tier; /* home */
    char *url;
    char uuid[40]; /* "" for a directory that is not a store: it can be read only */
    bool is_bare;  /* nor is there anything of Weir's in it: no seals need be looked for */
    uint64_t grace_ns;
    struct weir_landing landing;
    unsigned depth;
    unsigned generation;            /* of fork() */
    const struct weir_guard *guard; /* or NULL */
    atomic_bool keeps;              /* what is read will be read again, and fits into memory */
};

/* 0, or -ECHILD in a forked child. */
int weir_store_check(const weir_store *store);
/* The same, and -EROFS where nothing may be written. */
int weir_store_check_writable(const weir_store *store);

/* ---- a second opinion ---- */

/* Somebody who knows, better than the storage, what may be read (data/trust.h). It is asked when an
 * object is opened, and about every block before the caller may see any of it: there is one get
 * path, so nothing gets by. Any thread. */
struct weir_guard {
    uint32_t block_bytes; /* that it judges at once: a power of two, at most WEIR_BLOCK_BYTES_MAX */
    /* Is this a file it knows? *file is its number there. */
    int (*admit)(void *arg, const char *key, uint64_t size, uint64_t *file);
    /* Are those the bytes of the block that begins at off? */
    int (*check)(void *arg, uint64_t file, uint64_t off, const void *data, size_t size);
    void *arg;
};
/* For as long as the store is open; before any object of it is. Borrowed. */
void weir_store_set_guard(weir_store *store, const struct weir_guard *guard);
/* Whether what is read from now on may stay in the kernel's cache. */
void weir_store_set_keeps(weir_store *store, bool keeps);

/* Bytes that were read of its files, so far, from the page cache, through it, and around it: what
 * is there already is read from there, and long reads of the rest go around it. */
void weir_store_read_bytes(weir_store *store, uint64_t out[WEIR_READ_WAYS]);

/* ---- requests that are waited for: the tier's contract (tier.h), one call each ---- */

/* stat may be NULL: is it there? */
int weir_store_stat(weir_store *store, const char *name, struct weir_blob_stat *stat);
/* The same, and makes sure that the name survives a power loss: its maker may not have. */
int weir_store_settle(weir_store *store, const char *name);
/* stat may be NULL. around: it is to be read once; does it then go around the kernel's cache
 * (req.h)? NULL: it is not. */
int weir_store_blob_open(weir_store *store, const char *name, struct weir_handle **out,
                         struct weir_blob_stat *stat, bool *around);
/* Objects that can be written at once. */
unsigned weir_store_writers_max(const weir_store *store);
int weir_store_drop(weir_store *store, const char *name);
/* Do objects have plain names there, for people? */
bool weir_store_has_names(const weir_store *store);
/* The plain name of an object, for as long as its seal is this record, which is made durable first
 * unless it is that already. */
int weir_store_alias(weir_store *store, const char *key, const char *data_name, const uint8_t *seal,
                     size_t size, bool is_durable);
/* *buf is the caller's to free. time_ns, the record's by the tier's clock, may be NULL. */
int weir_record_load(weir_store *store, const char *name, size_t max, uint8_t **buf, size_t *size,
                     int64_t *time_ns);
/* If absent, and not after until_ns (boot-time clock; 0: any time). doubt may be NULL. */
int weir_record_put(weir_store *store, const char *name, const uint8_t *buf, size_t size,
                    uint64_t until_ns, enum weir_doubt *doubt);
/* If it is just this; -ESTALE if it is another. */
int weir_record_drop(weir_store *store, const char *name, const uint8_t *buf, size_t size);

/* A seal and the record it points into. */
struct weir_sealed {
    struct weir_seal seal;
    uint8_t *record;
    size_t record_size;
    int64_t time_ns; /* the record's, by the tier's clock */
};
/* -ENOENT if there is none (without a text worth showing), -EBADMSG, … */
int weir_sealed_load(struct weir_sealed *out, weir_store *store, const char *key);
void weir_sealed_free(struct weir_sealed *sealed);

/* What a scattered read is of: objects, each with spans (span.h), which are sorted and within it.
 * An object is asked for when the read gets there, and must stay open until the read returns. */
struct weir_reading {
    weir_object *obj;
    const struct weir_span *spans;
    size_t count;
};
struct weir_readings {
    int (*next)(void *arg, struct weir_reading *out); /* 1, 0 when there are no more, -errno */
    void *arg;
    uint64_t bytes; /* that all spans together ask for */
};
/* Reads it all, and verifies every block that is touched. progress (of bytes asked for) may be
 * NULL, as may `bad`, which a failure points to a span it is about, or to none. After a failure no
 * more is read, nothing is written any more when this returns, and what was not verified is not
 * left in the caller's memory. */
int weir_readings_run(weir_store *store, const struct weir_readings *sources,
                      weir_progress_fn progress, void *arg, const struct weir_span **bad);
/* The same, of one object. */
int weir_object_read_spans(weir_object *obj, const struct weir_span *spans, size_t count,
                           weir_progress_fn progress, void *arg, const struct weir_span **bad);

/* Gives a sealed object its plain name, and makes its seal durable: a writer that was killed may
 * have come to neither. Most callers take it for no failure that it cannot be. */
int weir_object_settle(const weir_object *obj);
/* Is there a file of its plain name, and is it this object? 0, -ENOENT, -ESTALE, or another. */
int weir_object_check_name(const weir_object *obj);
/* So many bytes are read and checked as one. */
uint64_t weir_object_check_bytes(const weir_object *obj);
/* weir_object_open() by one thread that reads all of the object, one time: small files come around
 * the page cache then, many at once. */
int weir_object_open_once(weir_object **out, weir_store *store, const char *key);

/* The SHA-256 of an object's seal, by which a log names it; zeros for a foreign object. */
void weir_object_digest(const weir_object *obj, uint8_t out[WEIR_SHA256_BYTES]);
/* The same of what was just committed. */
void weir_put_digest(const weir_put *put, uint8_t out[WEIR_SHA256_BYTES]);
/* Did it get its plain name? */
bool weir_put_is_named(const weir_put *put);

/* Memory that is written from where it is, and given back by release() on any thread when it was
 * written, or will not be. Only whole buffers of WEIR_BUFFER_BYTES at page boundaries are lent, but
 * for the last of all; a put that is lent memory is given bytes in no other way. */
void weir_put_lender(weir_put *put, void (*release)(void *arg, void *data), void *arg);
int weir_put_lend(weir_put *put, void *data, size_t size);

/* Before anything is written: the first `size` bytes come last. They are kept in memory until then,
 * up to the end of a buffer; what is written meanwhile stands behind them. */
int weir_put_lead(weir_put *put, size_t size);
/* These are they, before the commit. */
void weir_put_head(weir_put *put, const void *data, size_t size);
/* Other metadata than those that were given first, which may not have known them. */
int weir_put_meta(weir_put *put, const void *meta, size_t size);

/* Flags of weir_put_options that only this library's own writers use: the object is part of the
 * save (set.h) whose prefix this is. Without it, gc does not delete the object with the save. */
#define WEIR_PUT_OF_SAVE(prefix) (WEIR_PUT_PREFIX | (uint32_t)strlen(prefix))
#define WEIR_PUT_PREFIX          0x80000000u

/* What the tier's clock says now. */
int weir_store_now(weir_store *store, int64_t *time_ns);
/* Removes the void that stands at key if it has stood for life_ns; -EAGAIN if it has not. */
int weir_void_clear(weir_store *store, const char *key, const struct weir_sealed *found,
                    int64_t now_ns, uint64_t life_ns);

/* ---- foreign objects: which they are, and what was learned of them ---- */

enum { WEIR_LOOKS_MAX = 8 }; /* how often one looks again while objects come and go at a key */

/* Opens the plain file at key if it is somebody else's, not the plain name of an object. -ENOENT if
 * there is none, -EAGAIN if an object is there, or came or went meanwhile: look again. around: it
 * is to be read once, as above; NULL: it is not. */
int weir_foreign_open(struct weir_handle **out, struct weir_blob_stat *stat, weir_store *store,
                      const char *key, bool *around);

struct weir_learned {
    uint8_t *sums;  /* of every block, or NULL */
    uint8_t *known; /* one byte for each block; NULL: all are */
    uint64_t blocks, missing;
    struct weir_sealed old; /* the record they came from */
    bool has_old;
};
int weir_learned_load(struct weir_learned *out, weir_store *store, const char *key, uint64_t size,
                      int64_t time_ns, uint32_t block_bytes);
/* Keeps what was learned if it is complete and new, in a store that can be written to. */
void weir_learned_keep(struct weir_learned *learned, weir_store *store, const char *key,
                       uint64_t size, int64_t time_ns, uint32_t block_bytes);
void weir_learned_free(struct weir_learned *learned);

/* weir_remove(). reuse: the tier may keep the file to write another over it. The data goes with
 * `drops`, or, if that is NULL, before this returns. */
struct weir_drops;
int weir_remove_object(weir_store *store, const char *key, bool reuse, struct weir_drops *drops);

/* ---- collecting ---- */

/* What gc is about; its parts fill in the result. */
struct weir_gc {
    weir_store *store;
    pthread_mutex_t lock;     /* of the result, and of what the parts note */
    struct weir_drops *drops; /* for the data of objects that go, or NULL */
    bool dry;
    bool reuse;     /* more of the same will be written: the tier may keep deleted files */
    int64_t now_ns; /* the tier's */
    uint64_t grace_ns, retired_ns, void_life_ns; /* retired_ns: the grace of retired saves */
    weir_gc_result result;
    weir_progress_fn progress; /* or NULL */
    void *progress_arg;
};
/* Calls fn for every name below dir, on as many threads as the tier can do with, drops empty
 * directories that were left alone, and tells of progress. */
typedef int (*weir_gc_fn)(void *arg, const char *dir, const char *name);
int weir_gc_each(struct weir_gc *gc, const char *dir, weir_gc_fn fn, void *arg);
uint32_t weir_gc_threads(const struct weir_gc *gc);
/* Any thread: so much more in the result. */
void weir_gc_count(struct weir_gc *gc, uint64_t *counter, uint64_t more);
bool weir_gc_is_old(const struct weir_gc *gc, int64_t time_ns, uint64_t age_ns);
/* The saves of one ledger: those retired for longer than grace_ns, and those that nobody will ever
 * commit (those of the current attempt only after the store's own grace). result may be NULL. */
int weir_ledger_collect(weir_store *store, const char *ledger, uint64_t grace_ns,
                        weir_gc_result *result);
/* The saves of every ledger that are retired, or that nobody will ever commit (collect.c). */
int weir_gc_saves(struct weir_gc *gc);

/* ---- walking names ---- */

struct weir_walk;
/* Visits every file and every empty directory below dir (".weir/data/", "" …), in no order. `skip`
 * names a directory at the top that is left out, or is NULL. */
int weir_walk_open(struct weir_walk **out, weir_store *store, const char *dir, const char *skip);
/* 1 and the name relative to dir (borrowed until the next call; a directory's ends with '/'), 0 at
 * the end, -errno. */
int weir_walk_next(struct weir_walk *walk, const char **name);
void weir_walk_close(struct weir_walk *walk);

#endif
