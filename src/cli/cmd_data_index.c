/* cmd_data_index.c - weir data index: makes the index of a dataset, or says that it is there. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/dataset.h"
#include "cli/format.h"
#include "cli/work.h"

static struct {
    struct dataset_opts data;
    bool beside, rebuild, check;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    DATASET_OPTIONS(AT(data)),
    {"beside", 0, WEIR_OPT_FLAG, AT(beside), "no", NULL,
     "keep it as index.weir in the dataset, which is in a store", 0, 0},
    {"rebuild", 0, WEIR_OPT_FLAG, AT(rebuild), "no", NULL,
     "make it anew, and believe nothing that is there", 0, 0},
    {"check", 0, WEIR_OPT_FLAG, AT(check), "no", NULL,
     "make none: fail if there is none of the data as it is now", 0, 0},
    {"jobs", 'j', WEIR_OPT_NUMBER, AT(data.jobs), "0", "N",
     "shards to look into at once; 0: as many as there are processors", 0, 16},
    {0},
};

static json_t *info_json(const weir_data_info *info)
{
    return json_pack("{s:o, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:I, s:b, s:I}", "url",
                     cli_text_json(info->url), "format", info->format, "digest", info->digest,
                     "samples", (json_int_t)info->samples, "shards", (json_int_t)info->shards,
                     "sample_bytes", (json_int_t)info->sample_bytes, "file_bytes",
                     (json_int_t)info->file_bytes, "index", cli_text_json(info->index),
                     "index_bytes", (json_int_t)info->index_bytes, "built", info->built, "scanned",
                     (json_int_t)info->scanned);
}

static void show(const struct cli *cli, const weir_data_info *info)
{
    char size[32], index[32];
    cli_say(cli, "%s: %s, %" PRIu64 " sample%s in %" PRIu64 " shard%s, %s", info->url, info->format,
            info->samples, info->samples == 1 ? "" : "s", info->shards,
            info->shards == 1 ? "" : "s", weir_format_size(size, sizeof size, info->file_bytes));
    cli_say(cli, "%s: %s, %s (%" PRIu64 " shard%s looked into)", info->index,
            weir_format_size(index, sizeof index, info->index_bytes),
            info->built ? "made" : "it is up to date", info->scanned,
            info->scanned == 1 ? "" : "s");
}

static int run(struct cli *cli)
{
    weir_data *data;
    uint32_t flags = WEIR_DATA_KEEP | (opts.beside ? WEIR_DATA_BESIDE : 0) |
                     (opts.rebuild ? WEIR_DATA_REBUILD : 0) | (opts.check ? WEIR_DATA_NO_BUILD : 0);
    if (opts.check && opts.rebuild)
        return cli_usage(cli, "--check makes no index, and --rebuild does");
    int code = dataset_open(cli, &data, cli->operands[0], &opts.data, flags);
    if (code)
        return code;
    if (cli->json)
        cli->doc = info_json(weir_data_info_get(data));
    show(cli, weir_data_info_get(data));
    weir_data_close(data);
    return 0;
}

const struct command cmd_data_index = {
    .name = "data index",
    .operands = "URL",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Index a dataset: where every sample of it is",
    .about =
        "Every command that reads a dataset makes the index if it is not there; this one makes it "
        "in time. It costs at most one sequential read, several shards at once. What was found in "
        "whole shards is kept every second: after a kill, the next attempt goes on with the "
        "others, from their beginnings. Shards are known by "
        "name, size and time, and only those that have changed since are looked into again.\n\n"
        "The index is kept in a cache of yours; the dataset's directory is not written to unless "
        "--beside says so. With --beside whoever opens the dataset finds it, on any machine.",
    .example = "weir data index /data/imagenet\n"
               "weir data index /data/corpus --format tokens -O seq_len=2048 -O eot=50256\n"
               "weir data index /stores/main/imagenet --beside",
    .json = "url, format, digest, samples, shards, sample_bytes, file_bytes, index, index_bytes, "
            "built, scanned",
    .options = options,
    .fields = &opts,
    .run = run,
};
