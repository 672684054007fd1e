/* Tables. A first byte that is odd makes the list of beginnings right: rows are read as they stand,
 * from the first on, and the list and the end are made from that. A table that passes its check can
 * be walked, and its rows are in order.
 */
#include "store/table.h"
#include "target.h"
#include "util/bytes.h"

enum { HEAD_BYTES = 16, TAIL_BYTES = 24, ROW_HEAD_BYTES = 8, ROWS_MAX = 64 };

static uint64_t round_up8(uint64_t size)
{
    return (size + 7) & ~(uint64_t)7;
}

/* The bytes with a list and an end that fit; *size grows. The caller frees both. */
static uint8_t *relisted(const uint8_t *bytes, size_t *size)
{
    uint64_t starts[ROWS_MAX], at = HEAD_BYTES, count = 0;
    while (count < ROWS_MAX && *size >= at && *size - at >= ROW_HEAD_BYTES) {
        uint64_t row = round_up8(weir_load_le(bytes + at, 4) + weir_load_le(bytes + at + 4, 4));
        if (row > *size - at - ROW_HEAD_BYTES)
            break;
        starts[count++] = at;
        at += ROW_HEAD_BYTES + row;
    }
    if (*size < at)
        return exact_copy(bytes, *size);
    uint8_t *whole = calloc(1, at + 8 * count + TAIL_BYTES);
    PROMISE(whole);
    memcpy(whole, bytes, at);
    for (uint64_t i = 0; i < count; i++)
        weir_store_le(whole + at + 8 * i, starts[i], 8);
    uint8_t *tail = whole + at + 8 * count;
    weir_store_le(tail, count, 8);
    weir_store_le(tail + 8, at, 8);
    memcpy(tail + 16, "WEIRTEND", 8);
    *size = at + 8 * count + TAIL_BYTES;
    return whole;
}

/* What the check has let pass. */
static void walk(const uint8_t *bytes, size_t size)
{
    uint64_t count = weir_load_le(bytes + size - TAIL_BYTES, 8);
    uint64_t starts = weir_load_le(bytes + size - TAIL_BYTES + 8, 8);
    const uint8_t *last = NULL;
    size_t last_size = 0;
    PROMISE(starts + 8 * count + TAIL_BYTES == size);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = weir_load_le(bytes + starts + 8 * i, 8);
        PROMISE(at >= HEAD_BYTES && at <= starts - ROW_HEAD_BYTES && at % 8 == 0);
        size_t key_size = (size_t)weir_load_le(bytes + at, 4);
        size_t value_size = (size_t)weir_load_le(bytes + at + 4, 4);
        const uint8_t *key = bytes + at + ROW_HEAD_BYTES;
        PROMISE(key_size && key_size <= WEIR_TABLE_KEY_BYTES_MAX);
        PROMISE(key + key_size + value_size <= bytes + starts);
        size_t least = key_size < last_size ? key_size : last_size;
        int order = last ? memcmp(last, key, least) : -1;
        PROMISE(order < 0 || (order == 0 && last_size < key_size));
        last = key;
        last_size = key_size;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    uint8_t how = *data++;
    size--;
    uint8_t *bytes = how & 1 ? relisted(data, &size) : exact_copy(data, size);
    if (weir_table_check(bytes, size) == 0)
        walk(bytes, size);
    free(bytes);
    return 0;
}
