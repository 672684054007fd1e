/* dataset.h - what the commands that read a dataset share: the options that say how it is to be
 * read, and opening it, with the progress bar while an index is made.
 */
#ifndef WEIR_CLI_DATASET_H
#define WEIR_CLI_DATASET_H

#include "cli/cli.h"

/* Of a source that is to be what its owner signed. */
struct signed_opts {
    const char *key, *manifest;
};

struct dataset_opts {
    const char *format, *cache;
    struct signed_opts is_signed;
    struct weir_texts options;
    uint64_t jobs;
    uint64_t memory; /* for a sample that is decompressed; 0: as much as usual */
};

/* Opens what a person named. flags: WEIR_DATA_… */
int dataset_open(struct cli *cli, weir_data **out, const char *url, const struct dataset_opts *opts,
                 uint32_t flags);

/* Fills in what the key means; *pem is to be freed when the dataset was opened. */
int dataset_signed(weir_data_options *open, char **pem, const struct signed_opts *opts);

/* "bytes", "text", "json", "array", "none" */
const char *dataset_kind_name(weir_field_kind kind);
/* "<u2 [1025]", "text": what a field is. */
const char *dataset_type(char *out, size_t size, const weir_field *field);
/* "image.jpg": the field's name, which may hold anything; owned by the caller. */
char *dataset_field_name(const weir_field *field);
/* A number that people wrote: which sample. A usage error if it is something else. */
int dataset_number(struct cli *cli, uint64_t *out, const char *text);

/* The options of every command that reads what may be signed; `at` is where its struct signed_opts
 * is. */
#define SIGNED_OPTIONS(at)                                                                         \
    {"key",                                                                                        \
     'k',                                                                                          \
     WEIR_OPT_TEXT,                                                                                \
     (at) + offsetof(struct signed_opts, key),                                                     \
     NULL,                                                                                         \
     "FILE",                                                                                       \
     "a public key, in PEM: read nothing but what its owner has signed",                           \
     0,                                                                                            \
     0},                                                                                           \
    {                                                                                              \
        "manifest", 0, WEIR_OPT_TEXT, (at) + offsetof(struct signed_opts, manifest), NULL, "DIR",  \
            "with --key: where the manifest is, if it is not in the dataset", 0, 0                 \
    }

/* An option of those that read samples by their number. */
#define DATASET_OPT_MEMORY(at)                                                                     \
    {                                                                                              \
        "memory", 0, WEIR_OPT_SIZE, (at) + offsetof(struct dataset_opts, memory), "512M", "SIZE",  \
            "for a sample that is decompressed; one that takes more is refused", 1, 0              \
    }

/* The options of every command that opens a dataset; `at` is where its struct dataset_opts is. */
#define DATASET_OPTIONS(at)                                                                        \
    {"format",                                                                                     \
     0,                                                                                            \
     WEIR_OPT_TEXT,                                                                                \
     (at) + offsetof(struct dataset_opts, format),                                                 \
     NULL,                                                                                         \
     "NAME",                                                                                       \
     "what it is: mds, wds, tfrecord, jsonl, files, tokens, litdata; as it looks",                 \
     0,                                                                                            \
     0},                                                                                           \
        {"option",                                                                                 \
         'O',                                                                                      \
         WEIR_OPT_TEXTS,                                                                           \
         (at) + offsetof(struct dataset_opts, options),                                            \
         NULL,                                                                                     \
         "NAME=VALUE",                                                                             \
         "an option of the format (tokens: seq_len, dtype, eot); may be repeated",                 \
         0,                                                                                        \
         0},                                                                                       \
        SIGNED_OPTIONS((at) + offsetof(struct dataset_opts, is_signed)),                           \
    {                                                                                              \
        "cache", 0, WEIR_OPT_TEXT, (at) + offsetof(struct dataset_opts, cache), NULL, "URL",       \
            "the store for indexes; $WEIR_CACHE, $XDG_CACHE_HOME/weir or ~/.cache/weir", 0, 0      \
    }

#endif
