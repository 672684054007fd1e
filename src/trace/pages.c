/* pages.c - see pages.h. */
#include "trace/pages.h"

#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/sys.h"

/* The table is at most half full. Its clock has two ticks for each slot: it is set back (which
 * costs a pass over the table) once in one and a half times as many reads at least. */
enum { SLOTS_FIRST = 1 << 10, SLOTS_MAX = 2 * WEIR_PAGES_KEPT_MAX };

static uint32_t clock_max(const struct weir_pages *pages)
{
    return 2 * pages->slots;
}

int weir_pages_init(struct weir_pages *pages)
{
    *pages = (struct weir_pages){.slots = SLOTS_FIRST};
    pages->slot = weir_alloc(pages->slots * sizeof *pages->slot);
    pages->marks = weir_alloc((clock_max(pages) + 1) * sizeof *pages->marks);
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
    for (uint32_t i = when + 1; i <= clock_max(pages); i += i & -i)
        pages->marks[i] += change;
}

static uint32_t marks_until(const struct weir_pages *pages, uint32_t when)
{
    uint32_t sum = 0;
    for (uint32_t i = when + 1; i; i -= i & -i)
        sum += pages->marks[i];
    return sum;
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

/* Without memory for more it starts over. */
static void forget(struct weir_pages *pages)
{
    memset(pages->slot, 0, pages->slots * sizeof *pages->slot);
    memset(pages->marks, 0, (clock_max(pages) + 1) * sizeof *pages->marks);
    pages->kept = pages->clock = 0;
}

/* Makes the table anew, with that many slots and those pages that are still watched. Each has its
 * rank as its time, and the clock goes on from there. */
static void renew(struct weir_pages *pages, uint32_t slots)
{
    struct weir_pages old = *pages;
    struct weir_page *slot = weir_alloc(slots * sizeof *slot);
    uint32_t *marks = weir_alloc((2 * (size_t)slots + 1) * sizeof *marks);
    if (!slot || !marks) {
        free(slot);
        free(marks);
        forget(pages);
        return;
    }
    pages->slot = slot;
    pages->marks = marks;
    pages->slots = slots;
    pages->clock = old.kept;
    pages->kept = 0;
    for (uint32_t i = 0; i < old.slots; i++) {
        struct weir_page page = old.slot[i];
        if (!page.key || !is_watched(pages, page.key))
            continue;
        page.when = marks_until(&old, page.when) - 1;
        *find(pages, page.key) = page;
        mark(pages, page.when, 1);
        pages->kept++;
    }
    free(old.slot);
    free(old.marks);
}

/* ---- reading ---- */

/* The parts that [from, to) touches; it is not empty. */
static uint64_t parts_of(unsigned from, unsigned to)
{
    unsigned first = from / WEIR_PAGE_PART_BYTES, last = (to - 1) / WEIR_PAGE_PART_BYTES;
    return ~(uint64_t)0 << first & ~(uint64_t)0 >> (63 - last);
}

/* Of [low, high), which is not empty, the bytes within these parts. */
static unsigned bytes_within(uint64_t parts, unsigned low, unsigned high)
{
    unsigned sum = 0;
    if (!(parts_of(low, high) & ~parts))
        return high - low;
    for (unsigned end; low < high; low = end) {
        end = (low / WEIR_PAGE_PART_BYTES + 1) * WEIR_PAGE_PART_BYTES;
        end = end < high ? end : high;
        if (parts >> low / WEIR_PAGE_PART_BYTES & 1)
            sum += end - low;
    }
    return sum;
}

/* Of [from, to) of a page, the bytes that were read before; and the page has been read now. */
static unsigned bytes_again(struct weir_page *page, unsigned from, unsigned to)
{
    unsigned low = from > page->from ? from : page->from, high = to < page->to ? to : page->to;
    uint64_t before = page->parts;
    page->parts |= parts_of(from, to);
    page->from = (uint16_t)(from < page->from ? from : page->from);
    page->to = (uint16_t)(to > page->to ? to : page->to);
    return high > low ? bytes_within(before, low, high) : 0;
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
        *page = (struct weir_page){
            .key = key, .parts = parts_of(from, to), .from = (uint16_t)from, .to = (uint16_t)to};
        pages->kept++;
    }
    page->when = pages->clock++;
    mark(pages, page->when, 1);
    if (pages->kept == WEIR_PAGES_KEPT_MAX)
        pages->halvings++;
    if (2 * pages->kept < pages->slots && pages->clock < clock_max(pages))
        return;
    renew(pages, 2 * pages->kept >= pages->slots && pages->slots < SLOTS_MAX ? 2 * pages->slots
                                                                             : pages->slots);
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
