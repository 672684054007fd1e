/* found.c - see found.h. While a shard is scanned its numbers take 8 bytes each; when its last
 * sample is known they are written as an index has them.
 */
#include "data/found.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/codec.h"
#include "util/bytes.h"
#include "util/err.h"

enum { PROGRESS_BYTES = 1 << 20 }; /* told of at once */

struct scan {
    const struct weir_finder *finder;
    const struct weir_shard_plan *plan;
    struct weir_found *found;
    struct weir_growing numbers; /* u64 */
    uint64_t end, told;
};

/* ---- numbers ---- */

static int add_number(struct weir_growing *numbers, uint64_t number)
{
    return weir_growing_add(numbers, &number, sizeof number);
}

/* From ends to ranges: something lies between two samples. */
static int make_ranges(struct scan *scan)
{
    struct weir_growing ranges = {0};
    const uint64_t *ends = (const uint64_t *)(const void *)scan->numbers.data;
    int code = 0;
    for (uint64_t i = 0; !code && i < scan->found->shard.samples; i++) {
        code = add_number(&ranges, ends[i]);
        if (!code)
            code = add_number(&ranges, ends[i + 1] - ends[i]);
    }
    weir_growing_free(&scan->numbers);
    scan->numbers = ranges;
    scan->found->shard.kind = WEIR_ENTRIES_RANGES;
    return code;
}

/* In as few bytes as they fit into; frees them. */
static int encode(struct weir_growing *out, struct weir_growing *numbers, uint32_t *width)
{
    const uint64_t *number = (const uint64_t *)(const void *)numbers->data;
    size_t count = numbers->size / sizeof *number;
    *width = 4;
    for (size_t i = 0; i < count; i++)
        if (number[i] > UINT32_MAX)
            *width = 8;
    int code = weir_growing_room(out, count * *width);
    for (size_t i = 0; !code && i < count; i++, out->size += *width)
        weir_store_le(out->data + out->size, number[i], *width);
    weir_growing_free(numbers);
    return code;
}

/* ---- scanning ---- */

static int tell(struct scan *scan, uint64_t more)
{
    scan->told += more;
    if (more && scan->finder->progress && scan->finder->progress(scan->finder->arg, more))
        return weir_fail(ECANCELED, "stopped");
    return 0;
}

static int add_sample(void *arg, uint64_t off, uint64_t size)
{
    struct scan *scan = arg;
    struct weir_shard *shard = &scan->found->shard;
    uint64_t end;
    int code = 0;
    if (off < scan->end || __builtin_add_overflow(off, size, &end))
        return weir_fail(EBADMSG, "sample %" PRIu64 " begins before the last one ends",
                         shard->samples);
    if (shard->kind == WEIR_ENTRIES_ENDS && shard->samples && off != scan->end)
        code = make_ranges(scan);
    if (!code && (shard->kind == WEIR_ENTRIES_RANGES || !shard->samples))
        code = add_number(&scan->numbers, off);
    if (!code)
        code = add_number(&scan->numbers, shard->kind == WEIR_ENTRIES_RANGES ? size : end);
    shard->samples++;
    scan->end = end;
    bool is_plain = !*scan->plan->codec && end <= scan->plan->file_bytes;
    if (!code && is_plain && end - scan->told >= PROGRESS_BYTES)
        code = tell(scan, end - scan->told);
    return code;
}

static int add_mark(void *arg, uint64_t off)
{
    struct scan *scan = arg;
    if (off < scan->end)
        return weir_fail(EBADMSG, "documents that are not in order");
    scan->end = off;
    return add_number(&scan->numbers, off);
}

static uint64_t raw_bytes_max(const struct weir_shard_plan *plan)
{
    if (!*plan->codec)
        return plan->file_bytes;
    return plan->raw_bytes != UINT64_MAX ? plan->raw_bytes
                                         : weir_codec_raw_bytes_max(plan->file_bytes);
}

