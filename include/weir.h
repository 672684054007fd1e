/* weir.h - the public interface of Weir, a storage engine for AI training.
 *
 * Conventions. A function returns 0 (or a count) on success and a negative errno on failure;
 * weir_error_text() then tells, in one line, what was being done, to what, and what went wrong.
 * `**out` is owned by the caller; a returned pointer is borrowed. Out-parameters are untouched
 * on failure. Destructors take NULL. Option structs begin with struct_size and only grow at the
 * end: fill them with their init function first.
 *
 * Threads. A weir_store may be used by any number of threads at once; every other handle by one
 * thread at a time. After fork(2) the child must open its own handles: the parent's answer
 * -ECHILD there. The library installs no signal handlers and writes to no stream.
 */
#ifndef WEIR_H
#define WEIR_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_API __attribute__((visibility("default")))

/* Limits. A part is what stands between two slashes of a key; 220 leaves room in a 255-byte file
 * name for what the engine appends. A seal holds 16 bytes for each block and at most 32 MiB of
 * them: 2 TiB in blocks of 1 MiB, 8 GiB in blocks of 4 KiB. */
#define WEIR_KEY_BYTES_MAX 1024
#define WEIR_PART_BYTES_MAX 220
#define WEIR_BLOCKS_MAX ((uint64_t)2 << 20)
#define WEIR_OBJECT_BYTES_MAX (WEIR_BLOCKS_MAX << 20)
#define WEIR_META_BYTES_MAX 65536
#define WEIR_BLOCK_BYTES_MIN 4096
#define WEIR_BLOCK_BYTES_MAX (1 << 20)

/* The outcome of a write could not be established: it may or may not have happened. Never means
 * "failed". Look again (weir_object_open) once the store answers. */
#define WEIR_EUNKNOWN EINPROGRESS

typedef struct weir_store weir_store;
typedef struct weir_put weir_put;
typedef struct weir_object weir_object;
typedef struct weir_list weir_list;

/* How far a write got. Each level includes those before it. */
typedef enum weir_level {
    WEIR_LEVEL_NONE = 0,   /* nowhere: a null tier */
    WEIR_LEVEL_MEMORY = 1, /* in memory; gone with the process */
    WEIR_LEVEL_NODE = 2,   /* synced on this node */
    WEIR_LEVEL_PEER = 3,   /* also on another node */
    WEIR_LEVEL_HOME = 4    /* acknowledged by the store's home tier */
} weir_level;

/* What an object is. */
typedef enum weir_kind {
    WEIR_KIND_SEALED = 1, /* written by Weir: every block has a fingerprint */
    WEIR_KIND_FOREIGN = 2 /* a plain file somebody else put there */
} weir_kind;

WEIR_API const char *weir_version(void);
/* Borrowed: this thread's last failure; valid until the thread's next failing call. */
WEIR_API const char *weir_error_text(void);
WEIR_API const char *weir_level_name(weir_level level);

/* ---- store ---- */

enum {
    WEIR_STORE_CREATE = 1 /* make the directory and its marker if they are not there */
};

typedef struct weir_store_options {
    size_t struct_size;
    uint32_t flags;            /* WEIR_STORE_… */
    uint32_t depth;            /* transfers in flight for each stream; 0: 16 */
    const char *io;            /* "uring", "threads"; NULL: $WEIR_IO, else the best that works */
    uint64_t pool_bytes_max;   /* bound of the transfer buffers; 0: 64 MiB */
    uint64_t grace_s;          /* only when the store is created; 0: 86400 */
} weir_store_options;

WEIR_API void weir_store_options_init(weir_store_options *opts);
/* url: a path, file:PATH, mem: or null:, with ?option=value&…. opts may be NULL.
 * Returns 0, -ENOENT if there is no such directory (and WEIR_STORE_CREATE was not given),
 * -EPROTO if it was made by a newer Weir, or another -errno. */
WEIR_API int weir_store_open(weir_store **out, const char *url, const weir_store_options *opts);
WEIR_API void weir_store_close(weir_store *store);

/* What is behind a store, for people and scripts. Borrowed until the store is closed. */
typedef struct weir_store_info {
    const char *url;
    const char *uuid;      /* "" for a directory that is not a store */
    const char *tier;      /* "file", "mem", … */
    const char *io;        /* "uring", "threads", or "none" */
    weir_level level;      /* what a committed put has reached */
    uint64_t grace_s;
    uint64_t free_bytes;   /* UINT64_MAX where unknown */
    uint64_t total_bytes;
} weir_store_info;
WEIR_API int weir_store_info_get(weir_store *store, weir_store_info *info);

/* Traffic since the store was opened, one row for each kind of request; needs ?stats=1. */
typedef struct weir_stat_row {
    const char *op;
    uint64_t count, errors, bytes;
    uint64_t latency_us_p50, latency_us_p99, latency_us_max;
} weir_stat_row;
/* Returns how many rows were filled (at most `max`), or -ENOTSUP without ?stats=1. */
WEIR_API int weir_store_stats(weir_store *store, weir_stat_row *rows, size_t max);

/* ---- writing ---- */

typedef struct weir_put_options {
    size_t struct_size;
    uint32_t flags;        /* none yet: 0 */
    uint32_t block_bytes;  /* a power of two; 0: 1 MiB */
    uint64_t size_bytes;   /* if known, for preallocation; 0: unknown */
    const void *meta;      /* user metadata, kept in the seal */
    size_t meta_bytes;
} weir_put_options;

