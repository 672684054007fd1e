/* A snapshot's copy is exact for every size and alignment, and touches nothing beside. */
#include "ckpt/copy.h"
#include "data.h"
#include "test.h"

enum { ROOM = 1 << 17, MARGIN = 256 };

static char from[ROOM + 2 * MARGIN], to[ROOM + 2 * MARGIN];

static void copied(size_t to_at, size_t from_at, size_t size)
{
    memset(to, 0x5a, sizeof to);
    weir_copy_far(to + MARGIN + to_at, from + from_at, size);
    CHECK(!memcmp(to + MARGIN + to_at, from + from_at, size));
    CHECK(data_all(to, MARGIN + to_at, 0x5a));
    size_t end = MARGIN + to_at + size;
    CHECK(data_all(to + end, sizeof to - end, 0x5a));
}

static void sizes_and_alignments(void)
{
    static const size_t sizes[] = {0,     1,     63,    64,    65,    4096, 16383,
                                   16384, 16385, 16447, 16448, 65536, 65537};
    data_fill(from, sizeof from, 1, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t to_at = 0; to_at < 66; to_at += to_at < 2 ? 1 : 7)
            for (size_t from_at = 0; from_at < 66; from_at += from_at < 2 ? 1 : 9)
                copied(to_at, from_at, sizes[i]);
}

int main(void)
{
    RUN(sizes_and_alignments);
    return TEST_RESULT;
}
