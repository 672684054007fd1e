/* cmd_ckpt_ls.c - weir ckpt ls: the runs of a store, or the checkpoints of a run. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/ckpt.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/names.h"

static struct {
    bool all;
} opts;

static const struct weir_opt options[] = {
    {"all", 'a', WEIR_OPT_FLAG, offsetof(typeof(opts), all), "no", NULL,
     "of a run, also those that are retired, but not deleted yet", 0, 0},
    {0},
};

/* ---- runs ---- */

struct total {
    size_t count;
    uint64_t newest, time_ns, bytes;
};

static int add_up(void *arg, const weir_ckpt_info *info)
{
    struct total *total = arg;
    total->count++;
    total->newest = info->step;
    total->time_ns = info->time_ns;
    total->bytes += info->size_bytes;
    return 0;
}

static void show_failure(struct cli *cli, const char *run, int code)
{
    cli_error(cli, weir_error_text());
    if (cli->json)
        json_array_append_new(cli->doc, json_pack("{s:o, s:o}", "run", cli_text_json(run), "error",
                                                  cli_error_json(code, weir_error_text())));
}

static int show_run(struct cli *cli, const char *run)
{
    struct total t = {0};
    char size[32], when[FORMAT_TIME_BYTES], newest[24] = "-";
    int code = weir_ckpt_each(cli->store, run, WEIR_CKPT_SIZES, add_up, &t);
    if (code) {
        show_failure(cli, run, code);
        return CLI_FAILED;
    }
    if (t.count)
        snprintf(newest, sizeof newest, "%" PRIu64, t.newest);
    if (!cli->json) {
        printf("%11zu  %10s  %-19s  %9s  %s\n", t.count, newest,
               t.count ? format_time(when, t.time_ns) : "-",
               weir_format_size(size, sizeof size, t.bytes), run);
        return 0;
    }
    json_t *object = json_pack("{s:o, s:I, s:I}", "run", cli_text_json(run), "checkpoints",
                               (json_int_t)t.count, "size_bytes", (json_int_t)t.bytes);
    if (t.count) {
        json_object_set_new(object, "newest", json_integer((json_int_t)t.newest));
        json_object_set_new(object, "time", json_string(format_time_json(when, t.time_ns)));
    }
    json_array_append_new(cli->doc, object);
    return 0;
}

static int show_runs(struct cli *cli)
{
    struct names names = {0};
    int shown = 0, code = weir_ckpt_runs(cli->store, names_add, &names);
    if (!code && names.count && !cli->json && !cli->quiet)
        printf("%11s  %10s  %-19s  %9s  %s\n", "checkpoints", "newest", "committed", "size", "run");
    names_sort(&names);
    for (size_t i = 0; !code && i < names.count; i++)
        shown |= show_run(cli, names.name[i]); /* a damaged one does not hide the others */
    names_free(&names);
    return code ? code : shown;
}

/* ---- checkpoints ---- */

enum { ATTEMPT_COLUMNS = 11 };

struct shown {
    struct cli *cli;
    int failed;
    bool any;
};

static int show_one(void *arg, const weir_ckpt_info *info)
{
    struct shown *shown = arg;
    char size[32], when[FORMAT_TIME_BYTES], names[256], number[48];
    if (info->error) {
        cli_error(shown->cli, weir_error_text());
        shown->failed = CLI_FAILED;
    }
    if (shown->cli->json) {
        json_array_append_new(shown->cli->doc, ckpt_json(info));
        return 0;
    }
    if (!shown->any && !shown->cli->quiet)
        printf("%10s  %-19s  %9s  %5s  %-9s  %s\n", "step", "committed", "size", "ranks", "attempt",
               "name");
    shown->any = true;
    snprintf(number, sizeof number, "%" PRIu64 ".%" PRIu64, info->attempt, info->save);
    ckpt_names(names, sizeof names, info);
    const char *last = info->retired_ns ? "(retired)" : names;
    printf("%10" PRIu64 "  %-19s  %9s  %5u  %-*s%s\n", info->step, format_time(when, info->time_ns),
           info->error ? "damaged" : weir_format_size(size, sizeof size, info->size_bytes),
           info->ranks, *last ? ATTEMPT_COLUMNS : 0, number, last);
    return 0;
}

static int show_checkpoints(struct cli *cli, const char *run)
{
    struct shown shown = {.cli = cli};
    uint32_t flags = WEIR_CKPT_SIZES | (opts.all ? WEIR_CKPT_RETIRED : 0);
    int code = weir_ckpt_each(cli->store, run, flags, show_one, &shown);
    return code ? code : shown.failed;
}

static int run(struct cli *cli)
{
    if (opts.all && !cli->operand_count)
        return cli_usage(cli, "--all is for the checkpoints of a RUN");
    int code = cli_store_open(cli, CLI_READ, 0, NULL);
    if (code)
        return code;
    if (cli->json)
        cli->doc = json_array();
    return cli->operand_count ? show_checkpoints(cli, cli->operands[0]) : show_runs(cli);
}

const struct command cmd_ckpt_ls = {
    .name = "ckpt ls",
    .operands = "[RUN]",
    .operands_min = 0,
    .operands_max = 1,
    .summary = "List the runs, or the checkpoints of a run",
    .about =
        "Without RUN: how many checkpoints each run has, the newest step, when it was committed, "
        "and the bytes of all. With RUN: its checkpoints, oldest first, with the attempt that made "
        "each and its number among the saves of that attempt. One of which something is missing or "
        "damaged is named on standard error, and the exit code is 1; its bytes are not read (weir "
        "ckpt verify does that).",
    .example = "weir ckpt ls\n"
               "weir ckpt ls llama/pretrain\n"
               "weir ckpt ls llama/pretrain --json | jq '.[-1].step'",
    .json = "an array: for each run run, checkpoints, size_bytes, newest, time, or error; for each "
            "checkpoint step, attempt, save, time, ranks, size_bytes, names, prefix, live, retired "
            "(when), error",
    .options = options,
    .fields = &opts,
    .run = run,
};
