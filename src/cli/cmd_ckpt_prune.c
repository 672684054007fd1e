/* cmd_ckpt_prune.c - weir ckpt prune: all but some checkpoints of a run go. */
#include <errno.h>

#include "cli/ckpt.h"
#include "cli/commands.h"

static struct {
    uint64_t last, every, grace_ns;
    bool dry_run;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"keep-last", 0, WEIR_OPT_NUMBER, AT(last), "0", "N", "the newest N stay; at least 1", 0,
     UINT32_MAX},
    {"keep-every", 0, WEIR_OPT_NUMBER, AT(every), "0", "K",
     "those whose step is a multiple of K stay, too", 0, UINT32_MAX},
    CKPT_OPT_DRY_RUN(AT(dry_run)),
    CKPT_OPT_GRACE(AT(grace_ns)),
    {0},
};

static int run(struct cli *cli)
{
    struct ckpt_rows rows = {0};
    weir_prune_result result = {0};
    weir_prune_options prune;
    if (!opts.last)
        return cli_usage(cli, "--keep-last N has to say how many stay: at least 1");
    int code = cli_store_open(cli, CLI_WRITE, 0, NULL);
    if (code)
        return code;
    weir_prune_options_init(&prune);
    prune.flags = opts.dry_run ? WEIR_PRUNE_DRY_RUN : 0;
    prune.keep_last = (uint32_t)opts.last;
    prune.keep_every = (uint32_t)opts.every;
    prune.retired_grace_s = opts.grace_ns / 1000000000;
    code = weir_ckpt_prune(cli->store, cli->operands[0], &prune, ckpt_rows_add, &rows, &result);
    if (!code)
        ckpt_report(cli, &rows, &result, opts.dry_run, prune.retired_grace_s);
    ckpt_rows_free(&rows);
    return code;
}

const struct command cmd_ckpt_prune = {
    .name = "ckpt prune",
    .operands = "RUN",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Let all but the newest and some other checkpoints of a run go",
    .about =
        "Retires the checkpoints that are not among the newest N, nor of every K-th step, nor have "
        "a name (weir ckpt keep): from then on nobody finds them. When the grace has passed, they "
        "are deleted: by this command, by the run's next save, or by weir gc. One that somebody "
        "reads stays until then. The newest one of which nothing is missing stays in any case.",
    .example = "weir ckpt prune llama/pretrain --keep-last 3 --keep-every 10000 --dry-run\n"
               "weir ckpt prune llama/pretrain --keep-last 3 --grace 0",
    .json = CKPT_REPORT_JSON,
    .options = options,
    .fields = &opts,
    .run = run,
};