typedef struct weir_put_result {
    uint64_t size_bytes;
    weir_level level;
} weir_put_result;

WEIR_API void weir_put_options_init(weir_put_options *opts);
/* Begins an object. Nothing is visible before weir_put_commit() returned 0.
 * -EINVAL for a bad key, -EEXIST if the key is taken already, -EAGAIN if gc holds it. */
WEIR_API int weir_put_open(weir_put **out, weir_store *store, const char *key,
                           const weir_put_options *opts);
WEIR_API int weir_put_write(weir_put *put, const void *data, size_t size);
/* The same without a copy: fill at most *cap bytes at *buf, then say how many. */
WEIR_API int weir_put_buffer(weir_put *put, void **buf, size_t *cap);
WEIR_API int weir_put_advance(weir_put *put, size_t size);
/* Makes the object durable and visible. -EEXIST: another writer won; WEIR_EUNKNOWN: see above;
 * -ESTALE: this writer was away longer than half the store's grace. result may be NULL. */
WEIR_API int weir_put_commit(weir_put *put, weir_put_result *result);
/* Ends the handle; before a commit, drops what was written. */
WEIR_API void weir_put_close(weir_put *put);

/* ---- reading ---- */

typedef struct weir_info {
    const char *key;
    const char *data_name; /* where the bytes are, within the store */
    const char *nonce;     /* 32 hex digits; "" for a foreign object */
    const char *algorithm; /* of the block sums: "xxh3-128"; "" while not known */
    const void *meta;
    size_t meta_bytes;
    uint64_t size_bytes;
    uint64_t block_bytes;
    uint64_t time_ns;      /* when sealed, or the foreign file's mtime; Unix time */
    weir_kind kind;
    weir_level level;
    size_t save_bytes;     /* part of a save (a checkpoint): so much of the key names it; else 0 */
} weir_info;

/* -ENOENT if there is no such object, -EBADMSG if its seal or its size is damaged. */
WEIR_API int weir_object_open(weir_object **out, weir_store *store, const char *key);
/* Borrowed until the object is closed. */
WEIR_API const weir_info *weir_object_info(const weir_object *obj);
/* Reads [off, off + size), less at the end of the object, and verifies every block touched.
 * Returns 0, or -EBADMSG naming object, block and byte range, with nothing of that block in buf
 * that a caller may use. An object that was removed meanwhile reads on, or answers -ESTALE where
 * the storage cannot hold it open (NFS). */
WEIR_API int weir_object_read(weir_object *obj, void *buf, size_t size, uint64_t off, size_t *got);
/* How the storage has laid its bytes out, as a text for people, where that is known: "8 stripes of
 * 4194304 bytes" on Lustre. -ENOTSUP: there is nothing to say. May ask the file system's tool. */
WEIR_API int weir_object_layout(weir_object *obj, char *out, size_t room);
WEIR_API void weir_object_close(weir_object *obj);

/* ---- the namespace ---- */

typedef struct weir_entry {
    const char *key;     /* a directory's ends with '/' */
    uint64_t size_bytes; /* with WEIR_LIST_DETAIL */
    uint64_t time_ns;    /* with WEIR_LIST_DETAIL */
    weir_kind kind;
    int is_dir;
    int error;           /* with WEIR_LIST_DETAIL: -EBADMSG for a damaged seal, … */
} weir_entry;

enum {
    WEIR_LIST_RECURSIVE = 1,
    WEIR_LIST_DETAIL = 2,
    /* Also names that cannot be keys, as they are, with any bytes: error is why, and of the rest
     * only is_dir says something. */
    WEIR_LIST_ODD = 4
};

/* prefix: "" for all, an object's key, or a directory (with or without its '/'). Entries come
 * sorted within each directory; an object named like the directory comes first. */
WEIR_API int weir_list_open(weir_list **out, weir_store *store, const char *prefix, uint32_t flags);
/* Returns 1 and a borrowed entry (until the next call), 0 at the end, or -errno. */
WEIR_API int weir_list_next(weir_list *list, const weir_entry **entry);
WEIR_API void weir_list_close(weir_list *list);

/* Removes one object. -ENOENT, -EPERM for a foreign object (its owner removes it), … */
WEIR_API int weir_remove(weir_store *store, const char *key);
/* The same for an object whose seal is damaged, which weir_remove() refuses with -EBADMSG: only
 * the seal goes. The bytes stay under the plain name, as a foreign object, for whoever wants to
 * save what can be saved; without a plain name nothing is done (-EBUSY).
 * -EINVAL if the seal is in order. */
WEIR_API int weir_remove_damaged(weir_store *store, const char *key);

/* Says that so much more is done; returns non-zero to stop the whole (-ECANCELED). */
typedef int (*weir_progress_fn)(void *arg, uint64_t more);
/* Reads the whole object and checks it. progress (of bytes) may be NULL. A foreign object that was
 * never read is learned: its fingerprints are kept. */
WEIR_API int weir_verify(weir_store *store, const char *key, weir_progress_fn progress, void *arg);

/* ---- garbage ---- */

