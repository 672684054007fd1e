/* shard.c - see shard.h. */
#include "data/shard.h"

#include <string.h>

#include "data/codec.h"
#include "data/index.h"
#include "util/bytes.h"
#include "util/min.h"

void weir_shard_encode(uint8_t out[WEIR_SHARD_ROW_BYTES], const struct weir_shard *s,
                       uint64_t key_at, uint64_t codec_at)
{
    memset(out, 0, WEIR_SHARD_ROW_BYTES);
    weir_store_le(out, key_at, 8);
    weir_store_le(out + 8, codec_at, 8);
    weir_store_le(out + 16, s->file_bytes, 8);
    weir_store_le(out + 24, (uint64_t)s->time_ns, 8);
    weir_store_le(out + 32, s->raw_bytes, 8);
    weir_store_le(out + 40, s->first, 8);
    weir_store_le(out + 48, s->samples, 8);
    weir_store_le(out + 56, s->entries_at, 8);
    weir_store_le(out + 64, s->entries_bytes, 8);
    weir_store_le(out + 72, s->marks_at, 8);
    weir_store_le(out + 80, s->marks, 8);
    out[88] = (uint8_t)s->kind;
    out[89] = (uint8_t)s->width;
    out[90] = (uint8_t)s->mark_width;
    weir_store_le(out + 96, s->first_bytes, 8);
    weir_store_le(out + 104, s->each_bytes, 8);
    weir_store_le(out + 112, s->step_bytes, 8);
    weir_store_le(out + 120, s->marks_stamp, 8);
    weir_store_le(out + 92, s->sum, 4);
}

/* How many numbers there are; false if that overflows. */
static bool count_numbers(const struct weir_shard *s, uint64_t *out)
{
    switch (s->kind) {
    case WEIR_ENTRIES_NONE:
        *out = 0;
        return true;
    case WEIR_ENTRIES_RANGES:
        return !__builtin_mul_overflow(s->samples, 2, out);
    default:
        return !__builtin_add_overflow(s->samples, 1, out);
    }
}

uint64_t weir_shard_numbers_bytes(const struct weir_shard *s)
{
    uint64_t numbers = 0;
    count_numbers(s, &numbers);
    return numbers * s->width;
}

static bool is_within(uint64_t at, uint64_t size, uint64_t begin, uint64_t end)
{
    return at >= begin && at <= end && size <= end - at;
}

/* No file that can be read is larger; where there are several, there are that many. */
static const char *sizes_fault(const struct weir_shard *s)
{
    uint64_t most = WEIR_OBJECT_BYTES_MAX;
    if (s->kind == WEIR_ENTRIES_FILES)
        most *= WEIR_INDEX_FILES;
    if (s->file_bytes > most || s->raw_bytes > most)
        return "it is larger than a file can be (2 TiB)";
    if (!s->codec[0] && s->raw_bytes > s->file_bytes)
        return "it has more bytes than its file";
    if (s->codec[0] && s->raw_bytes > weir_codec_raw_bytes_max(s->file_bytes))
        return "it has more bytes than its file can become";
    return NULL;
}

static const char *entries_fault(const struct weir_shard *s, uint64_t begin, uint64_t end)
{
    uint64_t numbers, bytes;
    if (s->kind > WEIR_ENTRIES_FILES)
        return "its entries are of no known kind";
    if (s->kind == WEIR_ENTRIES_NONE ? s->width != 0 : s->width != 4 && s->width != 8)
        return "its entries are of an impossible width";
    if (!count_numbers(s, &numbers) || __builtin_mul_overflow(numbers, s->width, &bytes))
        return "it has an impossible number of samples";
    if (s->kind == WEIR_ENTRIES_FILES ? s->entries_bytes < bytes : s->entries_bytes != bytes)
        return "its entries have another length";
    if (!is_within(s->entries_at, s->entries_bytes, begin, end) || s->entries_at % 8)
        return "its entries lie outside of the index";
    return NULL;
}

