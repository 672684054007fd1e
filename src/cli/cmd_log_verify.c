/* cmd_log_verify.c - weir log verify: is each log one chain, and is there what it names? */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "store/view.h"
#include "util/err.h"

struct tally {
    struct cli *cli;
    uint64_t records, saves, parts, refs;
    bool failed;
};

static int verify_ref(struct weir_view *view, const struct weir_ref *ref)
{
    weir_object *obj;
    struct weir_table *table;
    int code;
    if (ref->kind == WEIR_REF_TABLE) {
        code = weir_view_table(view, ref, &table);
        if (!code)
            weir_table_close(table);
    } else {
        code = weir_view_object(view, ref, &obj);
        if (!code)
            weir_object_close(obj);
    }
    return code;
}

static int verify_save(struct weir_ledger *ledger, const struct weir_save *save, struct tally *sum)
{
    struct weir_view *view;
    struct weir_part part;
    int code = weir_view_open_save(&view, ledger, save);
    if (code)
        return code == -ESTALE ? 0 : code; /* retired since: not damage */
    for (uint32_t i = 0; !code && i < save->parts; i++) {
        code = weir_view_part(view, i, &part);
        const uint8_t *at = part.refs_at;
        for (uint32_t k = 0; !code && k < part.refs; k++) {
            struct weir_ref ref;
            weir_part_ref(&ref, &at);
            code = verify_ref(view, &ref);
            sum->refs += !code;
        }
        sum->parts += !code;
    }
    sum->saves += !code;
    weir_view_close(view);
    return code;
}

/* Each save that is damaged is named; the others are looked at all the same. */
static void note_failure(struct tally *sum, json_t *errors, int code)
{
    cli_error(sum->cli, weir_error_text());
    if (sum->cli->json)
        json_array_append_new(errors, cli_error_json(code, weir_error_text()));
    sum->failed = true;
}

static int verify_saves(struct weir_ledger *ledger, struct tally *sum, json_t *errors)
{
    struct weir_ledger_state state;
    int code = weir_ledger_read(ledger, &state);
    if (code)
        return code;
    for (size_t i = 0; i < state.count; i++) {
        if (state.entries[i].retired_ns)
            continue;
        code = verify_save(ledger, &state.entries[i].save, sum);
        if (code)
            note_failure(sum, errors, code);
    }
    weir_state_free(&state);
    return 0;
}

static int verify_log(void *arg, const char *name)
{
    struct tally *all = arg, sum = {.cli = all->cli};
    struct weir_ledger *ledger;
    json_t *errors = sum.cli->json ? json_array() : NULL;
    int code = weir_ledger_open(&ledger, sum.cli->store, name);
    if (code)
        return code;
    code = weir_log_verify(weir_ledger_log(ledger), &sum.records);
    if (!code && !sum.records)
        code = weir_fail(ENOENT, "there is no log '%s'", name);
    if (!code)
        code = verify_saves(ledger, &sum, errors);
    if (code)
        note_failure(&sum, errors, code);
    weir_ledger_close(ledger);
    if (sum.cli->json)
        json_array_append_new(
            sum.cli->doc,
            json_pack("{s:o, s:I, s:I, s:I, s:I, s:b, s:o}", "name", cli_text_json(name), "records",
                      (json_int_t)sum.records, "saves", (json_int_t)sum.saves, "parts",
                      (json_int_t)sum.parts, "refs", (json_int_t)sum.refs, "ok", !sum.failed,
                      "errors", errors));
    cli_say(sum.cli,
            "%s %s: %" PRIu64 " records, %" PRIu64 " live saves of %" PRIu64 " parts with %" PRIu64
            " objects",
            sum.failed ? "damaged" : "verified", name, sum.records, sum.saves, sum.parts, sum.refs);
    all->failed |= sum.failed;
    return 0;
}

static int run(struct cli *cli)
{
    struct tally all = {.cli = cli};
    int code = cli_store_open(cli, CLI_READ, 0, NULL);
    if (code)
        return code;
    if (cli->json)
        cli->doc = json_array();
    if (!cli->operand_count)
        code = weir_ledger_each(cli->store, verify_log, &all);
    for (int i = 0; !code && i < cli->operand_count; i++)
        code = verify_log(&all, cli->operands[i]);
    return code ? code : all.failed ? CLI_FAILED : 0;
}

const struct command cmd_log_verify = {
    .name = "log verify",
    .operands = "[NAME…]",
    .operands_min = 0,
    .operands_max = -1,
    .summary = "Check that logs are unbroken and what they name is there",
    .about =
        "Walks each log (all, or those named) from its first record: every record must name the "
        "SHA-256 of the one before it. Then every live save: its parts, the seals of its objects, "
        "and the bytes of its tables must have the SHA-256 that the log names. What is damaged is "
        "named on standard error, the rest is checked all the same, and the exit code is 1.\n\n"
        "The bytes of objects are checked by weir verify.",
    .example = "weir log verify\n"
               "weir log verify ckpt/run",
    .json = "an array: for each log name, records, saves, parts, refs, ok, errors",
    .run = run,
};
