/* cmd_verify.c - weir verify: every byte of every object is read and checked. */
#include <errno.h>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/work.h"

static struct {
    uint64_t jobs;
} opts;

static const struct weir_opt options[] = {
    WORK_OPT_JOBS(offsetof(typeof(opts), jobs), "objects"),
    {0},
};

static int on_progress(void *arg, uint64_t more)
{
    (void)arg;
    progress_bytes(more);
    return stop_asked();
}

static int verify_one(struct cli *cli, struct item *item)
{
    int code = weir_verify(cli->store, item->key, on_progress, NULL);
    if (code == -ECANCELED)
        return stop_fail();
    if (code == -ENOENT || code == -ESTALE) { /* removed since it was listed: not damage */
        item->state = ITEM_GONE;
        return 0;
    }
    return code;
}

static int collect(struct cli *cli, struct items *items)
{
    return items_add_prefix(items, cli->store, cli->operand_count ? cli->operands[0] : "",
                            WEIR_LIST_DETAIL);
}

static int run(struct cli *cli)
{
    const struct work work = {
        .doing = "verifying",
        .done = "verified",
        .access = CLI_READ,
        .jobs = opts.jobs,
        .summary = true,
        .collect = collect,
        .one = verify_one,
    };
    return work_run(cli, &work);
}

const struct command cmd_verify = {
    .name = "verify",
    .operands = "[PREFIX]",
    .operands_min = 0,
    .operands_max = 1,
    .summary = "Read all objects and check every block against its fingerprint",
    .about =
        "Checks the whole store, or what is below PREFIX. Each object that is damaged is named on "
        "standard error, with the block and the byte range, and the others are checked all the "
        "same; then the exit code is 1.\n\n"
        "Of a plain file that others put there, the fingerprints are learned the first time.",
    .example = "weir verify\n"
               "weir verify models/llama --jobs 8",
    .json = "objects: for each object key, status (verified, failed, gone or skipped), size_bytes, "
            "error; and done, failed and size_bytes in all",
    .options = options,
    .fields = &opts,
    .run = run,
};