/* Samples of one size lie within the shard, with which the last may end early. */
static const char *each_fault(const struct weir_shard *s)
{
    uint64_t last;
    if (s->kind != WEIR_ENTRIES_NONE || !s->samples)
        return NULL;
    if (!s->each_bytes || (!s->step_bytes && s->samples > 1) ||
        __builtin_mul_overflow(s->samples - 1, s->step_bytes, &last) ||
        __builtin_add_overflow(last, s->first_bytes, &last) || last >= s->raw_bytes ||
        (s->samples > 1 && s->each_bytes > s->raw_bytes - (last - s->step_bytes)))
        return "its samples lie outside of it";
    return NULL;
}

/* Of one of samples of one size, which begins there. */
static uint64_t each_bytes(const struct weir_shard *s, uint64_t off)
{
    return weir_min(s->each_bytes, s->raw_bytes - off);
}

static const char *marks_fault(const struct weir_shard *s, uint64_t begin, uint64_t end)
{
    uint64_t bytes;
    if (s->marks && s->mark_width != 4 && s->mark_width != 8)
        return "its marks are of an impossible width";
    if (__builtin_mul_overflow(s->marks, s->mark_width, &bytes) ||
        !is_within(s->marks_at, bytes, begin, end) || s->marks_at % 8)
        return "its marks lie outside of the index";
    return NULL;
}

void weir_shard_read(struct weir_shard *out, const uint8_t row[WEIR_SHARD_ROW_BYTES],
                     const struct weir_strings *strings)
{
    *out = (struct weir_shard){
        .key = strings->text + weir_load_le(row, 8),
        .codec = strings->text + weir_load_le(row + 8, 8),
        .file_bytes = weir_load_le(row + 16, 8),
        .time_ns = (int64_t)weir_load_le(row + 24, 8),
        .raw_bytes = weir_load_le(row + 32, 8),
        .first = weir_load_le(row + 40, 8),
        .samples = weir_load_le(row + 48, 8),
        .entries_at = weir_load_le(row + 56, 8),
        .entries_bytes = weir_load_le(row + 64, 8),
        .marks_at = weir_load_le(row + 72, 8),
        .marks = weir_load_le(row + 80, 8),
        .kind = row[88],
        .width = row[89],
        .mark_width = row[90],
        .first_bytes = weir_load_le(row + 96, 8),
        .each_bytes = weir_load_le(row + 104, 8),
        .step_bytes = weir_load_le(row + 112, 8),
        .marks_stamp = weir_load_le(row + 120, 8),
        .sum = (uint32_t)weir_load_le(row + 92, 4),
    };
}

const char *weir_shard_decode(struct weir_shard *out, const uint8_t row[WEIR_SHARD_ROW_BYTES],
                              const struct weir_strings *strings, uint64_t begin, uint64_t end)
{
    if (weir_load_le(row, 8) >= strings->size || weir_load_le(row + 8, 8) >= strings->size)
        return "its name lies outside of the index";
    weir_shard_read(out, row, strings);
    const char *fault = sizes_fault(out);
    if (!fault)
        fault = entries_fault(out, begin, end);
    if (!fault)
        fault = each_fault(out);
    return fault ? fault : marks_fault(out, begin, end);
}

/* ---- entries ---- */

void weir_shard_entry(const struct weir_shard *s, uint64_t i, uint64_t *off, uint64_t *size)
{
    uint64_t width = s->kind == WEIR_ENTRIES_NONE ? 0 : s->width;
    *off = s->kind == WEIR_ENTRIES_RANGES ? 2 * i * width : i * width;
    *size = 2 * width;
}

