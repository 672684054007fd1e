/* cmd_log_ls.c - weir log ls: the logs of a store, and where each stands. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/names.h"
#include "store/ledger.h"
#include "util/err.h"

static json_t *to_json(const char *name, const struct weir_ledger_state *state, size_t live)
{
    char when[FORMAT_TIME_BYTES];
    const struct weir_ledger_entry *newest = weir_ledger_find(state, NULL);
    json_t *object =
        json_pack("{s:o, s:I, s:I, s:I, s:I, s:s}", "name", cli_text_json(name), "records",
                  (json_int_t)state->record.number, "attempt", (json_int_t)state->attempt, "live",
                  (json_int_t)live, "retired", (json_int_t)(state->count - live), "time",
                  format_time_json(when, state->record.time_ns));
    if (newest)
        json_object_set_new(object, "newest", cli_text_json(newest->save.name));
    return object;
}

static void show_failure(struct cli *cli, const char *name, int code)
{
    cli_error(cli, weir_error_text());
    if (cli->json)
        json_array_append_new(cli->doc,
                              json_pack("{s:o, s:o}", "name", cli_text_json(name), "error",
                                        cli_error_json(code, weir_error_text())));
}

static int show(struct cli *cli, const char *name)
{
    struct weir_ledger *ledger;
    struct weir_ledger_state state;
    char when[FORMAT_TIME_BYTES];
    size_t live = 0;
    int code = weir_ledger_open(&ledger, cli->store, name);
    if (code)
        return code;
    code = weir_ledger_read(ledger, &state);
    if (!code && !state.record.number) /* but it was found: by what is behind a hole */
        code = weir_log_check_head(weir_ledger_log(ledger), &state.record);
    weir_ledger_close(ledger);
    if (code)
        return code;
    for (size_t i = 0; i < state.count; i++)
        live += !state.entries[i].retired_ns;
    const struct weir_ledger_entry *newest = weir_ledger_find(&state, NULL);
    if (cli->json)
        json_array_append_new(cli->doc, to_json(name, &state, live));
    else
        printf("%8" PRIu64 "  %5zu  %-19s  %-12s  %s\n", state.record.number, live,
               format_time(when, state.record.time_ns), newest ? newest->save.name : "-", name);
    weir_state_free(&state);
    return 0;
}

static int run(struct cli *cli)
{
    struct names names = {0};
    int shown = 0, code = cli_store_open(cli, CLI_READ, 0, NULL);
    if (!code)
        code = weir_ledger_each(cli->store, names_add, &names);
    if (!code && cli->json)
        cli->doc = json_array();
    if (!code && names.count && !cli->json && !cli->quiet)
        printf("%8s  %5s  %-19s  %-12s  %s\n", "records", "saves", "changed", "newest", "log");
    names_sort(&names);
    for (size_t i = 0; !code && i < names.count; i++) {
        int bad = show(cli, names.name[i]);
        if (bad) { /* a damaged log does not hide the others */
            show_failure(cli, names.name[i], bad);
            shown = CLI_FAILED;
        }
    }
    names_free(&names);
    return code ? code : shown;
}

const struct command cmd_log_ls = {
    .name = "log ls",
    .operands = "",
    .operands_min = 0,
    .operands_max = 0,
    .summary = "List the logs, in which group commits are recorded",
    .about =
        "A log makes things visible that consist of many objects, such as a checkpoint: all of it "
        "at once, or none. For each log there are the number of its records, the saves that are "
        "live, when it changed last, and the newest save.",
    .example = "weir log ls\n"
               "weir log ls --json | jq -r '.[].name'",
    .json =
        "an array: for each log name, records, attempt, live, retired, time, newest; of a damaged "
        "one name and error",
    .run = run,
};
