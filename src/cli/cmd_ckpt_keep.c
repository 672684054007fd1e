/* cmd_ckpt_keep.c - weir ckpt keep: a checkpoint gets a name, and stays while it has one. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/ckpt.h"
#include "cli/commands.h"

static struct {
    const char *drop;
} opts;

static const struct weir_opt options[] = {
    {"drop", 0, WEIR_OPT_TEXT, offsetof(typeof(opts), drop), NULL, "NAME",
     "take this name off, instead of giving one", 0, 0},
    {0},
};

static int drop(struct cli *cli, const char *run)
{
    uint64_t was;
    int code = weir_ckpt_unname(cli->store, run, opts.drop, &was);
    if (code)
        return code;
    cli_say(cli, "step %" PRIu64 " of %s is not %s any more", was, run, opts.drop);
    if (cli->json)
        cli->doc = json_pack("{s:s, s:n, s:I}", "name", opts.drop, "step", "was", (json_int_t)was);
    return 0;
}

static int keep(struct cli *cli, const char *run, uint64_t step, const char *name)
{
    weir_restore *restore;
    uint64_t was;
    int code = weir_ckpt_name(cli->store, run, step, name, &was);
    if (!code && step == WEIR_STEP_NEWEST) {
        code = weir_restore_open_named(&restore, cli->store, run, name);
        if (!code) {
            step = weir_restore_info_get(restore)->step;
            weir_restore_close(restore);
        }
    }
    if (code)
        return code;
    if (was != WEIR_STEP_NEWEST && was != step)
        cli_say(cli, "step %" PRIu64 " of %s is %s (it was step %" PRIu64 ")", step, run, name,
                was);
    else
        cli_say(cli, "step %" PRIu64 " of %s is %s", step, run, name);
    if (cli->json)
        cli->doc = json_pack("{s:s, s:I, s:o}", "name", name, "step", (json_int_t)step, "was",
                             was == WEIR_STEP_NEWEST ? json_null() : json_integer((json_int_t)was));
    return 0;
}

static int run(struct cli *cli)
{
    uint64_t step = 0;
    if (opts.drop && cli->operand_count != 1)
        return cli_usage(cli, "--drop takes a name off: a run is all it needs");
    if (!opts.drop && cli->operand_count != 3)
        return cli_usage(cli, "ckpt keep needs RUN STEP NAME");
    int code = opts.drop ? 0 : ckpt_step(cli, &step, cli->operands[1]);
    if (!code)
        code = cli_store_open(cli, CLI_WRITE, 0, NULL);
    if (code)
        return code;
    return opts.drop ? drop(cli, cli->operands[0])
                     : keep(cli, cli->operands[0], step, cli->operands[2]);
}

const struct command cmd_ckpt_keep = {
    .name = "ckpt keep",
    .operands = "RUN [STEP NAME]",
    .operands_min = 1,
    .operands_max = 3,
    .summary = "Give a checkpoint a name, under which it stays",
    .about =
        "While a checkpoint has a name (best, release) neither the retention of its run nor weir "
        "ckpt prune lets it go. A name belongs to one checkpoint of a run at a time: given to "
        "another, it moves there. A checkpoint may have several. Wherever a command takes a STEP "
        "to look at, it takes a name, too.",
    .example = "weir ckpt keep llama/pretrain 120000 best\n"
               "weir ckpt keep llama/pretrain --drop best",
    .json = "name, step (null if it was taken off), was (the step that had it before, or null)",
    .options = options,
    .fields = &opts,
    .run = run,
};
