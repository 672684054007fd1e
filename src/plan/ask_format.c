/* ask_format.c - which format a dataset wants, and what small files cost. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/answers.h"
#include "plan/read.h"
#include "util/err.h"

#define RATE(value) weir_plan_say(WEIR_PLAN_BYTES_PER_S, value)
#define SIZE(value) weir_plan_say(WEIR_PLAN_BYTES, value)
#define TIME(value) weir_plan_say(WEIR_PLAN_S, value)

enum {
    FILE_OPERATIONS = 3,     /* of a small file that is read: its name, its inode, its data */
    FILE_SPARE_BYTES = 2560, /* half a block of 4 KiB, and an inode of 512 bytes */
};
static const double large_bytes = 64e6; /* files of this size need no shards */

struct advice {
    const char *kind, *access, *format, *why;
    bool compresses;
};

/* The first row that fits; access NULL: any. */
static const struct advice advices[] = {
    {"tokens", NULL, "tokens",
     "a flat file of tokens is mapped and read at any place, without an "
     "index of samples",
     false},
    {"images", "sequential", "wds",
     "tar shards are read in order by everything, and images are "
     "compressed already",
     false},
    {"images", NULL, "mds",
     "shards with an index of samples: any order, exact resume; images are "
     "compressed already",
     false},
    {"text", "sequential", "jsonl", "lines are readable by everything, compressed as whole files",
     true},
    {"text", NULL, "mds", "shards with an index of samples, compressed with zstd", true},
    {"tables", NULL, "mds",
     "training reads whole rows; Parquet is for reading some columns of many "
     "rows, and Weir does not read it",
     true},
    {"blobs", "sequential", "wds", "any bytes, in tar shards", false},
    {"blobs", NULL, "mds", "any bytes, with an index of samples", false},
};

static int find_advice(const struct advice **out, const struct weir_plan_in *in)
{
    bool known = false;
    if (!in->kind)
        return weir_plan_missing("kind", "tokens, images, text, tables or blobs");
    if (strcmp(in->access, "shuffled") && strcmp(in->access, "sequential") &&
        strcmp(in->access, "random"))
        return weir_fail(EINVAL, "--access: '%s' is not one of shuffled, sequential and random",
                         in->access);
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++) {
        const struct advice *row = &advices[i];
        known = known || !strcmp(row->kind, in->kind);
        if (!strcmp(row->kind, in->kind) && (!row->access || !strcmp(row->access, in->access))) {
            *out = row;
            return 0;
        }
    }
    return weir_fail(EINVAL, "--kind: '%s' is not one of tokens, images, text, tables and blobs",
                     in->kind);
}

struct small_files {
    double bytes, read_rate, iops, raw_rate;
};

static void tell_rates(struct weir_plan_answer *a, const struct weir_plan_in *in,
                       const struct small_files *f, bool packed)
{
    double sample = (double)in->sample_bytes;
    weir_plan_figure(a, "dataset_bytes", "the dataset", WEIR_PLAN_BYTES, f->bytes);
    weir_plan_figure(a, "raw_bytes_per_s", "as single files", WEIR_PLAN_BYTES_PER_S, f->raw_rate);
    weir_plan_figure(a, "raw_epoch_s", "an epoch takes", WEIR_PLAN_S, f->bytes / f->raw_rate);
    weir_plan_figure(a, "raw_spare_bytes", "space that files waste", WEIR_PLAN_BYTES,
                     (double)in->samples * FILE_SPARE_BYTES);
    weir_plan_figure(a, "shard_bytes_per_s", "as shards", WEIR_PLAN_BYTES_PER_S, f->read_rate);
    weir_plan_figure(a, "shard_epoch_s", "an epoch takes", WEIR_PLAN_S, f->bytes / f->read_rate);
    weir_plan_figure(a, "shards", "shards", WEIR_PLAN_COUNT,
                     packed ? weir_plan_servers(f->bytes, (double)in->shard_bytes) : 0);
    weir_plan_figure(a, "gain", "shards are faster by", WEIR_PLAN_NUMBER,
                     f->read_rate / f->raw_rate);
    weir_plan_assume(a,
                     "a small file costs %d operations (name, inode, data) of %s in all; large "
                     "reads get %s",
                     FILE_OPERATIONS, weir_plan_say(WEIR_PLAN_PER_S, f->iops), RATE(f->read_rate));
    if (f->raw_rate < f->read_rate)
        weir_plan_bottleneck(a, "operations: files of %s get %s of the %s that storage gives",
                             SIZE(sample), RATE(f->raw_rate), RATE(f->read_rate));
    else
        weir_plan_bottleneck(a, "bandwidth: files of %s are large enough for %s", SIZE(sample),
                             RATE(f->read_rate));
    weir_plan_change(a, "files of %s and more are read as fast as shards here",
                     SIZE(f->read_rate * FILE_OPERATIONS / f->iops));
}

static void tell_advice(struct weir_plan_answer *a, const struct weir_plan_in *in,
                        const struct advice *row, bool packed)
{
    if (packed)
        weir_plan_change(a, "format: %s: %s (weir data pack SRC DST --format %s)", row->format,
                         row->why, row->format);
    else
        weir_plan_change(a, "format: leave the files as they are: they are as large as shards");
    weir_plan_change(
        a, row->compresses ? "compression: zstd within the shards, or lz4 of ZFS (1.3 to 2.0 times "
                             "smaller), not both"
                           : "compression: none: these data are dense already; lz4 of ZFS costs "
                             "little and gains little");
    weir_plan_change(a, "file system: XFS for large files, mounted with noatime (a read must not "
                        "become a write)");
    if (!strcmp(in->access, "random"))
        weir_plan_change(a,
                         "random lookups: direct I/O of 4 KiB blocks; read-ahead would read what "
                         "nobody asked for");
}

int weir_plan_ask_format(struct weir_plan_answer *a, const struct weir_plan_in *in)
{
    const struct advice *row = NULL;
    const struct weir_plan_device *d = weir_plan_device_find(in->device);
    int code = d ? find_advice(&row, in) : -EINVAL;
    if (code)
        return code;
    if (!in->samples)
        return weir_plan_missing("samples", NULL);
    if (!in->sample_bytes)
        return weir_plan_missing("sample-bytes", NULL);
    double sample = (double)in->sample_bytes;
    struct small_files f = {.bytes = (double)in->samples * sample,
                            .read_rate =
                                in->read_rate ? (double)in->read_rate : d->read_bytes_per_s,
                            .iops = in->iops > 0 ? in->iops : d->read_iops};
    f.raw_rate = fmin(f.read_rate, f.iops / FILE_OPERATIONS * sample);
    bool packed = sample < large_bytes || !strcmp(row->kind, "tokens");
    snprintf(a->question, sizeof a->question, "Which format do these data want?");
    a->choice = packed ? row->format : "files";
    tell_rates(a, in, &f, packed);
    tell_advice(a, in, row, packed);
    return 0;
}