enum {
    WEIR_GC_NOW = 1,    /* the caller asserts that no writer is running: no grace */
    WEIR_GC_DRY_RUN = 2 /* count, change nothing */
};
typedef struct weir_gc_result {
    uint64_t objects;       /* unsealed data removed */
    uint64_t bytes;         /* of those */
    uint64_t temporaries;   /* temporary files removed */
    uint64_t voids_placed;  /* keys claimed */
    uint64_t voids_removed;
    uint64_t links_restored;/* plain names put back */
    uint64_t saves;         /* retired or abandoned saves deleted, with all their objects */
    uint64_t young;         /* debris left because it is younger than the grace */
    uint64_t spare_bytes;   /* released: of deleted files that were kept to be written over */
} weir_gc_result;
/* result, if not NULL, is filled also on failure: with what was done before it. progress (of files
 * looked at) may be NULL. */
WEIR_API int weir_gc(weir_store *store, uint32_t flags, weir_gc_result *result,
                     weir_progress_fn progress, void *arg);

/* ---- checkpoints ----
 *
 * A run's checkpoints are committed to the log "ckpt/<run>": each is complete or does not exist,
 * however many ranks write it and whichever of them die. A checkpoint is a directory of ordinary
 * safetensors files, ckpt/<run>/<step>-<attempt>.<n>/model-00001-of-00004.safetensors …
 */

typedef struct weir_ckpt weir_ckpt;
typedef struct weir_saving weir_saving;
typedef struct weir_restore weir_restore;

/* A tensor, or the piece of one that this rank has; row-major, without gaps. */
typedef struct weir_tensor {
    const char *name;  /* UTF-8 */
    const char *dtype; /* as safetensors names it: "F32", "BF16", … */
    uint32_t ndim;     /* at most 64 */
    const uint64_t *shape;
    const uint64_t *global_shape; /* of the whole tensor; NULL: this is the whole */
    const uint64_t *offset;       /* where in it this piece begins */
    const void *data;
    /* The same bytes are with `replicas` ranks, of which this is number `replica`: one of them
     * writes them. 0: only this one has them. */
    uint32_t replica, replicas;
} weir_tensor;

typedef struct weir_ckpt_options {
    size_t struct_size;
    uint32_t rank, ranks;        /* this one, and how many; 0 of 1 by default */
    uint32_t queue_max;          /* saves that may be under way at once; 2 */
    const uint8_t *token;        /* 16 bytes that all ranks of this life of the run share, and no
                                    other life does; NULL: made up, if there is one rank */
    uint64_t staging_bytes_max;  /* memory for snapshots; 4 GiB */
    uint64_t rate_bytes_per_s;   /* of writing; 0: as fast as it goes */
    uint32_t keep_last;          /* checkpoints that stay; 3; 0: all */
    uint32_t keep_every;         /* those whose step it divides stay, too; 0: none */
    uint64_t retired_grace_s;    /* how long a retired one stays for slow readers; 600 */
} weir_ckpt_options;

WEIR_API void weir_ckpt_options_init(weir_ckpt_options *opts);
/* Joins the run: from now on saves of its older lives are refused. -ESTALE if a newer life has
 * begun. The store must outlive it. */
WEIR_API int weir_ckpt_open(weir_ckpt **out, weir_store *store, const char *run,
                            const weir_ckpt_options *opts);
/* Waits for the saves under way, and ends. Its weir_saving handles are closed before. An error that
 * nobody asked about is lost with it: weir_ckpt_wait() and weir_ckpt_failure() tell before. */
WEIR_API void weir_ckpt_close(weir_ckpt *ckpt);
WEIR_API uint64_t weir_ckpt_attempt(const weir_ckpt *ckpt);

typedef struct weir_save_options {
    size_t struct_size;
    const char *meta;  /* JSON for people and tools, of rank 0; NULL: none */
    const char *state; /* this rank's own JSON; NULL: none */
    const char *name;  /* that it has as soon as it is committed (weir_ckpt_name()), the same on all
                          ranks; NULL: none. It is not taken from a checkpoint begun later, and
                          where a run has 256 names already it is committed without this one. */
    uint64_t number;   /* 0: ranks agree on which save is which by making the same calls in the same
                          order. One that failed counts: it is made again on all ranks or on none.
                          Else a number they agree on, larger than any before. */
    int is_waited_for; /* non-zero: the caller will wait for it at once, so it goes from its tensors
                          to the storage through a few buffers, and is not copied first */
} weir_save_options;
WEIR_API void weir_save_options_init(weir_save_options *opts);
/* Takes a snapshot of this rank's tensors and returns; the rest happens in the background. opts may
 * be NULL. Waits while queue_max saves are under way, or the staging area is full. An error of an
 * earlier save that nobody asked about is answered here, and nothing is saved. out may be NULL for
 * a caller who will not ask. */
WEIR_API int weir_ckpt_save(weir_ckpt *ckpt, uint64_t step, const weir_tensor *tensors,
                            size_t count, const weir_save_options *opts, weir_saving **out);
/* Waits until at most so many saves are under way: 0 for all of them to be over (this rank's part
 * of each is then safe, or its failure known). -ETIMEDOUT. */
WEIR_API int weir_ckpt_wait(weir_ckpt *ckpt, uint32_t queued_max, uint64_t timeout_ns);
/* Waits for room in the queue, as weir_ckpt_save() would, which then does not. -ETIMEDOUT. */
WEIR_API int weir_ckpt_room(weir_ckpt *ckpt, uint64_t timeout_ns);
/* The error of a save that nobody asked about (weir_saving_wait() asks), as the next
 * weir_ckpt_save() would answer it, which then does not; 0: there is none. */