const char *weir_shard_locate(const struct weir_shard *s, const uint8_t *entries, uint64_t i,
                              uint64_t *off, uint64_t *size)
{
    if (s->kind == WEIR_ENTRIES_NONE) {
        *off = s->first_bytes + i * s->step_bytes;
        *size = each_bytes(s, *off);
        return NULL;
    }
    uint64_t at, room;
    weir_shard_entry(s, i, &at, &room);
    uint64_t a = weir_load_le(entries + at, s->width);
    uint64_t b = weir_load_le(entries + at + s->width, s->width);
    if (s->kind == WEIR_ENTRIES_RANGES) {
        *off = a;
        *size = b;
        return a > s->raw_bytes || b > s->raw_bytes - a ? "a sample lies outside of it" : NULL;
    }
    uint64_t limit = s->raw_bytes;
    if (s->kind == WEIR_ENTRIES_FILES) {
        uint64_t numbers = weir_shard_numbers_bytes(s);
        limit = s->entries_bytes - numbers;
        *off = numbers + a;
    } else {
        *off = a;
    }
    *size = b - a;
    return a > b || b > limit ? "a sample lies outside of it" : NULL;
}

const char *weir_file_record_decode(struct weir_file_record *out, const uint8_t *record,
                                    uint64_t size)
{
    if (size <= WEIR_SHARD_RECORD_BYTES || size > WEIR_SHARD_RECORD_BYTES_MAX)
        return "the record of a file has an impossible length";
    const char *key = (const char *)record + WEIR_SHARD_RECORD_BYTES;
    size_t room = size - WEIR_SHARD_RECORD_BYTES;
    if (strnlen(key, room) != room - 1)
        return "the name of a file does not end where its record ends";
    *out = (struct weir_file_record){
        .key = key,
        .size_bytes = weir_load_le(record, 8),
        .time_ns = (int64_t)weir_load_le(record + 8, 8),
    };
    return out->size_bytes > WEIR_OBJECT_BYTES_MAX ? "a file is larger than one can be (2 TiB)"
                                                   : NULL;
}

uint32_t weir_shard_sum(const struct weir_shard *s, const uint8_t *entries, const uint8_t *marks)
{
    uint8_t sums[2 * WEIR_SUM_BYTES], sum[WEIR_SUM_BYTES];
    weir_sum(sums, entries, s->entries_bytes);
    weir_sum(sums + WEIR_SUM_BYTES, marks, s->marks * s->mark_width);
    weir_sum(sum, sums, sizeof sums);
    return (uint32_t)weir_load_le(sum, 4);
}

/* Of sample i, whose entries are looked at. */
static const char *measure_one(const struct weir_shard *s, const uint8_t *entries, uint64_t i,
                               uint64_t *size)
{
    struct weir_file_record file;
    uint64_t off;
    const char *fault = weir_shard_locate(s, entries, i, &off, size);
    if (fault || s->kind != WEIR_ENTRIES_FILES)
        return fault;
    fault = weir_file_record_decode(&file, entries + off, *size);
    *size = fault ? 0 : file.size_bytes;
    return fault;
}

static const char *measure_each(const struct weir_shard *s, uint64_t *bytes, uint64_t *bytes_max)
{
    if (!s->samples)
        return NULL;
    uint64_t last = each_bytes(s, s->first_bytes + (s->samples - 1) * s->step_bytes);
    *bytes_max = s->samples > 1 ? s->each_bytes : last;
    bool is_many = __builtin_mul_overflow(s->samples - 1, s->each_bytes, bytes) ||
                   __builtin_add_overflow(*bytes, last, bytes);
    return is_many ? "its samples are too many" : NULL;
}

const char *weir_shard_measure(const struct weir_shard *s, const uint8_t *entries, uint64_t *bytes,
                               uint64_t *bytes_max)
{
    const char *fault = sizes_fault(s);
    *bytes = *bytes_max = 0;
    if (!fault)
        fault = each_fault(s);
    if (fault)
        return fault;
    if (s->kind == WEIR_ENTRIES_NONE)
        return measure_each(s, bytes, bytes_max);
    for (uint64_t i = 0; i < s->samples; i++) {
        uint64_t size;
        fault = measure_one(s, entries, i, &size);
        if (fault)
            return fault;
        if (__builtin_add_overflow(*bytes, size, bytes) || *bytes > s->raw_bytes)
            return "its samples are larger than it is";
        *bytes_max = size > *bytes_max ? size : *bytes_max;
    }
    return NULL;
}
