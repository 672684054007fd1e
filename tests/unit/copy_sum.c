/* weir_copy_sum() is memcpy() and weir_sum(), wherever what is copied begins and ends. */
#include "data.h"
#include "test.h"
#include "util/copy_sum.h"

enum { ROOM = 40000, GUARD = 0xa5 };

static uint8_t to[ROOM], from[ROOM];

static void like_both(size_t to_at, size_t from_at, size_t size, size_t begin, size_t count)
{
    uint8_t expect[WEIR_SUM_BYTES], sum[WEIR_SUM_BYTES];
    struct weir_copy copy = {.data = from + from_at,
                             .size = size,
                             .begin = begin,
                             .count = count,
                             .to = to + to_at,
                             .next = size % 3 ? from + size % 5 : NULL};
    weir_sum(expect, from + from_at, size);
    for (int around = 0; around < 2; around++) {
        copy.is_around = around;
        memset(to, GUARD, to_at + count + 100);
        weir_copy_sum(sum, &copy);
        CHECK(!memcmp(sum, expect, sizeof sum));
        CHECK(!memcmp(to + to_at, from + from_at + begin, count));
        for (size_t i = 0; i < to_at + count + 100; i++)
            CHECK((i >= to_at && i < to_at + count) || to[i] == GUARD);
    }
}

/* Every length of a block and its stripes, and those around it. */
static void sizes(void)
{
    for (size_t size = 1; size < 4300; size++)
        like_both(size % 64, size % 7, size, 0, size);
}

static void parts(void)
{
    static const size_t sizes[] = {1100, 2048, 16384, 16420, 30000};
    static const size_t begins[] = {0, 1, 20, 64, 1000};
    static const size_t ends[] = {0, 1, 63, 64, 65};
    static const size_t places[] = {0, 1, 31, 32, 63, 64, 100};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t b = 0; b < sizeof begins / sizeof begins[0]; b++)
            for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++)
                for (size_t p = 0; p < sizeof places / sizeof places[0]; p++)
                    if (begins[b] + ends[e] <= sizes[s])
                        like_both(places[p], p, sizes[s], begins[b],
                                  sizes[s] - begins[b] - ends[e]);
}

/* Half of it, at the beginning, in the middle and at the end. */
static void halves(void)
{
    for (size_t size = 2100; size < 20000; size += 411)
        for (size_t begin = 0; begin <= size / 2; begin += size / 4)
            like_both(begin % 64, 3, size, begin, size / 2);
}

int main(void)
{
    data_fill(from, sizeof from, 7, 0);
    RUN(sizes);
    RUN(parts);
    RUN(halves);
    return TEST_RESULT;
}
