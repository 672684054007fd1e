/* pages.c - see pages.h. */
#include "trace/pages.h"

#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"

/* Four ticks for each page kept: the clock is set back (which costs a pass over the table) once in
 * three times as many reads at least. */
enum { SLOTS = 2 * WEIR_PAGES_KEPT_MAX, CLOCK_MAX = 4 * WEIR_PAGES_KEPT_MAX };

int weir_pages_init(struct weir_pages *pages)
{
    *pages = (struct weir_pages){.slots = SLOTS};
    pages->slot = weir_alloc(SLOTS * sizeof *pages->slot);
    pages->marks = weir_alloc((CLOCK_MAX + 1) * sizeof *pages->marks);
    if (pages->slot && pages->marks)
        return 0;
    weir_pages_free(pages);
    return weir_fail_memory();
}

void weir_pages_free(struct weir_pages *pages)
{
    free(pages->slot);
    free(pages->marks);
    *pages = (struct weir_pages){0};
}

/* ---- how many pages were read last since then ---- */

static void mark(struct weir_pages *pages, uint32_t when, uint32_t change)
{
    for (uint32_t i = when + 1; i <= CLOCK_MAX; i += i & -i)
        pages->marks[i] += change;
}

static uint32_t marks_until(const struct weir_pages *pages, uint32_t when)
{
    uint32_t sum = 0;
    for (uint32_t i = when + 1; i; i -= i & -i)
        sum += pages->marks[i];
    return sum;
}

/* The clock goes on from the number of pages kept, each of which has its rank as its time. */
static void set_back(struct weir_pages *pages)
{
    for (uint32_t i = 0; i < pages->slots; i++)
        if (pages->slot[i].key)
            pages->slot[i].when = marks_until(pages, pages->slot[i].when) - 1;
    memset(pages->marks, 0, (CLOCK_MAX + 1) * sizeof *pages->marks);
    for (uint32_t i = 0; i < pages->slots; i++)
        if (pages->slot[i].key)
            mark(pages, pages->slot[i].when, 1);
    pages->clock = pages->kept;
}

/* ---- the table ---- */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

static struct weir_page *find(struct weir_pages *pages, uint64_t key)
{
    uint32_t at = (uint32_t)(key & (pages->slots - 1));
    while (pages->slot[at].key && pages->slot[at].key != key)
        at = (at + 1) & (pages->slots - 1);
    return &pages->slot[at];
}

static bool is_watched(const struct weir_pages *pages, uint64_t key)
{
    return !(key >> 40 & (((uint64_t)1 << pages->halvings) - 1));
}

/* Watches half as many from now on. */
static int halve(struct weir_pages *pages)
{
    struct weir_page *old = pages->slot;
    struct weir_page *slot = weir_alloc(pages->slots * sizeof *slot);
    if (!slot)
        return weir_fail_memory();
    pages->slot = slot;
    pages->halvings++;
    for (uint32_t i = 0; i < pages->slots; i++) {
        if (!old[i].key)
            continue;
        if (is_watched(pages, old[i].key))
            *find(pages, old[i].key) = old[i];
        else {
            mark(pages, old[i].when, (uint32_t)-1);
            pages->kept--;
        }
    }
    free(old);
    return 0;
}

/* ---- reading ---- */

/* Of [from, to) of a page, the bytes that were read before; and the page has been read now. */
static unsigned bytes_again(struct weir_page *page, unsigned from, unsigned to)
{
    unsigned low = from > page->from ? from : page->from, high = to < page->to ? to : page->to;
    page->from = (uint16_t)(from < page->from ? from : page->from);
    page->to = (uint16_t)(to > page->to ? to : page->to);
    return high > low ? high - low : 0;
}

static void note_again(struct weir_pages *pages, const struct weir_page *page, double bytes)
{
    uint64_t between = pages->kept - marks_until(pages, page->when);
    uint64_t distance = ((between + 1) << pages->halvings) * WEIR_PAGE_BYTES;
    unsigned bin = 63u - (unsigned)__builtin_clzll(distance);
    bin += (distance & (distance - 1)) != 0; /* a cache of 2^bin bytes has it */
    pages->reuse[bin < WEIR_REUSE_BINS ? bin : WEIR_REUSE_BINS - 1] += bytes;
    pages->again_bytes += bytes;
}

static void read_page(struct weir_pages *pages, uint64_t key, unsigned from, unsigned to)
{
    double scale = (double)((uint64_t)1 << pages->halvings);
    struct weir_page *page = find(pages, key);
    pages->read_bytes += scale * (to - from);
    if (page->key) {
        unsigned again = bytes_again(page, from, to);
        if (again)
            note_again(pages, page, scale * again);
        mark(pages, page->when, (uint32_t)-1);
    } else {
        *page = (struct weir_page){.key = key, .from = (uint16_t)from, .to = (uint16_t)to};
        pages->kept++;
    }
    page->when = pages->clock++;
    mark(pages, page->when, 1);
    if (pages->clock == CLOCK_MAX)
        set_back(pages);
    if (pages->kept == WEIR_PAGES_KEPT_MAX && halve(pages)) {
        memset(pages->slot, 0, pages->slots * sizeof *pages->slot); /* start over */
        memset(pages->marks, 0, (CLOCK_MAX + 1) * sizeof *pages->marks);
        pages->kept = pages->clock = 0;
    }
}

void weir_pages_read(struct weir_pages *pages, uint64_t file, uint64_t offset, uint64_t bytes)
{
    uint64_t end;
    if (__builtin_add_overflow(offset, bytes, &end))
        return;
    while (offset < end) {
        uint64_t page = offset / WEIR_PAGE_BYTES, from = offset % WEIR_PAGE_BYTES;
        uint64_t rest = end - offset, to = from + rest;
        to = to < WEIR_PAGE_BYTES ? to : WEIR_PAGE_BYTES;
        uint64_t key = mix(mix(file) + page) | 1;
        if (is_watched(pages, key))
            read_page(pages, key, (unsigned)from, (unsigned)to);
        offset += to - from;
    }
}

/* ---- what a cache would do ---- */

double weir_pages_hits(const struct weir_pages *pages, uint64_t cache_bytes)
{
    double sum = 0;
    for (unsigned i = 0; i < WEIR_REUSE_BINS && (uint64_t)1 << i <= cache_bytes; i++)
        sum += pages->reuse[i];
    return sum;
}

uint64_t weir_pages_cache_for(const struct weir_pages *pages, double share)
{
    for (unsigned i = 0; i < WEIR_REUSE_BINS - 1 && pages->again_bytes > 0; i++)
        if (weir_pages_hits(pages, (uint64_t)1 << i) >= share * pages->again_bytes)
            return (uint64_t)1 << i;
    return 0;
}