WEIR_API int weir_ckpt_failure(weir_ckpt *ckpt);
/* 0 when it has reached the level: memory (at once), node (this rank's part is safe), home (all
 * parts are, and it is committed). -ETIMEDOUT names the ranks that are missing, -EBADMSG a tensor
 * on which they do not agree, or which is not complete: it is not committed, and never will be.
 * 0 ns asks, without waiting. Who waits for home also finishes what a rank that died has left
 * undone; in short slices this goes on from call to call. */
WEIR_API int weir_saving_wait(weir_saving *saving, weir_level level, uint64_t timeout_ns);
/* Gives it up if this rank's part is not published yet. */
WEIR_API void weir_saving_cancel(weir_saving *saving);
WEIR_API void weir_saving_close(weir_saving *saving);

typedef struct weir_ckpt_stats {
    uint64_t saves, bytes;   /* begun; written by this rank */
    uint64_t stall_queue_ns; /* what a caller waited for: room in the queue, */
    uint64_t stall_stage_ns; /* room in the staging area */
    uint64_t copy_ns;        /* and what the copying took */
} weir_ckpt_stats;
WEIR_API void weir_ckpt_stats_get(weir_ckpt *ckpt, weir_ckpt_stats *stats);

/* How many of a tensor's numbers are NaN or infinite; 0 for types that have neither, -EINVAL for an
 * unknown type. */
WEIR_API int64_t weir_count_nonfinite(const char *dtype, const void *data, uint64_t size_bytes);

#define WEIR_STEP_NEWEST UINT64_MAX

typedef struct weir_tensor_info {
    const char *name, *dtype;
    uint32_t ndim;
    const uint64_t *shape; /* of the whole */
    uint64_t size_bytes;
    uint32_t pieces;
} weir_tensor_info;

typedef struct weir_restore_info {
    uint64_t step, attempt, save, time_ns, size_bytes;
    uint32_t ranks;
    size_t tensors;
    const char *prefix;
    const char *meta; /* JSON, or NULL */
} weir_restore_info;

/* Opens a committed checkpoint; gc leaves it alone meanwhile. -ENOENT if there is none. */
WEIR_API int weir_restore_open(weir_restore **out, weir_store *store, const char *run,
                               uint64_t step);
/* The one that has this name (weir_ckpt_name()). */
WEIR_API int weir_restore_open_named(weir_restore **out, weir_store *store, const char *run,
                                     const char *name);
WEIR_API void weir_restore_close(weir_restore *restore);
/* Borrowed, as what the next two answer. */
WEIR_API const weir_restore_info *weir_restore_info_get(const weir_restore *restore);
/* Sorted by name. */
WEIR_API int weir_restore_tensor(const weir_restore *restore, size_t i, weir_tensor_info *out);
/* Where a piece of a tensor is. Borrowed. */
typedef struct weir_piece_info {
    const char *file; /* below the prefix */
    uint64_t begin, size_bytes;
    const uint64_t *offset, *shape; /* within the tensor */
} weir_piece_info;
WEIR_API int weir_restore_piece(weir_restore *restore, size_t tensor, uint32_t piece,
                                weir_piece_info *out);
/* -ENOENT if there is no such tensor; else its number. */
WEIR_API int64_t weir_restore_find(const weir_restore *restore, const char *name);
/* A rank's state, as JSON, owned by the caller (free); -ENOENT if it saved none. */
WEIR_API int weir_restore_state(weir_restore *restore, uint32_t rank, char **out);

/* A box of a tensor, and where it goes: row-major, without gaps. */
typedef struct weir_slice {
    size_t tensor;
    const uint64_t *offset, *shape; /* NULL: the whole */
    void *data;
} weir_slice;
/* Reads all of them, whatever pieces they were saved in, in the order of the files, and verifies
 * every block on the way. -EBADMSG names the file, the tensor and the bytes. */
WEIR_API int weir_restore_read(weir_restore *restore, const weir_slice *slices, size_t count,
                               weir_progress_fn progress, void *arg);

/* Something that is not as it was committed. */
typedef struct weir_damage {
    int code; /* -EBADMSG, -EIO, … */
    const char *text, *key;
    const char *tensor;  /* the first that it touches, or NULL */
    uint64_t begin, end; /* which bytes of the object; both 0: all, or not known */
} weir_damage;
/* Reads and checks every byte, and goes on behind what is damaged. 0, or the code and the text of
 * the first damage; `damaged` (may be NULL) is called for each, and returns non-zero to stop. */
WEIR_API int weir_restore_verify(weir_restore *restore,
                                 int (*damaged)(void *arg, const weir_damage *damage),
                                 weir_progress_fn progress, void *arg);

