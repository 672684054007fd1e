/* pack_parts.h - what the files that pack share: what is made of what, and how far it is. */
#ifndef WEIR_DATA_PACK_PARTS_H
#define WEIR_DATA_PACK_PARTS_H

#include <pthread.h>

#include "data/pack.h"
#include "data/piece.h"

enum { WEIR_PACK_META_BYTES = 512 }; /* of metadata that is compared, at most */

struct weir_packing {
    const struct weir_pack_options *opts;
    struct weir_supply from;
    struct weir_ahead *ahead; /* loads it */
    const struct weir_format *from_format, *to_format;
    weir_store *store;
    const char *prefix;
    struct weir_writing writing;
    struct weir_growing schema; /* of what is written; ends with a zero byte */
    uint8_t schema_sha256[WEIR_SHA256_BYTES];
    struct weir_growing layout; /* what was said of it before; the same */
    char *fields;               /* the names to keep, each with a zero byte behind it; or NULL */
    uint32_t field_count;
    uint32_t jobs; /* that there is memory for */

    uint32_t shards;
    uint64_t *first;                        /* shards + 1: the first sample of each */
    uint64_t *begin;                        /* the same in bytes of samples */
    uint64_t extra;                         /* bytes that the format adds to the first sample, */
    bool shrinks;                           /* or it takes some away */
    char digest[2 * WEIR_SHA256_BYTES + 1]; /* of all that decides what is written */
    struct weir_written *written;
    _Atomic uint32_t kept;
    _Atomic uint64_t files_kept; /* those that these list */

    /* Of pack_shard.c: */
    pthread_mutex_t lock;
    struct weir_making *idle;
};

/* ---- pack_plan.c: which samples go where ---- */

int weir_pack_plan(struct weir_packing *p);

/* ---- pack_mark.c: what is there already ---- */

/* Marks the place as one where this is being packed, or finds that it is; -ENOTEMPTY, -EEXIST. */
int weir_pack_mark(struct weir_packing *p);
/* The key of what is called so in the place. */
int weir_pack_key(char out[WEIR_KEY_BYTES_MAX + 1], const struct weir_packing *p, const char *name);
/* Puts a whole object with so much metadata, unless one with the same metadata is there: then that
 * is kept. What is in another's way is an error. *is_named (NULL, or false) becomes whether it was
 * put, and has its plain name. */
int weir_pack_put(struct weir_packing *p, const char *name, const struct weir_made *made,
                  const char *meta, bool *is_named);
/* Is shard i there? 1 and p->written[i], 0, or -errno. */
int weir_pack_find(struct weir_packing *p, uint32_t i);
/* What a failure of these two means: 0 where another process has made the shard meanwhile. */
int weir_pack_settle(struct weir_packing *p, uint32_t i, int code);
/* Begins shard i, of about so many bytes. -EEXIST: somebody else has just made it. */
int weir_pack_begin(weir_put **out, struct weir_packing *p, uint32_t i, uint64_t bytes);
/* Seals shard i, which is described by p->written[i]. -EEXIST: the same. */
int weir_pack_seal(struct weir_packing *p, uint32_t i, weir_put *put);

/* The metadata of a file that a field of that sample became. */
void weir_pack_file_meta(char out[WEIR_PACK_META_BYTES], const struct weir_packing *p,
                         uint64_t number);
/* Is it one, and of which sample? */
bool weir_pack_is_file(const struct weir_packing *p, const weir_info *info, uint64_t *number);

/* ---- pack_names.c: files of a tree ---- */

/* weir_pack_put() of a file of that sample, which then has its plain name, too, if such are made
 * there at all. */
int weir_pack_put_file(struct weir_packing *p, const char *name, const struct weir_made *made,
                       uint64_t number);
/* The files of a list that is there: those whose plain names are gone get them back. */
int weir_pack_names(const struct weir_packing *p, weir_object *list);

/* ---- pack_shard.c: one shard ---- */

/* Tries the first sample: what is to be written goes by it, if the format has a schema. */
int weir_pack_probe(struct weir_packing *p);
/* Makes shard i, unless it is there. */
int weir_pack_shard(struct weir_packing *p, uint32_t i);
/* After the last. */
void weir_pack_done(struct weir_packing *p);

#endif
