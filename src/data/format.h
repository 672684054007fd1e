/* format.h - what Weir knows of a dataset format: how its shards are found, where the samples of a
 * shard are, what fields a sample has, and how a shard is written. One file for each format, one
 * table entry in format.c; everything else (index, order, reader, pack) knows no format by name.
 *
 * A shard is a file, or what a file becomes when it is decompressed: offsets count raw bytes. A
 * sample is a contiguous range of those that its format can take apart with nothing else but the
 * dataset's schema. Functions are pure or take a flow (flow.h): any thread may call them.
 */
#ifndef WEIR_DATA_FORMAT_H
#define WEIR_DATA_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/flow.h"
#include "util/arena.h"
#include "weir.h"

/* Fields are weir_field of weir.h: name and data are borrowed, from the sample's bytes, the schema
 * or the scratch memory. */

/* ---- finding shards ---- */

/* A shard, as its format describes it before anybody has looked inside. */
struct weir_shard_plan {
    const char *key;     /* below the dataset's prefix */
    const char *codec;   /* codec.h; "": none */
    uint64_t file_bytes; /* as the store lists it */
    int64_t time_ns;     /* the same */
    uint64_t raw_bytes;  /* decompressed; UINT64_MAX: not known yet */
    uint64_t samples;    /* UINT64_MAX: not known yet */
    /* Where the first sample begins and how large each is, if they are all of one size (tokens);
     * each_bytes 0: they are scanned for. step_bytes: from one to the next, less than each_bytes
     * where they overlap; 0: each_bytes. The last one is shorter where raw_bytes end before it. */
    uint64_t first_bytes, each_bytes, step_bytes;
    const char *marks_key; /* a file beside it that says where documents begin, or NULL */
    uint64_t marks_stamp;  /* of that file's size and time; 0 without one */
};

/* A dataset being looked at. survey.c has it; a format's survey() calls these. */
struct weir_survey;
weir_store *weir_survey_store(const struct weir_survey *survey);
const char *weir_survey_prefix(const struct weir_survey *survey); /* "" or "data/imagenet/" */
/* The files there, sorted by name, without Weir's own: 1 and borrowed, or 0. */
struct weir_survey_file {
    const char *key; /* below the prefix */
    uint64_t size_bytes;
    int64_t time_ns;
    const char *why; /* it cannot be read, or NULL; */
    int code;        /* and -errno */
};
int weir_survey_file(const struct weir_survey *survey, size_t i, struct weir_survey_file *out);
/* 0, or why a file that has a place in the list cannot be read: its name is no key, or it is a link
 * that leads nowhere. Adding it as a shard fails so, too. */
int weir_survey_fault(const struct weir_survey_file *file);
/* The first bytes of a file. */
int weir_survey_head(const struct weir_survey *survey, const char *key, uint8_t *out, size_t room,
                     size_t *got);
/* These bytes of a file. */
int weir_survey_read(const struct weir_survey *survey, const char *key, uint8_t *out, size_t size,
                     uint64_t off);
/* The whole content of a small file (an index.json); the caller frees it. -ENOENT, -EFBIG. */
int weir_survey_load(struct weir_survey *survey, const char *key, size_t max, uint8_t **out,
                     size_t *size);
/* Adds the next shard; strings are copied. */
int weir_survey_add(struct weir_survey *survey, const struct weir_shard_plan *shard);
/* What fields() needs to know, in JSON; copied into the index. */
int weir_survey_schema(struct weir_survey *survey, const char *json, size_t size);
/* An option of whoever opens the dataset, or NULL: "seq_len", "dtype", "eot", … */
const char *weir_survey_option(const struct weir_survey *survey, const char *name);
/* Was it given? For match(): nobody has yet used it. */
bool weir_survey_given(const struct weir_survey *survey, const char *name);

/* ---- writing ---- */

struct weir_sample;