typedef enum weir_change {
    WEIR_CHANGE_NONE = 0,
    WEIR_CHANGE_ADDED = 1,   /* it is in b only */
    WEIR_CHANGE_REMOVED = 2, /* it is in a only */
    WEIR_CHANGE_TYPE = 3,    /* it has another dtype or shape */
    WEIR_CHANGE_BYTES = 4
} weir_change;
typedef struct weir_tensor_diff {
    const char *name;
    weir_change change;
    int is_number;          /* max_abs is known: not of complex numbers, nor below a byte each */
    weir_tensor_info a, b;  /* all zero where it is not */
    uint64_t elements;      /* compared; bytes, where an element is less */
    uint64_t differing;     /* of those */
    uint64_t not_finite;    /* of those: one of the two is infinite or not a number */
    double max_abs;         /* the largest finite difference */
} weir_tensor_diff;
/* Compares two checkpoints, verified, in bounded memory: fn is called for every tensor, first for
 * those that cannot be compared, and returns non-zero to stop (-ECANCELED). progress is told of the
 * bytes read, of both; it may be NULL. */
WEIR_API int weir_restore_diff(weir_restore *a, weir_restore *b,
                               int (*fn)(void *arg, const weir_tensor_diff *diff),
                               weir_progress_fn progress, void *arg);

/* Who takes the files of an export, one after the other. What fails is answered by the export. */
typedef struct weir_export_sink {
    int (*begin)(void *arg, const char *name, uint64_t size_bytes);
    int (*write)(void *arg, const void *data, size_t size);
    int (*end)(void *arg);
} weir_export_sink;
/* The tensors, whole and verified, as one safetensors file (shard_bytes_max 0) or as several of at
 * most that many bytes of tensors each, unless one alone is larger, and the index of Hugging Face:
 * model-00001-of-00004.safetensors …, model.safetensors.index.json. Bounded memory. */
WEIR_API int weir_restore_export(weir_restore *restore, uint64_t shard_bytes_max,
                                 const weir_export_sink *sink, void *arg);

/* ---- the checkpoints of a store ---- */

/* Calls fn with every run, in no order, until it returns non-zero, which is answered. */
WEIR_API int weir_ckpt_runs(weir_store *store, int (*fn)(void *arg, const char *run), void *arg);

enum {
    WEIR_CKPT_SIZES = 1,  /* look at what they consist of, for sizes and errors */
    WEIR_CKPT_RETIRED = 2 /* also those that are retired, but not deleted yet */
};
typedef struct weir_ckpt_info {
    uint64_t step, attempt, save, time_ns;
    uint64_t retired_ns; /* since when nobody finds it; 0: it is live */
    uint64_t size_bytes; /* with WEIR_CKPT_SIZES: of all its objects */
    uint32_t ranks;
    uint32_t name_count;
    const char *const *names;
    const char *prefix;
    int error; /* with WEIR_CKPT_SIZES: something of it is missing or damaged */
} weir_ckpt_info;
typedef int (*weir_ckpt_fn)(void *arg, const weir_ckpt_info *info);
/* The checkpoints of a run, oldest first. -ENOENT if there is no such run. */
WEIR_API int weir_ckpt_each(weir_store *store, const char *run, uint32_t flags, weir_ckpt_fn fn,
                            void *arg);

/* Gives the newest live checkpoint of a step a name, which moves there if another one has it. While
 * it has one, retention and pruning leave it. A name is a part of a key, of at most 64 bytes, and
 * neither a number nor "newest". was_step (may be NULL) is told who had it: WEIR_STEP_NEWEST for
 * none. */
WEIR_API int weir_ckpt_name(weir_store *store, const char *run, uint64_t step, const char *name,
                            uint64_t *was_step);
/* Takes the name off. -ENOENT if nothing has it. */
WEIR_API int weir_ckpt_unname(weir_store *store, const char *run, const char *name,
                              uint64_t *was_step);

/* Opens just that one, also if its step was saved again later. */
WEIR_API int weir_restore_open_this(weir_restore **out, weir_store *store, const char *run,
                                    const weir_ckpt_info *info);

enum { WEIR_PRUNE_DRY_RUN = 1 /* change nothing */ };
typedef struct weir_prune_options {
    size_t struct_size;
    uint32_t flags;
    uint32_t keep_last;       /* as in weir_ckpt_options, but at least 1 */
    uint32_t keep_every;
    uint64_t retired_grace_s;
} weir_prune_options;
typedef struct weir_prune_result {
    uint64_t retired, retired_bytes;
    uint64_t deleted, deleted_bytes; /* also what was retired before, or never completed */
    uint64_t waiting;                /* retired, but within the grace, or in use */
} weir_prune_result;
WEIR_API void weir_prune_options_init(weir_prune_options *opts);
/* Retires what is surplus, and deletes what was retired longer ago than the grace. What has a name
 * stays, what somebody reads stays, and so does the newest one that is complete. fn (may be NULL)
 * is told of each that is retired; it returns non-zero to stop (-ECANCELED). */
WEIR_API int weir_ckpt_prune(weir_store *store, const char *run, const weir_prune_options *opts,
                             weir_ckpt_fn fn, void *arg, weir_prune_result *result);

enum {
    WEIR_REMOVE_FORCE = 1, /* also what has a name (that goes, too), and the newest good one */
    WEIR_REMOVE_ALL = 2,   /* of every step */
    WEIR_REMOVE_DRY_RUN = 4
};
/* Retires the checkpoints of a step, and deletes as weir_ckpt_prune() does. Without
 * WEIR_REMOVE_FORCE -EPERM says which of them should stay, and nothing is done. */
WEIR_API int weir_ckpt_remove(weir_store *store, const char *run, uint64_t step, uint32_t flags,
                              uint64_t retired_grace_s, weir_ckpt_fn fn, void *arg,
                              weir_prune_result *result);

