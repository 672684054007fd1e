/* WebDataset: tar archives. Whatever scan() takes for a sample can be taken apart; the bytes as a
 * sample, too, are read without harm. Checksums are put right first: a fuzzer would not find them.
 */
#include "shards.h"

static void put_sums_right(uint8_t *data, size_t size)
{
    for (size_t at = 0; at + 512 <= size; at += 512) {
        unsigned sum = 0;
        if (memcmp(data + at + 257, "ustar", 5))
            continue;
        memset(data + at + 148, ' ', 8);
        for (int i = 0; i < 512; i++)
            sum += data[at + i];
        for (int i = 0; i < 6; i++)
            data[at + 148 + i] = (uint8_t)('0' + (sum >> (3 * (5 - i)) & 7));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = exact_copy(data, size);
    walk_shard(&weir_format_wds, copy, size, true);
    put_sums_right(copy, size);
    walk_shard(&weir_format_wds, copy, size, true);
    check_sample(&weir_format_wds, copy, size, false);
    free(copy);
    return 0;
}
