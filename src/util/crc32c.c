/* crc32c.c - see crc32c.h. */
#include "util/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "util/bytes.h"

enum { POLYNOMIAL_REVERSED = (int)0x82f63b78 };

/* tables[k][b]: what byte b does to the sum when k more bytes follow it. */
static uint32_t tables[8][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? (uint32_t)POLYNOMIAL_REVERSED : 0);
        tables[0][byte] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = tables[k - 1][byte];
            tables[k][byte] = before >> 8 ^ tables[0][before & 0xff];
        }
}

uint32_t weir_crc32c_table(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *at = data;
    pthread_once(&tables_once, make_tables);
    crc = ~crc;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word = weir_load_le(at, 8) ^ crc;
        crc = 0;
        for (int i = 0; i < 8; i++)
            crc ^= tables[7 - i][word >> (8 * i) & 0xff];
    }
    for (; size; at++, size--)
        crc = crc >> 8 ^ tables[0][(crc ^ *at) & 0xff];
    return ~crc;
}

#if defined(__x86_64__)
/* The instruction answers after three cycles and can be begun in each: three sums at once, of
 * pieces that follow each other, are taken together afterwards. */
enum { PIECE = 1024, PIECES = 3 };

/* moved[k][b]: what byte k of a sum has become when a piece of zeros follows, if it is b. */
static uint32_t moved[4][256];
static pthread_once_t moved_once = PTHREAD_ONCE_INIT;

static void make_moved(void)
{
    static const uint8_t zeros[PIECE];
    for (int k = 0; k < 4; k++)
        for (uint32_t byte = 0; byte < 256; byte++)
            moved[k][byte] = ~weir_crc32c_table(~(byte << (8 * k)), zeros, sizeof zeros);
}

static uint64_t move(uint64_t sum)
{
    return moved[0][sum & 0xff] ^ moved[1][sum >> 8 & 0xff] ^ moved[2][sum >> 16 & 0xff] ^
           moved[3][sum >> 24 & 0xff];
}

static uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *at,
                                                                 size_t size)
{
    uint64_t sum = ~crc;
    if (size >= PIECES * PIECE)
        pthread_once(&moved_once, make_moved);
    for (; size >= PIECES * PIECE; at += PIECES * PIECE, size -= PIECES * PIECE) {
        uint64_t second = 0, third = 0;
        for (size_t i = 0; i < PIECE; i += 8) {
            sum = __builtin_ia32_crc32di(sum, word_at(at + i));
            second = __builtin_ia32_crc32di(second, word_at(at + PIECE + i));
            third = __builtin_ia32_crc32di(third, word_at(at + 2 * PIECE + i));
        }
        sum = move(move(sum) ^ second) ^ third;
    }
    for (; size >= 8; at += 8, size -= 8)
        sum = __builtin_ia32_crc32di(sum, word_at(at));
    uint32_t rest = (uint32_t)sum;
    for (; size; at++, size--)
        rest = __builtin_ia32_crc32qi(rest, *at);
    return ~rest;
}

uint32_t weir_crc32c(uint32_t crc, const void *data, size_t size)
{
    if (__builtin_cpu_supports("sse4.2"))
        return by_instruction(crc, data, size);
    return weir_crc32c_table(crc, data, size);
}
#else
uint32_t weir_crc32c(uint32_t crc, const void *data, size_t size)
{
    return weir_crc32c_table(crc, data, size);
}
#endif