/* ---- datasets ----
 *
 * A dataset is a directory of shards in one of the common formats, as its owner made it, or one
 * that Weir packed. Its samples are numbered from 0 in the order of the shards. Where each of them
 * is, an index says, which is made once (one sequential read) and kept beside the data or in a
 * cache: $WEIR_CACHE, else $XDG_CACHE_HOME/weir, else ~/.cache/weir.
 */

typedef struct weir_data weir_data;
typedef struct weir_data_sample weir_data_sample;

enum {
    WEIR_DATA_NO_BUILD = 1, /* if there is no index of the data as it is now: -ENOENT */
    WEIR_DATA_REBUILD = 2,  /* make it anew, whatever there is */
    WEIR_DATA_BESIDE = 4,   /* keep it as 'index.weir' in the dataset, which is in a store */
    WEIR_DATA_TRUST = 8,    /* do not look whether shards have changed since: no listing */
    WEIR_DATA_KEEP = 16     /* an index that no cache can keep is an error, and not in memory */
};
/* So many more of so many bytes have been indexed; non-zero stops (-ECANCELED). On any thread, but
 * one at a time. */
typedef int (*weir_data_progress_fn)(void *arg, uint64_t more, uint64_t total);
/* One more file has been listed; non-zero stops (-ECANCELED). On the caller's thread. */
typedef int (*weir_data_listed_fn)(void *arg);
typedef struct weir_data_options {
    size_t struct_size;
    uint32_t flags;      /* WEIR_DATA_… */
    uint32_t threads;    /* for making an index; 0: as many as there are processors, up to 16 */
    const char *format;  /* "mds", "wds", …; NULL: as it looks */
    const char *options; /* of the format, "seq_len=2048&eot=50256"; NULL: none */
    const char *cache;   /* a store for indexes, made when needed; NULL: see above */
    weir_data_progress_fn progress; /* may be NULL */
    void *progress_arg;
    const char *verify_key; /* a public Ed25519 key, in PEM: nothing is read but what its owner has
                               signed (weir data sign); NULL: anything is */
    const char *proof;      /* with verify_key: where manifest and signature are; NULL: in the
                               dataset */
    uint64_t sample_bytes_max; /* of a compressed shard, read by its number; 0: 512 MiB */
    weir_data_listed_fn listed; /* with progress_arg; may be NULL */
} weir_data_options;
WEIR_API void weir_data_options_init(weir_data_options *opts);
/* url: the directory, in a store or not; opts may be NULL. -ENOENT if there is nothing, -EINVAL if
 * it looks like no format, -EBADMSG if a shard is damaged, -EKEYREJECTED if verify_key's owner did
 * not sign it: then, or when it was changed since, reading answers the same. */
WEIR_API int weir_data_open(weir_data **out, const char *url, const weir_data_options *opts);
/* After its samples. */
WEIR_API void weir_data_close(weir_data *data);
WEIR_API uint64_t weir_data_count(const weir_data *data);

typedef struct weir_data_info {
    const char *url, *format;
    const char *digest; /* which data this is: 64 hex digits, without times and places */
    const char *schema; /* JSON, or "" */
    const char *index;  /* where the index is: its store's URL and its key */
    uint64_t samples, shards;
    uint64_t sample_bytes;     /* of all samples, decompressed */
    uint64_t sample_bytes_max; /* of the largest */
    uint64_t file_bytes;       /* of all shards, as they are stored */
    uint64_t index_bytes;
    int built;        /* the index was made just now, */
    uint64_t scanned; /* and so many shards were looked into for it */
} weir_data_info;
/* Borrowed until it is closed. */
WEIR_API const weir_data_info *weir_data_info_get(const weir_data *data);
typedef struct weir_data_shard {
    const char *key;   /* below the dataset; of several small files, the first one's */
    const char *codec; /* "zstd", …; "": not compressed */
    uint64_t file_bytes, raw_bytes;
    int64_t time_ns;
    uint64_t first, samples;
} weir_data_shard;
/* -EINVAL for a number beyond the last. */
WEIR_API int weir_data_shard_get(const weir_data *data, uint64_t i, weir_data_shard *out);

#define WEIR_FIELDS_MAX 1024 /* of a sample */
#define WEIR_FIELD_DIMS_MAX 32
typedef enum weir_field_kind {
    WEIR_FIELD_BYTES, /* as they are: an image, an unknown suffix */
    WEIR_FIELD_TEXT,  /* UTF-8, checked */
    WEIR_FIELD_JSON,  /* a JSON text, checked */
    WEIR_FIELD_ARRAY, /* numbers, row-major, little-endian, without gaps; one number has no dims */
    WEIR_FIELD_NONE   /* it is there, and null */
} weir_field_kind;
/* One value of a sample. */
typedef struct weir_field {
    const char *name; /* name_size bytes; not terminated, not always UTF-8 */
    size_t name_size;
    weir_field_kind kind;
    char dtype[8]; /* of an array, as numpy's str: "|u1", "<i8", "<f4"; else "" */
    uint32_t ndim;
    uint64_t shape[WEIR_FIELD_DIMS_MAX];
    const void *data; /* at any address: not aligned */
    size_t size;
    int is_ragged;    /* how many it has is a sample's own affair: batches never stack it */
} weir_field;

/* Reads one sample, verified where its shard is sealed. For many, use a reader. Samples may be
 * opened by any number of threads at once. */
