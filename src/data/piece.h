/* piece.h - samples in memory as they are stored: what one read, or one decompression, brings.
 *
 *   window  samples in a row of a shard: one contiguous read
 *   shard   all of a compressed shard, decompressed
 *   map     a shard of Weir's own, mapped: its blocks are checked when they are first asked for;
 *           a window may turn out to be one
 *   list    samples from anywhere: files that are samples, or those of a batch in a full shuffle;
 *           sorted, and read as few reads as lie close together
 *
 * A piece that could not be read in full is not a failure: those of its samples that are there can
 * be had, and the others are read alone when they are asked for, so that damage shows where the
 * damaged sample stands in the order and nowhere else.
 *
 * A piece is planned by one thread, then loaded by one, and then may be looked at by any.
 */
#ifndef WEIR_DATA_PIECE_H
#define WEIR_DATA_PIECE_H

#include <stdatomic.h>

#include "data/dataset.h"
#include "data/slab.h"
#include "util/err.h"

/* The blocks of shards that are packed. */
#define WEIR_PIECE_BLOCK ((uint64_t)1 << 14)
/* Windows are read from one multiple of the shards' blocks to another, if those are no larger than
 * this: a block is checked as a whole, and of whole ones nothing is copied. */
#define WEIR_PIECE_BLOCK_MAX ((uint64_t)1 << 16)

/* Which shards are mapped (maps.h), if data are to stay in the page cache: those of tokens, which
 * are used as they lie there, always. Of others, windows that are there already: what is not is
 * read faster than it is touched, and only once. */
enum weir_mapping { WEIR_MAPPING_NONE, WEIR_MAPPING_RESIDENT, WEIR_MAPPING_ALL };

/* Where samples come from and where they go; any thread. */
struct weir_supply {
    weir_data *data;
    weir_store *store;
    const char *prefix;
    const struct weir_index *index;
    struct weir_slabs *slabs;
    enum weir_mapping mapping;
    uint64_t block_bytes; /* of its shards; 0: those of packed ones */
    bool once;            /* files that are samples are read one time, by many threads (store.h) */
    const atomic_bool *stop; /* NULL, or becomes true when nobody wants what is being loaded */
};

/* What loading cost. */
struct weir_cost {
    uint64_t reads, read_bytes, read_sizes[WEIR_READ_SIZES];
    uint64_t mapped_bytes; /* of windows that were there already */
    uint64_t read_ns, decompress_ns;
};

enum weir_piece_kind { WEIR_PIECE_WINDOW, WEIR_PIECE_SHARD, WEIR_PIECE_LIST, WEIR_PIECE_MAP };

struct weir_piece {
    enum weir_piece_kind kind;
    uint64_t shard;        /* of a list: of its first sample */
    uint64_t first, count; /* samples; of a list, with numbers, only count */
    uint64_t *numbers;     /* of a list that is not samples in a row; borrowed */
    uint64_t bytes;        /* of memory that it will take */
    /* Loaded: */
    struct weir_slab *slab;
    const uint8_t *data;
    uint64_t begin, end;  /* these bytes of the shard are at data */
    struct weir_map *map; /* taken from this dataset's maps */
    weir_data *mapped_of;
    uint64_t *offs; /* of a list: where at data each sample is; UINT64_MAX: it is not there */
    bool is_broken; /* not all of it came: its samples are read alone, which may take long */
    int code;       /* why what is not there cannot be read alone, either */
    char *text;
};

/* How the shards of a dataset are mapped, if they can be: the first one tells. is_buffered: it is
 * read through the page cache. */
enum weir_mapping weir_supply_mapping(const struct weir_supply *supply, bool is_buffered);

/* From which multiples windows are read: the first shard tells. */
uint64_t weir_supply_block(const struct weir_supply *supply);

/* Which samples, and how much memory; the rest is zero. samples [first, first + count) lie in one
 * shard; of one that is compressed or mapped, it is the whole. -EBADMSG for a damaged index. */
int weir_piece_plan(struct weir_piece *piece, const struct weir_supply *supply, uint64_t shard,
                    uint64_t first, uint64_t count);
/* A list of samples from anywhere, none of which is compressed. */
int weir_piece_plan_list(struct weir_piece *piece, const struct weir_supply *supply,
                         uint64_t *numbers, uint64_t count);

/* Loads pieces; windows can be loaded together, with several reads under way. Only a lack of memory
 * and a damaged index are failures (of all). */
int weir_pieces_load(struct weir_piece *const *pieces, size_t count,
                     const struct weir_supply *supply, struct weir_cost *cost);
/* Nothing of it is there, for the reason that this thread's text is. */
void weir_piece_lost(struct weir_piece *piece, int code);
void weir_piece_unload(struct weir_piece *piece);

/* Whether a sample of a loaded one must come from storage when it is first touched. What was
 * touched and has left memory since is not seen. */
bool weir_piece_lacks(const struct weir_piece *piece, const struct weir_supply *supply,
                      uint64_t number);

/* A sample of a loaded piece; `row` is its place in a list with numbers. What is read alone is kept
 * in scratch. A failure names dataset, shard and sample. */
int weir_piece_sample(const struct weir_piece *piece, const struct weir_supply *supply,
                      uint64_t number, uint64_t row, struct weir_arena **scratch,
                      struct weir_sample *out);
/* "sample 17 of '…' (the 3rd of 'shard.00001.mds')" in front of the text; returns code. */
int weir_sample_fail(const struct weir_supply *supply, uint64_t number, int code);

#endif
