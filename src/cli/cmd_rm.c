/* cmd_rm.c - weir rm: objects are removed. */
#include <errno.h>

#include "cli/commands.h"
#include "cli/work.h"
#include "util/err.h"

static struct {
    bool recursive, dry_run, damaged, force;
    uint64_t jobs;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"recursive", 'r', WEIR_OPT_FLAG, AT(recursive), "no", NULL,
     "also remove all objects below KEY", 0, 0},
    {"dry-run", 'n', WEIR_OPT_FLAG, AT(dry_run), "no", NULL,
     "say what would be removed, and remove nothing", 0, 0},
    {"force", 'f', WEIR_OPT_FLAG, AT(force), "no", NULL,
     "also what is part of a checkpoint, which is damaged then", 0, 0},
    {"damaged", 0, WEIR_OPT_FLAG, AT(damaged), "no", NULL,
     "remove the damaged seal of KEY; its plain file stays, as a foreign one", 0, 0},
    WORK_OPT_JOBS(AT(jobs), "with -r, objects"),
    {0},
};

/* An object of a save goes with the save: alone it would leave a damaged one. */
static int check_alone(const weir_info *info)
{
    if (!info->save_bytes || opts.force)
        return 0;
    return weir_fail(EPERM,
                     "'%s' is part of '%.*s', which would be damaged: weir ckpt rm removes a "
                     "checkpoint, --force this object alone",
                     info->key, (int)info->save_bytes, info->key);
}

static int look_one(struct cli *cli, struct item *item)
{
    weir_object *object;
    int code = weir_object_open(&object, cli->store, item->key);
    if (code)
        return code;
    item->size_bytes = weir_object_info(object)->size_bytes;
    if (weir_object_info(object)->kind == WEIR_KIND_FOREIGN)
        code = weir_fail(EPERM, "'%s' is a plain file that Weir did not write: it would stay",
                         item->key);
    else
        code = check_alone(weir_object_info(object));
    weir_object_close(object);
    return code;
}

static int remove_one(struct cli *cli, struct item *item)
{
    weir_object *object;
    int code = 0;
    if (opts.damaged)
        return weir_remove_damaged(cli->store, item->key);
    if (!opts.force && weir_object_open(&object, cli->store, item->key) == 0) {
        code = check_alone(weir_object_info(object));
        weir_object_close(object);
    }
    return code ? code : weir_remove(cli->store, item->key);
}

static void show(const struct cli *cli, const struct item *item, int key_width)
{
    (void)key_width;
    cli_say(cli, "%s %s", opts.dry_run ? "would remove" : "removed", item->key);
}

static int collect(struct cli *cli, struct items *items)
{
    int code = 0;
    for (int i = 0; !code && i < cli->operand_count; i++) {
        const char *key = cli->operands[i];
        code = opts.recursive ? items_add_prefix(items, cli->store, key, WEIR_LIST_DETAIL)
                              : items_add(items, key, NULL, 0);
    }
    return code;
}

static int run(struct cli *cli)
{
    const struct work work = {
        .doing = "removing",
        .done = opts.dry_run ? "would be removed" : "removed",
        .access = CLI_WRITE,
        .jobs = opts.recursive ? opts.jobs : 1,
        .summary = opts.recursive,
        .collect = collect,
        .one = opts.dry_run ? look_one : remove_one,
        .show = show,
    };
    for (int i = 0; i < cli->operand_count; i++)
        if (!*cli->operands[i])
            return cli_usage(cli, "an empty KEY would mean everything");
    return work_run(cli, &work);
}

const struct command cmd_rm = {
    .name = "rm",
    .operands = "KEY…",
    .operands_min = 1,
    .operands_max = -1,
    .summary = "Remove objects",
    .about =
        "Removes each KEY, without asking. With -r, everything below KEY, too; KEY/ means only "
        "what is below. A reader that has an object open reads on, and never sees other bytes.\n\n"
        "Plain files that others put into the store's directory are not removed: their owners do "
        "that. Nor are, without --force, objects that are part of a checkpoint: weir ckpt rm does "
        "that.",
    .example = "weir rm models/llama/model.safetensors\n"
               "weir rm -r --dry-run runs/7",
    .json = "objects: for each object key, status (removed, would be removed, failed or skipped), "
            "size_bytes, error; and done, failed and size_bytes in all",
    .options = options,
    .fields = &opts,
    .run = run,
};
