/* cmd_cat.c - weir cat: objects to standard output. */
#include "cli/commands.h"
#include "cli/content.h"
#include "cli/work.h"

static int cat_one(struct cli *cli, struct item *item)
{
    struct target output;
    weir_object *object;
    int code = target_open(&output, "-", false);
    if (!code)
        code = weir_object_open(&object, cli->store, item->key);
    if (code)
        return code;
    code = content_fetch(&output, object, 0, weir_object_info(object)->size_bytes);
    weir_object_close(object);
    target_close(&output);
    return code;
}

static int collect(struct cli *cli, struct items *items)
{
    int code = 0;
    for (int i = 0; !code && i < cli->operand_count; i++)
        code = items_add_key(items, cli->store, cli->operands[i], NULL);
    return code;
}

static int run(struct cli *cli)
{
    const struct work work = {
        .doing = "reading",
        .done = "read",
        .access = CLI_READ,
        .jobs = 1,
        .raw = true,
        .collect = collect,
        .one = cat_one,
    };
    return work_run(cli, &work);
}

const struct command cmd_cat = {
    .name = "cat",
    .operands = "KEY…",
    .operands_min = 1,
    .operands_max = -1,
    .summary = "Write objects to standard output, one after the other",
    .about = "Every block is verified before it is written. An object that fails is reported, and "
             "the next one follows.",
    .example = "weir cat runs/7/log.txt | less\n"
               "weir cat datasets/c4/00017.tar | tar t",
    .json = "not offered: the bytes go to standard output",
    .run = run,
};
