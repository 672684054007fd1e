/* What is read again, and how large a cache has to be for it: exact while it is little, and near
 * that when only a sample is watched; and sizes, and the timeline that never outgrows itself.
 */
#include "test.h"
#include "trace/pages.h"
#include "trace/sizes.h"
#include "trace/timeline.h"

static struct weir_pages pages;

static void again(void)
{
    OK(weir_pages_init(&pages));
    for (uint64_t at = 0; at < 100000; at += 1000) /* a thousand bytes at a time: no re-read */
        weir_pages_read(&pages, 1, at, 1000);
    CHECK_EQ(pages.again_bytes, 0);
    CHECK_EQ(weir_pages_cache_for(&pages, 0.95), 0);
    weir_pages_read(&pages, 2, 0, 100000); /* another file */
    CHECK_EQ(pages.again_bytes, 0);
    weir_pages_read(&pages, 1, 500, 10000);
    CHECK_EQ(pages.again_bytes, 10000);
    CHECK_EQ(pages.read_bytes, 210000);
    /* 25 pages of each file are between: a cache of 256 KiB has them, one of 128 KiB not. */
    CHECK_EQ(weir_pages_cache_for(&pages, 1), 256 << 10);
    CHECK_EQ(weir_pages_hits(&pages, 128 << 10), 0);
    CHECK_EQ(weir_pages_hits(&pages, 256 << 10), 10000);
    weir_pages_read(&pages, 3, UINT64_MAX - 5, 100); /* beyond any file */
    CHECK_EQ(pages.read_bytes, 210000);
    weir_pages_free(&pages);
}

/* Within a page, what lies between two reads has not been read. */
static void gaps(void)
{
    OK(weir_pages_init(&pages));
    weir_pages_read(&pages, 1, 0, 512);
    weir_pages_read(&pages, 1, 3584, 512);
    weir_pages_read(&pages, 1, 1024, 512);
    CHECK_EQ(pages.again_bytes, 0);
    weir_pages_read(&pages, 1, 0, 4096); /* of which three times 512 are known */
    CHECK_EQ(pages.again_bytes, 1536);
    weir_pages_read(&pages, 1, 600, 100); /* now all is */
    CHECK_EQ(pages.again_bytes, 1636);
    for (uint64_t at = 0; at < 4096; at += 10) /* many to a part, in a row */
        weir_pages_read(&pages, 2, at, at + 10 < 4096 ? 10 : 4096 - at);
    CHECK_EQ(pages.again_bytes, 1636);
    weir_pages_free(&pages);
}

/* Two epochs of three gigabytes, of which a quarter of the pages is watched at last. */
static void sampled(void)
{
    const uint64_t size = 3ull << 30, request = 1 << 20;
    OK(weir_pages_init(&pages));
    for (int epoch = 0; epoch < 2; epoch++)
        for (uint64_t at = 0; at < size; at += request)
            weir_pages_read(&pages, 7, at, request);
    CHECK_EQ(pages.halvings, 2);
    CHECK(pages.again_bytes > 0.95 * (double)size && pages.again_bytes < 1.05 * (double)size);
    CHECK_EQ(weir_pages_cache_for(&pages, 0.95), 4ull << 30);
    weir_pages_free(&pages);
}

/* The clock is set back many times, and ranks stay right. */
static void clock_goes_round(void)
{
    OK(weir_pages_init(&pages));
    for (int i = 0; i < 3000000; i++)
        weir_pages_read(&pages, 1, (uint64_t)(i % 64) * WEIR_PAGE_BYTES, WEIR_PAGE_BYTES);
    CHECK_EQ(pages.again_bytes, (3000000.0 - 64) * WEIR_PAGE_BYTES);
    CHECK_EQ(weir_pages_cache_for(&pages, 1), 64 * WEIR_PAGE_BYTES);
    CHECK_EQ(weir_pages_hits(&pages, 32 * WEIR_PAGE_BYTES), 0);
    weir_pages_free(&pages);
}

static void sizes_by_magnitude(void)
{
    static struct weir_sizes sizes;
    weir_sizes_add(&sizes, 0);
    weir_sizes_add(&sizes, 1);
    weir_sizes_add(&sizes, 4095);
    weir_sizes_add(&sizes, 4096);
    weir_sizes_add(&sizes, UINT64_MAX / 4);
    CHECK(sizes.count[0] == 1 && sizes.count[1] == 1 && sizes.count[12] == 1);
    CHECK(sizes.count[13] == 1 && weir_sizes_from(13) == 4096);
    CHECK_EQ(weir_sizes_typical(&sizes), UINT64_MAX / 4);
}

static void timeline(void)
{
    static struct weir_timeline line;
    for (uint64_t s = 0; s < 1000; s++)
        weir_timeline_add(&line, WEIR_ROW_OPENS, 5000000000 + s * 1000000000, 1);
    weir_timeline_add(&line, WEIR_ROW_OPENS, 1, 1); /* before the beginning */
    uint64_t sum = 0;
    CHECK(weir_timeline_bins(&line) <= WEIR_TIMELINE_BINS && weir_timeline_bins(&line) > 100);
    for (unsigned i = 0; i < weir_timeline_bins(&line); i++)
        sum += line.row[WEIR_ROW_OPENS][i];
    CHECK_EQ(sum, 1001);
    CHECK_EQ(weir_timeline_span_ns(&line), 999000000000);
    weir_timeline_spread(&line, WEIR_ROW_READ_BYTES, 5000000000, 1004000000000, 1000003);
    uint64_t least = UINT64_MAX, bytes = 0;
    for (unsigned i = 0; i < weir_timeline_bins(&line); i++) {
        uint64_t one = line.row[WEIR_ROW_READ_BYTES][i];
        least = one < least ? one : least;
        bytes += one;
    }
    CHECK_EQ(bytes, 1000003);
    CHECK_EQ(least, 1000003 / weir_timeline_bins(&line));
    weir_timeline_spread(&line, WEIR_ROW_WRITE_BYTES, 900000000000, 5000000000, 7); /* backwards */
    CHECK_EQ(line.row[WEIR_ROW_WRITE_BYTES][0], 7);
    weir_timeline_see(&line, UINT64_MAX / 2);
    CHECK_EQ(line.row[WEIR_ROW_OPENS][0], 1001);
}

int main(void)
{
    RUN(again);
    RUN(gaps);
    RUN(sampled);
    RUN(clock_goes_round);
    RUN(sizes_by_magnitude);
    RUN(timeline);
    return TEST_RESULT;
}
