/* datasets.h - small datasets for tests: token files in the layouts of nanoGPT, llm.c and Megatron,
 * and opening them with a cache of the test's own. Failures end the program.
 */
#ifndef WEIR_TESTS_DATASETS_H
#define WEIR_TESTS_DATASETS_H

#include "stores.h"
#include "util/bytes.h"

/* Tokens first, first + 1, …, of `width` bytes. */
static inline void tokens_fill(uint8_t *out, uint64_t first, uint64_t count, unsigned width)
{
    for (uint64_t i = 0; i < count; i++)
        weir_store_le(out + i * width, first + i, width);
}

/* A bare file of them. */
static inline void tokens_bare(const char *path, uint64_t first, uint64_t count, unsigned width)
{
    uint8_t *data = malloc(count * width + 1);
    CHECK(data);
    tokens_fill(data, first, count, width);
    file_write(path, data, count * width);
    free(data);
}

/* The layout of llm.c; `counted` is what its head says. */
static inline void tokens_llmc(const char *path, uint64_t first, uint64_t count, unsigned width,
                               uint32_t counted)
{
    uint8_t *data = calloc(1, 1024 + count * width);
    CHECK(data);
    weir_store_le(data, width == 2 ? 20240520 : 20240801, 4);
    weir_store_le(data + 4, width == 2 ? 1 : 7, 4);
    weir_store_le(data + 8, counted, 4);
    tokens_fill(data + 1024, first, count, width);
    file_write(path, data, 1024 + count * width);
    free(data);
}

/* NAME.bin of u16 tokens 0, 1, … and NAME.idx: documents of those lengths, each one sequence. */
static inline void tokens_megatron(const char *dir, const char *name, const uint32_t *lengths,
                                   uint32_t count)
{
    char path[PATH_MAX];
    size_t size = 34 + (size_t)count * 12 + (count + 1) * 8;
    uint8_t *idx = calloc(1, size);
    CHECK(idx);
    memcpy(idx, "MMIDIDX\0\0", 9);
    weir_store_le(idx + 9, 1, 8);
    idx[17] = 8;
    weir_store_le(idx + 18, count, 8);
    weir_store_le(idx + 26, count + 1, 8);
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < count; i++) {
        weir_store_le(idx + 34 + 4 * (size_t)i, lengths[i], 4);
        weir_store_le(idx + 34 + 4 * (size_t)count + 8 * (size_t)i, 2 * tokens, 8);
        tokens += lengths[i];
    }
    for (uint32_t i = 0; i <= count; i++)
        weir_store_le(idx + 34 + 12 * (size_t)count + 8 * (size_t)i, i, 8);
    snprintf(path, sizeof path, "%s/%s.idx", dir, name);
    file_write(path, idx, size);
    free(idx);
    snprintf(path, sizeof path, "%s/%s.bin", dir, name);
    tokens_bare(path, 0, tokens, 2);
}

/* A fresh directory. */
static inline const char *dataset_dir(void)
{
    const char *path = tmp_path("data");
    CHECK(mkdir(path, 0777) == 0);
    return path;
}

/* The cache that all of the program's datasets share. */
static inline const char *data_cache(void)
{
    static char path[PATH_MAX];
    if (!*path)
        snprintf(path, sizeof path, "%s", tmp_path("cache"));
    return path;
}

static inline int data_try(weir_data **out, const char *url, const char *options, uint32_t flags)
{
    weir_data_options opts;
    weir_data_options_init(&opts);
    opts.options = options;
    opts.flags = flags;
    opts.cache = data_cache();
    return weir_data_open(out, url, &opts);
}

static inline weir_data *data_at(const char *url, const char *options, uint32_t flags)
{
    weir_data *data = NULL;
    OK(data_try(&data, url, options, flags));
    return data;
}

static inline const weir_field *field_of(weir_data_sample *sample, const char *name)
{
    const weir_field *fields;
    uint32_t count;
    OK(weir_data_sample_fields(sample, &fields, &count));
    for (uint32_t i = 0; i < count; i++)
        if (fields[i].name_size == strlen(name) &&
            !memcmp(fields[i].name, name, fields[i].name_size))
            return &fields[i];
    return NULL;
}

#endif