static int scan_samples(struct scan *scan)
{
    char key[2 * WEIR_KEY_BYTES_MAX];
    const struct weir_shard_plan *plan = scan->plan;
    const struct weir_finder *finder = scan->finder;
    struct weir_shard *shard = &scan->found->shard;
    struct weir_flow *flow;
    shard->kind = WEIR_ENTRIES_ENDS;
    shard->samples = 0;
    snprintf(key, sizeof key, "%s%s", finder->prefix, plan->key);
    uint64_t most = *plan->codec ? weir_codec_raw_bytes_max(plan->file_bytes) : UINT64_MAX;
    if (plan->raw_bytes != UINT64_MAX && plan->raw_bytes > most)
        return weir_fail(EFBIG,
                         "%" PRIu64 " bytes are said to decompress to %" PRIu64
                         ": a damaged or hostile file",
                         plan->file_bytes, plan->raw_bytes);
    int code = weir_flow_open(&flow, finder->store, key, plan->codec, raw_bytes_max(plan));
    if (code)
        return code;
    code = finder->format->scan(flow, plan, finder->schema, add_sample, scan);
    weir_flow_close(flow);
    if (!code && plan->samples != UINT64_MAX && shard->samples != plan->samples)
        code = weir_fail(EBADMSG, "it has %" PRIu64 " samples, not the %" PRIu64 " it should have",
                         shard->samples, plan->samples);
    if (!code && !shard->samples) /* ends have one number more than samples */
        code = add_number(&scan->numbers, 0);
    if (!code)
        code = encode(&scan->found->entries, &scan->numbers, &shard->width);
    shard->entries_bytes = scan->found->entries.size;
    if (shard->raw_bytes == UINT64_MAX)
        shard->raw_bytes = *plan->codec ? scan->end : plan->file_bytes;
    return code;
}

static int scan_marks(struct scan *scan)
{
    char key[2 * WEIR_KEY_BYTES_MAX];
    const struct weir_finder *finder = scan->finder;
    struct weir_shard *shard = &scan->found->shard;
    snprintf(key, sizeof key, "%s%s", finder->prefix, scan->plan->marks_key);
    scan->end = 0;
    int code = finder->format->marks(finder->store, key, scan->plan, add_mark, scan);
    if (!code)
        code = encode(&scan->found->marks, &scan->numbers, &shard->mark_width);
    shard->marks = shard->mark_width ? scan->found->marks.size / shard->mark_width : 0;
    return code;
}

int weir_found_scan(struct weir_found *out, const struct weir_finder *finder,
                    const struct weir_shard_plan *plan)
{
    struct weir_found found = {
        .shard = {
            .key = plan->key,
            .codec = plan->codec,
            .file_bytes = plan->file_bytes,
            .time_ns = plan->time_ns,
            .marks_stamp = plan->marks_stamp,
            .raw_bytes = plan->raw_bytes,
            .samples = plan->samples,
            .first_bytes = plan->first_bytes,
            .each_bytes = plan->each_bytes,
            .step_bytes = plan->step_bytes ? plan->step_bytes : plan->each_bytes,
        }};
    struct scan scan = {.finder = finder, .plan = plan, .found = &found};
    int code = plan->each_bytes ? 0 : scan_samples(&scan);
    if (!code && plan->marks_key)
        code = scan_marks(&scan);
    if (!code && found.shard.raw_bytes == UINT64_MAX)
        found.shard.raw_bytes = plan->file_bytes;
    if (!code && plan->file_bytes > scan.told)
        code = tell(&scan, plan->file_bytes - scan.told);
    weir_growing_free(&scan.numbers);
    if (code) {
        weir_found_free(&found);
        return code == -ECANCELED ? code
                                  : weir_fail_in(code, "shard '%s%s'", finder->prefix, plan->key);
    }
    *out = found;
    return 0;
}

/* ---- files ---- */

static int add_record(struct weir_growing *records, const struct weir_shard_plan *plan)
{
    uint8_t head[WEIR_SHARD_RECORD_BYTES];
    weir_store_le(head, plan->file_bytes, 8);
    weir_store_le(head + 8, (uint64_t)plan->time_ns, 8);
    int code = weir_growing_add(records, head, sizeof head);
    return code ? code : weir_growing_add(records, plan->key, strlen(plan->key) + 1);
}

int weir_found_files(struct weir_found *out, const struct weir_shard_plan *const *plans,
                     size_t count)
{
    struct weir_found found = {
        .shard = {.key = plans[0]->key, .codec = "", .samples = count, .kind = WEIR_ENTRIES_FILES}};
    struct weir_growing numbers = {0}, records = {0};
    uint64_t time_ns = 0;
    int code = add_number(&numbers, 0);
    for (size_t i = 0; !code && i < count; i++) {
        code = add_record(&records, plans[i]);
        if (!code)
            code = add_number(&numbers, records.size);
        found.shard.file_bytes += plans[i]->file_bytes;
        time_ns += (uint64_t)plans[i]->time_ns;
    }
    found.shard.raw_bytes = found.shard.file_bytes;
    found.shard.time_ns = (int64_t)time_ns;
    if (!code)
        code = encode(&found.entries, &numbers, &found.shard.width);
    if (!code)
        code = weir_growing_add(&found.entries, records.data, records.size);
    found.shard.entries_bytes = found.entries.size;
    weir_growing_free(&numbers);
    weir_growing_free(&records);
    if (code)
        weir_found_free(&found);
    else
        *out = found;
    return code;
}

void weir_found_free(struct weir_found *found)
{
    weir_growing_free(&found->entries);
    weir_growing_free(&found->marks);
}
