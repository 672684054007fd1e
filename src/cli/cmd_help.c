/* cmd_help.c - weir help: the manual. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/doc.h"

static struct {
    bool man, markdown;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"man", 0, WEIR_OPT_FLAG, AT(man), "no", NULL, "as a man page", 0, 0},
    {"markdown", 0, WEIR_OPT_FLAG, AT(markdown), "no", NULL, "as Markdown", 0, 0},
    {0},
};

static int run(struct cli *cli)
{
    char name[64] = "";
    const char *topic = cli->operand_count ? name : NULL;
    for (int i = 0; i < cli->operand_count; i++)
        snprintf(name + strlen(name), sizeof name - strlen(name), "%s%s", i ? " " : "",
                 cli->operands[i]);
    const struct command *command = topic ? cli_command_find(topic) : NULL;
    bool group = topic && cli_is_group(topic);
    bool urls = topic && !strcmp(topic, "urls"), plain = !opts.man && !opts.markdown;
    const struct doc_format *format = opts.markdown ? &doc_markdown : &doc_text;
    if (opts.man)
        format = &doc_man;
    if (opts.man && opts.markdown)
        return cli_usage(cli, "--man and --markdown are two things");
    if (topic && !command && !group && !urls)
        return cli_usage(cli, "there is no command '%s' to help with", topic);
    if (cli->json) {
        cli->doc = doc_json();
        return 0;
    }
    if (opts.man && topic)
        format->begin();
    if (command)
        doc_command(format, command);
    else if (group)
        doc_group(format, topic);
    else if (urls)
        doc_urls(format);
    else if (plain)
        doc_overview(format);
    else
        doc_reference(format);
    return 0;
}

const struct command cmd_help = {
    .name = "help",
    .operands = "[COMMAND|urls]",
    .operands_min = 0,
    .operands_max = 2,
    .summary = "Explain a command, or how stores are named",
    .about =
        "Without an argument it lists the commands; weir help urls is about --store. The man page "
        "and the reference are made from the same tables.",
    .example = "weir help put\n"
               "weir help urls",
    .json =
        "commands: for each its name, usage, summary and options (name, letter, value, default, "
        "help); and options, those of all commands",
    .options = options,
    .fields = &opts,
    .run = run,
};
