/* shards.h - datasets of every format for tests of what reads them: sample i has "id", the number
 * i, and "text", that says it, of i % 29 more letters. Written by the formats' own writers.
 * Failures end the program.
 */
#ifndef WEIR_TESTS_SHARDS_H
#define WEIR_TESTS_SHARDS_H

#include "data/codec.h"
#include "data/format.h"
#include "datasets.h"
#include "made.h"

struct kind {
    const char *format, *codec, *options;
    const char *layout; /* of token files; NULL: bare ones */
};

static const struct kind kinds[] = {
    {"mds", "", NULL, NULL},
    {"mds", "zstd:3", NULL, NULL},
    {"wds", "", NULL, NULL},
    {"wds", "gz", NULL, NULL},
    {"tfrecord", "", NULL, NULL},
    {"jsonl", "", NULL, NULL},
    {"jsonl", "bz2", NULL, NULL},
    {"files", "", NULL, NULL},
    {"tokens", "", "seq_len=10", "llm.c"},
    {"tokens", "", "seq_len=10", "megatron"},
    {"tokens", "", "seq_len=10", NULL},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static inline void text_of(char out[64], uint64_t i)
{
    snprintf(out, 64, "sample %llu %.*s", (unsigned long long)i, (int)(i % 29),
             "abcdefghijklmnopqrstuvwxyzabcd");
}

/* Samples [first, first + count) as one shard. */
static inline void shard_write(const char *dir, const struct kind *kind, uint32_t number,
                               uint64_t first, uint64_t count, struct weir_written *done,
                               void **writer)
{
    const struct weir_format_writer *way = weir_format_find(kind->format)->writer;
    struct weir_writing how = {.codec = kind->codec};
    struct weir_growing raw = {0}, packed = {0};
    if (!*writer)
        OK(way->open(writer, &how));
    for (uint64_t i = first; i < first + count; i++) {
        char text[64];
        int64_t id = (int64_t)i;
        text_of(text, i);
        struct weir_field fields[] = {made_array("id", "<i8", &id, 0, 0, 0),
                                      made_text("text", text)};
        OK(way->add(*writer, i, NULL, fields, 2));
    }
    OK(made_whole(way, *writer, &raw));
    *done = (struct weir_written){.samples = count, .raw_bytes = raw.size};
    way->name(done->name, number, kind->codec);
    if (kind->codec[0])
        OK(weir_codec_encode(kind->codec, raw.data, raw.size, &packed));
    struct weir_growing *file = kind->codec[0] ? &packed : &raw;
    done->file_bytes = file->size;
    file_write(path_in(dir, done->name), file->data, file->size);
    weir_growing_free(&raw);
    weir_growing_free(&packed);
}

static inline void shards_write(const char *dir, const struct kind *kind, uint32_t shards,
                                uint64_t each)
{
    const struct weir_format_writer *way = weir_format_find(kind->format)->writer;
    struct weir_writing how = {.codec = kind->codec};
    struct weir_written *done = calloc(shards, sizeof *done);
    struct weir_growing index = {0};
    void *writer = NULL;
    for (uint32_t i = 0; i < shards; i++)
        shard_write(dir, kind, i, i * each, each, &done[i], &writer);
    if (way->index) {
        OK(way->index(&how, writer, done, shards, &index));
        file_write(path_in(dir, way->index_name), index.data, index.size);
    }
    way->close(writer);
    weir_growing_free(&index);
    free(done);
}

/* Token files in one of the layouts, of so many samples of 10 tokens each. */
static inline void shards_tokens(const char *dir, const char *layout, uint32_t shards,
                                 uint64_t each)
{
    uint32_t count = (uint32_t)each * 10 + 1;
    for (uint32_t i = 0; i < shards; i++) {
        char name[64];
        uint64_t first = i * each * 10;
        snprintf(name, sizeof name, layout && *layout == 'm' ? "t%03u" : "t%03u.bin", i);
        if (!layout)
            tokens_bare(path_in(dir, name), first, count, 2);
        else if (*layout == 'l')
            tokens_llmc(path_in(dir, name), first, count, 2, count);
        else
            tokens_megatron(dir, name, &count, 1);
    }
}

/* A fresh directory of shards * each samples. */
static inline const char *shards_make(const struct kind *kind, uint32_t shards, uint64_t each)
{
    const char *dir = dataset_dir();
    char name[64], text[64];
    if (!strcmp(kind->format, "tokens"))
        shards_tokens(dir, kind->layout, shards, each);
    else if (!strcmp(kind->format, "files"))
        for (uint64_t i = 0; i < shards * each; i++) {
            snprintf(name, sizeof name, "%06llu.txt", (unsigned long long)i);
            text_of(text, i);
            file_write(path_in(dir, name), text, strlen(text));
        }
    else
        shards_write(dir, kind, shards, each);
    return dir;
}

static inline weir_data *shards_open(const char *dir, const struct kind *kind)
{
    weir_data *data = NULL;
    weir_data_options opts;
    weir_data_options_init(&opts);
    opts.format = kind->format;
    opts.options = kind->options;
    opts.cache = data_cache();
    OK(weir_data_open(&data, dir, &opts));
    return data;
}

/* Of digests: modulo 2^128. */
static inline void add_sum(uint8_t to[16], const uint8_t more[16])
{
    unsigned carry = 0;
    for (int i = 0; i < 16; i++) {
        carry += (unsigned)to[i] + more[i];
        to[i] = (uint8_t)carry;
        carry >>= 8;
    }
}

#endif
