/* cmd_version.c - weir version: what this is, and how it does I/O here. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/format.h"

static struct {
    bool verbose;
} opts;

static const struct weir_opt options[] = {
    {"verbose", 'v', WEIR_OPT_FLAG, offsetof(typeof(opts), verbose), "no", NULL,
     "also the kernel, the I/O engine, the kinds of tiers", 0, 0},
    {0},
};

static int add_line(void *arg, const char *name, const char *value)
{
    struct cli *cli = arg;
    if (cli->json)
        json_object_set_new(cli->doc, name, cli_text_json(value));
    else
        format_field(name, "%s", value);
    return 0;
}

static int run(struct cli *cli)
{
    if (cli->json)
        cli->doc = json_pack("{s:s}", "version", weir_version());
    if (opts.verbose)
        return weir_describe(add_line, cli);
    if (!cli->json)
        printf("weir %s\n", weir_version());
    return 0;
}

const struct command cmd_version = {
    .name = "version",
    .operands = "",
    .operands_min = 0,
    .operands_max = 0,
    .summary = "Show the version, and how this build and machine do I/O",
    .about = "With --verbose it says, among others, whether io_uring is used here and if not, why.",
    .example = "weir version --verbose",
    .json = "version; with --verbose also kernel, io, tiers, fingerprints",
    .options = options,
    .fields = &opts,
    .run = run,
};
