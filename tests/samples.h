/* samples.h - what every test of a dataset format does: a shard in memory is scanned, each sample
 * is taken apart in a block of exactly its size, and everything is written as one text.
 */
#ifndef WEIR_TESTS_SAMPLES_H
#define WEIR_TESTS_SAMPLES_H

#include <inttypes.h>
#include <stdarg.h>

#include "data/format.h"
#include "test.h"
#include "util/bytes.h"

struct samples {
    const struct weir_format *format;
    const uint8_t *shard;
    const char *file;
    uint32_t count;
    int code; /* the first failure of fields() */
    char text[1 << 16];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static inline void samples_say(struct samples *samples,
                                                                     const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n =
        vsnprintf(samples->text + samples->used, sizeof samples->text - samples->used, fmt, args);
    va_end(args);
    CHECK(n >= 0 && (size_t)n < sizeof samples->text - samples->used);
    samples->used += (size_t)n;
}

static inline void samples_say_number(struct samples *samples, const char *dtype, const uint8_t *at)
{
    uint64_t word = weir_load_le(at, 8 * (dtype[2] == '8') + 4 * (dtype[2] == '4') +
                                         (dtype[2] == '1') + 2 * (dtype[2] == '2'));
    double f64;
    float f32;
    memcpy(&f64, &word, 8);
    memcpy(&f32, &word, 4);
    if (dtype[1] == 'f' && dtype[2] == '8')
        samples_say(samples, "%g", f64);
    else if (dtype[1] == 'f' && dtype[2] == '4')
        samples_say(samples, "%g", (double)f32);
    else
        samples_say(samples, "%" PRId64, (int64_t)word);
}

/* name=b:bytes, t:text, j:json, 0, or <i8[2]:1,2 */
static inline void samples_say_field(struct samples *samples, const struct weir_field *field)
{
    samples_say(samples, "%.*s=", (int)field->name_size, field->name);
    if (field->kind == WEIR_FIELD_NONE) {
        samples_say(samples, "0");
        return;
    }
    if (field->kind != WEIR_FIELD_ARRAY) {
        samples_say(samples, "%c:%.*s", "btj"[field->kind], (int)field -> size,
                    (const char *)field -> data);
        return;
    }
    size_t bytes = (size_t)(field->dtype[2] - '0'), count = 1;
    samples_say(samples, "%s[", field->dtype);
    for (uint32_t i = 0; i < field->ndim; i++) {
        samples_say(samples, "%s%" PRIu64, i ? "x" : "", field->shape[i]);
        count *= field->shape[i];
    }
    CHECK_EQ(field->size, count * bytes);
    samples_say(samples, "]:");
    for (size_t i = 0; i < count; i++) {
        samples_say(samples, "%s", i ? "," : "");
        samples_say_number(samples, field->dtype, (const uint8_t *)field->data + i * bytes);
    }
}

static inline int samples_take(void *arg, uint64_t off, uint64_t size)
{
    struct samples *samples = arg;
    static struct weir_field fields[WEIR_FIELDS_MAX];
    uint32_t count = WEIR_FIELDS_MAX;
    struct weir_arena *scratch = NULL;
    uint8_t *copy = malloc(size ? size : 1);
    CHECK(copy);
    memcpy(copy, samples->shard + off, size);
    struct weir_sample sample = {copy, size, samples->file, off, {0}};
    int code = samples->format->fields(NULL, &sample, &scratch, fields, &count);
    if (code && !samples->code)
        samples->code = code;
    samples_say(samples, "%s", samples->count++ ? "; " : "");
    for (uint32_t i = 0; !code && i < count; i++) {
        samples_say(samples, "%s", i ? " " : "");
        samples_say_field(samples, &fields[i]);
    }
    weir_arena_free(scratch);
    free(copy);
    return samples->code;
}

/* The code of scan() or fields(); text and count say what came out. */
static inline int samples_scan(struct samples *samples, const struct weir_format *format,
                               const void *shard, size_t size)
{
    struct weir_flow *flow;
    uint8_t *copy = malloc(size ? size : 1);
    CHECK(copy);
    memcpy(copy, shard, size);
    *samples = (struct samples){.format = format, .shard = copy, .file = "shard"};
    struct weir_shard_plan plan = {
        .key = "shard", .codec = "", .file_bytes = size, .raw_bytes = size, .samples = UINT64_MAX};
    OK(weir_flow_open_bytes(&flow, copy, size, "", UINT64_MAX));
    int code = format->scan(flow, &plan, NULL, samples_take, samples);
    weir_flow_close(flow);
    free(copy);
    return code;
}

#define SAMPLES_ARE(format, shard, size, expected)                                                 \
    do {                                                                                           \
        static struct samples samples_;                                                            \
        OK(samples_scan(&samples_, format, shard, size));                                          \
        if (strcmp(samples_.text, expected))                                                       \
            fprintf(stderr, "got:      %s\nexpected: %s\n", samples_.text, expected);              \
        CHECK(!strcmp(samples_.text, expected));                                                   \
    } while (0)

/* It fails with that code, and the text has that in it. */
#define SAMPLES_FAIL(format, shard, size, error, why)                                              \
    do {                                                                                           \
        static struct samples samples_;                                                            \
        CHECK_EQ(samples_scan(&samples_, format, shard, size), -(error));                          \
        CHECK(strstr(weir_fail_last(), why));                                                      \
    } while (0)

#endif
