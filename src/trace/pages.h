/* pages.h - which pages of files were read before, and how much was read since: from that follows
 * how large a cache has to be to save how many of the re-reads.
 *
 * Exact (to the byte as long as a page is read without gaps, with gaps to the 64 bytes) up to
 * WEIR_PAGES_KEPT_MAX pages, 1 GiB; beyond that a random part of all pages is watched, chosen by
 * their hash so that a page is watched always or never (Waldspurger and others, "Efficient MRC
 * construction with SHARDS", 2015), which halves whenever it outgrows the table: memory and time
 * are bounded, whatever is read.
 */
#ifndef WEIR_TRACE_PAGES_H
#define WEIR_TRACE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_PAGE_BYTES = 4096, WEIR_PAGE_PART_BYTES = WEIR_PAGE_BYTES / 64 };
enum { WEIR_PAGES_KEPT_MAX = 1 << 18, WEIR_REUSE_BINS = 64 };

struct weir_page {
    uint64_t key;      /* 0: free */
    uint64_t parts;    /* a bit for each 64 bytes of which any were read */
    uint32_t when;     /* of its last read, on the clock of reads of watched pages */
    uint16_t from, to; /* all that was read is between: small reads in a row share their parts */
};

struct weir_pages {
    struct weir_page *slot;
    uint32_t *marks; /* a Fenwick tree over the clock: 1 where a page was last read */
    uint32_t slots, kept, clock;
    unsigned halvings;              /* one page in 2^this is watched */
    double read_bytes, again_bytes; /* of watched pages, scaled up */
    /* Bytes read again, by how many bytes of other pages were read in between (bin: doublings). */
    double reuse[WEIR_REUSE_BINS];
};

int weir_pages_init(struct weir_pages *pages);
void weir_pages_free(struct weir_pages *pages);
/* file: any number that is not the same for two files. */
void weir_pages_read(struct weir_pages *pages, uint64_t file, uint64_t offset, uint64_t bytes);
/* What a cache of that size, that keeps what was read last, would have answered. */
double weir_pages_hits(const struct weir_pages *pages, uint64_t cache_bytes);
/* The smallest cache (of a doubling) that answers that share of the re-reads; 0: there are none. */
uint64_t weir_pages_cache_for(const struct weir_pages *pages, double share);

#endif
