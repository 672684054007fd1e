/* copy_sum.c - see copy_sum.h. Any thread may call.
 *
 * XXH3's sum of more than 240 bytes, as it is specified: eight accumulators take in stripes of 64
 * bytes, each with a part of the secret that begins 8 bytes further on; after 16 stripes, a block,
 * they are scrambled. The last 64 bytes are one more stripe, also if they were part of others.
 */
#include "util/copy_sum.h"

#include <assert.h>
#include <string.h>

#include "util/copy.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "util/bytes.h"

#define AVX2 __attribute__((target("avx2")))

enum {
    STRIPE = 64, /* also a cache line */
    STRIPES = 16,
    BLOCK = STRIPES * STRIPE,
    AHEAD = 48 * STRIPE, /* fetched before it is needed: found by measuring (16, 32, 48, 64) */
    SIZE_MIN = BLOCK,    /* less is mostly its ends */
    SHORT_MAX = 240,     /* which has other sums */
    /* Where in the secret: */
    KEY_STEP = 8,
    KEY_SCRAMBLE = 128,
    KEY_LAST = 121,
    KEY_LOW = 11,
    KEY_HIGH = 117,
};

_Static_assert((int)SIZE_MIN > (int)SHORT_MAX, "what is summed here is never short");

#define AVALANCHE 0x165667919e3779f9u

static const uint64_t secret[24] = {
    0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072,
    0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0,
    0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
    0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8,
    0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
    0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af,
};

static const uint64_t primes32[] = {0x9e3779b1, 0x85ebca77, 0xc2b2ae3d};
static const uint64_t primes64[] = {0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
                                    0x85ebca77c2b2ae63, 0x27d4eb2f165667c5};

struct accumulators {
    __m256i low, high; /* four of 64 bits each */
};

AVX2 static inline __m256i load(const void *at)
{
    return _mm256_loadu_si256(at);
}

AVX2 static inline __m256i take_in(__m256i sum, __m256i data, const char *key)
{
    __m256i mixed = _mm256_xor_si256(data, load(key));
    __m256i product = _mm256_mul_epu32(mixed, _mm256_srli_epi64(mixed, 32));
    __m256i swapped = _mm256_shuffle_epi32(data, _MM_SHUFFLE(1, 0, 3, 2));
    return _mm256_add_epi64(_mm256_add_epi64(sum, swapped), product);
}

AVX2 static inline void take_stripe(struct accumulators *sums, const char *data, const char *key)
{
    sums->low = take_in(sums->low, load(data), key);
    sums->high = take_in(sums->high, load(data + 32), key + 32);
}

AVX2 static inline __m256i scramble(__m256i sum, const char *key)
{
    const __m256i prime = _mm256_set1_epi64x((long long)primes32[0]);
    sum = _mm256_xor_si256(sum, _mm256_srli_epi64(sum, 47));
    sum = _mm256_xor_si256(sum, load(key));
    __m256i high = _mm256_mul_epu32(_mm256_srli_epi64(sum, 32), prime);
    return _mm256_add_epi64(_mm256_mul_epu32(sum, prime), _mm256_slli_epi64(high, 32));
}

AVX2 static inline void end_block(struct accumulators *sums)
{
    const char *key = (const char *)secret + KEY_SCRAMBLE;
    sums->low = scramble(sums->low, key);
    sums->high = scramble(sums->high, key + 32);
}

AVX2 static inline void put(char *to, __m256i data, bool is_around)
{
    if (is_around)
        _mm256_stream_si256((__m256i *)(void *)to, data);
    else
        _mm256_store_si256((__m256i *)(void *)to, data);
}