WEIR_API int weir_data_sample_open(weir_data_sample **out, weir_data *data, uint64_t number);
WEIR_API void weir_data_sample_close(weir_data_sample *sample);
typedef struct weir_data_sample_info {
    uint64_t number, shard;
    const char *key; /* of the file it is in, below the dataset */
    uint64_t off;    /* where it begins there, decompressed */
    const void *data;
    size_t size;
} weir_data_sample_info;
/* Borrowed until it is closed, as its fields. */
WEIR_API const weir_data_sample_info *weir_data_sample_get(const weir_data_sample *sample);
/* Takes it apart. -EBADMSG if it is damaged. */
WEIR_API int weir_data_sample_fields(weir_data_sample *sample, const weir_field **fields,
                                     uint32_t *count);
/* As the one field "raw", for who decodes it himself: its bytes as they are stored, but for what a
 * format puts around them (the lengths and checksums of TFRecord, which are verified). */
WEIR_API int weir_data_sample_raw(const weir_data_sample *sample, weir_field *field);

/* ---- loading ----
 *
 * A loader delivers the batches of one rank in an order that is computed: position k of the epochs,
 * laid end to end, is the same sample for any number of ranks, workers and threads. A global batch
 * is batch_size * ranks positions in a row, of which each rank gets batch_size; batches go on over
 * the ends of epochs. Threads of the library read, decompress and take samples apart ahead of the
 * caller.
 */

typedef struct weir_loader weir_loader;
typedef struct weir_batch weir_batch;

enum {
    WEIR_LOADER_SHUFFLE = 1,
    WEIR_LOADER_BUFFERED = 2, /* read through the kernel's cache: the next epoch comes from there */
    WEIR_LOADER_DIRECT = 4,   /* read around it, but what is there; without either, data is buffered
                                 that takes at most half of the machine's memory, or of what this
                                 container may have */
    WEIR_LOADER_HELD = 8,     /* a batch is delivered when weir_loader_reached() says so */
    WEIR_LOADER_RAW = 16      /* samples are not taken apart: each is the one field "raw", as
                                 weir_data_sample_raw() has it */
};

typedef struct weir_loader_options {
    size_t struct_size;
    uint32_t flags;      /* WEIR_LOADER_…; none by default */
    uint32_t lanes;      /* places in the data that are read at a time, part of the order as are
                            seed and window; 0: 64, fewer where whole shards are decompressed */
    uint64_t window;     /* samples in a row that are read at once and shuffled among each other; 0:
                            about 2 MiB of them; UINT64_MAX: everything, a full shuffle */
    uint64_t seed;
    uint64_t batch_size; /* samples for each rank; 1 */
    uint32_t rank, ranks;     /* 0 of 1 */
    uint32_t worker, workers; /* of several loaders of a rank, this one delivers batches worker,
                                 worker + workers, …; 0 of 1 */
    uint64_t position;   /* where the first global batch begins, worker 0's; 0 */
    uint64_t end;        /* no position behind it is delivered; UINT64_MAX: it goes on for ever */
    const char *const *fields; /* only these; none: all. One that no sample of a batch has is a
                                  column of WEIR_FIELD_NONE there */
    size_t fields_count;
    uint32_t threads;    /* 0: 8, also of fewer processors, since most wait for storage; 4 where
                            shards are compressed; as many as processors, 4 at most, where all is
                            mapped */
    uint32_t prefetch;   /* batches that may be ready; 8 */
    uint64_t memory_bytes_max; /* of samples and batches in memory; 512 MiB. What the next batch
                                  needs is there in any case, and those that the caller holds */
} weir_loader_options;
WEIR_API void weir_loader_options_init(weir_loader_options *opts);
/* The dataset must outlive it. -EINVAL says how much memory it needs if the bound is too small. */
WEIR_API int weir_loader_open(weir_loader **out, weir_data *data, const weir_loader_options *opts);
/* Several datasets (parts) mixed, so that each gives samples by its weight, relative to their sum;
 * positions are the mixture's. At most 256. */
WEIR_API int weir_loader_open_mix(weir_loader **out, weir_data *const *parts,
                                  const uint64_t *weights, uint32_t count,
                                  const weir_loader_options *opts);
/* Its batches may be released later. */
WEIR_API void weir_loader_close(weir_loader *loader);

/* The next batch: 1, 0 at the end, -ETIMEDOUT, -EBADMSG if one of its samples is damaged: which,
 * the text says, and every later call answers the same. Who would wait makes a batch instead, if
 * one can be made, and so may come back that much later; with a timeout of 0 never. */
WEIR_API int weir_loader_next(weir_loader *loader, weir_batch **out, uint64_t timeout_ns);
/* With WEIR_LOADER_HELD: batches that begin before this position have reached who uses them. Until
 * then the last one does not count as delivered, and a loader that is opened from the state begins
 * with it: for who may be stopped between weir_loader_next() and the use of what it returned. On
 * any thread. */
WEIR_API void weir_loader_reached(weir_loader *loader, uint64_t position);
/* On any thread. */
WEIR_API void weir_batch_release(weir_batch *batch);

/* Memory for one batch, aligned to 64, such as a GPU can read while the caller goes on: a batch
 * that is made after this, and fits, is made in it. It is never used again: release(owner) is
 * called when that batch is released, or when it is too small, or unused when the loader is closed;
 * by the thread that does this, or lends. Not called if this fails: -EINVAL. */