/* Bytes that grow. */
struct weir_growing {
    uint8_t *data;
    size_t size, room;
};
/* Room for so much more, at data + size; the caller adds to size. */
int weir_growing_room(struct weir_growing *buf, size_t more);
int weir_growing_add(struct weir_growing *buf, const void *data, size_t size);
void weir_growing_free(struct weir_growing *buf);

struct weir_writing {
    const char *schema; /* JSON: the format's own, or NULL to go by the first sample */
    const char *codec;  /* "" or "zstd:3": for the names in an index; pack compresses */
    /* Of MDS, where there is no schema yet: "image:jpeg,label:int32", the encodings of these
     * columns; NULL: as their fields are. */
    const char *columns;
};

/* A written shard, for the files that describe the whole. If it is a list of files, its samples and
 * raw bytes are those of the files. */
struct weir_written {
    char name[64]; /* shard.00000.mds.zstd */
    uint64_t samples, raw_bytes, file_bytes;
};

/* What was made of a shard: one piece behind the other, in its writer's memory. */
struct weir_made {
    const uint8_t *head, *body;
    size_t head_size, body_size;
};
/* Appends it as one. */
int weir_made_join(const struct weir_made *made, struct weir_growing *out);

/* How shards are made: one at a time, so that pack can make several in parallel and each depends on
 * nothing but its samples. */
struct weir_format_writer {
    /* Fields become files: of a source that has them as such, they come as members() has them. */
    bool keeps_members;
    /* "shard.%05u.mds" for number i. */
    void (*name)(char out[64], uint32_t i, const char *codec);
    int (*open)(void **out, const struct weir_writing *how);
    /* How many bytes finish() will put in front of so many samples, with the schema that is given.
     * NULL: none, ever. */
    int (*expect)(const void *writer, uint64_t samples, uint64_t *head_bytes);
    /* key names the sample (without it: its number); fields as format.h has them. -EINVAL names a
     * field that this format cannot hold, and why. */
    int (*add)(void *writer, uint64_t number, const char *key, const struct weir_field *fields,
               uint32_t count);
    /* The same with fields as stored() of the same format has them; `schema` and `sample` are the
     * source's. What need not be another encoding is written as it stands. NULL: none. */
    int (*add_stored)(void *writer, const void *schema, const struct weir_sample *sample,
                      struct weir_arena **scratch, const struct weir_field *fields, uint32_t count);
    /* Every field is a file of its own: the next of those that the last add() was given, with its
     * name and, until the next call, its content: 1, or 0 after the last. What drain() and finish()
     * hand over is then the list of their names. NULL: a shard has its samples in it. */
    int (*file)(void *writer, const char **name, struct weir_made *out);
    /* Before finish(): the file that belongs beside shard i (Megatron's .idx): 1, its name and, in
     * out, its content, or 0. NULL: never one. */
    int (*beside)(void *writer, char name[64], uint32_t i, struct weir_growing *out);
    /* Hands over what was added since the last time, which stays until the next add(): of a large
     * shard not all need be in memory. */
    void (*drain)(void *writer, struct weir_made *out);
    /* What stands in front, and what was not handed over yet, until the next add(); the writer is
     * then empty again. */
    int (*finish)(void *writer, struct weir_made *out);
    void (*close)(void *writer);
    /* What it goes by, as weir_writing has it, so that all shards go by the first one's first
     * sample. NULL: samples need not be alike. */
    int (*schema)(const void *writer, struct weir_growing *out);
    /* The file beside the shards (index.json), or NULL: its name; its content is appended. */
    const char *index_name;
    int (*index)(const struct weir_writing *how, const void *writer,
                 const struct weir_written *shards, uint32_t count, struct weir_growing *out);
};

/* ---- the format ---- */

/* Called for each sample in order; non-zero stops. */
typedef int (*weir_sample_fn)(void *arg, uint64_t off, uint64_t size);
/* Called for each mark in order; non-zero stops. */
typedef int (*weir_mark_fn)(void *arg, uint64_t off);

