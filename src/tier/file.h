/* file.h - the pieces of the file tier: file.c has the whole of it, file_read.c what reads,
 * file_sink.c what writes, file_names.c what gives and takes names.
 */
#ifndef WEIR_TIER_FILE_H
#define WEIR_TIER_FILE_H

#include "io/dirs.h"
#include "io/io.h"
#include "io/spare.h"
#include "io/stripe.h"
#include "tier/tier.h"

struct file_tier {
    struct weir_tier tier;
    struct weir_io *io;
    struct weir_dirs *dirs;
    struct weir_spares *spares;
    struct weir_stripes stripes;
};

/* An open file, to read; or the beginning of a sink. */
struct file_blob {
    struct weir_handle handle;
    struct file_tier *tier;
    struct weir_file file;
};

/* The tier a task's request is for: see file_submit(). */
static inline struct file_tier *weir_file_tier_of(const struct weir_req *req)
{
    return req->io.context;
}

/* Makes the text of a failure at a name; returns the code. */
int weir_file_fail_at(struct file_tier *t, int code, const char *what, const char *name);
/* The path of a name, for errors; the caller frees it. NULL: no memory. */
char *weir_file_label_of(struct file_tier *t, const char *name);
typedef int (*weir_file_in_dir_fn)(struct file_tier *t, struct weir_dir *dir, const char *base,
                                   struct weir_req *req);
/* Runs fn in the directory of name. */
int weir_file_in_dir(struct weir_req *req, const char *name, enum weir_dirs_mode mode,
                     weir_file_in_dir_fn fn);

/* ---- file_read.c ---- */

void weir_file_open(struct weir_req *req);
void weir_file_load(struct weir_req *req);
void weir_file_stat(struct weir_req *req);
void weir_file_map(struct weir_req *req);
/* LOAD and STAT, in the directory of the name. */
int weir_file_load_in(struct file_tier *t, struct weir_dir *dir, const char *base,
                      struct weir_req *req);
int weir_file_stat_in(struct file_tier *t, struct weir_dir *dir, const char *base,
                      struct weir_req *req);
/* Does the name stand for the file that the request's handle holds open? 0 or -ESTALE. */
int weir_file_same(struct file_tier *t, struct weir_dir *dir, const char *base,
                   const struct weir_req *req);
/* A second descriptor of the same file that goes around the page cache, or -errno. */
int weir_file_open_direct(struct weir_dir *dir, const char *base, const struct weir_sys_stat *same,
                          int flags);

/* ---- file_sink.c ---- */

void weir_file_create(struct weir_req *req);
/* Unlike the others no task: the io engine's. */
void weir_file_write(struct file_tier *t, struct weir_req *req);
void weir_file_commit(struct weir_req *req);
void weir_file_put(struct weir_req *req);

/* ---- file_names.c ---- */

void weir_file_alias(struct weir_req *req);
void weir_file_remove(struct weir_req *req);
void weir_file_remove_if(struct weir_req *req);
void weir_file_lease(struct weir_req *req);
/* REMOVE, in the directory of the name. */
int weir_file_remove_in(struct file_tier *t, struct weir_dir *dir, const char *base,
                        struct weir_req *req);

#endif
