/* copy.c - see copy.h. */
#include "ckpt/copy.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#include <stdint.h>

enum {
    LINE = 64,
    PAGE = 4096,
    PAGES = 4,   /* copied side by side: one page alone does not keep the memory busy */
    AHEAD = 256, /* bytes fetched before they are needed */
    GROUP = PAGES * PAGE,
};

/* One line of a cache; `out` is aligned to it. */
static inline void copy_line(void *out, const void *in)
{
    __m128i *to = out;
    const __m128i *from = in;
    __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
    __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
}

static void copy_group(char *to, const char *from)
{
    for (size_t at = 0; at < PAGE; at += LINE)
        for (size_t page = 0; page < GROUP; page += PAGE) {
            _mm_prefetch(from + page + at + AHEAD, _MM_HINT_T0); /* past the end, it is ignored */
            copy_line(to + page + at, from + page + at);
        }
}

void weir_copy_far(void *to, const void *from, size_t size)
{
    char *out = to;
    const char *in = from;
    size_t head = -(uintptr_t)out % LINE;
    if (size < GROUP) {
        memcpy(out, in, size);
        return;
    }
    memcpy(out, in, head);
    out += head;
    in += head;
    size -= head;
    for (; size >= GROUP; out += GROUP, in += GROUP, size -= GROUP)
        copy_group(out, in);
    _mm_sfence();
    memcpy(out, in, size);
}

#else

void weir_copy_far(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
}

#endif
