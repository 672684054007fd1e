/* cmd_data_cat.c - weir data cat: one sample, its fields, or the bytes of one of them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/dataset.h"
#include "cli/target.h"
#include "cli/value.h"
#include "util/err.h"

static struct {
    struct dataset_opts data;
    const char *field;
    bool raw;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    DATASET_OPTIONS(AT(data)),
    DATASET_OPT_MEMORY(AT(data)),
    {"field", 0, WEIR_OPT_TEXT, AT(field), NULL, "NAME", "only the bytes of this field", 0, 0},
    {"raw", 0, WEIR_OPT_FLAG, AT(raw), "no", NULL,
     "only the bytes of the sample, as stored (without TFRecord's frame)", 0, 0},
    {0},
};

/* Bytes as they are, for a pipe. */
static int pour(const void *data, size_t size)
{
    struct target target;
    int code = target_open(&target, "-", false);
    if (!code)
        code = target_write(&target, data, size);
    if (!code)
        code = target_commit(&target);
    target_close(&target);
    return code;
}

static const weir_field *find(const weir_field *fields, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (fields[i].name_size == strlen(name) &&
            !memcmp(fields[i].name, name, fields[i].name_size))
            return &fields[i];
    return NULL;
}

static int pour_field(const weir_field *fields, uint32_t count, uint64_t number)
{
    const weir_field *field = find(fields, count, opts.field);
    if (field)
        return pour(field->data, field->size);
    char names[512] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count && used + 1 < sizeof names; i++) {
        char *name = dataset_field_name(&fields[i]);
        int n =
            snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", name ? name : "?");
        used += n > 0 ? (size_t)n : 0;
        free(name);
    }
    return weir_fail(ENOENT, "sample %" PRIu64 " has no field '%s': it has %s", number, opts.field,
                     names);
}

static void show_fields(const weir_field *fields, uint32_t count)
{
    char type[128], size[32], preview[VALUE_PREVIEW_BYTES];
    for (uint32_t i = 0; i < count; i++) {
        char *name = dataset_field_name(&fields[i]);
        printf("%-20s  %-14s  %9s  %s\n", name ? name : "?",
               dataset_type(type, sizeof type, &fields[i]),
               weir_format_size(size, sizeof size, fields[i].size),
               value_preview(preview, &fields[i]));
        free(name);
    }
}

static json_t *sample_json(const weir_data_sample_info *info, const weir_field *fields,
                           uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, value_json(&fields[i]));
    return json_pack("{s:I, s:I, s:o, s:I, s:I, s:o}", "sample", (json_int_t)info->number, "shard",
                     (json_int_t)info->shard, "key", cli_text_json(info->key), "offset",
                     (json_int_t)info->off, "size_bytes", (json_int_t)info->size, "fields", list);
}

static int show(struct cli *cli, weir_data_sample *sample)
{
    const weir_data_sample_info *info = weir_data_sample_get(sample);
    const weir_field *fields;
    uint32_t count;
    int code;
    if (opts.raw) {
        weir_field raw;
        code = weir_data_sample_raw(sample, &raw);
        return code ? code : pour(raw.data, raw.size);
    }
    code = weir_data_sample_fields(sample, &fields, &count);
    if (code)
        return code;
    if (opts.field)
        return pour_field(fields, count, info->number);
    if (cli->json) {
        cli->doc = sample_json(info, fields, count);
        return 0;
    }
    char *key = cli_printable(info->key);
    cli_say(cli, "sample %" PRIu64 ": bytes %" PRIu64 "-%" PRIu64 " of %s", info->number, info->off,
            info->off + info->size, key ? key : "?");
    free(key);
    show_fields(fields, count);
    return 0;
}

static int run(struct cli *cli)
{
    weir_data *data;
    weir_data_sample *sample;
    uint64_t number;
    if ((opts.raw || opts.field) && cli->json)
        return cli_usage(cli, "--json shows all fields: --raw and --field are for bytes");
    int code = dataset_number(cli, &number, cli->operands[1]);
    if (!code)
        code = dataset_open(cli, &data, cli->operands[0], &opts.data, 0);
    if (code)
        return code;
    code = weir_data_sample_open(&sample, data, number);
    if (!code) {
        code = show(cli, sample);
        weir_data_sample_close(sample);
    }
    weir_data_close(data);
    return code;
}

const struct command cmd_data_cat = {
    .name = "data cat",
    .operands = "URL N",
    .operands_min = 2,
    .operands_max = 2,
    .summary = "Show a sample of a dataset",
    .about = "Where sample N is, and its fields: name, type, size, and how each begins. Samples "
             "count from 0, in the order of the shards. --field and --raw write bytes as they are.",
    .example = "weir data cat /data/imagenet 4711\n"
               "weir data cat /data/imagenet 4711 --field jpg >4711.jpg\n"
               "weir data cat /data/corpus 0 --json | jq '.fields[0].value[:8]'",
    .json = "sample, shard, key, offset, size_bytes, fields: an array of name, kind, dtype, shape, "
            "size_bytes, and value (text, JSON, or numbers) or base64",
    .options = options,
    .fields = &opts,
    .run = run,
};
