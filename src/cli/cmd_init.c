/* cmd_init.c - weir init: an empty store is made. */
#include <errno.h>

#include "cli/commands.h"
#include "cli/format.h"
#include "util/err.h"

enum { NS_PER_S = 1000000000, YEAR_S = 365 * 86400 };

static struct {
    uint64_t grace_ns; /* 0: the default */
} opts;

static const struct weir_opt options[] = {
    {"grace", 0, WEIR_OPT_DURATION, offsetof(typeof(opts), grace_ns), NULL, "TIME",
     "how long gc leaves what a crash left (default: 1d); longer than twice the longest write", 1,
     YEAR_S},
    {0},
};

static int run(struct cli *cli)
{
    bool made = false;
    char grace[FORMAT_TIME_BYTES];
    weir_store_info info;
    uint64_t grace_s = opts.grace_ns / NS_PER_S;
    int code = cli_store_open(cli, CLI_MAKE, grace_s, &made);
    if (!code)
        code = weir_store_info_get(cli->store, &info);
    if (code)
        return code;
    if (!made && grace_s && grace_s != info.grace_s)
        return weir_fail(EEXIST,
                         "'%s' is a store already, with a grace of %s: that cannot be changed",
                         info.url, format_duration(grace, info.grace_s));
    if (!made)
        cli_note(cli, "%s is a store already", info.url);
    if (cli->json)
        cli->doc = json_pack("{s:o, s:s, s:b, s:I}", "store", cli_text_json(info.url), "uuid",
                             info.uuid, "made", made, "grace_s", (json_int_t)info.grace_s);
    return 0;
}

const struct command cmd_init = {
    .name = "init",
    .operands = "",
    .operands_min = 0,
    .operands_max = 0,
    .summary = "Make an empty store",
    .about = "weir put makes a store when it needs one; this does it explicitly, and can set the "
             "grace. A directory that holds files already can be made a store, too: they stay what "
             "they are, and can be read and listed as foreign objects.",
    .example = "weir init --store /mnt/nvme/store --grace 6h",
    .json = "store, uuid, made (whether it was made just now), grace_s",
    .options = options,
    .fields = &opts,
    .run = run,
};
