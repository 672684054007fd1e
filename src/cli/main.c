/* main.c - the weir command: reads the command line, runs the command, and turns its answer into
 * what a person or a script sees, and into an exit code.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/doc.h"
#include "cli/stop.h"
#include "cli/traffic.h"
#include "util/err.h"

enum { EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

#define AT(field) offsetof(struct cli, field)

const struct weir_opt cli_global_options[] = {
    {"store", 's', WEIR_OPT_TEXT, AT(store_url), NULL, "URL",
     "the store: a path or a URL (default: $WEIR_STORE, else ./weir-store)", 0, 0},
    {"json", 0, WEIR_OPT_FLAG, AT(json), "no", NULL, "print one JSON document, for scripts", 0, 0},
    {"quiet", 'q', WEIR_OPT_FLAG, AT(quiet), "no", NULL,
     "no results, remarks and progress, only what was asked for and errors", 0, 0},
    {"stats", 0, WEIR_OPT_FLAG, AT(stats), "no", NULL,
     "print what the store's tier had to do, on standard error", 0, 0},
    {"io", 0, WEIR_OPT_TEXT, AT(io), NULL, "ENGINE",
     "uring or threads (default: $WEIR_IO, else the best that works)", 0, 0},
    {"help", 'h', WEIR_OPT_FLAG, AT(help), "no", NULL, "explain the command", 0, 0},
    {"version", 0, WEIR_OPT_FLAG, AT(version), "no", NULL, "show the version", 0, 0},
    {0},
};

const struct command *const cli_commands[] = {
    &cmd_init,
    &cmd_put,
    &cmd_get,
    &cmd_cat,
    &cmd_ls,
    &cmd_stat,
    &cmd_rm,
    &cmd_verify,
    &cmd_ckpt_ls,
    &cmd_ckpt_show,
    &cmd_ckpt_verify,
    &cmd_ckpt_diff,
    &cmd_ckpt_export,
    &cmd_ckpt_import,
    &cmd_ckpt_keep,
    &cmd_ckpt_prune,
    &cmd_ckpt_rm,
    &cmd_log_ls,
    &cmd_log_show,
    &cmd_log_verify,
    &cmd_data_index,
    &cmd_data_ls,
    &cmd_data_cat,
    &cmd_data_stats,
    &cmd_data_stream,
    &cmd_data_tune,
    &cmd_data_pack,
    &cmd_data_manifest,
    &cmd_data_sign,
    &cmd_data_verify,
    &cmd_plan_read,
    &cmd_plan_checkpoint,
    &cmd_plan_interval,
    &cmd_plan_raid,
    &cmd_plan_cliff,
    &cmd_plan_endurance,
    &cmd_plan_durability,
    &cmd_plan_cost,
    &cmd_plan_format,
    &cmd_plan_cluster,
    &cmd_plan_simulate,
    &cmd_plan_catalog,
    &cmd_trace,
    &cmd_bench,
    &cmd_gc,
    &cmd_version,
    &cmd_help,
    NULL,
};

static int run(struct cli *cli)
{
    if (cli->version)
        return cmd_version.run(cli);
    if (cli->help && cli->command) {
        doc_command(&doc_text, cli->command);
        return 0;
    }
    if (cli->help && cli->group) {
        doc_group(&doc_text, cli->group);
        return 0;
    }
    if (cli->help)
        return cmd_help.run(cli);
    if (!cli->command)
        return cli_usage(cli, cli->group ? "'%s' is followed by a command" : "a command is missing",
                         cli->group);
    if (cli->io && strcmp(cli->io, "uring") && strcmp(cli->io, "threads"))
        return cli_usage(cli, "--io: '%s' is neither uring nor threads", cli->io);
    return cli->command->run(cli);
}

/* Shows a failure that is still to be shown, and puts it into the document. */
static void report(struct cli *cli, int code)
{
    const char *text = weir_error_text();
    if (stop_signal() == SIGPIPE)
        return; /* whoever would read it has gone */
    cli_error(cli, text);
    if (!cli->json)
        return;
    if (!json_is_object(cli->doc)) {
        json_decref(cli->doc); /* half a listing is none */
        cli->doc = json_object();
    }
    json_t *error = cli_error_json(code, text);
    if (cli->usage)
        json_object_set_new(error, "code", json_string("USAGE"));
    json_object_set_new(cli->doc, "error", error);
}

static int exit_code(const struct cli *cli, int code)
{
    if (code == -EINTR && stop_signal())
        return EXIT_SIGNAL + stop_signal();
    if (cli->usage)
        return EXIT_USAGE;
    return code ? EXIT_FAILURE : cli->status;
}

/* Results that could not be written are a failure, too. */
static int flush_output(void)
{
    int code = cli_flush();
    if (code == -EPIPE) {
        stop_for_closed_pipe();
        return -EINTR;
    }
    if (code)
        fprintf(stderr, "weir: cannot write to standard output: %s\n", weir_errno_text(code));
    return code;
}

/* A file that took the number of a closed stream would get what is meant for that. What is opened
 * here instead fails when it is used. */
static void fill_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    struct cli cli = {0};
    fill_closed_streams();
    stop_install();
    int code = args_read(&cli, argc, argv);
    if (!code)
        code = run(&cli);
    if (code < 0 && !cli.reported)
        report(&cli, code);
    if (cli.store && cli.stats)
        traffic_print(cli.store);
    weir_store_close(cli.store);
    if (cli.doc) {
        json_dumpf(cli.doc, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(cli.doc);
    }
    free(cli.operands);
    int flushed = flush_output();
    return exit_code(&cli, code ? code : flushed);
}