/* Offsets within a shard that lie within a sample, in ascending order: where documents begin.
 * Borrowed from the index. */
struct weir_marks {
    const uint8_t *data; /* little-endian, `width` bytes each */
    uint32_t width;
    uint64_t count;
};

struct weir_sample {
    const uint8_t *data;
    size_t size;
    const char *file;        /* the key of the file it is in */
    uint64_t off;            /* where it begins in there */
    struct weir_marks marks; /* as the index has them (weir_place); mostly none */
};

struct weir_format {
    const char *name;  /* "mds" */
    const char *about; /* one line, for --help */
    /* Every file is a sample: survey() adds each with samples = 1, there is no scan(), and the
     * index makes a shard of 1,024 files in a row. */
    bool is_files;
    /* A sample is its bytes as they lie there, all of one size: where Weir sealed the shards, they
     * are mapped instead of read. */
    bool is_flat;
    /* Nothing lies behind the last sample of a shard: one that decompresses to more is damaged. */
    bool ends_with_sample;
    /* Does this look like one? By names, and at most one look into a file: 0 no, 1 perhaps, 2
     * certainly. */
    int (*match)(const struct weir_survey *survey);
    /* Adds the shards and the schema. */
    int (*survey)(struct weir_survey *survey);
    /* Where the samples of a shard are; not for shards with each_bytes. `schema` as below. */
    int (*scan)(struct weir_flow *flow, const struct weir_shard_plan *shard, const void *schema,
                weir_sample_fn fn, void *arg);
    /* Where documents begin in a shard with a marks_key, which is `key` in the store; NULL: no
     * shard has one. */
    int (*marks)(weir_store *store, const char *key, const struct weir_shard_plan *shard,
                 weir_mark_fn fn, void *arg);
    /* The schema, taken apart once; may be NULL where there is none. */
    int (*schema_open)(void **out, const char *json, size_t size);
    void (*schema_close)(void *schema);
    /* Takes a sample apart: *count is the room in fields, then how many there are. -EBADMSG says
     * what is wrong with it (the caller adds which sample of which shard). */
    int (*fields)(const void *schema, const struct weir_sample *sample, struct weir_arena **scratch,
                  struct weir_field *fields, uint32_t *count);
    /* The same without a look into them: each field is the bytes that stand there. NULL where the
     * writer has no add_stored(). */
    int (*stored)(const void *schema, const struct weir_sample *sample, struct weir_field *fields,
                  uint32_t *count);
    /* The bytes of a sample that are its own, without what is there to find and to verify them.
     * NULL: all of them. -EBADMSG. */
    int (*content)(const struct weir_sample *sample, const uint8_t **data, size_t *size);
    /* fields(), each but the key as the bytes of the file that it is within the sample. NULL: they
     * are no files. */
    int (*members)(const void *schema, const struct weir_sample *sample,
                   struct weir_arena **scratch, struct weir_field *fields, uint32_t *count);
    /* The sample's own key (a WebDataset's), or NULL; pack keeps it. */
    int (*key)(const struct weir_sample *sample, struct weir_arena **scratch, const char **out);
    const struct weir_format_writer *writer; /* NULL: it is only read */
};

extern const struct weir_format weir_format_mds, weir_format_wds, weir_format_tfrecord,
    weir_format_jsonl, weir_format_files, weir_format_tokens, weir_format_litdata;

/* All of them, from 0 on; NULL behind the last. */
const struct weir_format *weir_format_at(size_t i);
/* By name; NULL. */
const struct weir_format *weir_format_find(const char *name);
/* -EINVAL: there is none of that name, but these; to_write: of those that can be written. */
int weir_format_fail(const char *name, bool to_write);
/* The sample as the one field "raw". */
int weir_format_raw(const struct weir_format *format, const struct weir_sample *sample,
                    struct weir_field *field);
/* The one that a dataset looks like most; -EINVAL names the files it saw. */
int weir_format_detect(const struct weir_format **out, const struct weir_survey *survey);

#endif
