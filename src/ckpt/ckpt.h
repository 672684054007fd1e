/* ckpt.h - what the files of this layer share. */
#ifndef WEIR_CKPT_CKPT_H
#define WEIR_CKPT_CKPT_H

#include "ckpt/manifest.h"
#include "ckpt/safetensors.h"
#include "weir.h"

/* "ckpt/<run>", the log of a run; -ENAMETOOLONG. */
int weir_ckpt_log_name(char out[WEIR_KEY_BYTES_MAX + 1], const char *run);

/* The file of a rank: "model.safetensors", or "model-00001-of-00004.safetensors". */
void weir_ckpt_file_name(char out[64], uint32_t rank, uint32_t ranks);

/* What a rank writes: the header of its file, and where each tensor it writes begins. If it writes
 * none, it has no file. */
struct weir_layout {
    const weir_tensor **tensors; /* those it writes, in the order of the file */
    struct weir_st_tensor *places;
    size_t count;
    uint8_t *header;
    size_t header_size;
    uint64_t bytes; /* of the whole file */
    char *names;    /* of the pieces in the file */
};
/* Of the ranks that have the same bytes, is it this one that writes them? */
bool weir_layout_is_written(const weir_tensor *tensor);
int weir_layout_make(struct weir_layout *out, const weir_tensor *tensors, size_t count);
void weir_layout_free(struct weir_layout *layout);
/* Writes the manifest of that as a table; ref names it. */
int weir_layout_put_manifest(const struct weir_layout *layout, weir_store *store,
                             const char *prefix, uint32_t rank, struct weir_ref *ref);

/* weir_ckpt_save() of tensors that are not in memory: read() is asked for their bytes, tensor by
 * tensor in the order of the file, and may fail: then nothing is saved, and its failure is
 * answered. What `data` points to is for it alone to know. */
struct weir_ckpt_reader {
    int (*read)(void *arg, const weir_tensor *tensor, uint64_t begin, void *buf, size_t size);
    void *arg;
};
int weir_ckpt_save_read(weir_ckpt *ckpt, uint64_t step, const weir_tensor *tensors, size_t count,
                        const weir_save_options *opts, const struct weir_ckpt_reader *reader,
                        weir_saving **out);

/* Names in ref what was just committed below a save's prefix. */
void weir_ckpt_ref(struct weir_ref *ref, const weir_put *put, const char *name);
/* A small object of a save; ref may be NULL. */
int weir_ckpt_put_text(weir_store *store, const char *prefix, const char *name, const char *text,
                       size_t size, struct weir_ref *ref);
/* Of a committed checkpoint: the merged manifest, if it has several ranks, and
 * model.safetensors.index.json, for tools that know nothing of Weir. */
int weir_ckpt_put_indexes(weir_store *store, const char *run, const struct weir_save *save);

/* For the benchmark: which ranges of which ranks' files weir_restore_read() would read. */
typedef int (*weir_plan_fn)(void *arg, uint32_t part, uint64_t at, uint64_t size);
int weir_restore_plan(weir_restore *restore, const weir_slice *slices, size_t count,
                      weir_plan_fn fn, void *arg);

#endif
