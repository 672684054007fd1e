/* cmd_ckpt_rm.c - weir ckpt rm: a checkpoint goes. */
#include <errno.h>
#include <string.h>

#include "cli/ckpt.h"
#include "cli/commands.h"
#include "util/err.h"

static struct {
    uint64_t grace_ns;
    bool all, force, dry_run;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"all", 'a', WEIR_OPT_FLAG, AT(all), "no", NULL, "every checkpoint of the run", 0, 0},
    {"force", 'f', WEIR_OPT_FLAG, AT(force), "no", NULL,
     "also one that has a name, or is the newest good one", 0, 0},
    CKPT_OPT_DRY_RUN(AT(dry_run)),
    CKPT_OPT_GRACE(AT(grace_ns)),
    {0},
};

static int run(struct cli *cli)
{
    struct ckpt_rows rows = {0};
    weir_prune_result result = {0};
    uint64_t step = WEIR_STEP_NEWEST, grace_s = opts.grace_ns / 1000000000;
    uint32_t flags = (opts.all ? WEIR_REMOVE_ALL : 0) | (opts.force ? WEIR_REMOVE_FORCE : 0) |
                     (opts.dry_run ? WEIR_REMOVE_DRY_RUN : 0);
    if (opts.all == (cli->operand_count == 2))
        return cli_usage(cli, "ckpt rm needs RUN and either STEP or --all");
    int code = opts.all ? 0 : ckpt_step(cli, &step, cli->operands[1]);
    if (!code && !opts.all && step == WEIR_STEP_NEWEST)
        code = cli_usage(cli, "ckpt rm needs a step that is a number");
    if (!code)
        code = cli_store_open(cli, CLI_WRITE, 0, NULL);
    if (code)
        return code;
    code = weir_ckpt_remove(cli->store, cli->operands[0], step, flags, grace_s, ckpt_rows_add,
                            &rows, &result);
    if (code == -EPERM)
        weir_fail(EPERM, "%s (--force removes it all the same)", strdupa(weir_error_text()));
    if (!code)
        ckpt_report(cli, &rows, &result, opts.dry_run, grace_s);
    ckpt_rows_free(&rows);
    return code;
}

const struct command cmd_ckpt_rm = {
    .name = "ckpt rm",
    .operands = "RUN [STEP]",
    .operands_min = 1,
    .operands_max = 2,
    .summary = "Let a checkpoint, or all of a run, go",
    .about =
        "Retires the checkpoints of that step (there are several if it was saved again): from then "
        "on nobody finds them. When the grace has passed they are deleted, as weir ckpt prune "
        "says. One that has a name, and the newest of which nothing is missing, only go with "
        "--force. The run's log stays, so that older processes of it are still recognised.",
    .example = "weir ckpt rm llama/pretrain 90000\n"
               "weir ckpt rm llama/test --all --force --grace 0",
    .json = CKPT_REPORT_JSON,
    .options = options,
    .fields = &opts,
    .run = run,
};