static uint64_t merge(const uint64_t sums[8], const char *key, uint64_t merged)
{
    for (int i = 0; i < 8; i += 2) {
        uint64_t a = sums[i] ^ weir_load_le((const uint8_t *)key + 8 * i, 8);
        uint64_t b = sums[i + 1] ^ weir_load_le((const uint8_t *)key + 8 * i + 8, 8);
        unsigned __int128 product = (unsigned __int128)a * b;
        merged += (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    merged = (merged ^ merged >> 37) * AVALANCHE;
    return merged ^ merged >> 32;
}

AVX2 static void finish(uint8_t out[WEIR_SUM_BYTES], const struct accumulators *sums, size_t size)
{
    const char *key = (const char *)secret;
    uint64_t all[8];
    _mm256_storeu_si256((__m256i *)(void *)all, sums->low);
    _mm256_storeu_si256((__m256i *)(void *)(all + 4), sums->high);
    weir_store_be64(out, merge(all, key + KEY_HIGH, ~(size * primes64[1])));
    weir_store_be64(out + 8, merge(all, key + KEY_LOW, size * primes64[0]));
}

/* One pass: where it is in what is summed, what is copied, and what is fetched. */
struct pass {
    const char *data, *from, *ahead, *turn, *next;
    char *to;
    size_t lines; /* to copy */
};

/* One stripe, and one line if there is one. Behind the end, what comes next is fetched: a processor
 * knows of it no sooner than it is asked for, and then waits for each piece's beginning. */
AVX2 static inline __attribute__((always_inline)) void
step(struct pass *pass, struct accumulators *sums, const char *key, bool is_around)
{
    _mm_prefetch(pass->ahead, _MM_HINT_T0); /* of what is not mapped it does nothing */
    pass->ahead = pass->ahead == pass->turn ? pass->next : pass->ahead + STRIPE;
    take_stripe(sums, pass->data, key);
    pass->data += STRIPE;
    if (!pass->lines)
        return;
    put(pass->to, load(pass->from), is_around);
    put(pass->to + 32, load(pass->from + 32), is_around);
    pass->from += STRIPE;
    pass->to += STRIPE;
    pass->lines--;
}

AVX2 static inline __attribute__((always_inline)) void
copy_sum(uint8_t out[WEIR_SUM_BYTES], const struct weir_copy *copy, bool is_around)
{
    const char *key = (const char *)secret, *data = copy->data, *from = data + copy->begin;
    struct accumulators sums = {
        _mm256_set_epi64x((long long)primes64[2], (long long)primes64[1], (long long)primes64[0],
                          (long long)primes32[2]),
        _mm256_set_epi64x((long long)primes32[0], (long long)primes64[4], (long long)primes32[1],
                          (long long)primes64[3]),
    };
    const char *next = copy->next ? copy->next : data;
    char *to = copy->to;
    size_t head = -(uintptr_t)to % STRIPE, stripes = (copy->size - 1) / STRIPE;
    size_t rest = (copy->count - head) % STRIPE;
    struct pass pass = {.data = data,
                        .from = from + head,
                        .ahead = stripes >= AHEAD / STRIPE ? data + AHEAD : next,
                        .turn = data + stripes * STRIPE,
                        .next = next,
                        .to = to + head,
                        .lines = (copy->count - head) / STRIPE};
    memcpy(to, from, head);
    for (; stripes >= STRIPES; stripes -= STRIPES) {
#pragma GCC unroll 16
        for (int i = 0; i < STRIPES; i++)
            step(&pass, &sums, key + i * KEY_STEP, is_around);
        end_block(&sums);
    }
    for (size_t i = 0; i < stripes; i++)
        step(&pass, &sums, key + i * KEY_STEP, is_around);
    pass.data = data + copy->size - STRIPE;
    step(&pass, &sums, key + KEY_LAST, is_around);
    if (is_around)
        _mm_sfence();
    memcpy(pass.to, pass.from, rest);
    finish(out, &sums, copy->size);
}

AVX2 static void copy_sum_around(uint8_t out[WEIR_SUM_BYTES], const struct weir_copy *copy)
{
    copy_sum(out, copy, true);
}

AVX2 static void copy_sum_near(uint8_t out[WEIR_SUM_BYTES], const struct weir_copy *copy)
{
    copy_sum(out, copy, false);
}
#endif

void weir_copy_sum(uint8_t sum[WEIR_SUM_BYTES], const struct weir_copy *copy)
{
    const char *from = (const char *)copy->data + copy->begin;
    assert(copy->begin <= copy->size && copy->count <= copy->size - copy->begin);
#if defined(__x86_64__)
    if (copy->count >= SIZE_MIN && __builtin_cpu_supports("avx2")) {
        if (copy->is_around)
            copy_sum_around(sum, copy);
        else
            copy_sum_near(sum, copy);
        return;
    }
#endif
    if (copy->is_around)
        weir_copy_around(copy->to, from, copy->count);
    else if (copy->count)
        memcpy(copy->to, from, copy->count);
    weir_sum(sum, copy->data, copy->size);
}
