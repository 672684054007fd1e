/* weir_copy_around() is memcpy(), wherever it begins and ends. */
#include "data.h"
#include "test.h"
#include "util/copy.h"

enum { ROOM = 40000, GUARD = 0xa5 };

static void like_memcpy(size_t to_at, size_t from_at, size_t size)
{
    static uint8_t to[ROOM], from[ROOM];
    memset(to, GUARD, sizeof to);
    data_fill(from, sizeof from, size, 0);
    weir_copy_around(to + to_at, from + from_at, size);
    CHECK(!memcmp(to + to_at, from + from_at, size));
    for (size_t i = 0; i < ROOM; i++)
        CHECK((i >= to_at && i < to_at + size) || to[i] == GUARD);
}

static void everywhere(void)
{
    static const size_t sizes[] = {0, 1, 63, 64, 4096, 8191, 8192, 8255, 8256, 16384, 16385, 30000};
    static const size_t places[] = {0, 1, 15, 16, 63, 64, 100};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t t = 0; t < sizeof places / sizeof places[0]; t++)
            for (size_t f = 0; f < sizeof places / sizeof places[0]; f++)
                like_memcpy(places[t], places[f], sizes[s]);
}

int main(void)
{
    RUN(everywhere);
    return TEST_RESULT;
}
