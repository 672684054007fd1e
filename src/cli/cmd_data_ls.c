/* cmd_data_ls.c - weir data ls: the shards of a dataset. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/dataset.h"
#include "cli/format.h"

static struct {
    struct dataset_opts data;
} opts;

static const struct weir_opt options[] = {
    DATASET_OPTIONS(offsetof(typeof(opts), data)),
    {0},
};

static json_t *shard_json(const weir_data_shard *shard)
{
    char when[FORMAT_TIME_BYTES];
    json_t *object =
        json_pack("{s:o, s:I, s:I, s:I, s:I, s:s}", "key", cli_text_json(shard->key), "first",
                  (json_int_t)shard->first, "samples", (json_int_t)shard->samples, "file_bytes",
                  (json_int_t)shard->file_bytes, "raw_bytes", (json_int_t)shard->raw_bytes, "codec",
                  shard->codec);
    if (shard->time_ns)
        json_object_set_new(object, "time",
                            json_string(format_time_json(when, (uint64_t)shard->time_ns)));
    return object;
}

static int show(struct cli *cli, const weir_data_shard *shard)
{
    char size[32], raw[32];
    if (cli->json) {
        json_array_append_new(cli->doc, shard_json(shard));
        return 0;
    }
    char *key = cli_printable(shard->key);
    printf("%12" PRIu64 "  %9" PRIu64 "  %9s  %9s  %-6s  %s\n", shard->first, shard->samples,
           weir_format_size(size, sizeof size, shard->file_bytes),
           weir_format_size(raw, sizeof raw, shard->raw_bytes), *shard->codec ? shard->codec : "-",
           key ? key : "");
    free(key);
    return 0;
}

static int run(struct cli *cli)
{
    weir_data *data;
    int code = dataset_open(cli, &data, cli->operands[0], &opts.data, 0);
    if (code)
        return code;
    if (cli->json)
        cli->doc = json_array();
    else if (!cli->quiet)
        printf("%12s  %9s  %9s  %9s  %-6s  %s\n", "first", "samples", "file", "raw", "codec",
               "shard");
    uint64_t shards = weir_data_info_get(data)->shards;
    for (uint64_t i = 0; !code && i < shards; i++) {
        weir_data_shard shard;
        code = weir_data_shard_get(data, i, &shard);
        if (!code)
            code = show(cli, &shard);
    }
    weir_data_close(data);
    return code;
}

const struct command cmd_data_ls = {
    .name = "data ls",
    .operands = "URL",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "List the shards of a dataset",
    .about = "The number of each shard's first sample, how many it has, its size in the store and "
             "decompressed, and its name. Where every file is a sample, 1,024 files in a row make "
             "a shard, named after the first.",
    .example = "weir data ls /data/imagenet\n"
               "weir data ls s/corpus --json | jq '.[].samples'",
    .json = "an array: key, first, samples, file_bytes, raw_bytes, codec, time",
    .options = options,
    .fields = &opts,
    .run = run,
};
