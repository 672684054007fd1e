/* batch.h - samples side by side: their fields as the columns of a batch (weir_batch of weir.h).
 *
 * A gather is one thread's. Samples are added one after another, which takes them apart, and stay
 * where they are until the end, when everything is copied into one slab: each sample's bytes are
 * touched twice, the second time to be summed and copied while they are in the cache. Nothing is
 * allocated for a sample.
 */
#ifndef WEIR_DATA_BATCH_H
#define WEIR_DATA_BATCH_H

#include "data/digest.h"
#include "data/index.h"
#include "data/slab.h"

enum {
    WEIR_COLUMNS_MAX = 4096, /* different fields in one batch: where each sample has its own, they
                                are no columns */
    WEIR_BATCH_ALIGN = 64,   /* of every array: a cache line, and what vector code likes */
};

/* What of a batch belongs to an epoch of a dataset. */
struct weir_part {
    uint32_t source;
    uint64_t epoch, samples;
    struct weir_digest digest;
};

struct weir_batch {
    weir_batch_info info;
    const struct weir_part *parts;
    size_t parts_count;
    uint64_t sample_bytes;
    struct weir_slab *slab;
};

struct weir_gather;
/* wanted: the names of the only fields there shall be, copied; none: all. is_raw: samples are not
 * taken apart (weir_format_raw()). is_large: what is gathered ahead of its use is more than
 * a cache holds. */
int weir_gather_open(struct weir_gather **out, const char *const *wanted, size_t wanted_count,
                     bool is_raw, bool is_large);
void weir_gather_close(struct weir_gather *gather);

/* A new batch, of at most `rows` samples. */
int weir_gather_begin(struct weir_gather *gather, uint64_t rows);
/* Which sample it is. */
struct weir_drawing {
    uint32_t source; /* of several datasets */
    uint64_t number, epoch;
};
/* The next sample, whose bytes stay until the end. -EBADMSG says what is wrong with it. */
int weir_gather_add(struct weir_gather *gather, const struct weir_index *index,
                    const struct weir_drawing *which, const struct weir_sample *sample);
/* A wanted field that no sample has is a column of WEIR_FIELD_NONE. */
int weir_gather_end(struct weir_gather *gather, struct weir_slabs *slabs, bool has_sources,
                    weir_batch **out);

#endif
