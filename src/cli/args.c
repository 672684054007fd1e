/* args.c - see args.h. The command is found first, by what is known of all commands' options, so
 * that its own options may stand before it.
 */
#include "cli/args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/suggest.h"
#include "util/err.h"

/* An option and what it sets. */
struct slot {
    const struct weir_opt *opt; /* NULL: there is no such option */
    void *fields;
};

/* name NULL: by letter. */
static const struct weir_opt *find_in(const struct weir_opt *table, const char *name, char letter)
{
    if (name)
        return table ? weir_opt_find(table, name) : NULL;
    for (const struct weir_opt *opt = table; opt && opt->name; opt++)
        if (opt->letter && opt->letter == letter)
            return opt;
    return NULL;
}

/* An option of this command, or a global one; while the command is not known, of any. */
static struct slot find_option(struct cli *cli, const char *name, char letter)
{
    struct slot slot = {find_in(cli_global_options, name, letter), cli};
    for (const struct command *const *c = cli_commands; !slot.opt && *c; c++)
        if (!cli->command || cli->command == *c)
            slot = (struct slot){find_in((*c)->options, name, letter), (*c)->fields};
    return slot;
}

static bool takes_value(const struct weir_opt *opt)
{
    return opt && opt->type != WEIR_OPT_FLAG;
}

static bool is_option(const char *arg)
{
    return arg[0] == '-' && arg[1];
}

/* Cuts "--name=value" into name (a copy the caller frees) and value (NULL: none). */
static char *cut_long(const char *arg, const char **value)
{
    const char *equals = strchr(arg, '=');
    *value = equals ? equals + 1 : NULL;
    return strndup(arg + 2, equals ? (size_t)(equals - arg - 2) : strlen(arg + 2));
}

/* Whether the value of an option, as far as options are known, is the next argument. */
static bool value_is_next(struct cli *cli, const char *arg)
{
    if (arg[1] == '-') {
        const char *value;
        char *name = cut_long(arg, &value);
        bool next = name && !value && takes_value(find_option(cli, name, 0).opt);
        free(name);
        return next;
    }
    for (const char *letter = arg + 1; *letter; letter++)
        if (takes_value(find_option(cli, NULL, *letter).opt))
            return !letter[1];
    return false;
}

/* Where in argv, from i on, the first word stands that is no option; argc if nowhere. */
static int find_word(struct cli *cli, int argc, char **argv, int i)
{
    for (; i < argc; i++) {
        if (!strcmp(argv[i], "--"))
            return i + 1 < argc ? i + 1 : argc;
        if (!is_option(argv[i]))
            return i;
        if (value_is_next(cli, argv[i]))
            i++;
    }
    return argc;
}

static int unknown_command(struct cli *cli, const char *name)
{
    struct weir_suggestion s = {.typed = name};
    for (const struct command *const *c = cli_commands; *c; c++)
        weir_suggest_add(&s, (*c)->name);
    if (s.best)
        return cli_usage(cli, "there is no command '%s': did you mean %s?", name, s.best);
    return cli_usage(cli, "there is no command '%s'", name);
}

static int unknown_option(struct cli *cli, const char *name)
{
    struct weir_suggestion s = {.typed = name};
    const struct weir_opt *tables[] = {cli->command ? cli->command->options : NULL,
                                       cli_global_options};
    for (size_t t = 0; t < 2; t++)
        for (const struct weir_opt *opt = tables[t]; opt && opt->name; opt++)
            weir_suggest_add(&s, opt->name);
    if (s.best)
        return cli_usage(cli, "there is no option '--%s': did you mean --%s?", name, s.best);
    return cli_usage(cli, "there is no option '--%s'", name);
}

static int set(struct cli *cli, struct slot slot, const char *value)
{
    if (!value && takes_value(slot.opt))
        return cli_usage(cli, "--%s needs a value (%s)", slot.opt->name, slot.opt->arg);
    if (weir_opt_set(slot.opt, slot.fields, value ? value : ""))
        return cli_usage(cli, "--%s", weir_error_text());
    if (!cli_was_given(cli, slot.opt->name) && cli->given_count < CLI_GIVEN_MAX)
        cli->given[cli->given_count++] = slot.opt;
    return 0;
}

static int read_long(struct cli *cli, char **argv, int *i)
{
    const char *value;
    char *name = cut_long(argv[*i], &value);
    if (!name)
        return weir_fail_memory();
    struct slot slot = find_option(cli, name, 0);
    if (!value && takes_value(slot.opt) && argv[*i + 1])
        value = argv[++*i];
    int code = slot.opt ? set(cli, slot, value) : unknown_option(cli, name);
    free(name);
    return code;
}

/* "-lr" is "-l -r"; "-j8" is "-j 8". */
static int read_short(struct cli *cli, char **argv, int *i)
{
    int code = 0;
    for (const char *letter = argv[*i] + 1; !code && *letter; letter++) {
        struct slot slot = find_option(cli, NULL, *letter);
        if (!slot.opt)
            return cli_usage(cli, "there is no option '-%c'", *letter);
        if (!takes_value(slot.opt)) {
            code = set(cli, slot, NULL);
            continue;
        }
        return set(cli, slot, letter[1] ? letter + 1 : argv[*i + 1] ? argv[++*i] : NULL);
    }
    return code;
}

static int check_operands(struct cli *cli)
{
    const struct command *c = cli->command;
    if (cli->help || cli->version)
        return 0;
    if (cli->operand_count < c->operands_min)
        return cli_usage(cli, "%s needs %s", c->name, c->operands);
    if (c->operands_max >= 0 && cli->operand_count > c->operands_max)
        return cli_usage(cli, "%s: '%s' is one too many; usage: weir %s %s", c->name,
                         cli->operands[c->operands_max], c->name, c->operands);
    return 0;
}

/* A wrong call, too, is answered in JSON when that was asked for. */
static void look_for_json(struct cli *cli, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], "--json"))
            cli->json = true;
}

/* Finds the command, whose words are then at *at and, if it has two, at *second. */
static int read_command(struct cli *cli, int argc, char **argv, int *at, int *second)
{
    char name[64];
    *at = find_word(cli, argc, argv, 1);
    *second = argc;
    if (*at == argc)
        return 0;
    snprintf(name, sizeof name, "%s", argv[*at]);
    if (cli_is_group(name)) {
        cli->group = argv[*at];
        *second = find_word(cli, argc, argv, *at + 1);
        if (*second == argc)
            return 0;
        snprintf(name, sizeof name, "%s %.40s", cli->group, argv[*second]);
    }
    cli->command = cli_command_find(name);
    return cli->command ? 0 : unknown_command(cli, name);
}

int args_read(struct cli *cli, int argc, char **argv)
{
    int at, second;
    bool options = true;
    weir_opt_defaults(cli_global_options, cli);
    look_for_json(cli, argc, argv);
    cli->operands = calloc((size_t)argc, sizeof *cli->operands);
    if (!cli->operands)
        return weir_fail_memory();
    int code = read_command(cli, argc, argv, &at, &second);
    if (!code && cli->command && cli->command->options)
        weir_opt_defaults(cli->command->options, cli->command->fields);
    for (int i = 1; i < argc && !code; i++) {
        if (i == at || i == second)
            continue;
        if (options && !strcmp(argv[i], "--"))
            options = false;
        else if (!options || !is_option(argv[i]))
            cli->operands[cli->operand_count++] = argv[i];
        else
            code = argv[i][1] == '-' ? read_long(cli, argv, &i) : read_short(cli, argv, &i);
    }
    if (!code && cli->command)
        code = check_operands(cli);
    return code;
}
