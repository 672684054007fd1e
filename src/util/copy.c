/* copy.c - see copy.h. Any thread may call. */
#include "util/copy.h"

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

/* Less than SIZE_MIN is mostly its ends, which go through the cache. */
enum { LINE = 64, PAGE = 4096, AHEAD = 8 * LINE, SIZE_MIN = 16 * LINE };

static inline void copy_line(char *to, const char *from)
{
    _mm_prefetch(from + AHEAD, _MM_HINT_T0); /* beyond the end it does nothing */
    for (int i = 0; i < LINE; i += 16)
        _mm_stream_si128((__m128i *)(void *)(to + i),
                         _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
}

/* Two pages side by side: the processor fetches ahead within each. */
void weir_copy_around(void *to, const void *from, size_t size)
{
    char *out = to;
    const char *in = from;
    size_t head = -(uintptr_t)out % LINE;
    if (size >= SIZE_MIN) {
        memcpy(out, in, head);
        out += head, in += head, size -= head;
        for (; size >= 2 * PAGE; out += 2 * PAGE, in += 2 * PAGE, size -= 2 * PAGE)
            for (size_t i = 0; i < PAGE; i += LINE) {
                copy_line(out + i, in + i);
                copy_line(out + PAGE + i, in + PAGE + i);
            }
        for (; size >= LINE; out += LINE, in += LINE, size -= LINE)
            copy_line(out, in);
        _mm_sfence();
    }
    if (size) /* of an empty tensor there may be nothing to point to */
        memcpy(out, in, size);
}
#else
void weir_copy_around(void *to, const void *from, size_t size)
{
    if (size)
        memcpy(to, from, size);
}
#endif
