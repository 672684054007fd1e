/* pack.h - a dataset written anew, in shards of another size, format or compression: millions of
 * small files become a few hundred large ones.
 *
 * Which samples a shard has follows from the source's index alone, so every shard can be made by
 * itself: in parallel, in any order, by any number of threads or processes, and always of the same
 * bytes. The first thing written is pack.weir, which says what is being made of what; whoever finds
 * one that says the same goes on from there: a sealed shard is complete, and is kept.
 */
#ifndef WEIR_DATA_PACK_H
#define WEIR_DATA_PACK_H

#include "data/dataset.h"
#include "data/proof.h"

#define WEIR_PACK_MARK "pack.weir"

/* A shard is made in memory; larger ones gain nothing. Smaller ones cost more to open than to
 * read. */
#define WEIR_PACK_SHARD_BYTES_MIN ((uint64_t)1 << 16)
#define WEIR_PACK_SHARD_BYTES_MAX ((uint64_t)1 << 30)
enum { WEIR_PACK_JOBS_MAX = 32 };

struct weir_pack_options {
    const char *format;         /* "mds" */
    const char *codec;          /* "" or "zstd:3" */
    const char *fields;         /* "a,b": only those; NULL: all */
    const char *columns;        /* of MDS: "image:jpeg,label:int32"; the others, and NULL: as they
                                   are in MDS that becomes MDS, or by the first sample */
    const char *layout, *dtype; /* of token files: "megatron", "u32"; NULL: by the first sample */
    uint64_t shard_bytes;       /* of samples, as the source has them, in each shard at most */
    uint32_t jobs;              /* shards being made at once; in memory, if compressed */
    uint64_t memory_bytes_max;  /* for the source's shards, decompressed; 0: 4 GiB */
    weir_total_fn total;        /* of samples and their bytes; or NULL */
    weir_progress_fn progress;  /* of bytes of samples, on any thread; or NULL */
    /* Opens where it is written, if weir_pack_run() is given no store: called when the arguments
     * were found good, before anything is made. */
    int (*place)(void *arg, weir_store **store, const char **prefix);
    void *arg; /* of them all */
};

struct weir_pack_result {
    uint64_t samples, shards;
    uint64_t shards_kept; /* of those: they were there already */
    uint64_t source_bytes, file_bytes;
    /* Of plain files, each of which is a sample of its own, so many; then a shard is a list of up
     * to 1,024 samples' files, and file_bytes are those of the files. 0: no plain files. */
    uint64_t files, files_kept;
    bool has_names; /* other programs find files there, too: not on S3, on Ceph, with commit= */
};

/* Opens a dataset to be packed in that format: of token files that become token files, every token
 * is in one sample (overlap=0), and none is left out. */
int weir_pack_open(weir_data **out, const char *url, const weir_data_options *opts,
                   const char *format);

/* Writes it below a prefix ("" or "a/b/") of a store. -ENOTEMPTY if something else is there,
 * -EEXIST if a pack of another source, or with other options, was begun there; -EINVAL names a
 * field that the format cannot hold. After any failure, -ECANCELED among them, the same call goes
 * on from there. */
int weir_pack_run(struct weir_pack_result *out, weir_data *source, weir_store *store,
                  const char *prefix, const struct weir_pack_options *opts);

#endif
