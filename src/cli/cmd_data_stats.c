/* cmd_data_stats.c - weir data stats: what a dataset is, how large its samples are, and which
 * fields they have.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/dataset.h"
#include "cli/format.h"
#include "data/dataset.h"
#include "util/err.h"

static struct {
    struct dataset_opts data;
} opts;

static const struct weir_opt options[] = {
    DATASET_OPTIONS(offsetof(typeof(opts), data)),
    DATASET_OPT_MEMORY(offsetof(typeof(opts), data)),
    {0},
};

enum { LOOKS_MAX = 1000000, BINS = 64 };

/* Sizes by powers of two: bin b is [2^(b-1), 2^b). */
struct sizes {
    uint64_t looked_at, min, bins[BINS + 1];
};

/* All samples, or every n-th of very many. */
static int measure(const weir_data *data, struct sizes *sizes)
{
    uint64_t count = weir_data_count(data), step = count / LOOKS_MAX + 1;
    *sizes = (struct sizes){.min = UINT64_MAX};
    for (uint64_t i = 0; i < count; i += step) {
        struct weir_place place;
        int code = weir_index_find(weir_data_index(data), i, &place);
        if (code)
            return code;
        sizes->bins[place.size ? 64 - __builtin_clzll(place.size) : 0]++;
        sizes->min = place.size < sizes->min ? place.size : sizes->min;
        sizes->looked_at++;
    }
    if (!sizes->looked_at)
        sizes->min = 0;
    return 0;
}

static void show_sizes(const struct sizes *sizes)
{
    uint64_t most = 0;
    int first = BINS, last = 0;
    for (int b = 0; b <= BINS; b++) {
        most = sizes->bins[b] > most ? sizes->bins[b] : most;
        first = sizes->bins[b] && b < first ? b : first;
        last = sizes->bins[b] ? b : last;
    }
    for (int b = first; most && b <= last; b++)
        format_bin(b ? (uint64_t)1 << (b - 1) : 0, sizes->bins[b], most);
}

static json_t *sizes_json(const struct sizes *sizes)
{
    json_t *bins = json_array();
    for (int b = 0; b <= BINS; b++)
        if (sizes->bins[b])
            json_array_append_new(bins, json_pack("{s:I, s:I}", "from_bytes",
                                                  (json_int_t)(b ? (uint64_t)1 << (b - 1) : 0),
                                                  "samples", (json_int_t)sizes->bins[b]));
    return bins;
}

/* Of the first sample: what all of them have, mostly. */
static int show_fields(struct cli *cli, weir_data *data)
{
    weir_data_sample *sample;
    const weir_field *fields;
    uint32_t count;
    if (!weir_data_count(data))
        return 0;
    int code = weir_data_sample_open(&sample, data, 0);
    if (code)
        return code;
    code = weir_data_sample_fields(sample, &fields, &count);
    json_t *list = json_array();
    for (uint32_t i = 0; !code && i < count; i++) {
        char type[128];
        char *name = dataset_field_name(&fields[i]);
        dataset_type(type, sizeof type, &fields[i]);
        if (cli->json)
            json_array_append_new(list, json_pack("{s:o, s:s}", "name",
                                                  cli_text_json(name ? name : ""), "type", type));
        else
            printf("  %-20s  %s\n", name ? name : "?", type);
        free(name);
    }
    if (cli->json)
        json_object_set(cli->doc, "fields", list);
    json_decref(list);
    weir_data_sample_close(sample);
    return code;
}

static void show_info(const weir_data_info *info, const struct sizes *sizes)
{
    char file[32], raw[32], mean[32], min[32], max[32], index[32];
    uint64_t each = info->samples ? info->sample_bytes / info->samples : 0;
    format_field("dataset", "%s", info->url);
    format_field("format", "%s", info->format);
    format_field("samples", "%" PRIu64 " in %" PRIu64 " shard%s", info->samples, info->shards,
                 info->shards == 1 ? "" : "s");
    format_field("size", "%s (samples: %s)", weir_format_size(file, sizeof file, info->file_bytes),
                 weir_format_size(raw, sizeof raw, info->sample_bytes));
    format_field("a sample", "%s to %s, mean %s", weir_format_size(min, sizeof min, sizes->min),
                 weir_format_size(max, sizeof max, info->sample_bytes_max),
                 weir_format_size(mean, sizeof mean, each));
    format_field("digest", "%s", info->digest);
    if (*info->schema)
        format_field("schema", "%.200s", info->schema);
    format_field("index", "%s (%s)", info->index,
                 weir_format_size(index, sizeof index, info->index_bytes));
}

static int show(struct cli *cli, weir_data *data)
{
    const weir_data_info *info = weir_data_info_get(data);
    struct sizes sizes;
    int code = measure(data, &sizes);
    if (code)
        return code;
    if (cli->json)
        cli->doc = json_pack("{s:o, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "url",
                             cli_text_json(info->url), "format", info->format, "digest",
                             info->digest, "samples", (json_int_t)info->samples, "shards",
                             (json_int_t)info->shards, "file_bytes", (json_int_t)info->file_bytes,
                             "sample_bytes", (json_int_t)info->sample_bytes, "sample_bytes_min",
                             (json_int_t)sizes.min, "sample_bytes_max",
                             (json_int_t)info->sample_bytes_max, "sizes", sizes_json(&sizes));
    else
        show_info(info, &sizes);
    if (!cli->json && info->samples)
        printf("fields of sample 0\n");
    code = show_fields(cli, data);
    if (code || cli->json)
        return code;
    printf("sizes of %" PRIu64 " sample%s\n", sizes.looked_at, sizes.looked_at == 1 ? "" : "s");
    show_sizes(&sizes);
    return 0;
}

static int run(struct cli *cli)
{
    weir_data *data;
    int code = dataset_open(cli, &data, cli->operands[0], &opts.data, 0);
    if (code)
        return code;
    code = show(cli, data);
    weir_data_close(data);
    return code;
}

const struct command cmd_data_stats = {
    .name = "data stats",
    .operands = "URL",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Tell what a dataset consists of",
    .about = "Its format, how many samples and shards it has, its digest (which names the data: it "
             "is the same for every copy), the fields of its first sample, and how sample sizes "
             "are distributed: of all, or of a million evenly chosen ones.",
    .example = "weir data stats /data/imagenet\n"
               "weir data stats /data/imagenet --json | jq -r .digest",
    .json = "url, format, digest, samples, shards, file_bytes, sample_bytes, sample_bytes_min, "
            "sample_bytes_max, sizes: an array of from_bytes, samples; fields: an array of name, "
            "type",
    .options = options,
    .fields = &opts,
    .run = run,
};
