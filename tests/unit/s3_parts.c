/* How a stream is cut into parts: they follow each other without a gap, 10,000 are enough for what
 * a store takes, and small streams have small ones. */
#include <errno.h>

#include "test.h"
#include "tier/s3_parts.h"

#define MIB ((uint64_t)1 << 20)
#define TIB ((uint64_t)1 << 40)

static uint64_t memory = 128 * MIB;

/* Walks all parts up to `bytes`: returns how many there are. */
static uint32_t walk(uint64_t hint, uint64_t bytes)
{
    struct weir_s3_parts parts;
    struct weir_s3_part_place place, again;
    uint64_t at = 0, before = 0;
    uint32_t count = 0;
    weir_s3_parts_plan(&parts, hint, 8 * MIB, memory);
    while (at < bytes) {
        OK(weir_s3_parts_at(&parts, at, &place));
        CHECK(place.number == count++ && place.begin == at);
        CHECK(place.bytes >= before && place.bytes >= 8 * MIB);
        before = place.bytes;
        OK(weir_s3_parts_at(&parts, at + place.bytes - 1, &again));
        CHECK(again.number == place.number && again.begin == at);
        at += place.bytes;
    }
    return count;
}

static void unknown_length(void)
{
    CHECK_EQ(walk(0, 1), 1);
    CHECK_EQ(walk(0, 125 * 8 * MIB), 125);
    CHECK_EQ(walk(0, 125 * 8 * MIB + 1), 126);
    CHECK(walk(0, 2 * TIB) <= WEIR_S3_PARTS_MAX);
}

static void known_length(void)
{
    CHECK_EQ(walk(63 * 8 * MIB, 63 * 8 * MIB), 63); /* one size */
    CHECK_EQ(walk(64 * 8 * MIB, 64 * 8 * MIB), 32);
    memory = 127 * MIB; /* too few of the larger ones would be under way */
    CHECK_EQ(walk(64 * 8 * MIB, 64 * 8 * MIB), 64);
    memory = 128 * MIB;
    CHECK_EQ(walk(5000 * 16 * MIB, 5000 * 16 * MIB), 5000);
    CHECK_EQ(walk(2 * TIB, 2 * TIB), (2 * TIB + 420 * MIB - 1) / (420 * MIB));
    CHECK(walk(2 * TIB, 5 * TIB) <= WEIR_S3_PARTS_MAX); /* it was announced too small */
    CHECK(walk(1, 100 * 1024 * MIB) <= WEIR_S3_PARTS_MAX);
}

static void beyond_the_last(void)
{
    struct weir_s3_parts parts;
    struct weir_s3_part_place place;
    weir_s3_parts_plan(&parts, 0, 8 * MIB, memory);
    CHECK_EQ(weir_s3_parts_at(&parts, 100 * TIB, &place), -EFBIG);
    CHECK_EQ(weir_s3_parts_at(&parts, UINT64_MAX, &place), -EFBIG);
}

int main(void)
{
    RUN(unknown_length);
    RUN(known_length);
    RUN(beyond_the_last);
    return TEST_RESULT;
}