WEIR_API int weir_loader_lend(weir_loader *loader, void *data, uint64_t size,
                              void (*release)(void *owner), void *owner);
/* How large the next memory should be that is lent, so that each batch that is made ahead finds
 * one; 0: there is enough for now. */
WEIR_API uint64_t weir_loader_wants(weir_loader *loader);

/* A value of a ragged column. */
typedef struct weir_cell {
    uint64_t off, size; /* within the column's data */
    weir_field_kind kind;
    char dtype[8];
    uint32_t ndim;
    const uint64_t *shape;
} weir_cell;

/* A field of all samples of a batch. Stacked: arrays of one dtype and shape, one behind the other.
 * Ragged: anything else; a sample without the field has a value of kind WEIR_FIELD_NONE. */
typedef struct weir_column {
    const char *name;
    size_t name_size;
    weir_field_kind kind;    /* of all values but NONE; WEIR_FIELD_NONE: there are several kinds */
    char dtype[8];           /* of all arrays; "": it is no column of arrays, or they differ */
    uint32_t ndim;           /* stacked: of each sample */
    const uint64_t *shape;
    const weir_cell *values; /* ragged: one for each sample; NULL: stacked */
    const uint64_t *offsets;  /* ragged, of one kind and dtype: where in the data each begins, and
                                 the last one ends; else NULL */
    void *data;               /* aligned to 64; the caller's to change until the release */
    uint64_t size;
} weir_column;

typedef struct weir_batch_info {
    uint64_t position;        /* where the global batch begins */
    uint64_t samples;         /* of this rank */
    const uint64_t *numbers;  /* theirs, in their datasets */
    const uint64_t *epochs;   /* in which each of them was drawn */
    const uint32_t *parts;    /* of which dataset each of them is; NULL: there is but one */
    const weir_column *columns;
    size_t columns_count;
    void *data;               /* all memory of the batch: every array above is within it */
    uint64_t size;
    void *owner;              /* of that memory, if it was lent (weir_loader_lend); else NULL */
} weir_batch_info;
/* Borrowed until the batch is released. */
WEIR_API const weir_batch_info *weir_batch_get(const weir_batch *batch);

/* What was delivered of an epoch: how many samples, and a sum over (number, bytes) of each, modulo
 * 2^128, little-endian. Those of ranks and workers add up to that of the whole. */
typedef struct weir_tally {
    uint64_t epoch, samples;
    uint8_t digest[16];
} weir_tally;
enum { WEIR_TALLIES_MAX = 8 };

/* Where it is: with the options, all that a later loader needs to go on, of any number of ranks. */
typedef struct weir_loader_state {
    uint64_t seed, position; /* position: of this worker's next batch */
    uint32_t flags, parts;
} weir_loader_state;
WEIR_API void weir_loader_state_get(const weir_loader *loader, weir_loader_state *out);
/* The same of one dataset. */
typedef struct weir_loader_part {
    const char *digest; /* which data it is */
    uint64_t samples;   /* in an epoch */
    uint64_t window, position;
    uint32_t lanes;
    /* The last epochs by number of which this loader delivered something, oldest first. Delivered
     * is what weir_loader_next() returned, not what is ready. Of the epochs that loaders of several
     * ranks or workers tell of, the last WEIR_TALLIES_MAX are complete. */
    uint32_t tallies_count;
    weir_tally tallies[WEIR_TALLIES_MAX];
} weir_loader_part;
/* -EINVAL for a part beyond the last. */
WEIR_API int weir_loader_part_get(const weir_loader *loader, uint32_t part, weir_loader_part *out);

enum {
    WEIR_STALL_READ,   /* bytes were under way */
    WEIR_STALL_DECODE, /* they were decompressed, or taken apart */
    WEIR_STALL_QUEUE,  /* nothing was begun yet: threads were busy with something else, or all
                          memory was in use */
    WEIR_STALLS
};
enum { WEIR_READ_SIZES = 24 }; /* bucket i: reads of 2^(i + 9) up to 2^(i + 10) bytes */
typedef struct weir_loader_stats {
    uint64_t batches, samples, sample_bytes; /* delivered */
    uint64_t stall_ns[WEIR_STALLS]; /* how long callers waited, and for what */
    uint64_t stalls;                /* waits */
    uint64_t reads, read_bytes;     /* asked of the store */
    uint64_t read_sizes[WEIR_READ_SIZES];
    uint64_t read_ns, decompress_ns, decode_ns, plan_ns; /* of all threads */
    uint64_t memory_bytes, memory_bytes_peak;
    uint32_t threads, prefetch;
    /* Of all that was read of the datasets' files since they were opened: what was in the page
     * cache and read from there, what was read through it, and what was read around it. */
    uint64_t cached_bytes, buffered_bytes, direct_bytes;
    uint64_t mapped_bytes; /* what this loader did not read at all: windows that were in the page
                              cache; where all is mapped, as token files are, what it delivered */
} weir_loader_stats;
WEIR_API void weir_loader_stats_get(weir_loader *loader, weir_loader_stats *out);

/* How this build and machine do I/O, one "name: value" line each, for `weir version`. */
WEIR_API int weir_describe(int (*line)(void *arg, const char *name, const char *value), void *arg);

#ifdef __cplusplus
}
#endif
#endif
