/* s3_memory.h - memory of parts that are gathered or under way, counted over all sinks of a tier:
 * beyond its bound a writer waits for uploads to end. It does not wait when none is under way,
 * since then only writers could give memory back; so what is exceeded is at most what unfinished
 * parts hold.
 *
 * A whole part's is kept for the next as long as there is a sink, since fresh memory costs more
 * than to copy into it. What is spare counts, and there is none beyond the bound. Any thread.
 */
#ifndef WEIR_TIER_S3_MEMORY_H
#define WEIR_TIER_S3_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct weir_s3_memory {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    uint64_t bytes, bytes_max; /* what is spare included */
    unsigned uploads;          /* of parts, under way or about to be: that comes back by itself */
    unsigned sinks;            /* that are open */
    void *spare;               /* each begins with where the next one is */
    uint64_t spare_bytes;      /* of each */
};

void weir_s3_memory_init(struct weir_s3_memory *memory, uint64_t bytes_max);
void weir_s3_memory_destroy(struct weir_s3_memory *memory);

/* A sink is there, and is there no more: with the last one, what is spare goes. */
void weir_s3_memory_join(struct weir_s3_memory *memory);
void weir_s3_memory_leave(struct weir_s3_memory *memory);
/* So many uploads more, or less. */
void weir_s3_memory_uploads(struct weir_s3_memory *memory, int more);

/* So many bytes are the caller's now; may wait. If it begins a part, they may be those of another,
 * of which nothing is known; NULL: they are to be allocated. */
void *weir_s3_memory_take(struct weir_s3_memory *memory, uint64_t bytes, bool begins);
/* So many bytes are nobody's any more. */
void weir_s3_memory_give(struct weir_s3_memory *memory, uint64_t bytes);
/* The same, of a whole part, which may be spare now, or is freed. */
void weir_s3_memory_keep(struct weir_s3_memory *memory, void *data, uint64_t bytes);

#endif
