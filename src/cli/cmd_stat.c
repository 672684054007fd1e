/* cmd_stat.c - weir stat: what is known of objects, or of the store. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/work.h"

/* The metadata as JSON, which is what weir put stores; NULL: it is something else. */
static json_t *meta_json(const weir_info *info)
{
    return json_loadb(info->meta, info->meta_bytes, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
}

enum { LAYOUT_BYTES = 128 };

static json_t *object_json(const weir_info *info, const char *layout)
{
    char when[FORMAT_TIME_BYTES];
    json_t *doc =
        json_pack("{s:s, s:s, s:s, s:I, s:s, s:s, s:s}", "kind", format_kind(info->kind), "level",
                  weir_level_name(info->level), "time", format_time_json(when, info->time_ns),
                  "block_bytes", (json_int_t)info->block_bytes, "algorithm", info->algorithm,
                  "nonce", info->nonce, "data_name", info->data_name);
    json_object_set_new(doc, "meta_bytes", json_integer((json_int_t)info->meta_bytes));
    if (*layout)
        json_object_set_new(doc, "layout", json_string(layout));
    json_t *meta = meta_json(info);
    if (meta)
        json_object_set_new(doc, "meta", meta);
    return doc;
}

/* Somebody else wrote it: it may hold anything. */
static void print_meta_value(const char *name, const json_t *value)
{
    char *text = NULL, *dump = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    if (asprintf(&text, "%s=%s", name, dump ? dump : json_string_value(value)) < 0)
        text = NULL;
    char *line = text ? cli_printable(text) : NULL;
    if (line)
        format_field("meta", "%s", line);
    free(dump);
    free(text);
    free(line);
}

static void print_meta(const weir_info *info)
{
    json_t *meta = meta_json(info);
    if (!json_is_object(meta))
        format_field("meta", "%zu bytes", info->meta_bytes);
    for (void *at = json_object_iter(meta); at; at = json_object_iter_next(meta, at))
        print_meta_value(json_object_iter_key(at), json_object_iter_value(at));
    json_decref(meta);
}

static void print_object(const weir_info *info, const char *layout)
{
    char size[32], block[32], when[FORMAT_TIME_BYTES];
    uint64_t blocks = (info->size_bytes + info->block_bytes - 1) / info->block_bytes;
    format_field("key", "%s", info->key);
    format_field("size", "%s (%" PRIu64 " bytes)",
                 weir_format_size(size, sizeof size, info->size_bytes), info->size_bytes);
    format_field("kind", "%s", format_kind(info->kind));
    format_field("level", "%s", weir_level_name(info->level));
    format_field(info->kind == WEIR_KIND_SEALED ? "sealed" : "modified", "%s",
                 format_time(when, info->time_ns));
    format_field("blocks", "%" PRIu64 " of %s, %s", blocks,
                 weir_format_size(block, sizeof block, info->block_bytes),
                 *info->algorithm ? info->algorithm : "not read yet");
    if (*info->nonce)
        format_field("nonce", "%s", info->nonce);
    format_field("data", "%s", info->data_name);
    if (*layout)
        format_field("layout", "%s", layout);
    if (info->meta_bytes)
        print_meta(info);
}

static int stat_one(struct cli *cli, struct item *item)
{
    weir_object *object;
    int code = weir_object_open(&object, cli->store, item->key);
    if (code)
        return code;
    const weir_info *info = weir_object_info(object);
    char layout[LAYOUT_BYTES] = "";
    if (weir_object_layout(object, layout, sizeof layout))
        layout[0] = 0; /* most file systems have nothing to say */
    item->size_bytes = info->size_bytes;
    if (cli->json)
        item->detail = object_json(info, layout);
    else
        print_object(info, layout);
    weir_object_close(object);
    return 0;
}

static int stat_store(struct cli *cli)
{
    char text[FORMAT_TIME_BYTES];
    weir_store_info info;
    int code = cli_store_open(cli, CLI_READ, 0, NULL);
    if (!code)
        code = weir_store_info_get(cli->store, &info);
    if (code)
        return code;
    bool space = info.total_bytes != UINT64_MAX;
    if (cli->json) {
        cli->doc = json_pack("{s:o, s:s, s:s, s:s, s:s, s:I}", "store", cli_text_json(info.url),
                             "uuid", info.uuid, "tier", info.tier, "io", info.io, "level",
                             weir_level_name(info.level), "grace_s", (json_int_t)info.grace_s);
        if (space)
            json_object_update_new(cli->doc, json_pack("{s:I, s:I}", "free_bytes",
                                                       (json_int_t)info.free_bytes, "total_bytes",
                                                       (json_int_t)info.total_bytes));
        return 0;
    }
    format_field("store", "%s", info.url);
    format_field("uuid", "%s", *info.uuid ? info.uuid : "none: a plain directory");
    format_field("tier", "%s", info.tier);
    format_field("io", "%s", info.io);
    format_field("level", "%s", weir_level_name(info.level));
    if (*info.uuid)
        format_field("grace", "%s", format_duration(text, info.grace_s));
    if (space) {
        char free_text[32], total[32];
        format_field("free", "%s of %s",
                     weir_format_size(free_text, sizeof free_text, info.free_bytes),
                     weir_format_size(total, sizeof total, info.total_bytes));
    }
    return 0;
}

static void separate(const struct cli *cli, const struct item *item, int key_width)
{
    (void)item, (void)key_width;
    if (!cli->json && cli->operand_count > 1)
        putchar('\n');
}

static int collect(struct cli *cli, struct items *items)
{
    int code = 0;
    for (int i = 0; !code && i < cli->operand_count; i++)
        code = items_add(items, cli->operands[i], NULL, 0);
    return code;
}

static int run(struct cli *cli)
{
    const struct work work = {
        .doing = "looking",
        .done = "found",
        .access = CLI_READ,
        .jobs = 1,
        .collect = collect,
        .one = stat_one,
        .show = separate,
    };
    return cli->operand_count ? work_run(cli, &work) : stat_store(cli);
}

const struct command cmd_stat = {
    .name = "stat",
    .operands = "[KEY…]",
    .operands_min = 0,
    .operands_max = -1,
    .summary = "Show what is known of objects, or of the store itself",
    .about =
        "Shows size, kind, level, blocks and metadata of each KEY. Without KEY, the store: what "
        "is behind it, its grace, and the space left.",
    .example = "weir stat\n"
               "weir stat models/llama/model.safetensors",
    .json =
        "objects: for each object key, status (found or failed), size_bytes, kind, level, time, "
        "block_bytes, algorithm, nonce, data_name, meta_bytes, meta, error. Without KEY: "
        "store, uuid, tier, io, level, grace_s, free_bytes, total_bytes",
    .run = run,
};
